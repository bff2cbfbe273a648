// Reads and writes the measured collectives of cluster files; see traces/README.md.
#include "traces/native/measured_collectives.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "sim/names.hpp"
#include "traces/json/parts.hpp"

namespace stageline {
namespace {

constexpr int most_ranks = 1'000'000;

template <class Parse>
auto quantity(const JsonNode& node, Parse parse) {
  const std::string text = node.text();
  try {
    return parse(text);
  } catch (const std::invalid_argument& error) {
    node.refuse(error.what());
  }
}

}  // namespace

MeasuredCollective read_measured_collective(const JsonNode& node) {
  node.check_keys({"kind", "ranks", "alpha", "bandwidth"}, {"machines", "source"});
  MeasuredCollective measured;
  const JsonNode kind = node.at("kind");
  const auto found = find_named(all_collective_kinds, kind.text());
  if (!found) {
    kind.refuse(fmt::format("a collective is one of {}, not {}",
                            fmt::join(names_of(all_collective_kinds), ", "),
                            in_quotes(kind.text())));
  }
  measured.kind = *found;
  measured.ranks = static_cast<int>(node.at("ranks").whole(2, most_ranks));
  if (const auto machines = node.find("machines")) {
    measured.machines = static_cast<int>(machines->whole(1, measured.ranks));
  }
  measured.alpha = quantity(node.at("alpha"), parse_time);
  measured.bandwidth = quantity(node.at("bandwidth"), parse_bandwidth);
  measured.source = node.text_or_empty("source");
  return measured;
}

std::string measured_collective_json(const MeasuredCollective& measured) {
  const std::string bandwidth = measured.bandwidth.is_unlimited()
                                    ? "unlimited"
                                    : fmt::format("{}B/s", measured.bandwidth.bytes_per_second);
  return fmt::format(
      R"({{"kind": "{}", "ranks": {},{} "alpha": "{}ps", "bandwidth": "{}"{}}})",
      name(measured.kind), measured.ranks,
      measured.machines == 1 ? "" : fmt::format(" \"machines\": {},", measured.machines),
      measured.alpha.count(), bandwidth,
      measured.source.empty() ? "" : ", \"source\": " + json_text(measured.source));
}

std::string measured_collectives_json(const std::vector<MeasuredCollective>& measured) {
  std::string text;
  for (const MeasuredCollective& one : measured) {
    text += (text.empty() ? "\n    " : ",\n    ") + measured_collective_json(one);
  }
  return "{\n  \"collectives\": [" + text + "\n  ]\n}\n";
}

}  // namespace stageline
