// Compares all rows with one device alone.
#include <fmt/core.h>

#include <optional>

#include "tools/compare/advice.hpp"
#include "tools/compare/trial.hpp"

namespace stageline {
namespace {

// Of the rows of one kind that fit, the fastest beside one device; null where there is none, or
// one takes no time.
const Row* fastest_of(const std::vector<Row>& rows, Synchrony synchrony) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (!row.outcome || row.outcome->fit == Fit::no || row.outcome->synchrony != synchrony) {
      continue;
    }
    if (row.outcome->step_time == Time{}) return nullptr;
    if (best == nullptr || row.outcome->speedup > best->outcome->speedup) best = &row;
  }
  return best;
}

bool is_slower_than_one(const Row& row) { return row.outcome->speedup < 1 - same_time; }

}  // namespace

std::string one_device_advice(const SettingRequest& request, const Setting& setting,
                              const std::vector<Row>& rows) {
  if (setting.program || !request.degrees.plain()) return "";
  const Row* best = fastest_of(rows, Synchrony::synchronous);
  const Row* const other = fastest_of(rows, Synchrony::asynchronous);
  std::string these = "all of these";
  if (best == nullptr) {
    best = other;
  } else if (other != nullptr && !is_slower_than_one(*other)) {
    these = "all synchronous schedules";
  } else if (other != nullptr && other->outcome->speedup > best->outcome->speedup) {
    best = is_slower_than_one(*best) ? other : best;
  }
  if (best == nullptr || !is_slower_than_one(*best)) return "";
  SettingRequest alone = request;
  alone.microbatches = best->asked.microbatches();
  alone.partition = "balanced";
  alone.weights = std::nullopt;
  const bool flushed = best->outcome->synchrony == Synchrony::synchronous;
  const std::optional<Trial> trial =
      tried(alone, setting, parse_schedules(flushed ? "1f1b" : "pipedream").front(), 1);
  const std::string beside = fmt::format("the fastest, {} on {} devices, takes {}, {:.2f}× as fast",
                                         best->outcome->schedule, best->outcome->devices,
                                         print(best->outcome->step_time), best->outcome->speedup);
  if (!trial) return fmt::format("one device is faster than {}: {}", these, beside);
  // A speed-up is over the fastest device, and the first one was tried.
  const double fastest = to_seconds(best->outcome->step_time) * best->outcome->speedup;
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
