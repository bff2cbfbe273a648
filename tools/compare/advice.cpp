// Simulates what a comparison did not ask: one device alone, and changes that take less memory.
#include "tools/compare/advice.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sim/errors.hpp"
#include "sim/index.hpp"

namespace stageline {
namespace {

constexpr std::size_t rows_tried = 2;  // those that lack least memory
constexpr int most_devices_tried = 64;
constexpr std::int64_t most_microbatches_tried = 1 << 16;

// What a case was simulated to take.
struct Trial {
  std::string flags;
  bool fits = false;
  Time step{};
  double throughput = 0;
  std::optional<MemoryNeed> need;  // where memory is tightest
  std::optional<Bytes> peak;       // of the fullest device; empty: unknown
  bool derived = false;            // from costs of another micro-batch size

  Bytes missing() const { return need ? need->missing() : Bytes{}; }
  // "20.24 s a step, 1.572 GB of 8.000 GB on gpu0"
  std::string figures() const {
    return fmt::format("{} a step{}{}", print(step),
                       need   ? ", " + print(*need)
                       : peak ? ", " + print(*peak)
                              : "",
                       derived ? " (costs of that size are scaled or fitted)" : "");
  }
};

Trial trial_of(const Outcome& outcome, std::string flags) {
  Trial trial;
  trial.flags = std::move(flags);
  trial.fits = outcome.fit != Fit::no;
  trial.step = outcome.step_time;
  trial.throughput = outcome.throughput;
  trial.need = tightest(outcome);
  if (outcome.bytes_known()) trial.peak = nth(outcome.memory.device, outcome.peak_device()).peak;
  return trial;
}

// Empty where the case cannot run.
std::optional<Trial> tried(const SettingRequest& request, const Setting& setting,
                           const ScheduleSpec& spec, int devices, std::string flags) {
  try {
    return trial_of(study(make_case(request, setting, spec, devices)), std::move(flags));
  } catch (const UsageError&) {
    return std::nullopt;
  } catch (const ProgramError&) {
    return std::nullopt;
  } catch (const Deadlock&) {
    return std::nullopt;
  }
}

// Those that fit first, the fastest of them; else the one that lacks least.
bool better(const Trial& a, const Trial& b) {
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.throughput > b.throughput : a.missing() < b.missing();
}

void keep_best(std::optional<Trial>& best, std::optional<Trial> other) {
  if (other && (!best || better(*other, *best))) best = std::move(other);
}

int devices_of(const Row& row) { return static_cast<int>(row.asked.cluster.devices.size()); }

class FitSearch {
 public:
  FitSearch(const SettingRequest& request, const Setting& setting, const std::vector<Row>& rows)
      : request_(request), setting_(setting), rows_(rows) {
    for (const Row& row : rows) {
      if (row.outcome && tightest(*row.outcome)) nearest_.push_back(&row);
    }
    std::stable_sort(nearest_.begin(), nearest_.end(),
                     [](const Row* a, const Row* b) { return missing(*a) < missing(*b); });
    if (nearest_.size() > rows_tried) nearest_.resize(rows_tried);
  }

  std::vector<std::string> sentences() const {
    if (nearest_.empty()) return {};
    std::vector<std::string> fitting;
    std::optional<Trial> nearest;
    for (const std::optional<Trial>& best : {recomputing(), smaller(), more_devices()}) {
      if (!best) continue;
      if (best->fits) fitting.push_back(fmt::format("{} fits: {}", best->flags, best->figures()));
      keep_best(nearest, best);
    }
    if (!fitting.empty()) return fitting;
    if (!nearest || nearest->missing() >= missing(*nearest_.front())) {
      return {"neither recomputing, smaller micro-batches nor more devices were found to help"};
    }
    return {fmt::format("nothing tried fits; {} lacks least, {}: {}", nearest->flags,
                        print(nearest->missing()), nearest->figures())};
  }

 private:
  const SettingRequest& request_;
  const Setting& setting_;
  const std::vector<Row>& rows_;
  std::vector<const Row*> nearest_;  // to fitting

  static Bytes missing(const Row& row) { return tightest(*row.outcome)->missing(); }

  std::string flags_of(const ScheduleSpec& spec, int devices) const {
    const bool same = setting_.device_counts.size() == 1 && setting_.device_counts[0] == devices;
    return fmt::format("--schedule {}{}", spelled(spec),
                       same ? "" : fmt::format(" --devices {}", devices));
  }

  // On as many devices as the nearest row, by every schedule that has the knob and left it out.
  std::optional<Trial> recomputing() const {
    std::optional<Trial> best;
    const int devices = devices_of(*nearest_.front());
    for (const Row& row : rows_) {
      const auto knob = row.asked.spec.knobs.find("recompute");
      if (devices_of(row) != devices || knob == row.asked.spec.knobs.end()) continue;
      if (knob->second != "never") continue;
      ScheduleSpec spec = row.asked.spec;
      spec.knobs["recompute"] = "always";
      keep_best(best, tried(request_, setting_, spec, devices, flags_of(spec, devices)));
    }
    return best;
  }

