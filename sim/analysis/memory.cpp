// Memory by device and host: the lanes of each are merged in order of time, which all of them are
// in already.
#include "sim/analysis/memory.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "sim/analysis/memory_account.hpp"
#include "sim/analysis/memory_changes.hpp"
#include "sim/analysis/memory_tables.hpp"
#include "sim/analysis/unit_workspace.hpp"
#include "sim/base/index.hpp"
#include "sim/sums.hpp"

namespace stageline {

std::string_view name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::weights:
      return "weights";
    case MemoryKind::versions:
      return "versions";
    case MemoryKind::gradients:
      return "gradients";
    case MemoryKind::optimizer:
      return "optimizer";
    case MemoryKind::stash:
      return "stash";
    case MemoryKind::buffers:
      return "buffers";
    case MemoryKind::workspace:
      return "workspace";
    case MemoryKind::communication:
      return "communication";
  }
  return "";
}

std::string_view name(StashPart part) {
  switch (part) {
    case StashPart::weight_grad:
      return "stash_weight_grad";
    case StashPart::input_grad:
      return "stash_input_grad";
    case StashPart::gradients:
      return "stash_gradients";
    case StashPart::boundary:
      return "stash_boundary";
  }
  return "";
}

Bytes total(const MemoryUse& use) {
  Bytes sum{};
  for (const Bytes bytes : use) sum += bytes;
  return sum;
}

namespace {

constexpr Time no_event = Time::max();

// The next event of each stream, in order of precedence at one moment.
enum class Stream : std::uint8_t {
  send_ends,
  copy_out_ends,
  change,
  receive_starts,
  copy_in_starts,
  turn_in_starts,  // a PREFETCH in turn with OFFLOADs, in the lane of copies out
};
constexpr std::size_t streams = 6;

// Messages, copies and other changes of one device, merged in order of time.
class SideEvents {
 public:
  SideEvents(const Timeline& timeline, int device, const std::vector<MemoryChange>& changes)
      : sends_(&timeline.lane(device, LaneKind::send)),
        receives_(timeline.lane(device, LaneKind::receive)),
        copies_out_(timeline.lane(device, LaneKind::copy_out)),
        copies_in_(timeline.lane(device, LaneKind::copy_in)),
        changes_(changes) {
    // Sends of one batch start together and end one by one.
    const auto ends_sooner = [](const Span& a, const Span& b) { return a.end < b.end; };
    if (!std::is_sorted(sends_->begin(), sends_->end(), ends_sooner)) {
      sends_by_end_ = *sends_;
      std::stable_sort(sends_by_end_.begin(), sends_by_end_.end(), ends_sooner);
      sends_ = &sends_by_end_;
    }
    for (std::size_t stream = 0; stream < streams; ++stream) look(static_cast<Stream>(stream));
    choose();
  }
  SideEvents(const SideEvents&) = delete;
  SideEvents& operator=(const SideEvents&) = delete;

  /// When the next event happens; no_event: there is none.
  Time next() const { return at_; }

  /// Reports all events before a moment.
  void report_before(Time limit, DeviceAccount& account) {
    if (at_ < limit) report_some(limit, account);
  }

 private:
  // One function for all callers: with its loop in each of them, the compiler would call report()
  // for every event instead of putting it into the loop.
  [[gnu::noinline]] void report_some(Time limit, DeviceAccount& account) {
    while (at_ < limit) report(account);
  }

  // Reports the next event and goes on to the one behind it.
  void report(DeviceAccount& account) {
    account.go_to(at_);
    switch (chosen_) {
      case Stream::send_ends:
        account.sent((*sends_)[send_++].op);
        break;
      case Stream::copy_out_ends:
        if (copies_out_[copy_out_].op.kind == OpKind::offload) {
          account.copied_out(copies_out_[copy_out_].op);
        }
        ++copy_out_;
        in_turn_ = false;
        look(Stream::turn_in_starts);
        break;
      case Stream::change:
        account.change(changes_[change_]);
        ++change_;
        break;
      case Stream::receive_starts:
        account.received(receives_[receive_++].op);
        break;
      case Stream::copy_in_starts:
        account.copied_in(copies_in_[copy_in_++].op);
        break;
      case Stream::turn_in_starts:
        account.copied_in(copies_out_[copy_out_].op);
        in_turn_ = true;
        look(Stream::copy_out_ends);
        break;
    }
    look(chosen_);
    choose();
  }

