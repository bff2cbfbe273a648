// Reads one profile of torch.distributed.pipelining: its ranges, their steps, and whether their
// times are the CPU's or the GPU's.
//
//   CPU   |ProfilerStep#3                                   |ProfilerStep#4
//         |PP:1RECV_F0| PP:1F0     |PP:1SEND_F0| ...         a GPU range is found by the
//              |gloo:recv    |                               External id of its launch, or is the
//   GPU                 |PP:1F0  | (once a stream)           k-th of its name on the streams
//                                                            that have most of it
//
// A RECV only posts its receive; the backend's range that begins inside it records when the message
// arrived, and the F or B that needs the message waits inside its own range until then.
// An overlapped pair is one range; on the CPU its operators show where the second op begins.
#include "traces/kineto/rank.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/program.hpp"
#include "traces/chrome/trace_events.hpp"
#include "traces/json/tree.hpp"
#include "traces/kineto/profile_times.hpp"

namespace stageline {
namespace {

constexpr std::string_view action_prefix = "PP:";

struct Annotation {
  std::string name;
  std::string tid;
  std::string external_id;
  std::size_t index = 0;  // index of the event in the file
  std::int64_t start = 0;
  std::int64_t end = 0;
};

bool earlier(const Annotation& a, const Annotation& b) {
  return std::pair(a.start, a.index) < std::pair(b.start, b.index);
}

class RankReader {
 public:
  explicit RankReader(const std::string& file) : times_(file) { rank_.file = file; }

  std::optional<KinetoRank> read(const std::string& json) {
    const TraceHead head = scan_trace_events(json, rank_.file, [&](const TraceEvent& event) {
      keep(event);
      rank_.traffic.look_at(event, times_);
    });
    const bool any = std::any_of(cpu_.begin(), cpu_.end(), [](const Annotation& a) {
      return !a.name.starts_with(update_prefix);
    });
    if (!any) return {};
    read_head(head);
    for (auto* const list : {&cpu_, &gpu_, &steps_, &receives_, &sends_}) {
      std::sort(list->begin(), list->end(), earlier);
    }
    rank_.named_by_stage = std::any_of(cpu_.begin(), cpu_.end(), [](const Annotation& a) {
      return a.name.starts_with(action_prefix);
    });
    make_ranges();
    rank_.style = rank_.named_by_stage ? KinetoStyle::actions : KinetoStyle::plain;
    if (rank_.ranges.empty()) {
      if (rank_.outside == 0) return {};
      times_.refuse("", fmt::format("none of its {} pipeline ranges begins inside of a "
                                    "ProfilerStep range",
                                    rank_.outside));
    }
    if (!pairs_.empty() && rank_.source == RangeSource::cpu) look_into_pairs(json);
    return std::move(rank_);
  }

 private:
  void keep(const TraceEvent& event) {
    if (event.phase != "X") return;
    const bool on_gpu = event.category == "gpu_user_annotation";
    if (!on_gpu && event.category != "user_annotation") return;
    const bool op = event.name.starts_with(action_prefix) || parse_plain(event.name) ||
                    event.name.starts_with(update_prefix);
    const bool step = !on_gpu && event.name.starts_with(step_prefix);
    const bool receive = !on_gpu && event.name.ends_with(":recv");
    const bool send = !on_gpu && event.name.ends_with(":send");
    if (!op && !step && !receive && !send) return;
    Annotation kept{event.name, event.tid, event.external_id, event.index, 0, 0};
    kept.start = times_.start(event);
    kept.end = kept.start + times_.duration(event);
    auto& list = step ? steps_ : receive ? receives_ : send ? sends_ : on_gpu ? gpu_ : cpu_;
    list.push_back(std::move(kept));
  }

  void read_head(const TraceHead& head) {
    times_.read_head(head, rank_);
    for (auto* const list : {&cpu_, &gpu_, &steps_, &receives_, &sends_}) {
      for (Annotation& range : *list) {
        const std::int64_t since = times_.counted_from(range.start);
        range.start += since;
        range.end += since;
      }
    }
  }

  // Without ProfilerStep ranges, a step begins where an op repeats.
  int step_of(const Annotation& range, const std::vector<Op>& ops) {
    if (!steps_.empty()) {
      const auto after =
          std::upper_bound(steps_.begin(), steps_.end(), range.start,
                           [](std::int64_t at, const Annotation& step) { return at < step.start; });
      if (after == steps_.begin() || range.start >= std::prev(after)->end) return -1;
      return static_cast<int>(after - steps_.begin()) - 1;
    }
    bool again = rank_.steps.empty();
    for (const Op op : ops) again = again || in_step_.count(op) > 0;
    if (again) {
      in_step_.clear();
      rank_.steps.push_back(static_cast<std::int64_t>(rank_.steps.size()));
    }
    in_step_.insert(ops.begin(), ops.end());
    return static_cast<int>(rank_.steps.size()) - 1;
  }

