// Finds the ranges of a profile by rules for their names: annotations, Python functions, NVTX.
//
// An NVTX range is one of a report of Nsight Systems that was converted to a Chrome trace
// (nsys2json and its like write the categories "nvtx" and "nvtx-kernel", the latter on the GPU).
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "traces/json/tree.hpp"
#include "traces/kineto/found.hpp"

namespace stageline {
namespace {

struct NamedEvent {
  std::size_t name = 0;  // index into names_
  std::string tid;
  std::string external_id;
  KinetoStretch time;
  std::size_t event = 0;
};

struct KnownName {
  std::string text;
  std::vector<std::optional<RangeName>> by_candidate;
};

class NameFinder {
 public:
  NameFinder(const std::string& file, const std::vector<const RangeNames*>& candidates)
      : file_(file), candidates_(candidates), times_(file) {}

  bool find(const std::string& json, KinetoRank& rank, NameCounts& seen) {
    KinetoTraffic traffic;
    const TraceHead head = scan_trace_events(json, file_, [&](const TraceEvent& event) {
      keep(event);
      traffic.look_at(event, times_);
    });
    times_.read_head(head, rank);
    const std::size_t chosen = choose();
    if (chosen == candidates_.size()) {
      seen = most_frequent();
      return false;
    }
    rank.traffic = traffic;
    rank.names = candidates_[chosen]->title();
    rank.style = KinetoStyle::named;
    for (std::vector<NamedEvent>* const list : {&cpu_, &gpu_}) settle(*list);
    find_steps();
    make_ranges(chosen);
    run_.has_kernels = has_kernels_;
    if (!gpu_.empty()) {
      join_gpu(chosen);
    } else if (has_kernels_) {
      time_by_kernels(file_, json, times_, run_);
    }
    assemble(run_, times_, rank);
    return true;
  }

 private:
  void keep(const TraceEvent& event) {
    if (event.phase != "X") return;
    if (is_kernel(event)) has_kernels_ = true;
    const bool annotation = event.category == "user_annotation" || event.category == "nvtx";
    const bool on_gpu = event.category == "gpu_user_annotation" || event.category == "nvtx-kernel";
    if (!annotation && !on_gpu && event.category != "python_function") return;
    if (annotation && event.name.starts_with(step_prefix)) {
      steps_.push_back(named_event(event, 0));
      step_names_.push_back(event.name);
      return;
    }
    if (annotation && event.name.ends_with(":recv")) receives_.push_back(named_event(event, 0));
    const std::size_t name = known(event.name);
    if (annotation) ++count_[name];
    const auto& meanings = names_[name].by_candidate;
    const bool update = annotation && event.name.starts_with(update_prefix);
    const bool matches = std::any_of(meanings.begin(), meanings.end(),
                                     [](const auto& found) { return found.has_value(); });
    if (!matches && !update) return;
    (on_gpu ? gpu_ : cpu_).push_back(named_event(event, name));
  }

  NamedEvent named_event(const TraceEvent& event, std::size_t name) const {
    const std::int64_t start = times_.start(event);
    return {
        name, event.tid, event.external_id, {start, start + times_.duration(event)}, event.index};
  }

  std::size_t known(const std::string& text) {
    const auto [at, added] = index_.try_emplace(text, names_.size());
    if (!added) return at->second;
    KnownName name{text, {}};
    for (const RangeNames* const candidate : candidates_) {
      name.by_candidate.push_back(candidate->find(text));
    }
    names_.push_back(std::move(name));
    count_.push_back(0);
    return at->second;
  }

  // The first candidate that names a forward and a backward.
  std::size_t choose() const {
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      bool forward = false;
      bool backward = false;
      for (const NamedEvent& event : cpu_) {
        const std::optional<RangeName>& found = names_[event.name].by_candidate[c];
        if (!found) continue;
        for (const RangeMeaning meaning : found->meanings) {
          forward = forward || meaning == RangeMeaning::forward;
          backward =
              backward || meaning == RangeMeaning::backward || meaning == RangeMeaning::weight_grad;
        }
      }
      if (forward && backward) return c;
    }
    return candidates_.size();
  }

  NameCounts most_frequent() const {
    NameCounts counts;
    for (std::size_t name = 0; name < names_.size(); ++name) {
      const std::string& text = names_[name].text;
      const bool of_torch = text.ends_with(":send") || text.ends_with(":recv") ||
                            text.starts_with("nccl:") || text.starts_with("Optimizer.");
      if (count_[name] > 0 && !of_torch) counts.emplace_back(text, count_[name]);
    }
    std::stable_sort(counts.begin(), counts.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    constexpr std::size_t most = 6;
    if (counts.size() > most) counts.resize(most);
    return counts;
  }

  void since_1970(KinetoStretch& time) const {
    const std::int64_t since = times_.counted_from(time.start);
    time.start += since;
    time.end += since;
  }

  void settle(std::vector<NamedEvent>& list) const {
    for (NamedEvent& event : list) since_1970(event.time);
    std::sort(list.begin(), list.end(), [](const NamedEvent& a, const NamedEvent& b) {
      return std::tuple(a.time.start, -a.time.end, a.event) <
             std::tuple(b.time.start, -b.time.end, b.event);
    });
  }

  void find_steps() {
    settle(receives_);
    for (const NamedEvent& one : receives_) run_.receives.push_back(one.time);
    std::vector<std::size_t> order(steps_.size());
    for (std::size_t at = 0; at < order.size(); ++at) order[at] = at;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return steps_[a].time.start < steps_[b].time.start;
    });
    std::vector<std::int64_t> before;
    for (const std::size_t at : order) {
      before.push_back(times_.step_number(step_names_[at], steps_[at].event, before));
      since_1970(steps_[at].time);
      run_.steps.push_back({before.back(), steps_[at].time});
    }
  }

