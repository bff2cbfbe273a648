// Where zlib is not built in: gzip data are refused.
#include <utility>

#include "sim/base/errors.hpp"
#include "traces/gzip.hpp"

namespace stageline {

bool is_gzip(std::string_view bytes) { return bytes.substr(0, 2) == "\x1f\x8b"; }

std::string gunzip(const std::string& /*bytes*/, const std::string& file, Packed /*holds*/) {
  throw TraceError(file, "", "these are gzip data, which this build does not unpack; unpack them");
}

std::string unpacked(std::string text, const std::string& file, Packed holds) {
  return is_gzip(text) ? gunzip(text, file, holds) : std::move(text);
}

std::string gzipped(std::string_view /*text*/) {
  throw UsageError("this build writes no gzip data; leave out the ending .gz");
}

}  // namespace stageline
