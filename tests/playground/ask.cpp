// Asks the playground's engine, built natively: ask WHAT < TEXT. With a number behind it, so many
// times; the milliseconds of the fastest go to standard error.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <limits>
#include <string>

#include "tools/playground/src/engine.hpp"

int main(int count, char** words) {
  if (count < 2) return 2;
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const int times = count > 2 ? std::atoi(words[2]) : 1;
  std::string reply;
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < times; ++i) {
    const auto started = std::chrono::steady_clock::now();
    reply = stageline::ask(words[1], text);
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - started;
    fastest = std::min(fastest, took.count());
  }
  std::fwrite(reply.data(), 1, reply.size(), stdout);
  if (times > 1) std::fprintf(stderr, "%.3f\n", fastest);
}
