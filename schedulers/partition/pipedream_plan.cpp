#include <fmt/core.h>

#include <algorithm>

#include "schedulers/partition/pipedream_level.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::size_t largest_table = std::size_t{1} << 26;  // entries; 1 GiB

// How the best plan for layers i..j on k machines ends.
struct PlanEntry {
  std::int64_t time = LevelTimes::never;  // ps
  int split = -1;                         // last layer before the last stage; -1: one stage
  int machines = 0;                       // of the last stage
};

// A of one level, for i <= j < layers and k = 1..machines. The outermost level needs i = 0 only.
struct Table {
  std::size_t layers = 0;
  std::size_t machines = 0;
  std::vector<PlanEntry> entry;

  const PlanEntry& at(std::size_t i, std::size_t j, std::size_t k) const {
    return entry[(i * layers - i * (i + 1) / 2 + j) * machines + k - 1];
  }
  PlanEntry& at(std::size_t i, std::size_t j, std::size_t k) {
    return entry[(i * layers - i * (i + 1) / 2 + j) * machines + k - 1];
  }
};

// A(i..j, k) of one level; inner(i, j) is what one machine needs for layers i..j.
template <typename Inner>
PlanEntry best_end(const LevelTimes& level, const Table& table, const Inner& inner, std::size_t i,
                   std::size_t j, std::size_t k, std::size_t& tried) {
  PlanEntry best;
  if (k == 1 || level.replicate) {
    best = {level.stage_time(inner(i, j), i, j, static_cast<std::int64_t>(k)), -1,
            static_cast<int>(k)};
  }
  const std::vector<std::int64_t>& sum = level.compute;
  const std::size_t most = level.replicate ? k : std::min<std::size_t>(k, 2);
  for (std::size_t last = 1; last < most; ++last) {
    // No plan beats its compute divided by its devices: only splits between these two bounds can.
    const auto bound = [&](std::size_t machines) {
      return best.time > sum.back() ? sum.back() + 1
                                    : best.time * static_cast<std::int64_t>(machines) * level.below;
    };
    const auto from = std::upper_bound(sum.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                       sum.begin() + static_cast<std::ptrdiff_t>(j) + 1,
                                       sum[j + 1] - bound(last));
    std::int64_t before = bound(k - last);
    for (auto s = as_size(from - sum.begin()) - 1; s < j; ++s) {
      if (sum[s + 1] - sum[i] >= before) break;
      ++tried;
      const std::int64_t move = level.move[s] / static_cast<std::int64_t>(last);
      const std::int64_t first = table.at(i, s, k - last).time;
      if (std::max(first, move) >= best.time) continue;
      const std::int64_t stage =
          level.stage_time(inner(s + 1, j), s + 1, j, static_cast<std::int64_t>(last));
      const std::int64_t time = std::max({first, move, stage});
      if (time >= best.time) continue;
      best = {time, static_cast<int>(s), static_cast<int>(last)};
      before = bound(k - last);
    }
  }
  return best;
}

template <typename Inner>
Table solve(const PipedreamQuestion& question, std::size_t number, const Inner& inner) {
  const LevelTimes level = level_times(question, number);
  const bool outermost = number + 1 == question.levels.size();
  Table table;
  table.layers = question.time.size();
  table.machines = as_size(question.levels[number].machines);
  const std::size_t pairs = outermost ? table.layers : table.layers * (table.layers + 1) / 2;
  if (pairs > largest_table / table.machines) {
    throw UsageError(fmt::format(
        "pipedream: {} layers and {} machines at level {} need a table of {} entries, "
        "more than {}; merge layers or put fewer machines in a level",
        table.layers, table.machines, number + 1, pairs * table.machines, largest_table));
  }
  table.entry.resize(pairs * table.machines);
  PlanSteps steps(question);
  for (std::size_t i = 0; i < (outermost ? 1 : table.layers); ++i) {
    for (std::size_t j = i; j < table.layers; ++j) {
      std::size_t tried = 0;
      for (std::size_t k = 1; k <= table.machines; ++k) {
        table.at(i, j, k) = best_end(level, table, inner, i, j, k, tried);
      }
      steps.add(tried);
    }
  }
  return table;
}

