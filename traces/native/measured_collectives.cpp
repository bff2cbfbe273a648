// Reads and writes the measured collectives of cluster files; see traces/README.md.
#include "traces/native/measured_collectives.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

#include "sim/base/names.hpp"
#include "sim/bus_bandwidth.hpp"
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

// The last line of the same collective and group.
const MeasuredCollective* line_before(const std::vector<MeasuredCollective>& collectives,
                                      const MeasuredCollective& measured) {
  const auto found =
      std::find_if(collectives.rbegin(), collectives.rend(), [&](const MeasuredCollective& one) {
        return one.kind == measured.kind && one.ranks == measured.ranks &&
               one.machines == measured.machines;
      });
  return found == collectives.rend() ? nullptr : &*found;
}

// Lines of a group are in the order of their sizes, and each begins where it meets the one before.
void check_lines(const JsonNode& node, const std::vector<MeasuredCollective>& collectives,
                 const MeasuredCollective& next) {
  const std::optional<JsonNode> from = node.find("from");
  const MeasuredCollective* const before = line_before(collectives, next);
  const std::string of_ranks =
      fmt::format("{} of {} ranks on {} machine{}", name(next.kind), next.ranks, next.machines,
                  next.machines == 1 ? "" : "s");
  if (before == nullptr) {
    if (from) {
      from->refuse(
          fmt::format("this is the first line of {}, which holds from 0 on; leave \"from\" "
                      "out, or give the lines by ascending sizes",
                      of_ranks));
    }
    return;
  }
  if (!before->times.empty() || !next.times.empty()) {
    node.refuse(fmt::format(
        "{} is there already, and single times (\"times\") hold for all sizes; keep one of both",
        of_ranks));
  }
  if (!from) {
    node.refuse(
        fmt::format("{} is there already; keep one of both, or give the size \"from\" which "
                    "this one holds",
                    of_ranks));
  }
  const Bytes stated =
      from->kind() == JsonKind::number ? from->bytes() : quantity(*from, parse_bytes);
  const auto size = static_cast<double>(stated.count);
  const std::optional<double> meeting = meeting_size(*before, next);
  constexpr double rounding = 0.01;  // of sizes that people write
  if (!meeting || std::abs(*meeting - size) > rounding * size) {
    from->refuse(fmt::format(
        "the line of {} before this one and this one take the same time at {}; \"from\" is {}",
        of_ranks, meeting ? print(Bytes{std::llround(std::min(*meeting, 4e18))}) : "no size",
        print(stated)));
  }
  const std::vector<MeasuredCollective> earlier(
      collectives.begin(), collectives.begin() + (before - collectives.data()));
  const MeasuredCollective* const first = line_before(earlier, next);
  if (first != nullptr && meeting_size(*first, *before).value_or(0) >= *meeting) {
    from->refuse("lines of a group are in the order of their sizes");
  }
}

// Pairs of a size and a time, by ascending sizes.
void read_times(const JsonNode& node, MeasuredCollective& measured) {
  const std::optional<JsonNode> times = node.find("times");
  if (!times) return;
  for (const JsonNode& pair : times->items()) {
    const std::vector<JsonNode> parts = pair.items();
    if (parts.size() != 2) {
      pair.refuse(R"(it is the pair of a size and a time, such as ["1MB", "44us"])");
    }
    const Bytes bytes =
        parts[0].kind() == JsonKind::number ? parts[0].bytes() : quantity(parts[0], parse_bytes);
    const Time time = quantity(parts[1], parse_time);
    const bool ascending = measured.times.empty() || measured.times.back().bytes < bytes;
    if (bytes <= Bytes{} || !ascending) {
      parts[0].refuse("sizes are above 0, and each is larger than the one before it");
    }
    if (time <= Time{}) parts[1].refuse("a time is above 0");
    measured.times.push_back({bytes, time});
  }
  if (measured.times.empty()) times->refuse("there is no time; leave \"times\" out");
}

std::string times_text(const std::vector<MeasuredTime>& times) {
  if (times.empty()) return "";
  std::vector<std::string> pairs;
  for (const MeasuredTime& one : times) {
    pairs.push_back(fmt::format(R"(["{}B", "{}ps"])", one.bytes.count, one.time.count()));
  }
  return fmt::format(", \"times\": [{}]", fmt::join(pairs, ", "));
}

}  // namespace

void read_measured_collective(const JsonNode& node, std::vector<MeasuredCollective>& collectives) {
  node.check_keys({"kind", "ranks", "alpha", "bandwidth"}, {"machines", "from", "times", "source"});
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
  read_times(node, measured);
  check_lines(node, collectives, measured);
  collectives.push_back(std::move(measured));
}

std::vector<std::string> measured_collective_texts(
    const std::vector<MeasuredCollective>& measured) {
  std::vector<std::string> texts;
  std::vector<MeasuredCollective> earlier;
  for (const MeasuredCollective& one : measured) {
    const std::string bandwidth = one.bandwidth.is_unlimited()
                                      ? "unlimited"
                                      : fmt::format("{}B/s", one.bandwidth.bytes_per_second);
    const MeasuredCollective* const before = line_before(earlier, one);
    const std::optional<double> from =
        before != nullptr ? meeting_size(*before, one) : std::nullopt;
    texts.push_back(
        fmt::format(R"({{"kind": "{}", "ranks": {},{}{} "alpha": "{}ps", "bandwidth": "{}"{}{}}})",
                    name(one.kind), one.ranks,
                    one.machines == 1 ? "" : fmt::format(" \"machines\": {},", one.machines),
                    from ? fmt::format(" \"from\": \"{}B\",", std::llround(*from)) : "",
                    one.alpha.count(), bandwidth, times_text(one.times),
                    one.source.empty() ? "" : ", \"source\": " + json_text(one.source)));
    earlier.push_back(one);
  }
  return texts;
}

std::string measured_collectives_json(const std::vector<MeasuredCollective>& measured) {
  return fmt::format("{{\n  \"collectives\": [\n    {}\n  ]\n}}\n",
                     fmt::join(measured_collective_texts(measured), ",\n    "));
}

}  // namespace stageline