  // The same samples a step in micro-batches of half the size, and of half of that.
  std::optional<Trial> smaller() const {
    std::optional<Trial> best;
    const int batch = setting_.model.batch;
    const bool read_once = request_.trace == "-" || request_.cluster.cluster == "-";
    if (read_once) return best;
    for (int size = next_smaller(batch); size > 0; size = next_smaller(size)) {
      SettingRequest request = request_;
      request.microbatch_size = size;
      const std::optional<Setting> setting = reopened(request);
      if (!setting) break;
      for (const Row* const row : nearest_) {
        const std::int64_t count = std::int64_t{row->asked.microbatches} * (batch / size);
        if (count > most_microbatches_tried) continue;
        request.microbatches = static_cast<int>(count);
        const ScheduleSpec& spec = row->asked.spec;
        const int devices = devices_of(*row);
        std::optional<Trial> trial =
            tried(request, *setting, spec, devices,
                  fmt::format("{} --microbatch-size {} --microbatches {}", flags_of(spec, devices),
                              size, request.microbatches));
        if (trial) trial->derived = has_new_note(*setting);
        keep_best(best, std::move(trial));
      }
      if (best && best->fits) break;
    }
    return best;
  }

  // Costs of a size that was not measured come with a note.
  bool has_new_note(const Setting& setting) const {
    const std::vector<std::string>& known = setting_.model.provenance.notes;
    const std::vector<std::string>& notes = setting.model.provenance.notes;
    return std::any_of(notes.begin(), notes.end(), [&](const std::string& note) {
      return std::find(known.begin(), known.end(), note) == known.end();
    });
  }

  static int next_smaller(int size) { return size < 2 ? 0 : size % 2 == 0 ? size / 2 : 1; }

  static std::optional<Setting> reopened(const SettingRequest& request) {
    try {
      return read_setting(request);
    } catch (const UsageError&) {
      return std::nullopt;  // the trace has no such size
    }
  }

  std::optional<Trial> more_devices() const {
    std::optional<Trial> best;
    const std::vector<int>& counts = setting_.device_counts;
    int most = std::min(static_cast<int>(setting_.model.layers.size()), most_devices_tried);
    if (const auto& fixed = setting_.cluster.fixed) {
      most = std::min(most, static_cast<int>(fixed->devices.size()));
    }
    for (int count = *std::max_element(counts.begin(), counts.end()); count < most;) {
      count = std::min(2 * count, most);
      for (const Row* const row : nearest_) {
        const ScheduleSpec& spec = row->asked.spec;
        keep_best(best, tried(request_, setting_, spec, count, flags_of(spec, count)));
      }
      if (best && best->fits) break;
    }
    return best;
  }
};

const Row* fastest_beside_one_device(const std::vector<Row>& rows) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (!row.outcome || row.outcome->fit == Fit::no) continue;
    if (row.outcome->step_time == Time{}) return nullptr;
    if (best == nullptr || row.outcome->speedup > best->outcome->speedup) best = &row;
  }
  return best;
}

}  // namespace

std::string one_device_advice(const SettingRequest& request, const Setting& setting,
                              const std::vector<Row>& rows) {
  if (setting.program) return "";
  const Row* const best = fastest_beside_one_device(rows);
  if (best == nullptr || best->outcome->speedup >= 1 - same_time) return "";
  SettingRequest alone = request;
  alone.microbatches = best->asked.microbatches;
  alone.partition = "balanced";
  alone.weights = std::nullopt;
  const bool flushed = best->outcome->synchrony == Synchrony::synchronous;
  const std::optional<Trial> trial =
      tried(alone, setting, parse_schedules(flushed ? "1f1b" : "pipedream").front(), 1, "");
  const std::string beside = fmt::format("the fastest, {} on {} devices, takes {}, {:.2f}× as fast",
                                         best->outcome->schedule, best->outcome->devices,
                                         print(best->outcome->step_time), best->outcome->speedup);
  if (!trial) return fmt::format("one device is faster than all of these: {}", beside);
  if (!trial->fits) {
    return fmt::format("one device would be faster than all of these, but lacks memory: {}; {}",
                       trial->figures(), beside);
  }
  return fmt::format("one device is faster than all of these: {}; {}", trial->figures(), beside);
}

std::vector<std::string> ways_to_fit(const SettingRequest& request, const Setting& setting,
                                     const std::vector<Row>& rows) {
  if (setting.program) return {};
  for (const Row& row : rows) {
    if (row.outcome && row.outcome->fit != Fit::no) return {};
  }
  return FitSearch(request, setting, rows).sentences();
}

}  // namespace stageline
