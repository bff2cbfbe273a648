// Simulates changes of a comparison that take less memory.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "sim/errors.hpp"
#include "tools/base/parallel.hpp"
#include "tools/compare/advice.hpp"
#include "tools/compare/trial.hpp"
#include "tools/study/cut_search.hpp"

namespace stageline {
namespace {

constexpr std::size_t rows_tried = 3;  // unlike ones, those that lack least memory
constexpr int most_devices_tried = 64;
constexpr std::int64_t most_microbatches_tried = 1 << 16;

// Without searches, for what does not depend on them.
SettingRequest plainly_cut(SettingRequest request) {
  request.device_order = DeviceOrdering::given;
  if (is_simulated(request.partition)) request.partition = "balanced";
  return request;
}

// Those that fit first, the fastest of them; else the one that lacks least.
bool better(const Trial& a, const Trial& b) {
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.throughput > b.throughput : a.missing() < b.missing();
}

void keep_best(std::optional<Trial>& best, std::optional<Trial> other) {
  if (other && (!best || better(*other, *best))) best = std::move(other);
}

int devices_of(const Row& row) { return row.asked.device_count(); }

class FitSearch {
 public:
  FitSearch(const SettingRequest& request, const Setting& setting, const std::vector<Row>& rows,
            int workers)
      : request_(request), setting_(setting), rows_(rows), workers_(workers) {
    for (const Row& row : rows) {
      if (row.outcome && tightest(*row.outcome)) nearest_.push_back(&row);
    }
    std::stable_sort(nearest_.begin(), nearest_.end(),
                     [](const Row* a, const Row* b) { return missing(*a) < missing(*b); });
    nearest_.erase(std::unique(nearest_.begin(), nearest_.end(),
                               [](const Row* a, const Row* b) {
                                 return missing(*a) == missing(*b) &&
                                        a->outcome->step_time == b->outcome->step_time;
                               }),
                   nearest_.end());
    if (nearest_.size() > rows_tried) nearest_.resize(rows_tried);
  }

