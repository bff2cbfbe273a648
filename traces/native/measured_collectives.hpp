// The measured collectives of a cluster file.
#pragma once

#include <string>
#include <vector>

#include "sim/measured_collective.hpp"
#include "traces/json/tree.hpp"

namespace stageline {

/// An entry of "collectives". Throws TraceError with the JSON pointer.
MeasuredCollective read_measured_collective(const JsonNode& node);

/// The same as text, an object on one line with exact numbers.
std::string measured_collective_json(const MeasuredCollective& measured);

/// {"collectives": [...]}, as a cluster file holds it.
std::string measured_collectives_json(const std::vector<MeasuredCollective>& measured);

}  // namespace stageline