  // What the chosen rules say; Optimizer.step# where they say nothing.
  std::optional<RangeName> meaning_of(const NamedEvent& event, std::size_t chosen) const {
    const KnownName& name = names_[event.name];
    if (name.by_candidate[chosen]) return name.by_candidate[chosen];
    if (!name.text.starts_with(update_prefix)) return {};
    return RangeName{{RangeMeaning::optimizer}, {}, {}};
  }

  // A range inside another of the same thread that has a meaning is a part of it.
  void make_ranges(std::size_t chosen) {
    std::map<std::string, std::int64_t> until;  // by thread
    for (const NamedEvent& event : cpu_) {
      const std::optional<RangeName> found = meaning_of(event, chosen);
      if (!found) continue;
      const auto& meanings = found->meanings;
      if (std::find(meanings.begin(), meanings.end(), RangeMeaning::interleaved) !=
          meanings.end()) {
        refuse(event,
               "its ranges are of an interleaved schedule, and name neither the chunk nor the "
               "micro-batch; name both in ranges of your own, and these in a mapping file");
      }
      if (meanings[0] == RangeMeaning::ignored || meanings[0] == RangeMeaning::layer) continue;
      std::optional<std::size_t>& by_id = by_id_[{event.name, event.external_id}];
      const auto [at, first] = until.try_emplace(event.tid, event.time.end);
      if (!first && event.time.start < at->second) continue;
      at->second = event.time.end;
      by_id = run_.ranges.size();
      launches_[event.name].push_back(run_.ranges.size());
      for (const RangeMeaning meaning : meanings) {
        FoundRange range;
        range.meaning = meaning;
        range.launch = event.time;
        range.event = event.event;
        const std::optional<std::int64_t> stage = number(event, "stage", found->stage, 0xffff);
        if (stage) range.stage = static_cast<int>(*stage);
        const std::optional<std::int64_t> microbatch =
            number(event, "micro-batch", found->microbatch, 0x7fffffff);
        if (microbatch) range.microbatch = static_cast<std::uint32_t>(*microbatch);
        run_.ranges.push_back(range);
      }
    }
  }

  [[noreturn]] void refuse(const NamedEvent& event, const std::string& message) const {
    times_.refuse(fmt::format("/traceEvents/{}/name", event.event),
                  fmt::format("{}: {}", in_quotes(names_[event.name].text), message));
  }

  std::optional<std::int64_t> number(const NamedEvent& event, const char* what,
                                     const std::string& digits, std::int64_t most) const {
    if (digits.empty()) return {};
    const std::optional<std::int64_t> value = parse_count(digits);
    if (!value || *value > most) {
      refuse(event, fmt::format("{} is not the number of a {}", in_quotes(digits), what));
    }
    return value;
  }

  // The ranges of a name on the GPU belong to that of their External id on the CPU; without ids the
  // k-th to the k-th, of the streams that have most of the name: one that works in some of the
  // ranges alone (an all-gather) does not say in which.
  void join_gpu(std::size_t chosen) {
    std::erase_if(gpu_, [&](const NamedEvent& event) { return !meaning_of(event, chosen); });
    const bool ids = std::all_of(gpu_.begin(), gpu_.end(), [&](const NamedEvent& event) {
      return !event.external_id.empty() && by_id_.count({event.name, event.external_id}) > 0;
    });
    std::map<std::pair<std::size_t, std::string>, std::size_t> all;  // by name and stream
    std::map<std::size_t, std::size_t> most;                         // of any stream
    for (const NamedEvent& event : gpu_) {
      std::size_t& here = most[event.name];
      here = std::max(here, ++all[{event.name, event.tid}]);
    }
    std::map<std::pair<std::size_t, std::string>, std::size_t> count;
    for (const NamedEvent& event : gpu_) {
      std::optional<std::size_t> to;
      if (ids) {
        to = by_id_[{event.name, event.external_id}];
      } else {
        const std::size_t k = count[{event.name, event.tid}]++;
        const std::vector<std::size_t>& launches = launches_[event.name];
        const bool whole = all[{event.name, event.tid}] == most[event.name];
        if (whole && k < launches.size()) to = launches[k];
      }
      if (to) join(event.time, run_.ranges[*to]);
    }
  }

  void join(const KinetoStretch& time, FoundRange& range) {
    if (!range.on_gpu) range.on_gpu = time;
    range.on_gpu->start = std::min(range.on_gpu->start, time.start);
    range.on_gpu->end = std::max(range.on_gpu->end, time.end);
    run_.timed_on_gpu = true;
  }

  const std::string& file_;
  const std::vector<const RangeNames*>& candidates_;
  ProfileTimes times_;
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<KnownName> names_;
  std::vector<std::int64_t> count_;  // by name: of annotations
  std::vector<NamedEvent> cpu_;
  std::vector<NamedEvent> gpu_;
  std::vector<NamedEvent> receives_;
  std::vector<NamedEvent> steps_;
  std::vector<std::string> step_names_;                       // parallel to steps_
  std::map<std::size_t, std::vector<std::size_t>> launches_;  // by name: ranges, the first of each
  // By name and External id: the range, none for one inside of another.
  std::map<std::pair<std::size_t, std::string>, std::optional<std::size_t>> by_id_;
  bool has_kernels_ = false;
  FoundRun run_;
};

}  // namespace

bool find_by_names(const std::string& file, const std::string& json,
                   const std::vector<const RangeNames*>& candidates, KinetoRank& rank,
                   NameCounts& seen) {
  return NameFinder(file, candidates).find(json, rank, seen);
}

}  // namespace stageline