  void look(Stream stream) { nth(head_, stream) = head(stream); }

  Time head(Stream stream) const {
    const bool copies = copy_out_ < copies_out_.size();
    const bool waits_for_turn =
        copies && copies_out_[copy_out_].op.kind == OpKind::prefetch && !in_turn_;
    switch (stream) {
      case Stream::send_ends:
        return send_ < sends_->size() ? (*sends_)[send_].end : no_event;
      case Stream::copy_out_ends:
        return copies && !waits_for_turn ? copies_out_[copy_out_].end : no_event;
      case Stream::change:
        return change_ < changes_.size() ? changes_[change_].at : no_event;
      case Stream::receive_starts:
        return receive_ < receives_.size() ? receives_[receive_].start : no_event;
      case Stream::copy_in_starts:
        return copy_in_ < copies_in_.size() ? copies_in_[copy_in_].start : no_event;
      case Stream::turn_in_starts:
        return waits_for_turn ? copies_out_[copy_out_].start : no_event;
    }
    return no_event;
  }

  // The first of the earliest.
  void choose() {
    std::size_t first = 0;
    for (std::size_t stream = 1; stream < streams; ++stream) {
      if (head_[stream] < head_[first]) first = stream;
    }
    chosen_ = static_cast<Stream>(first);
    at_ = head_[first];
  }

