// Versions of weights: what every pass reads, and how long old versions are kept.
#include "sim/analysis/versions.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "sim/analysis/weight_copies.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

bool reads_weights(OpKind kind) {
  switch (class_of(kind)) {
    case OpClass::forward:
    case OpClass::recompute:
      return true;
    case OpClass::backward:
      return kind != OpKind::weight_grad;
    case OpClass::update:
    case OpClass::reduction:
    case OpClass::message:
    case OpClass::copy:
      return false;
  }
  return false;
}

class StageReader {
 public:
  // `entered`: by micro-batch, what entered_after() returned for the first stage; empty for the
  // first stage itself. `reads`: takes every pass; may be null.
  StageReader(const Program& program, int stage, const std::vector<std::uint32_t>& entered,
              std::vector<VersionRead>* reads)
      : program_(program),
        place_(nth(program.placement.stage, stage)),
        entered_(entered),
        reads_(reads),
        group_(static_cast<std::uint32_t>(microbatches_per_update(program, stage))),
        forward_version_(program.total_microbatches()),
        moved_on_(program.total_microbatches()) {}

  void read(const WeightCopy& copy) {
    CopyTimes times;
    for (const Span& span : copy.spans) {
      if (span.op.kind == OpKind::update) {
        replace(copy, span, times);
      } else {
        use(copy, span, times);
      }
    }
    for (; synced() && times.in_reach < times.superseded.size(); ++times.in_reach) {
      last_at_least(times, times.in_reach, copy.spans.back().end);
    }
    add_versions(copy, times);
    add_copies(copy, times);
  }

  StageVersions finish() {
    for (auto* const events : {&result_.events, &result_.copies, &kept_}) {
      std::sort(events->begin(), events->end(), [](const VersionEvent& a, const VersionEvent& b) {
        return a.at != b.at           ? a.at < b.at
               : a.change != b.change ? a.change < b.change
                                      : a.device < b.device;
      });
    }
    std::vector<int> held(program_.devices.size(), 1);
    for (const VersionEvent& event : kept_) {
      int& here = nth(held, event.device);
      here += event.change;
      result_.held_peak = std::max(result_.held_peak, here);
    }
    count_staleness();
    for (const int updates : moved_on_) {
      result_.read_other += updates > 0 ? 1 : 0;
      result_.read_other_by = std::max(result_.read_other_by, updates);
    }
    result_.consistent = result_.read_other == 0;
    return std::move(result_);
  }

  /// Updates of the first stage that each micro-batch's forward has seen, in micro-batches.
  std::vector<std::uint32_t> entered_after() const {
    std::vector<std::uint32_t> counts;
    for (const std::uint32_t version : forward_version_) counts.push_back(version * group_);
    return counts;
  }

 private:
  // When the versions of one copy come and go, by version.
  struct CopyTimes {
    std::vector<Time> made;                        // when the next one begins to be made
    std::vector<Time> superseded;                  // when the next one exists
    std::vector<Time> replaced;                    // when the next one needs its place
    std::vector<Time> last_read{Time{}};           // one more: of the newest, too
    std::vector<Time> known_unread;                // where that is later than the last read
    std::map<std::uint32_t, std::size_t> made_by;  // the version of each update
    std::size_t taken = 0;     // how many of the versions that came have been taken over
    std::size_t in_reach = 0;  // with vertical sync: the oldest version that may still be read
  };

  bool synced() const { return program_.settings.weights == WeightRule::vertical_sync; }

  static void last_at_least(CopyTimes& times, std::size_t version, Time at) {
    if (version >= times.last_read.size()) times.last_read.resize(version + 1);
    times.last_read[version] = std::max(times.last_read[version], at);
  }

  static void replace(const WeightCopy& copy, const Span& update, CopyTimes& times) {
    times.made.push_back(copy.comes_by_message ? update.end : update.start);
    // What came waits in its room for the next op.
    times.replaced.push_back(copy.comes_by_message ? Time::max() : update.start);
    times.superseded.push_back(update.end);
    times.last_read.push_back(Time{});
    times.made_by[update.op.microbatch] = times.superseded.size();
  }

  void use(const WeightCopy& copy, const Span& span, CopyTimes& times) {
    const auto newest = static_cast<std::uint32_t>(times.superseded.size());
    for (; times.taken < times.replaced.size(); ++times.taken) {
      Time& replaced = times.replaced[times.taken];
      replaced = std::min(replaced, span.start);
    }
    if (reads_ != nullptr) note_read(span.op, copy.device, newest);
    // On another device than the forward's, what the next backward reads is not known before.
    if (class_of(span.op.kind) == OpClass::backward) {
      const std::size_t oldest = version_read(span.op, newest);
      times.known_unread.resize(std::max(times.known_unread.size(), oldest), span.start);
    }
    if (!reads_weights(span.op.kind)) return;
    const std::uint32_t version = version_read(span.op, newest);
    last_at_least(times, version, span.end);
    if (span.op.kind == OpKind::forward) {
      note_staleness(span.op.microbatch / group_, version);
      // The version that the next forward reads is not known before it starts; it is not older
      // than this one.
      for (; synced() && times.in_reach < version; ++times.in_reach) {
        last_at_least(times, times.in_reach, span.start);
      }
    } else if (version != forward_version_[span.op.microbatch]) {
      note_other_version(span.op.microbatch, version);
    }
  }

