// Which schedules the laws are tried on: all of them, with all their knobs.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "schedulers/scheduler.hpp"

namespace stageline::test {

inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// What to try for a knob: every value of an enumerated one, small numbers, and plans for replicas.
inline std::vector<std::string> values_of(const Knob& knob, int devices) {
  if (knob.values == "int") return {std::string(knob.fallback), "1", "2", "3"};
  if (knob.values.find('|') != std::string_view::npos) return split(knob.values, '|');
  std::vector<std::string> values{std::string(knob.fallback)};
  if (knob.name == "pipelines") return {"2", "4"};
  if (knob.name == "limit") return {std::string(knob.fallback), "2p", "3"};
  if (knob.name == "replicas") {
    for (int first = 1; first <= devices; ++first) {
      const int rest = devices - first;
      std::string plan = std::to_string(first);
      if (rest > 1) plan += "-" + std::to_string(rest - 1);
      values.push_back(plan + (rest > 0 ? "-1" : ""));
    }
  }
  return values;
}

/// Every scheduler with every combination of its knobs.
inline std::vector<ScheduleSpec> all_specs(int devices) {
  std::vector<ScheduleSpec> all;
  for (const Scheduler* const scheduler : schedulers()) {
    std::vector<ScheduleSpec> specs{{scheduler, {}}};
    for (const Knob& knob : scheduler->knobs) {
      std::vector<ScheduleSpec> more;
      for (const ScheduleSpec& spec : specs) {
        for (const std::string& value : values_of(knob, devices)) {
          more.push_back(spec);
          more.back().knobs[std::string(knob.name)] = value;
        }
      }
      specs = std::move(more);
    }
    // zb_auto searches alike for both goals, cyclic for all limits; with several stages a device
    // one is enough.
    std::erase_if(specs, [](const ScheduleSpec& spec) {
      const auto has = [&](const char* knob, const char* value) {
        const auto found = spec.knobs.find(knob);
        return found != spec.knobs.end() && found->second == value;
      };
      if (spec.scheduler->name == "cyclic") {
        return !has("placement", "straight") && !has("limit", "p");
      }
      return has("goal", "makespan") && !has("placement", "straight");
    });
    all.insert(all.end(), specs.begin(), specs.end());
  }
  return all;
}

/// Edges from every stage to the next are left out now and then, and others skip stages.
inline void branch(std::mt19937& random, Costs& costs) {
  std::vector<EdgeCosts> edges;
  for (int to = 1; to < costs.stages(); ++to) {
    for (int from = 0; from < to; ++from) {
      if (random() % (from + 1 == to ? 4 : 3) == 0) continue;
      edges.push_back({{static_cast<std::uint16_t>(from), static_cast<std::uint16_t>(to)},
                       Bytes{static_cast<std::int64_t>(random() % 9)},
                       Bytes{static_cast<std::int64_t>(random() % 9)}});
    }
  }
  std::sort(edges.begin(), edges.end(),
            [](const EdgeCosts& a, const EdgeCosts& b) { return a.edge < b.edge; });
  costs.edges = std::move(edges);
}

}  // namespace stageline::test
