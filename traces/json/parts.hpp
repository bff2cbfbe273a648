// What the JSON formats have in common: a trace or a cluster that stands inside another document,
// and pieces of text for writers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/model.hpp"
#include "traces/json/tree.hpp"

namespace stageline {

/// As read_trace and read_cluster of traces.hpp; pointers in errors are those of the whole
/// document.
std::vector<Model> read_trace(const JsonNode& root);
Cluster read_cluster(const JsonNode& root);

/// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const std::string& text);

/// ",\n" and the items, as many to a line of 98 columns as fit, each line after `indent`.
std::string json_lines(const std::vector<std::string>& items, std::string_view indent);

}  // namespace stageline
