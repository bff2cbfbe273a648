// The measured collectives of a cluster file.
#pragma once

#include <string>
#include <vector>

#include "sim/measured_collective.hpp"
#include "traces/json/tree.hpp"

namespace stageline {

/// Adds an entry of "collectives" to those before it. Throws TraceError with the JSON pointer, also
/// for a second line of a group that has no "from", or one where the lines do not meet.
void read_measured_collective(const JsonNode& node, std::vector<MeasuredCollective>& collectives);

/// The same as texts, an object on one line each, with exact numbers but those of "from", which
/// follow from them.
std::vector<std::string> measured_collective_texts(const std::vector<MeasuredCollective>& measured);

/// {"collectives": [...]}, as a cluster file holds it.
std::string measured_collectives_json(const std::vector<MeasuredCollective>& measured);

}  // namespace stageline
