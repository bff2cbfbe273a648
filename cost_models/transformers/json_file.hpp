// JSON files of this room: read whole, refused in a sentence.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace stageline {

enum class EqualKeys : std::uint8_t { refused, last };  // of equal keys, the last is kept

/// Throws TraceError, which begins with `file`, with line and column where `text` is no JSON, for
/// lists and objects that are nested more than 64 deep, and for more than 16 MiB.
nlohmann::json json_in_file(const std::string& text, const std::string& file, EqualKeys keys);

}  // namespace stageline
