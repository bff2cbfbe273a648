// Reads one profile: its ranges, their steps, and whether their times are the CPU's or the GPU's.
//
//   CPU   |ProfilerStep#3                                   |ProfilerStep#4
//         |PP:1RECV_F0| PP:1F0     |PP:1SEND_F0| ...         a GPU range is found by the
//              |gloo:recv    |                               External id of its launch, or is the
//   GPU                 |PP:1F0  | (once a stream)           k-th of its name
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

#include "sim/errors.hpp"
#include "sim/program.hpp"
#include "traces/chrome/trace_events.hpp"
#include "traces/gzip.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

constexpr std::string_view action_prefix = "PP:";
constexpr std::string_view step_prefix = "ProfilerStep#";
constexpr std::string_view update_prefix = "Optimizer.step#";
constexpr std::string_view autograd_prefix = "autograd::engine::evaluate_function";

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
  explicit RankReader(const NamedText& profile) : profile_(profile) { rank_.file = profile.file; }

  KinetoRank read() {
    const std::string json = unpacked(profile_.text, profile_.file);
    const TraceHead head =
        scan_trace_events(json, profile_.file, [&](const TraceEvent& event) { keep(event); });
    read_head(head);
    for (auto* const list : {&cpu_, &gpu_, &steps_, &receives_}) {
      std::sort(list->begin(), list->end(), earlier);
    }
    rank_.named_by_stage = std::any_of(cpu_.begin(), cpu_.end(), [](const Annotation& a) {
      return a.name.starts_with(action_prefix);
    });
    make_ranges();
    if (rank_.ranges.empty()) refuse_without_ranges();
    if (!pairs_.empty() && rank_.source == RangeSource::cpu) look_into_pairs(json);
    return std::move(rank_);
  }

 private:
  [[noreturn]] void refuse(const std::string& where, const std::string& message) const {
    throw TraceError(profile_.file, where, message);
  }

  [[noreturn]] void refuse_without_ranges() const {
    if (rank_.outside > 0) {
      refuse("", fmt::format("none of its {} pipeline ranges begins inside of a ProfilerStep range",
                             rank_.outside));
    }
    refuse(
        "",
        "it has no range that is named like \"PP:2F0\" or \"Forward 0\"; PyTorch's "
        "_PipelineScheduleRuntime (Interleaved1F1B and all schedules of several stages a rank, or "
        "any loaded from CSV) and ScheduleGPipe write them, Schedule1F1B does not");
  }

  void keep(const TraceEvent& event) {
    if (event.phase != "X") return;
    if (event.category == "kernel") has_kernels_ = true;
    const bool on_gpu = event.category == "gpu_user_annotation";
    if (!on_gpu && event.category != "user_annotation") return;
    const bool op = event.name.starts_with(action_prefix) || parse_plain(event.name) ||
                    event.name.starts_with(update_prefix);
    const bool step = !on_gpu && event.name.starts_with(step_prefix);
    const bool receive = !on_gpu && event.name.ends_with(":recv");
    if (!op && !step && !receive) return;
    Annotation kept{event.name, event.tid, event.external_id, event.index, 0, 0};
    kept.start = nanoseconds(event, "ts", event.start);
    kept.end = kept.start + nanoseconds(event, "dur", event.duration);
    (step ? steps_ : receive ? receives_ : on_gpu ? gpu_ : cpu_).push_back(std::move(kept));
  }

  std::int64_t nanoseconds(const TraceEvent& event, const char* key,
                           const std::string& digits) const {
    if (digits.empty()) {
      refuse(fmt::format("/traceEvents/{}", event.index),
             fmt::format("a range needs \"{}\", in microseconds", key));
    }
    const std::optional<ScaledDecimal> number = scale_decimal(digits, 3);
    constexpr std::int64_t most = most_bytes / 2;  // the year 2043
    if (!number || number->value < 0 || number->value > most) {
      refuse(event_pointer(event, key),
             fmt::format("this must be from 0 to {} µs (it is {})", most / 1000, digits));
    }
    return number->value;
  }

  std::int64_t counted_from(std::int64_t start) const { return start >= base_ / 2 ? 0 : base_; }

  // Times count from baseTimeNanoseconds, or from 1970 in spite of it: then they are not smaller.
  void read_head(const TraceHead& head) {
    rank_.host = head.host;
    rank_.ranks = head.world_size;
    rank_.accelerator = head.device;
    if (!head.rank.empty()) {
      const std::optional<std::int64_t> rank = parse_count(head.rank);
      if (!rank || *rank >= 1 << 24) {
        refuse("/distributedInfo/rank", fmt::format("{} is not a rank", in_quotes(head.rank)));
      }
      rank_.rank = static_cast<int>(*rank);
    }
    if (!head.base_ns.empty()) {
      const std::optional<ScaledDecimal> number = scale_decimal(head.base_ns, 0);
      if (!number || number->value < 0 || number->value > most_bytes / 2) {
        refuse("/baseTimeNanoseconds", fmt::format("{} is not a time", in_quotes(head.base_ns)));
      }
      base_ = number->value;
    }
    for (auto* const list : {&cpu_, &gpu_, &steps_, &receives_}) {
      for (Annotation& range : *list) {
        const std::int64_t since = counted_from(range.start);
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
      const std::optional<std::int64_t> number =
          parse_count(std::string_view(step.name).substr(step_prefix.size()));
      if (!number || (!rank_.steps.empty() && *number <= rank_.steps.back())) {
        refuse(fmt::format("/traceEvents/{}/name", step.index),
               fmt::format("{} must have a number, larger than that of the step before it",
                           in_quotes(step.name)));
      }
      rank_.steps.push_back(*number);
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
    for (const auto& [tid, list] : named->second) {
      if (joined_by_id_) {
        for (const Annotation* const one : list) {
          if (one->external_id == launch.external_id) join(*one);
        }
      } else if (k < list.size()) {
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
    rank_.source = ops_on_gpu     ? RangeSource::gpu
                   : has_kernels_ ? RangeSource::launches
                                  : RangeSource::cpu;
  }

  // The arrival time, from the backend's range that begins inside; each such range has one receive.
  std::optional<std::int64_t> arrival_of(const Annotation& receive) {
    const auto first =
        std::lower_bound(receives_.begin(), receives_.end(), receive.start,
                         [](const Annotation& a, std::int64_t start) { return a.start < start; });
    for (auto one = first; one != receives_.end() && one->start <= receive.end; ++one) {
      if (one->tid == receive.tid && taken_.insert(one->index).second) return one->end;
    }
    return {};
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
          refuse(fmt::format("/traceEvents/{}/name", launch.index),
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
        KinetoRange range{action->ops, step, timed.start, timed.end, {}, {}, {}, {}};
        const OpKind kind = range.ops[0].kind;
        if (kind == OpKind::receive_forward || kind == OpKind::receive_backward) {
          if (rank_.source == RangeSource::gpu && gpu) range.arrival = gpu->end;
          if (rank_.source == RangeSource::cpu) range.arrival = arrival_of(launch);
        }
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
    scan_trace_events(json, profile_.file, [&](const TraceEvent& event) { look_at(event); });
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
    std::int64_t start = nanoseconds(event, "ts", event.start);
    start += counted_from(start);
    const auto after = std::upper_bound(
        pairs_.begin(), pairs_.end(), start,
        [&](std::int64_t at, const Pair& pair) { return at < rank_.ranges[pair.range].start; });
    if (after == pairs_.begin()) return;
    Pair& pair = *std::prev(after);
    if (start > rank_.ranges[pair.range].end || event.tid != pair.tid) return;
    if (event.name.starts_with(autograd_prefix)) {
      pair.autograd = std::min(start, pair.autograd.value_or(start));
    } else {
      pair.others.emplace_back(start, start + nanoseconds(event, "dur", event.duration));
    }
  }

  const NamedText& profile_;
  KinetoRank rank_;
  std::int64_t base_ = 0;
  std::vector<Pair> pairs_;  // in order of start
  bool has_kernels_ = false;
  bool joined_by_id_ = false;
  std::vector<Annotation> cpu_;
  std::vector<Annotation> gpu_;
  std::vector<Annotation> steps_;
  std::vector<Annotation> receives_;
  std::map<std::string, std::map<std::string, std::vector<const Annotation*>>> gpu_by_name_;
  std::set<std::size_t> taken_;  // receives_ already matched, by event
  std::set<Op> in_step_;
  const std::vector<Op> no_ops_;
};

}  // namespace

KinetoRank read_kineto_rank(const NamedText& profile) { return RankReader(profile).read(); }

}  // namespace stageline