  void number_steps() {
    for (const Annotation& step : steps_) {
      rank_.steps.push_back(times_.step_number(step.name, step.index, rank_.steps));
      rank_.step_lengths.push_back(step.end - step.start);
    }
  }

  // The GPU range that belongs to the k-th range of its name on the CPU.
  std::optional<Annotation> on_gpu(const Annotation& launch, std::size_t k) const {
    std::optional<Annotation> found;
    const auto join = [&](const Annotation& one) {
      if (!found) found = one;
      found->start = std::min(found->start, one.start);
      found->end = std::max(found->end, one.end);
    };
    const auto named = gpu_by_name_.find(launch.name);
    if (named == gpu_by_name_.end()) return {};
    // A stream that works in some of the ranges alone (an all-gather) does not say in which.
    std::size_t most = 0;
    for (const auto& [tid, list] : named->second) most = std::max(most, list.size());
    for (const auto& [tid, list] : named->second) {
      if (joined_by_id_) {
        for (const Annotation* const one : list) {
          if (one->external_id == launch.external_id) join(*one);
        }
      } else if (list.size() == most && k < list.size()) {
        join(*list[k]);
      }
    }
    return found;
  }

  void index_gpu() {
    std::set<std::pair<std::string, std::string>> launches;
    for (const Annotation& range : cpu_) launches.emplace(range.name, range.external_id);
    joined_by_id_ = !gpu_.empty() && std::all_of(gpu_.begin(), gpu_.end(), [&](const auto& range) {
      return !range.external_id.empty() && launches.count({range.name, range.external_id}) > 0;
    });
    for (const Annotation& range : gpu_) gpu_by_name_[range.name][range.tid].push_back(&range);
    const bool ops_on_gpu = std::any_of(gpu_.begin(), gpu_.end(), [](const Annotation& range) {
      return !range.name.starts_with(update_prefix);
    });
    rank_.source = ops_on_gpu                    ? RangeSource::gpu
                   : rank_.traffic.accelerator() ? RangeSource::launches
                                                 : RangeSource::cpu;
  }

  // The first of the backend's ranges that begins inside; each of them belongs to one range.
  std::optional<KinetoStretch> inside(const std::vector<Annotation>& list,
                                      const Annotation& range) {
    const auto first =
        std::lower_bound(list.begin(), list.end(), range.start,
                         [](const Annotation& a, std::int64_t start) { return a.start < start; });
    for (auto one = first; one != list.end() && one->start <= range.end; ++one) {
      if (one->tid == range.tid && taken_.insert(one->index).second) {
        return KinetoStretch{one->start, one->end};
      }
    }
    return {};
  }

  // "Forward 0" waits for its message at its front, and sends its own at its end.
  void cut_messages(const Annotation& launch, KinetoRange& range) {
    if (const std::optional<KinetoStretch> send = inside(sends_, launch)) {
      range.end = std::min(range.end, send->start);
    }
    range.input = inside(receives_, launch);
    if (!range.input) return;
    const std::int64_t start = std::clamp(range.input->end, range.start, range.end);
    rank_.waited += start - range.start;
    range.start = start;
  }

