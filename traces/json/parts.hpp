// Shared pieces of the JSON formats: traces and clusters embedded in another document, and text
// fragments for writers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster.hpp"
#include "sim/model.hpp"
#include "traces/json/tree.hpp"
#include "traces/traces.hpp"

namespace stageline {

/// Like read_trace and read_cluster of traces.hpp; JSON pointers in errors are relative to the
/// whole document.
std::vector<Model> read_trace(const JsonNode& root);
Cluster read_cluster(const JsonNode& root, const ClusterUse& use = {});

/// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const std::string& text);

/// ",\n" and the items, filled into lines of at most 98 columns, each starting with `indent`.
std::string json_lines(const std::vector<std::string>& items, std::string_view indent);

}  // namespace stageline
