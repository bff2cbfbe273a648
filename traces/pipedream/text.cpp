// Parses the text of PipeDream profiles.
#include "traces/pipedream/text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_map>

#include "sim/base/errors.hpp"
#include "sim/text/visible.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

constexpr std::string_view separator = " -- ";

// A line and its number, for messages.
struct Line {
  const std::string& file;
  std::size_t number = 0;
  [[noreturn]] void refuse(const std::string& message) const {
    throw TraceError(file, fmt::format("line {}", number), message);
  }
};

std::vector<std::string_view> split(std::string_view text, std::string_view by) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t found = text.find(by);
    parts.push_back(text.substr(0, found));
    if (found == std::string_view::npos) return parts;
    text.remove_prefix(found + by.size());
  }
}

Time parse_milliseconds(const Line& line, std::string_view key, std::string_view text) {
  const std::optional<ScaledDecimal> number = scale_decimal(text, 9);
  if (!number || text.front() == '-' || number->value > longest_input.count()) {
    line.refuse(fmt::format("{} must be a number of milliseconds from 0 to {} (it is {})", key,
                            longest_input.count() / 1'000'000'000, in_quotes(text)));
  }
  return Time{number->value};
}

// A number or a list "[a; b; c]", which is summed.
Bytes parse_size(const Line& line, std::string_view key, std::string_view text) {
  std::vector<std::string_view> numbers{text};
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    numbers = split(text.substr(1, text.size() - 2), "; ");
  }
  Bytes sum{};
  for (const std::string_view item : numbers) {
    const std::optional<ScaledDecimal> number = scale_decimal(item, 0);
    if (!number || item.front() == '-' || !number->exact ||
        number->value > most_bytes - sum.count) {
      line.refuse(
          fmt::format("{} must be a whole number of bytes from 0 to 2^62, or a list of them "
                      "like [4.0; 8.0] (it is {})",
                      key, in_quotes(text)));
    }
    sum += Bytes{number->value};
  }
  return sum;
}

PipedreamNode parse_node(const Line& line, std::string_view text, bool& has_stage) {
  if (!is_utf8(text)) line.refuse("a name has bytes that are not UTF-8; save the file as UTF-8");
  const std::vector<std::string_view> parts = split(text, separator);
  if (parts.size() < 3 || parts.size() > 4) {
    line.refuse(
        fmt::format("a node is \"id -- description -- forward_compute_time=…, …\", with or "
                    "without \" -- stage_id=0\": 3 or 4 parts, not {}",
                    parts.size()));
  }
  PipedreamNode node;
  node.id = parts[0];
  node.description = parts[1];
  if (node.id.empty() || node.id.find_first_of(" \t") != std::string::npos) {
    line.refuse(fmt::format("a node id must be one word (it is {})", in_quotes(node.id)));
  }
  if (node.description.find_first_not_of(" \t") == std::string::npos) {
    line.refuse("a node's description must not be empty");
  }
  constexpr std::array<std::string_view, 4> keys{"forward_compute_time", "backward_compute_time",
                                                 "activation_size", "parameter_size"};
  const std::vector<std::string_view> fields = split(parts[2], ", ");
  if (fields.size() != keys.size()) {
    line.refuse(fmt::format("a node has 4 fields, {}, {}, {} and {}, not {}", keys[0], keys[1],
                            keys[2], keys[3], fields.size()));
  }
  std::array<std::string_view, 4> values;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string_view field = fields[i];
    if (field.substr(0, keys[i].size()) != keys[i] || field.substr(keys[i].size(), 1) != "=" ||
        field.size() == keys[i].size() + 1) {
      line.refuse(
          fmt::format("field {} must be {}=<number>, not {}", i + 1, keys[i], in_quotes(field)));
    }
    values[i] = field.substr(keys[i].size() + 1);
  }
  node.forward = parse_milliseconds(line, keys[0], values[0]);
  node.backward = parse_milliseconds(line, keys[1], values[1]);
  node.activation = parse_size(line, keys[2], values[2]);
  node.parameters = parse_size(line, keys[3], values[3]);
  if (parts.size() == 4) {
    constexpr std::string_view stage = "stage_id=";
    const bool named = parts[3].substr(0, stage.size()) == stage;
    const auto number = scale_decimal(named ? parts[3].substr(stage.size()) : parts[3], 0);
    if (!named || !number || !number->exact || number->value < 0) {
      line.refuse(
          fmt::format("the last part must be stage_id=<number>, not {}", in_quotes(parts[3])));
    }
    has_stage = true;
  }
  return node;
}