  void make_ranges() {
    index_gpu();
    number_steps();
    std::map<std::string, std::size_t> count;
    for (const Annotation& launch : cpu_) {
      const std::size_t k = count[launch.name]++;
      std::optional<KinetoAction> action;
      const bool update = launch.name.starts_with(update_prefix);
      if (launch.name.starts_with(action_prefix)) {
        action = parse_action(std::string_view(launch.name).substr(action_prefix.size()));
        if (!action) {
          times_.refuse(
              fmt::format("/traceEvents/{}/name", launch.index),
              fmt::format("{} is not a known action; they look like \"PP:2F0\" (F, I, W, B, "
                          "SEND_F, RECV_F, SEND_B, RECV_B), "
                          "\"PP:(7F3;0B2)OVERLAP_F_B\" and \"PP:0UNSHARD\"",
                          in_quotes(launch.name)));
        }
      } else if (!update && !rank_.named_by_stage) {
        action = KinetoAction{{*parse_plain(launch.name)}, false};
      }
      if (!update && !action) continue;  // "Forward 0" of the user, beside PP: ranges
      const std::optional<Annotation> gpu = on_gpu(launch, k);
      const Annotation& timed = gpu ? *gpu : launch;
      if (action && action->left_out) {
        ++rank_.left_out;
        rank_.left_out_time += std::chrono::nanoseconds(timed.end - timed.start);
        continue;
      }
      if (update && steps_.empty() && rank_.steps.empty()) continue;
      const int step = update && steps_.empty() ? static_cast<int>(rank_.steps.size()) - 1
                                                : step_of(launch, update ? no_ops_ : action->ops);
      if (step < 0) {
        ++rank_.outside;
      } else if (update) {
        rank_.updates.push_back({step, timed.start, timed.end});
      } else {
        KinetoRange range{action->ops, step, timed.start, timed.end, {}, {}, {}, {}, {}, {}};
        const OpKind kind = range.ops[0].kind;
        if (kind == OpKind::receive_forward || kind == OpKind::receive_backward) {
          if (rank_.source == RangeSource::gpu && gpu) range.arrival = gpu->end;
          if (rank_.source == RangeSource::cpu) {
            const std::optional<KinetoStretch> found = inside(receives_, launch);
            if (found) range.arrival = found->end;
          }
        }
        if (!rank_.named_by_stage && rank_.source == RangeSource::cpu) cut_messages(launch, range);
        if (rank_.source == RangeSource::gpu && !gpu) ++rank_.without_gpu;
        if (range.ops.size() == 2) pairs_.push_back({rank_.ranges.size(), launch.tid, {}, {}});
        rank_.ranges.push_back(std::move(range));
      }
    }
  }

  // One thread runs the ops of a pair one after the other, inside one range. The backward begins
  // with the first operator that autograd's engine runs, and the forward ends with the last
  // operator before it; in between, the backward waits for its message.
  //
  //   |PP:(2F3;1B1)OVERLAP_F_B                                         |
  //    |aten::linear||aten::relu|  (waits)  |autograd::engine::evaluate_function: … ||…|
  //                             ^ first_end ^ second_start
  struct Pair {
    std::size_t range = 0;  // index into rank_.ranges
    std::string tid;
    std::optional<std::int64_t> autograd;                       // start of its first operator
    std::vector<std::pair<std::int64_t, std::int64_t>> others;  // start, end of other operators
  };

  void look_into_pairs(const std::string& json) {
    scan_trace_events(json, rank_.file, [&](const TraceEvent& event) { look_at(event); });
    for (const Pair& pair : pairs_) {
      KinetoRange& range = rank_.ranges[pair.range];
      if (!pair.autograd || range.ops[0].kind != OpKind::forward) continue;
      if (range.ops[1].kind == OpKind::forward) continue;
      std::int64_t end = range.start;
      for (const auto& [start, until] : pair.others) {
        if (start < *pair.autograd) end = std::max(end, until);
      }
      range.first_end = std::min(end, *pair.autograd);
      range.second_start = pair.autograd;
    }
  }

  void look_at(const TraceEvent& event) {
    if (event.phase != "X" || event.category != "cpu_op") return;
    std::int64_t start = times_.start(event);
    start += times_.counted_from(start);
    const auto after = std::upper_bound(
        pairs_.begin(), pairs_.end(), start,
        [&](std::int64_t at, const Pair& pair) { return at < rank_.ranges[pair.range].start; });
    if (after == pairs_.begin()) return;
    Pair& pair = *std::prev(after);
    if (start > rank_.ranges[pair.range].end || event.tid != pair.tid) return;
    if (event.name.starts_with(autograd_prefix)) {
      pair.autograd = std::min(start, pair.autograd.value_or(start));
    } else {
      pair.others.emplace_back(start, start + times_.duration(event));
    }
  }

  ProfileTimes times_;
  KinetoRank rank_;
  std::vector<Pair> pairs_;  // in order of start
  bool joined_by_id_ = false;
  std::vector<Annotation> cpu_;
  std::vector<Annotation> gpu_;
  std::vector<Annotation> steps_;
  std::vector<Annotation> receives_;
  std::vector<Annotation> sends_;
  std::map<std::string, std::map<std::string, std::vector<const Annotation*>>> gpu_by_name_;
  std::set<std::size_t> taken_;  // of receives_ and sends_ already matched, by event
  std::set<Op> in_step_;
  const std::vector<Op> no_ops_;
};

}  // namespace

std::optional<KinetoRank> read_action_rank(const std::string& file, const std::string& json) {
  return RankReader(file).read(json);
}

}  // namespace stageline
