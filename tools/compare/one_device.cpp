// Compares all rows with one device alone.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "sim/rates.hpp"
#include "tools/compare/advice.hpp"
#include "tools/compare/trial.hpp"

namespace stageline {
namespace {

bool is_judged(const Row& row) { return row.outcome && row.outcome->fit != Fit::no; }

// The cluster of the row with the most devices, which has those of all: the fastest one is among
// them. Null where no row fits, or one takes no time.
const Cluster* widest_of(const std::vector<Row>& rows) {
  const Cluster* widest = nullptr;
  for (const Row& row : rows) {
    if (!is_judged(row)) continue;
    if (row.outcome->step_time == Time{}) return nullptr;
    if (widest == nullptr || row.asked.cluster().devices.size() > widest->devices.size()) {
      widest = &row.asked.cluster();
    }
  }
  return widest;
}

// Picoseconds of a micro-batch on the fastest device of the cluster.
double fastest_pass(const Model& model, const Cluster& cluster) {
  ClassTimes times;
  for (const Layer& layer : model.layers) {
    const Time all = layer.forward + layer.input_grad + layer.weight_grad;
    times += {all, layer.memory_bound ? all : Time{}};
  }
  double least = 0;
  for (const Device& device : cluster.devices) {
    const double takes = picoseconds(times, rates_of(device));
    if (least == 0 || takes < least) least = takes;
  }
  return least;
}

// Over the fastest device of that cluster. Outcome::speedup is over the fastest one of the row's
// own, so that of rows of other numbers of unequal devices is over others.
double speedup_over(const Cluster& cluster, const Row& row) {
  const double own = fastest_pass(row.asked.model(), row.asked.cluster());
  if (own == 0) return row.outcome->speedup;
  return row.outcome->speedup * (fastest_pass(row.asked.model(), cluster) / own);
}

// The row of the highest throughput among those of one kind that fit; null where there is none.
const Row* fastest_of(const std::vector<Row>& rows, Synchrony synchrony) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (!is_judged(row) || row.outcome->synchrony != synchrony) continue;
    if (best == nullptr || row.outcome->throughput > best->outcome->throughput) best = &row;
  }
  return best;
}

}  // namespace

std::string one_device_advice(const SettingRequest& request, const Setting& setting,
                              const std::vector<Row>& rows) {
  if (!request.degrees.plain()) return "";
  const Cluster* const widest = widest_of(rows);
  if (widest == nullptr) return "";
  const auto speedup = [&](const Row& row) { return speedup_over(*widest, row); };
  const auto all_slower_than_one = [&](Synchrony synchrony) {
    return std::all_of(rows.begin(), rows.end(), [&](const Row& row) {
      return !is_judged(row) || row.outcome->synchrony != synchrony || speedup(row) < 1 - same_time;
    });
  };
  const Row* best = fastest_of(rows, Synchrony::synchronous);
  const Row* const other = fastest_of(rows, Synchrony::asynchronous);
  std::string these = "all of these";
  if (best == nullptr) {
    best = other;
  } else if (other != nullptr && !all_slower_than_one(Synchrony::asynchronous)) {
    these = "all synchronous schedules";
  } else if (other != nullptr && speedup(*other) > speedup(*best)) {
    best = all_slower_than_one(Synchrony::synchronous) ? other : best;
  }
  if (best == nullptr || !all_slower_than_one(best->outcome->synchrony)) return "";
  SettingRequest alone = request;
  alone.microbatches = best->asked.microbatches();
  alone.partition = "balanced";
  alone.weights = std::nullopt;
  const bool flushed = best->outcome->synchrony == Synchrony::synchronous;
  const std::optional<Trial> trial =
      tried(alone, setting, parse_schedules(flushed ? "1f1b" : "pipedream").front(), 1);
  const std::string beside = fmt::format("the fastest, {} on {} devices, takes {}, {:.2f}× as fast",
                                         best->outcome->schedule, best->outcome->devices,
                                         print(best->outcome->step_time), speedup(*best));
  if (!trial) return fmt::format("one device is faster than {}: {}", these, beside);
  // The speed-up is over the fastest device, and the first one was tried.
  const double fastest = to_seconds(best->outcome->step_time) * speedup(*best);
  if (to_seconds(trial->step) > fastest * (1 + same_time)) {
    return fmt::format(
        "one device is faster than {}: {} a step on the fastest of them, if it fits there; {}",
        these, print(from_seconds(fastest)), beside);
  }
  if (!trial->fits) {
    return fmt::format("one device would be faster than {}, but lacks memory: {}; {}", these,
                       trial->figures(), beside);
  }
  return fmt::format("one device is faster than {}: {}; {}", these, trial->figures(), beside);
}

}  // namespace stageline