  void add_versions(const WeightCopy& copy, const CopyTimes& times) {
    for (std::size_t version = 0; version < times.superseded.size(); ++version) {
      const Time last = times.last_read[version];
      if (last <= times.superseded[version]) continue;
      // Not in the place of the old one, which is read later.
      result_.events.push_back({times.made[version], copy.device, +1});
      result_.events.push_back({last, copy.device, -1});
      kept_.push_back({times.superseded[version], copy.device, +1});
      kept_.push_back({last, copy.device, -1});
    }
  }

  void add_copies(const WeightCopy& copy, const CopyTimes& times) {
    std::vector<Time> last_use(times.last_read.size());
    if (keeps_versions(program_.settings)) {
      last_use = times.last_read;
      if (place_.apart() && copy.device != place_.device(Role::forward)) {
        std::vector<Time> unread = times.known_unread;
        unread.resize(times.superseded.size(), copy.spans.back().end);
        for (std::size_t version = 0; version < unread.size(); ++version) {
          last_use[version] = std::max(last_use[version], unread[version]);
        }
      }
    }
    for (const Span& send : copy.sends) {
      Time& last = last_use[times.made_by.at(send.op.microbatch)];
      last = std::max(last, send.end);
    }
    for (std::size_t version = 0; version < times.replaced.size(); ++version) {
      if (last_use[version] <= times.replaced[version]) continue;
      result_.copies.push_back({times.replaced[version], copy.device, +1});
      result_.copies.push_back({last_use[version], copy.device, -1});
    }
  }

  std::uint32_t version_read(Op op, std::uint32_t newest) {
    std::uint32_t& of_forward = forward_version_[op.microbatch];
    switch (program_.settings.weights) {
      case WeightRule::flush:
      case WeightRule::latest:
        if (op.kind == OpKind::forward) of_forward = newest;
        return newest;
      case WeightRule::stash:
        if (op.kind == OpKind::forward) of_forward = newest;
        return of_forward;
      case WeightRule::double_buffer:
        if (op.kind == OpKind::forward) {
          of_forward = std::min(newest, delayed_version(program_, op));
        }
        return of_forward;
      case WeightRule::vertical_sync:
        if (op.kind == OpKind::forward) {
          of_forward =
              entered_.empty() ? newest : std::min(newest, entered_[op.microbatch] / group_);
        }
        return of_forward;
    }
    return newest;
  }

  void note_read(Op op, int device, std::uint32_t newest) {
    if (op.kind != OpKind::weight_grad && !reads_weights(op.kind)) return;
    const bool rebuilt =
        program_.settings.correction == moving_average && op.kind != OpKind::forward;
    reads_->push_back({op, device, rebuilt ? newest : version_read(op, newest)});
  }

  // Negative if micro-batches are updated out of order and a forward reads a later update than its
  // own.
  void note_staleness(std::uint32_t own_update, std::uint32_t version) {
    staleness_.push_back(static_cast<int>(own_update) - static_cast<int>(version));
  }

  void note_other_version(std::uint32_t microbatch, std::uint32_t version) {
    const int updates =
        std::abs(static_cast<int>(version) - static_cast<int>(forward_version_[microbatch]));
    moved_on_[microbatch] = std::max(moved_on_[microbatch], updates);
  }

  void count_staleness() {
    if (staleness_.empty()) return;
    const auto [least, most] = std::minmax_element(staleness_.begin(), staleness_.end());
    const int from = *least;
    std::vector<std::int64_t> counts(as_size(*most - from + 1));
    double sum = 0;
    for (const int updates : staleness_) {
      nth(counts, updates - from) += 1;
      sum += updates;
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) result_.staleness.push_back({from + static_cast<int>(i), counts[i]});
    }
    result_.staleness_min = result_.staleness.front().updates;
    result_.staleness_max = result_.staleness.back().updates;
    result_.staleness_mean = sum / static_cast<double>(staleness_.size());
  }

  const Program& program_;
  const StagePlace& place_;
  const std::vector<std::uint32_t>& entered_;
  std::vector<VersionRead>* reads_;
  std::uint32_t group_;
  std::vector<std::uint32_t> forward_version_;  // by micro-batch
  std::vector<int> moved_on_;   // by micro-batch: updates between the versions of F and backward
  std::vector<int> staleness_;  // of every forward, in order of time
  std::vector<VersionEvent> kept_;  // whole versions alone, without the one in the making
  StageVersions result_;
};

std::vector<StageVersions> read_all(const Program& program, const Timeline& timeline,
                                    std::vector<VersionRead>* reads) {
  const std::vector<std::vector<WeightCopy>> copies = weight_copies(program, timeline);
  std::vector<StageVersions> result;
  std::vector<std::uint32_t> entered;  // empty for the first stage
  for (std::size_t s = 0; s < copies.size(); ++s) {
    StageReader reader(program, static_cast<int>(s), entered, reads);
    for (const WeightCopy& copy : copies[s]) reader.read(copy);
    result.push_back(reader.finish());
    if (s == 0 && program.settings.weights == WeightRule::vertical_sync)
      entered = reader.entered_after();
  }
  return result;
}

}  // namespace

std::vector<StageVersions> versions_of(const Program& program, const Timeline& timeline) {
  return read_all(program, timeline, nullptr);
}

std::vector<VersionRead> versions_read(const Program& program, const Timeline& timeline) {
  std::vector<VersionRead> reads;
  read_all(program, timeline, &reads);
  return reads;
}

}  // namespace stageline