  std::vector<std::string> sentences() const {
    if (nearest_.empty()) return {};
    std::vector<std::string> fitting;
    std::optional<Trial> nearest;
    const auto look_at = [&](const std::optional<Trial>& best) {
      if (!best) return;
      if (best->fits) fitting.push_back(fmt::format("{} fits: {}", best->flags, best->figures()));
      keep_best(nearest, best);
    };
    look_at(recomputing());
    look_at(smaller());
    look_at(more_devices(request_, setting_, 1, ""));
    if (fitting.empty()) look_at(smallest_on_more_devices());
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
  int workers_;
  std::vector<const Row*> nearest_;  // to fitting

  // Cases of one size, tried at the same time.
  class Tries {
   public:
    void add(const SettingRequest& request, const Setting& setting, const ScheduleSpec& spec,
             int devices, std::string flags, bool derived = false) {
      size_ = std::max(size_, case_size(request, setting, devices));
      tries_.emplace_back([&request, &setting, spec, devices, flags = std::move(flags), derived] {
        std::optional<Trial> trial = tried(request, setting, spec, devices, flags);
        if (trial) trial->derived = derived;
        return trial;
      });
    }

    // Of the earlier best and these.
    void find_best(std::optional<Trial>& best, int workers) const {
      std::vector<std::optional<Trial>> found(tries_.size());
      in_parallel(found.size(), cases_at_a_time(size_, workers),
                  [&](std::size_t i) { found[i] = tries_[i](); });
      for (std::optional<Trial>& one : found) keep_best(best, std::move(one));
    }

   private:
    std::vector<std::function<std::optional<Trial>()>> tries_;
    double size_ = 1;  // of the largest, as in cases_at_a_time()
  };

  static Bytes missing(const Row& row) { return tightest(*row.outcome)->missing(); }

  std::string flags_of(const ScheduleSpec& spec, int devices) const {
    const bool same = setting_.device_counts.size() == 1 && setting_.device_counts[0] == devices;
    return fmt::format("--schedule {}{}{}", spelled(spec),
                       same ? "" : fmt::format(" --devices {}", devices),
                       request_.partitions.empty() || is_simulated(request_.partition)
                           ? ""
                           : fmt::format(" --partition {}", request_.partition));
  }

  // On as many devices as the nearest row, by every schedule that has the knob and left it out; by
  // the others among the nearest rows with the flag.
  std::optional<Trial> recomputing() const {
    std::optional<Trial> best;
    if (!request_.recomputation.parts.empty()) return best;
    Tries tries;
    const int devices = devices_of(*nearest_.front());
    for (const Row& row : rows_) {
      const auto knob = row.asked.spec.knobs.find("recompute");
      if (devices_of(row) != devices || knob == row.asked.spec.knobs.end()) continue;
      if (knob->second != "never") continue;
      ScheduleSpec spec = row.asked.spec;
      spec.knobs["recompute"] = "always";
      tries.add(request_, setting_, spec, devices, flags_of(spec, devices));
    }
    SettingRequest request = request_;
    request.recomputation.parts = {{{Rebuild::full, 1}, {}}};
    for (const Row* const row : nearest_) {
      const ScheduleSpec& spec = row->asked.spec;
      if (spec.knobs.count("recompute") > 0) continue;
      tries.add(request, setting_, spec, devices_of(*row),
                flags_of(spec, devices_of(*row)) + " --recompute full");
    }
    tries.find_best(best, workers_);
    return best;
  }

  // The same samples a step in micro-batches of half the size, and of half of that.
  std::optional<Trial> smaller() const {
    std::optional<Trial> best;
    const int batch = setting_.model.batch;
    if (is_read_once()) return best;
    for (int size = next_smaller(batch); size > 0; size = next_smaller(size)) {
      SettingRequest request = request_;
      request.microbatch_size = size;
      const std::optional<Setting> setting = reopened(request);
      if (!setting) break;
      std::vector<SettingRequest> requests;  // by row of those nearest to fitting
      for (const Row* const row : nearest_) {
        const std::int64_t count = std::int64_t{row->asked.microbatches} * (batch / size);
        request.microbatches = static_cast<int>(std::min(count, most_microbatches_tried + 1));
        requests.push_back(request);
      }
      Tries tries;
      for (std::size_t i = 0; i < nearest_.size(); ++i) {
        if (requests[i].microbatches > most_microbatches_tried) continue;
        const ScheduleSpec& spec = nearest_[i]->asked.spec;
        const int devices = devices_of(*nearest_[i]);
        tries.add(requests[i], *setting, spec, devices,
                  fmt::format("{} --microbatch-size {} --microbatches {}", flags_of(spec, devices),
                              size, requests[i].microbatches),
                  has_new_note(*setting));
      }
      tries.find_best(best, workers_);
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

  // Twice as many devices, and twice of that, as far as layers and the cluster go, in more pipeline
  // ranks where there are other degrees. `factor`: times
  // the micro-batches of the question, which `suffix` says.
  std::optional<Trial> more_devices(const SettingRequest& request, const Setting& setting,
                                    int factor, const std::string& suffix) const {
    std::optional<Trial> best;
    if (request.degrees.pipeline > 0) return best;
    const int width = request.degrees.width();
    const std::vector<int>& counts = setting_.device_counts;
    int most = width * std::min(static_cast<int>(setting_.model.layers.size()), most_devices_tried);
    if (const auto& fixed = setting_.cluster.fixed) {
      most = std::min(most, static_cast<int>(fixed->devices.size()) / width * width);
    }
    for (int count = *std::max_element(counts.begin(), counts.end()); count < most;) {
      count = std::min(2 * count, most);
      SettingRequest changed = request;
      std::string flags = suffix;
      if (factor > 1) {
        const ScheduleSpec& any = nearest_.front()->asked.spec;
        const std::int64_t asked =
            make_case(plainly_cut(request_), setting_, any, count).microbatches;
        if (asked * factor > most_microbatches_tried) break;
        changed.microbatches = static_cast<int>(asked * factor);
        flags += fmt::format(" --microbatches {}", changed.microbatches);
      }
      Tries tries;
      for (const Row* const row : nearest_) {
        const ScheduleSpec& spec = row->asked.spec;
        tries.add(changed, setting, spec, count, flags_of(spec, count) + flags);
      }
      tries.find_best(best, workers_);
      if (best && best->fits) break;
    }
    return best;
  }

  // Micro-batches of one sample on more devices.
  std::optional<Trial> smallest_on_more_devices() const {
    if (is_read_once() || setting_.model.batch < 2) return std::nullopt;
    SettingRequest request = request_;
    request.microbatch_size = 1;
    const std::optional<Setting> setting = reopened(request);
    if (!setting) return std::nullopt;
    std::optional<Trial> best =
        more_devices(request, *setting, setting_.model.batch, " --microbatch-size 1");
    if (best) best->derived = has_new_note(*setting);
    return best;
  }

  // From standard input, so that it cannot be opened again.
  bool is_read_once() const { return request_.trace == "-" || request_.cluster.cluster == "-"; }
};

}  // namespace

std::vector<std::string> ways_to_fit(const SettingRequest& request, const Setting& setting,
                                     const std::vector<Row>& rows, int workers) {
  if (setting.program) return {};
  for (const Row& row : rows) {
    if (row.outcome && row.outcome->fit != Fit::no) return {};
  }
  return FitSearch(request, setting, rows, workers).sentences();
}

}  // namespace stageline
