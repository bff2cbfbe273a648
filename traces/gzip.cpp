// Decompresses and compresses gzip data with zlib.
#include "traces/gzip.hpp"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

// RAII wrapper around zlib's C stream: ends it on every path.
class Inflater {
 public:
  Inflater() {
    constexpr int gzip_only = 16 + MAX_WBITS;
    if (inflateInit2(&stream, gzip_only) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
};

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.substr(0, 2) == "\x1f\x8b"; }

std::string gunzip(const std::string& bytes, const std::string& file, Packed holds) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::string text;
  std::array<char, 1 << 16> chunk{};
  std::size_t taken = 0;
  bool within = true;  // inside a gzip member
  const auto refuse = [&](const std::string& message) {
    throw TraceError(file, fmt::format("byte {}", taken), message);
  };
  while (true) {
    if (stream.avail_in == 0 && taken < bytes.size()) {
      constexpr std::size_t most = std::numeric_limits<uInt>::max();
      stream.avail_in = static_cast<uInt>(std::min(most, bytes.size() - taken));
      // zlib's input pointer is not const, though zlib only reads through it.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data())) + taken;
      taken += stream.avail_in;
    }
    if (stream.avail_in == 0 && !within) return text;
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    within = true;
    const int state = inflate(&stream, Z_NO_FLUSH);
    const std::string_view part(chunk.data(), chunk.size() - stream.avail_out);
    const std::size_t zero = holds == Packed::text ? part.find('\0') : std::string_view::npos;
    if (zero != std::string_view::npos) {
      throw TraceError(file, fmt::format("byte {} unpacked", text.size() + zero),
                       "there is a zero byte, so this is no text");
    }
    text += part;
    if (text.size() > longest_unpacked) {
      refuse(fmt::format("the gzip data hold more than {} bytes; that much is not read",
                         longest_unpacked));
    }
    if (text.size() > unpacked_freely && text.size() / most_packed > bytes.size()) {
      refuse(fmt::format("the gzip data hold more than {} times their {} bytes; no recording does",
                         most_packed, bytes.size()));
    }
    if (state == Z_STREAM_END) {
      within = false;
      inflateReset(&stream);
    } else if (state == Z_BUF_ERROR) {
      refuse(fmt::format(
          "the gzip data end in the middle, after {} bytes of text; the file was cut off: "
          "copy or write it again",
          text.size()));
    } else if (state != Z_OK) {
      taken -= stream.avail_in;
      refuse(fmt::format("the gzip data are damaged ({})",
                         stream.msg != nullptr ? stream.msg : "no reason given"));
    }
  }
}

std::string unpacked(std::string text, const std::string& file, Packed holds) {
  return is_gzip(text) ? gunzip(text, file, holds) : std::move(text);
}

std::string gzipped(std::string_view text) {
  constexpr int gzip_header = 16 + MAX_WBITS;
  constexpr int memory_level = 8;
  constexpr std::size_t most_at_once = std::size_t{1} << 30U;  // zlib counts in 32 bits
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_header, memory_level,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string bytes;
  std::array<char, 1 << 16> chunk{};
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    const std::size_t taken = std::min(text.size(), most_at_once);
    // zlib's input pointer is not const, though zlib only reads through it.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(taken);
    const int flush = taken == text.size() ? Z_FINISH : Z_NO_FLUSH;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
      stream.avail_out = static_cast<uInt>(chunk.size());
      state = deflate(&stream, flush);
      bytes.append(chunk.data(), chunk.size() - stream.avail_out);
    } while (stream.avail_out == 0);
    text.remove_prefix(taken);
  }
  deflateEnd(&stream);
  return bytes;
}

}  // namespace stageline
