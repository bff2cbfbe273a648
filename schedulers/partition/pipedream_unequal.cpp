// PipeDream's recurrence at one level where devices or the routes between them differ. Devices are
// taken in their order, so a stage is a run of layers on a run of devices, and the state must say
// where the last one begins: A(j, k, r) is the smallest bottleneck of layers 0..j on devices
// 0..k-1, of which the last stage has the last r,
//
//   A(j, k, k) = T(0..j, devices 0..k-1)
//   A(j, k, r) = min over the split i of max(min over r' of max(A(i, k-r, r'), 2 a_i / (B r)),
//                                            T(i+1..j, devices k-r..k-1))
//
// T is that of the slowest of the stage's devices, since replicas take turns, and its all-reduce
// goes at the narrowest route between them; B is the narrowest route between the devices of the two
// stages. O(L² n²) for n devices, with replicas that are free; O(L² S) for S stages where they are
// given or all are 1. T grows as the split moves forward in the order of layers, which skips most
// of it.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "schedulers/partition/pipedream_level.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_entries = std::size_t{1} << 26;  // 1 GiB

// How the best plan that ends with a stage at some layer ends.
struct UnequalEntry {
  std::int64_t time = LevelTimes::never;  // ps
  int split = -1;                         // last layer before the last stage; -1: one stage
  std::size_t before = 0;                 // the runs of devices that end before it: which one
};

// Neighbouring devices that a stage may have.
struct DeviceRun {
  std::size_t first = 0;
  std::size_t end = 0;
  std::vector<Rates> rates;            // each different one
  const LevelTimes* inside = nullptr;  // at the narrowest route between them
  std::vector<UnequalEntry> best;      // by last layer

  std::int64_t count() const { return static_cast<std::int64_t>(end - first); }
};

class UnequalPlan {
 public:
  explicit UnequalPlan(const PipedreamQuestion& question)
      : question_(question),
        layers_(question.time.size()),
        devices_(question.rates.size()),
        sum_(layers_ + 1),
        runs_(devices_ + 1) {
    for (std::size_t l = 0; l < layers_; ++l) {
      sum_[l + 1] = sum_[l];
      sum_[l + 1] += {question.time[l], question.memory_bound[l] ? question.time[l] : Time{}};
    }
    add_runs();
    std::size_t all = 0;
    for (const std::vector<DeviceRun>& runs : runs_) all += runs.size();
    if (all > most_entries / layers_) {
      throw UsageError(fmt::format(
          "pipedream: {} layers and {} unequal devices need a table of {} entries, more than {}; "
          "merge layers, use fewer devices or give replicate=no",
          layers_, devices_, all * layers_, most_entries));
    }
  }

  // The time of a stage as the plan has it.
  Time time_of(const PipedreamStage& stage) const {
    for (const DeviceRun& run : runs_[as_size(stage.devices.back()) + 1]) {
      if (run.first != as_size(stage.devices.front())) continue;
      return Time{stage_time(run, as_size(stage.first), as_size(stage.last))};
    }
    return longest_run;  // no such stage
  }

  PipedreamPlan solve() {
    for (std::size_t end = 1; end <= devices_; ++end) {
      for (DeviceRun& run : runs_[end]) fill(run);
    }
    return plan();
  }

 private:
  Bandwidth between(std::size_t one, std::size_t other) const {
    return question_.between.empty() ? question_.levels[0].bandwidth
                                     : question_.between[one * devices_ + other];
  }

  const LevelTimes& level(Bandwidth bandwidth) {
    const auto known = levels_.find(bandwidth);
    if (known != levels_.end()) return known->second;
    PipedreamQuestion asked = question_;
    asked.levels[0].bandwidth = bandwidth;
    return levels_.emplace(bandwidth, level_times(asked, 0)).first->second;
  }

  void add_run(std::size_t first, std::size_t end) {
    DeviceRun run{first, end, {}, nullptr, {}};
    Bandwidth narrowest = Bandwidth::unlimited();
    for (std::size_t d = first; d < end; ++d) {
      const Rates rates = question_.rates[d];
      if (std::find(run.rates.begin(), run.rates.end(), rates) == run.rates.end()) {
        run.rates.push_back(rates);
      }
      for (std::size_t other = first; other < d; ++other) {
        narrowest = std::min(narrowest, between(other, d));
      }
    }
    run.inside = &level(narrowest);
    runs_[end].push_back(std::move(run));
  }

  // By end, the fewest devices first.
  void add_runs() {
    if (!question_.replicas.empty()) {
      std::size_t first = 0;
      for (const int count : question_.replicas) {
        add_run(first, first + as_size(count));
        first += as_size(count);
      }
      return;
    }
    for (std::size_t end = 1; end <= devices_; ++end) {
      const std::size_t most = question_.replicate ? end : 1;
      for (std::size_t count = 1; count <= most; ++count) add_run(end - count, end);
    }
  }

