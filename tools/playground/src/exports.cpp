// What the script of the page calls in the module.
#include <emscripten.h>

#include <string>

#include "tools/playground/src/engine.hpp"

extern "C" {

/// The reply, as it lies in memory until the next call.
EMSCRIPTEN_KEEPALIVE const char* stageline_ask(const char* what, const char* text);

const char* stageline_ask(const char* what, const char* text) {
  static std::string reply;
  reply = stageline::ask(what, text);
  return reply.c_str();
}
}
