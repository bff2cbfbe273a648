// gzip, as profilers write their traces.
#pragma once

#include <string>
#include <string_view>

namespace stageline {

/// Whether the bytes begin as gzip data do (RFC 1952).
bool is_gzip(std::string_view bytes);

/// What gzip data hold; several members in a row are one text. Throws TraceError where they are cut
/// off, damaged, followed by something else, or larger than `longest_unpacked`.
std::string gunzip(const std::string& bytes, const std::string& file);
inline constexpr std::size_t longest_unpacked = std::size_t{4} << 30U;  // bytes

/// The text itself, unpacked where it is gzip data.
std::string unpacked(std::string text, const std::string& file);

}  // namespace stageline
