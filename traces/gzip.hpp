// Reads gzip files, the format in which profilers write their traces, and writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stageline {

/// Whether `bytes` begin with the gzip magic number (RFC 1952).
bool is_gzip(std::string_view bytes);

/// What compressed data hold: a text has no zero byte, and is refused at the first one.
enum class Packed : std::uint8_t { text, bytes };

/// Decompresses gzip data; consecutive members yield one text. Throws TraceError where the data are
/// truncated, damaged, followed by other bytes, larger than `longest_unpacked`, or beyond
/// `unpacked_freely` more than `most_packed` times as large as they are packed.
std::string gunzip(const std::string& bytes, const std::string& file, Packed holds = Packed::text);
inline constexpr std::uint64_t longest_unpacked = std::uint64_t{4} << 30U;  // bytes
inline constexpr std::uint64_t unpacked_freely = std::uint64_t{64} << 20U;  // bytes
inline constexpr std::uint64_t most_packed = 256;  // profiles are packed 10 to 30 times, bombs 1000

/// `text` itself, decompressed if it is gzip data.
std::string unpacked(std::string text, const std::string& file, Packed holds = Packed::text);

/// One gzip member. The bytes depend on the text alone: no name, no time.
std::string gzipped(std::string_view text);

}  // namespace stageline