// Sorts by number, so that branches come in the order they run.
void sort_nodes(std::vector<PipedreamNode>& nodes) {
  const auto number = [](const PipedreamNode& node) {
    const std::size_t digits = node.id.find_last_not_of("0123456789") + 1;
    return scale_decimal(std::string_view(node.id).substr(digits), 0).value_or(ScaledDecimal{});
  };
  std::stable_sort(nodes.begin(), nodes.end(), [&](const PipedreamNode& a, const PipedreamNode& b) {
    return number(a).value < number(b).value;
  });
}

}  // namespace

PipedreamProfile parse_pipedream_profile(const std::string& text, const std::string& file) {
  PipedreamProfile profile;
  struct EdgeLine {
    std::string from, to;
    std::size_t number;
  };
  std::vector<EdgeLine> edges;
  std::set<std::string> ids;
  std::vector<std::string_view> lines = split(text, "\n");
  if (lines.back().empty()) lines.pop_back();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line line{file, i + 1};
    std::string_view content = lines[i];
    if (!content.empty() && content.back() == '\r') content.remove_suffix(1);
    if (content.empty()) line.refuse("this line is empty; each line is a node or an edge");
    if (content.front() == '\t') {
      const std::vector<std::string_view> ends = split(content.substr(1), separator);
      if (ends.size() != 2) {
        line.refuse(fmt::format("an edge is a tab, then \"id -- id\", not {}", in_quotes(content)));
      }
      edges.push_back({std::string(ends[0]), std::string(ends[1]), i + 1});
      continue;
    }
    if (!edges.empty()) line.refuse("all nodes must come before the first edge; this is a node");
    PipedreamNode node = parse_node(line, content, profile.has_stages);
    if (!ids.insert(node.id).second) {
      line.refuse(fmt::format("the node {} appears twice", in_quotes(node.id)));
    }
    profile.nodes.push_back(std::move(node));
  }
  if (profile.nodes.empty()) throw TraceError(file, "", "a profile has at least one node");
  sort_nodes(profile.nodes);

  std::unordered_map<std::string, int> index;
  for (const PipedreamNode& node : profile.nodes)
    index.emplace(node.id, static_cast<int>(index.size()));
  std::set<LayerEdge> seen;
  for (const EdgeLine& edge : edges) {
    const Line line{file, edge.number};
    for (const std::string& id : {edge.from, edge.to}) {
      if (index.count(id) == 0) {
        line.refuse(fmt::format("there is no node {}{}", in_quotes(id),
                                suggestion(id, {ids.begin(), ids.end()})));
      }
    }
    const LayerEdge found{index.at(edge.from), index.at(edge.to)};
    if (found.from == found.to) {
      line.refuse(fmt::format("the node {} must not feed itself", in_quotes(edge.from)));
    }
    if (!seen.insert(found).second) line.refuse("this edge appears twice");
    profile.edges.push_back(found);
  }
  if (profile.edges.empty() && profile.nodes.size() > 1) {
    throw TraceError(file, "",
                     fmt::format("{} nodes but no edge; every edge is "
                                 "a line that begins with a tab",
                                 profile.nodes.size()));
  }
  return profile;
}

}  // namespace stageline