  std::int64_t stage_time(const DeviceRun& run, std::size_t i, std::size_t j) const {
    const ClassTimes work{sum_[j + 1].all - sum_[i].all, sum_[j + 1].memory - sum_[i].memory};
    Time slowest{};
    for (const Rates rates : run.rates) slowest = std::max(slowest, at_rates(work, rates));
    return run.inside->stage_time(slowest.count(), i, j, run.count());
  }

  // Times of what crosses from one run to the next.
  const LevelTimes& crossing(const DeviceRun& from, const DeviceRun& to) {
    Bandwidth narrowest = Bandwidth::unlimited();
    for (std::size_t one = from.first; one < from.end; ++one) {
      for (std::size_t other = to.first; other < to.end; ++other) {
        narrowest = std::min(narrowest, between(one, other));
      }
    }
    return level(narrowest);
  }

  void fill(DeviceRun& run) {
    run.best.resize(layers_);
    if (run.first == 0) {
      for (std::size_t j = 0; j < layers_; ++j) run.best[j].time = stage_time(run, 0, j);
      return;
    }
    const std::vector<UnequalEntry> before = best_before(run);
    for (std::size_t j = 1; j < layers_; ++j) {
      UnequalEntry& here = run.best[j];
      std::size_t tried = 0;
      for (std::size_t split = j; split-- > 0;) {
        const std::int64_t stage = stage_time(run, split + 1, j);
        ++tried;
        if (stage > here.time) break;  // and those of earlier splits take longer still
        const std::int64_t time = std::max(before[split].time, stage);
        if (time == LevelTimes::never || time > here.time) continue;
        here = {time, static_cast<int>(split), before[split].before};
      }
      steps_.add(tried);
    }
  }

  // By split, the best way to the boundary in front of the run, its transfer included.
  std::vector<UnequalEntry> best_before(const DeviceRun& run) {
    std::vector<UnequalEntry> best(layers_);
    const std::vector<DeviceRun>& all = runs_[run.first];
    for (std::size_t which = 0; which < all.size(); ++which) {
      const LevelTimes& route = crossing(all[which], run);
      for (std::size_t split = 0; split + 1 < layers_; ++split) {
        const std::int64_t time =
            std::max(all[which].best[split].time, route.move[split] / run.count());
        if (time < best[split].time) best[split] = {time, -1, which};
      }
    }
    return best;
  }

  PipedreamPlan plan() const {
    std::size_t last = layers_ - 1;
    std::size_t end = devices_;
    std::size_t which = runs_[end].size() - 1;  // all devices in one stage, where that is possible
    for (std::size_t other = 0; other + 1 < runs_[end].size(); ++other) {
      if (runs_[end][other].best[last].time < runs_[end][which].best[last].time) which = other;
    }
    PipedreamPlan plan;
    plan.bottleneck = Time{runs_[end][which].best[last].time};
    plan.single = longest_run;
    for (const Rates rates : question_.rates) {
      plan.single = std::min(plan.single, at_rates(sum_.back(), rates));
    }
    while (true) {
      const DeviceRun& run = runs_[end][which];
      const UnequalEntry& entry = run.best[last];
      PipedreamStage stage{entry.split + 1, static_cast<int>(last), {}};
      for (std::size_t d = run.first; d < run.end; ++d) {
        stage.devices.push_back(static_cast<int>(d));
      }
      plan.stages.push_back(std::move(stage));
      if (entry.split < 0) break;
      end = run.first;
      which = entry.before;
      last = as_size(entry.split);
    }
    std::reverse(plan.stages.begin(), plan.stages.end());
    return plan;
  }

  const PipedreamQuestion& question_;
  PlanSteps steps_{question_};
  std::size_t layers_;
  std::size_t devices_;
  std::vector<ClassTimes> sum_;               // of layers 0..i-1
  std::map<Bandwidth, LevelTimes> levels_;    // of each bandwidth
  std::vector<std::vector<DeviceRun>> runs_;  // by end
};

}  // namespace

PipedreamPlan pipedream_unequal_plan(const PipedreamQuestion& question) {
  if (question.levels.size() != 1 ||
      as_size(question.levels[0].machines) != question.rates.size()) {
    throw UsageError(fmt::format(
        "pipedream: unequal devices need one level that holds them all; there {} {} level{} with "
        "{}, and {} rates",
        question.levels.size() == 1 ? "is" : "are", question.levels.size(),
        question.levels.size() == 1 ? "" : "s", pipedream_devices(question),
        question.rates.size()));
  }
  return UnequalPlan(question).solve();
}

Time pipedream_stage_time(const PipedreamQuestion& question, const PipedreamStage& stage) {
  if (question.rates.empty()) {
    const auto replicas = static_cast<int>(stage.devices.size());
    return pipedream_stage_time(question, stage.first, stage.last, replicas);
  }
  return UnequalPlan(question).time_of(stage);
}

}  // namespace stageline