// Stages of layers i..j on all machines of one level, devices counted from 0.
std::vector<PipedreamStage> stages_of(const PipedreamQuestion& question,
                                      const std::vector<Table>& tables, std::size_t number,
                                      std::size_t i, std::size_t j) {
  const Table& table = tables[number];
  int below = 1;  // devices in one machine
  for (std::size_t l = 0; l < number; ++l) below *= question.levels[l].machines;
  std::vector<std::vector<PipedreamStage>> parts;  // the last first
  std::size_t machines = table.machines;
  for (bool more = true; more;) {
    const PlanEntry& entry = table.at(i, j, machines);
    more = entry.split >= 0;
    const std::size_t first = more ? as_size(entry.split) + 1 : i;
    machines -= as_size(entry.machines);
    const auto base = static_cast<int>(machines);
    if (number == 0) {
      PipedreamStage stage{static_cast<int>(first), static_cast<int>(j), {}};
      for (int d = 0; d < entry.machines; ++d) stage.devices.push_back(base + d);
      parts.push_back({stage});
    } else {
      parts.push_back(stages_of(question, tables, number - 1, first, j));
      for (PipedreamStage& stage : parts.back()) {
        std::vector<int> devices;
        for (const int inner : stage.devices) {
          for (int m = 0; m < entry.machines; ++m) devices.push_back((base + m) * below + inner);
        }
        stage.devices = devices;
      }
    }
    if (more) j = as_size(entry.split);
  }
  std::vector<PipedreamStage> stages;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    stages.insert(stages.end(), part->begin(), part->end());
  }
  return stages;
}

}  // namespace

std::vector<Bytes> crossing_bytes(const Model& model) {
  std::vector<int> last_reader(model.layers.size(), -1);
  for (const LayerEdge& edge : edges_of(model)) {
    int& last = nth(last_reader, edge.from);
    last = std::max(last, edge.to);
  }
  // a tensor is on its way behind the layers maker..last reader - 1
  std::vector<Bytes> change(model.layers.size() + 1);
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    if (last_reader[layer] < 0) continue;
    change[layer] += model.layers[layer].output;
    nth(change, last_reader[layer]) -= model.layers[layer].output;
  }
  std::vector<Bytes> crossing;
  Bytes sum;
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    crossing.push_back(sum += change[layer]);
  }
  return crossing;
}

PipedreamPlan pipedream_plan(const PipedreamQuestion& question) {
  const std::size_t layers = question.time.size();
  if (layers == 0) throw UsageError("pipedream: there are no layers to plan for");
  if (!question.replicas.empty()) check_fixed_replicas(question);
  if (!question.replicas.empty() && question.rates.empty()) return pipedream_fixed_plan(question);
  if (question.replicas.empty() && !question.replicate &&
      as_size(pipedream_devices(question)) > layers) {
    throw UsageError(fmt::format(
        "pipedream: a straight pipeline of {} stages needs at least {} layers, but there are {}",
        pipedream_devices(question), pipedream_devices(question), layers));
  }
  if (!question.rates.empty()) return pipedream_unequal_plan(question);
  std::vector<std::int64_t> sum{0};
  for (const Time time : question.time) sum.push_back(sum.back() + time.count());
  std::vector<Table> tables;
  tables.push_back(
      solve(question, 0, [&](std::size_t i, std::size_t j) { return sum[j + 1] - sum[i]; }));
  for (std::size_t number = 1; number < question.levels.size(); ++number) {
    const Table& below = tables.back();
    tables.push_back(solve(question, number, [&](std::size_t i, std::size_t j) {
      return below.at(i, j, below.machines).time;
    }));
  }
  PipedreamPlan plan;
  plan.stages = stages_of(question, tables, tables.size() - 1, 0, layers - 1);
  plan.bottleneck = Time{tables.back().at(0, layers - 1, tables.back().machines).time};
  plan.single = Time{sum.back()};
  return plan;
}

std::string print(const PipedreamPlan& plan) {
  std::string text;
  bool straight = true;
  for (const PipedreamStage& stage : plan.stages) {
    text += fmt::format("{}{}", text.empty() ? "" : "-", stage.devices.size());
    straight = straight && stage.devices.size() == 1;
  }
  if (!straight) return text;
  return fmt::format("straight, {} stage{}", plan.stages.size(),
                     plan.stages.size() == 1 ? "" : "s");
}

}  // namespace stageline