  const Spans* sends_;  // by end
  const Spans& receives_;
  const Spans& copies_out_;
  const Spans& copies_in_;
  const std::vector<MemoryChange>& changes_;
  Spans sends_by_end_;  // if they are not in this order already
  std::size_t send_ = 0;
  std::size_t receive_ = 0;
  std::size_t copy_out_ = 0;
  std::size_t copy_in_ = 0;
  std::size_t change_ = 0;
  bool in_turn_ = false;  // the PREFETCH at copy_out_ has started
  std::array<Time, streams> head_{};
  Stream chosen_ = Stream::send_ends;
  Time at_{};
};

// An overlapped pair starts as one and ends as one.
std::size_t unit_end(const Spans& spans, std::size_t at) {
  return spans[at].op.overlapped && at + 1 < spans.size() ? at + 2 : at + 1;
}

// A unit during which something else changes: between two changes it holds the most of its steps.
void replay_steps(const UnitWorkspace& unit, Time start, Time end, SideEvents& side,
                  DeviceAccount& account) {
  const auto share = [&](Time at) {
    return static_cast<double>((at - start).count()) / static_cast<double>((end - start).count());
  };
  for (Time at = start; at < end;) {
    const Time next = std::min(side.next(), end);
    account.hold_beyond(unit.most(share(at), share(next)));
    account.go_to(next);
    if (next < end) side.report_before(next + Time{1}, account);
    at = next;
  }
}

// At one moment the ends of ops come first and their starts last.
void replay(const Timeline& timeline, int device, const MemoryTables& tables,
            const std::vector<MemoryChange>& changes, DeviceAccount& account) {
  const Spans& compute = timeline.lane(device, LaneKind::compute);
  SideEvents side(timeline, device, changes);
  for (std::size_t first = 0; first < compute.size();) {
    const std::size_t behind = unit_end(compute, first);
    const Time start = compute[first].start;
    const Time end = compute[first].end;
    side.report_before(start + Time{1}, account);
    account.go_to(start);
    for (std::size_t i = first; i < behind; ++i) account.started(compute[i].op);
    const bool disturbed = side.next() < end;
    const HeldSteps* const steps = disturbed ? tables.steps(compute[first].op) : nullptr;
    if (behind == first + 1 && (steps == nullptr || steps->size() == 1)) {
      account.hold_beyond(steps == nullptr ? tables.workspace(compute[first].op)
                                           : steps->front().beyond);
      side.report_before(end, account);
    } else {
      const UnitWorkspace unit(tables, device, &compute[first], &compute[first] + (behind - first));
      if (disturbed && unit.known()) {
        replay_steps(unit, start, end, side, account);
      } else {
        account.hold_beyond(unit.most());
        side.report_before(end, account);
      }
    }
    account.go_to(end);
    account.hold_beyond(Bytes{});
    for (std::size_t i = first; i < behind; ++i) account.ended(compute[i].op);
    first = behind;
  }
  side.report_before(no_event, account);
}

// What the host of the forward's device holds from the start of the OFFLOAD to the end of the last
// PREFETCH: by host, in no order.
std::vector<std::vector<MemoryChange>> host_changes(const MemoryTables& tables, const Costs& costs,
                                                    const Timeline& timeline) {
  const Network& network = costs.network;
  const Placement& placement = tables.program().placement;
  std::vector<std::vector<MemoryChange>> changes(std::max<std::size_t>(network.hosts.size(), 1));
  const auto change = [&](Op op, Time at, int sign) {
    const int device = device_of(placement, op_of(OpKind::offload, op.stage, op.microbatch));
    const auto host = network.host.empty() ? std::size_t{0} : as_size(nth(network.host, device));
    changes[host].push_back(change_of_copy(tables, costs, op, at, sign));
  };
  std::map<Op, Time> back;  // of several readers, when the last one has it
  for (std::size_t device = 0; device < timeline.devices.size(); ++device) {
    for (const LaneKind kind : {LaneKind::copy_out, LaneKind::copy_in}) {
      for (const Span& span : timeline.lane(static_cast<int>(device), kind)) {
        if (stash_home(placement.stage[span.op.stage], span.op.microbatch) >= 0) continue;
        if (span.op.kind == OpKind::offload) {
          change(span.op, span.start, 1);
          continue;
        }
        const int readers = stash_readers(placement.stage[span.op.stage]);
        if (readers == 1) {
          change(span.op, span.end, -1);
          continue;
        }
        Time& last = back[op_of(OpKind::prefetch, span.op.stage, span.op.microbatch)];
        last = std::max(last, span.end);
      }
    }
  }
  for (const auto& [op, last] : back) change(op, last, -1);
  return changes;
}

void read_hosts(const MemoryTables& tables, const Costs& costs, const Timeline& timeline,
                Curves curves, MemoryProfile& profile) {
  std::vector<std::vector<MemoryChange>> changes = host_changes(tables, costs, timeline);
  profile.host.resize(changes.size());
  for (std::size_t h = 0; h < changes.size(); ++h) {
    sort(changes[h]);
    DeviceMemory& host = profile.host[h];
    MemoryUse use{};
    StashUse stash{};
    Bytes& held = nth(use, MemoryKind::stash);
    for (std::size_t i = 0; i < changes[h].size(); ++i) {
      held += changes[h][i].bytes;
      nth(stash, StashPart::input_grad) += changes[h][i].for_input_grad;
      nth(stash, StashPart::boundary) += changes[h][i].boundary;
      nth(stash, StashPart::weight_grad) =
          held - nth(stash, StashPart::input_grad) - nth(stash, StashPart::boundary);
      const Time at = changes[h][i].at;
      if (i + 1 < changes[h].size() && changes[h][i + 1].at == at) continue;
      if (held > host.peak) {
        host.peak = held;
        host.peak_at = at;
        host.at_peak = use;
        host.stash_at_peak = stash;
      }
      if (curves == Curves::all) host.curve.push_back({at, use, stash});
    }
    host.at_end = use;
  }
}

}  // namespace

MemoryProfile memory_of(const Program& program, const Costs& costs, const Timeline& timeline,
                        Curves curves) {
  check_sums(costs, program.placement, program.total_microbatches(), program.steps);
  MemoryProfile profile;
  profile.device.resize(timeline.devices.size());
  profile.stage.resize(costs.stage.size());
  const MemoryTables tables(program, costs);
  const std::vector<std::vector<MemoryChange>> changes = changes_of(tables, costs, timeline);
  for (std::size_t d = 0; d < timeline.devices.size(); ++d) {
    const int device = static_cast<int>(d);
    DeviceAccount account(tables, device, curves, profile);
    replay(timeline, device, tables, changes[d], account);
    profile.device_stash_peak.push_back(account.finish());
    DeviceMemory& memory = profile.device[d];
    if (memory.peak > Bytes{}) memory.peak_op = peak_op_of(timeline, device, memory.peak_at);
  }
  read_hosts(tables, costs, timeline, curves, profile);
  return profile;
}

}  // namespace stageline
