// Assigns operators and kernels of a profile to the layers of its micro-batches.
//
//   main thread  |Block_0 |Block_1 | loss            a forward is of the layer that began last
//   before
//                 linear 7  linear 8                  it; a backward of that whose operator has its
//   autograd's                       |Loss||8 ||7 |   sequence number
#include "traces/kineto/layer_parts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>

namespace stageline {
namespace {

constexpr std::string_view module_prefix = "nn.Module: ";

constexpr std::int64_t longest =
    std::chrono::duration_cast<std::chrono::nanoseconds>(longest_input).count();

class EventReader {
 public:
  EventReader(const std::string& file, const RangeNames* names) : names_(names), times_(file) {
    events_.rank.file = file;
  }

  LayerEvents read(const std::string& json) {
    const TraceHead head = scan_trace_events(json, events_.rank.file, [&](const TraceEvent& event) {
      keep(event);
      events_.rank.traffic.look_at(event, times_);
    });
    times_.read_head(head, events_.rank);
    if (last_ > first_ && last_ - first_ > longest) {
      times_.refuse("", fmt::format("its events lie {} s apart; they are not of one run",
                                    (last_ - first_) / 1'000'000'000));
    }
    const auto by_time = [](const auto& a, const auto& b) {
      return std::tuple(a.time.start, -a.time.end) < std::tuple(b.time.start, -b.time.end);
    };
    const auto by_start = [](const KinetoStretch& a, const KinetoStretch& b) {
      return a.start < b.start;
    };
    std::sort(events_.operators.begin(), events_.operators.end(), by_time);
    std::sort(events_.kernels.begin(), events_.kernels.end(), by_time);
    std::sort(events_.steps.begin(), events_.steps.end(), by_start);
    std::sort(updates_.begin(), updates_.end(),
              [&](const auto& a, const auto& b) { return by_start(a.first, b.first); });
    for (const auto& [time, thread] : updates_) {
      events_.updates.push_back(time);
      events_.update_threads.push_back(thread);
    }
    return std::move(events_);
  }

 private:
  int thread_of(const TraceEvent& event) {
    return threads_.try_emplace(event.pid + '/' + event.tid, static_cast<int>(threads_.size()))
        .first->second;
  }

  KinetoStretch time_of(const TraceEvent& event) {
    const std::int64_t start = times_.start(event);
    const KinetoStretch time{start, start + times_.duration(event)};
    first_ = std::min(first_, time.start);
    last_ = std::max(last_, time.end);
    return time;
  }

  void keep(const TraceEvent& event) {
    if (event.phase != "X") return;
    if (is_on_device(event)) {
      const KinetoStretch time = time_of(event);
      events_.has_kernels = events_.has_kernels || is_kernel(event);
      if (event.name.starts_with("nccl")) {
        events_.collectives = std::min(events_.collectives + time.end - time.start, longest);
      } else {
        events_.kernels.push_back({event.external_id, event.correlation, time});
      }
    } else if (event.category == "cpu_op") {
      keep_operator(event);
    } else if (is_launcher(event)) {
      if (event.correlation.empty()) return;
      events_.by_call.emplace(event.correlation,
                              LaunchPlace{thread_of(event), times_.start(event)});
    } else {
      keep_range(event);
    }
  }

  void keep_operator(const TraceEvent& event) {
    LayerOperator op;
    op.time = time_of(event);
    op.thread = thread_of(event);
    op.of_engine = event.name.starts_with(autograd_prefix);
    if (!event.sequence.empty()) op.sequence = parse_count(event.sequence).value_or(-1);
    if (!event.external_id.empty()) {
      events_.by_operator.emplace(event.external_id, LaunchPlace{op.thread, op.time.start});
    }
    events_.operators.push_back(op);
  }

  void keep_range(const TraceEvent& event) {
    const bool annotation = event.category == "user_annotation" || event.category == "nvtx";
    if (!annotation && event.category != "python_function") return;
    if (annotation && event.name.starts_with(step_prefix)) {
      events_.steps.push_back(time_of(event));
    } else if (annotation && event.name.starts_with(update_prefix)) {
      updates_.emplace_back(time_of(event), thread_of(event));
    } else if (is_layer(event)) {
      const bool module = event.name.starts_with(module_prefix);
      const KinetoStretch time = time_of(event);
      const auto thread = static_cast<std::size_t>(thread_of(event));
      if (events_.calls.size() <= thread) events_.calls.resize(thread + 1);
      events_.calls[thread].push_back(
          {module ? event.name.substr(module_prefix.size()) : event.name, time.start, time.end});
    }
  }

  bool is_layer(const TraceEvent& event) const {
    if (names_ == nullptr) {
      return event.category == "python_function" && event.name.starts_with(module_prefix);
    }
    const std::optional<RangeName> found = names_->find(event.name);
    return found && found->meanings[0] == RangeMeaning::layer;
  }

  const RangeNames* names_;
  ProfileTimes times_;
  LayerEvents events_;
  std::unordered_map<std::string, int> threads_;
  std::vector<std::pair<KinetoStretch, int>> updates_;
  std::int64_t first_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ = 0;
};

}  // namespace

LayerEvents read_layer_events(const NamedText& profile, const RangeNames* names) {
  return EventReader(profile.file, names).read(profile.text);
}

namespace {

// How many layers come again and again, of two or more; 0: those of a pass are all apart.
std::size_t period_of(const std::vector<ModuleCall>& calls) {
  for (std::size_t period = 2; 2 * period <= calls.size(); ++period) {
    if (calls.size() % period != 0) continue;
    const bool repeats =
        std::equal(calls.begin() + static_cast<std::ptrdiff_t>(period), calls.end(), calls.begin(),
                   [](const ModuleCall& a, const ModuleCall& b) { return a.name == b.name; });
    if (repeats) return period;
  }
  return 0;
}

// Several forwards before one backward of their sum are several micro-batches.
std::vector<LayerPass> divided(std::vector<LayerPass> passes) {
  std::vector<LayerPass> all;
  for (LayerPass& pass : passes) {
    const std::size_t period = period_of(pass.calls);
    if (period == 0) {
      all.push_back(std::move(pass));
      continue;
    }
    for (std::size_t at = 0; at < pass.calls.size(); at += period) {
      const auto from = pass.calls.begin() + static_cast<std::ptrdiff_t>(at);
      const bool last = at + period == pass.calls.size();
      all.push_back({{from, from + static_cast<std::ptrdiff_t>(period)},
                     last ? pass.until : pass.calls[at + period].start});
    }
  }
  return all;
}

}  // namespace

LayerMap::LayerMap(const LayerEvents& events) : events_(events) {
  find_outermost(events);
  find_passes(events);
  find_backwards(events);
}

// Inside of the engine gradients are not recorded, but where a forward runs again: its operators
// have numbers of their own, larger than that of the backward that asked for it.
void LayerMap::find_outermost(const LayerEvents& events) {
  struct Until {
    std::int64_t recomputed = std::numeric_limits<std::int64_t>::min();
    std::int64_t engine = std::numeric_limits<std::int64_t>::min();  // a backward inside of one
  };
  std::map<int, Until> until_of_thread;
  for (const LayerOperator& op : events.operators) {
    std::vector<std::size_t>& own = outer_of_thread_[op.thread];
    OuterOperator* const around = own.empty() || op.time.start >= outer_[own.back()].op.time.end
                                      ? nullptr
                                      : &outer_[own.back()];
    if (around == nullptr) {
      own.push_back(outer_.size());
      outer_.push_back({op, {}, 0});
      continue;
    }
    if (!around->op.of_engine) continue;
    Until& until = until_of_thread[op.thread];
    if (op.of_engine) until.engine = std::max(until.engine, op.time.end);
    if (op.time.start < std::max(until.engine, until.recomputed)) continue;
    if (op.of_engine || around->op.sequence < 0 || op.sequence <= around->op.sequence) continue;
    until.recomputed = op.time.end;
    around->recomputed += op.time.end - op.time.start;
    recomputed_[op.thread].push_back(op.time);
  }
}

// A backward, or an update, is between the forwards of two micro-batches.
void LayerMap::find_passes(const LayerEvents& events) {
  double most = -1;
  for (std::size_t thread = 0; thread < events.calls.size(); ++thread) {
    double time = 0;
    for (const ModuleCall& call : events.calls[thread]) {
      time += static_cast<double>(call.end - call.start);
    }
    if (events.calls[thread].empty() || time <= most) continue;
    most = time;
    main_ = static_cast<int>(thread);
  }
  if (most < 0) return;
  std::vector<std::int64_t> ends;  // of forwards
  std::vector<KinetoStretch> engine;
  for (const OuterOperator& one : outer_) {
    if (!one.op.of_engine) continue;
    ends.push_back(one.op.time.start);
    if (one.op.thread == main_) engine.push_back(one.op.time);
  }
  for (const KinetoStretch& update : events.updates) ends.push_back(update.start);
  for (const KinetoStretch& step : events.steps) ends.push_back(step.start);
  std::sort(ends.begin(), ends.end());
  std::vector<ModuleCall> calls = events.calls[static_cast<std::size_t>(main_)];
  std::erase_if(calls, [&](const ModuleCall& call) {  // of a forward that runs again
    const auto after =
        std::upper_bound(engine.begin(), engine.end(), call.start,
                         [](std::int64_t at, const KinetoStretch& one) { return at < one.start; });
    return after != engine.begin() && call.start < std::prev(after)->end;
  });
  for (ModuleCall& call : layer_calls(std::move(calls))) {
    const bool first = passes_.empty() || passes_.back().until <= call.start;
    if (first) {
      const auto end = std::upper_bound(ends.begin(), ends.end(), call.start);
      passes_.emplace_back();
      passes_.back().until = end == ends.end() ? std::numeric_limits<std::int64_t>::max() : *end;
    }
    passes_.back().calls.push_back(std::move(call));
  }
  passes_ = divided(std::move(passes_));
}

// An operator that begins before a layer and holds it (a checkpoint) is of it.
LayerWork LayerMap::of_forward(int thread, KinetoStretch time) const {
  if (thread != main_) return {};
  const auto after = std::upper_bound(
      passes_.begin(), passes_.end(), time.end,
      [](std::int64_t t, const LayerPass& pass) { return t < pass.calls.front().start; });
  if (after == passes_.begin()) return {};
  const LayerPass& pass = *std::prev(after);
  if (time.start >= pass.until) return {};
  const auto next =
      std::upper_bound(pass.calls.begin(), pass.calls.end(), time.start,
                       [](std::int64_t t, const ModuleCall& call) { return t < call.start; });
  const bool holds = next != pass.calls.end() && next->end <= time.end;
  if (next == pass.calls.begin() && !holds) return {};
  const std::ptrdiff_t layer = next - pass.calls.begin() - (holds ? 0 : 1);
  return {LayerPhase::forward, static_cast<std::size_t>(after - passes_.begin()) - 1,
          static_cast<std::size_t>(layer)};
}

bool LayerMap::in_update(int thread, std::int64_t at) const {
  const auto after = std::upper_bound(
      events_.updates.begin(), events_.updates.end(), at,
      [](std::int64_t t, const KinetoStretch& update) { return t < update.start; });
  if (after == events_.updates.begin()) return false;
  const auto before = std::prev(after);
  return at < before->end &&
         events_.update_threads[static_cast<std::size_t>(before - events_.updates.begin())] ==
             thread;
}

// An operator that is not differentiated has the number of the next one that is; the engine's
// operators without a number accumulate gradients of the layer that their thread is at.
void LayerMap::find_backwards(const LayerEvents& events) {
  std::map<std::int64_t, LayerWork> of_sequence;
  std::map<std::int64_t, std::int64_t> began;
  for (const LayerOperator& op : events.operators) {
    if (op.of_engine || op.sequence < 0) continue;
    const LayerWork work = of_forward(op.thread, op.time);
    if (work.phase != LayerPhase::forward) continue;
    of_sequence[op.sequence] = work;
    began[op.sequence] = op.time.start;
  }
  std::map<int, LayerWork> present;  // by thread
  for (OuterOperator& one : outer_) {
    if (!one.op.of_engine) {
      one.work = of_forward(one.op.thread, one.op.time);
      if (in_update(one.op.thread, one.op.time.start)) one.work = {LayerPhase::update, 0, 0};
      continue;
    }
    if (one.op.sequence >= 0) {
      const auto after = of_sequence.upper_bound(one.op.sequence);
      if (after == of_sequence.begin()) continue;
      const auto before = std::prev(after);
      if (began.at(before->first) > one.op.time.start) continue;
      present[one.op.thread] = before->second;
      present[one.op.thread].phase = LayerPhase::backward;
    }
    const auto at = present.find(one.op.thread);
    if (at != present.end()) one.work = at->second;
  }
}

LayerWork LayerMap::at(LaunchPlace place) const {
  const auto own = outer_of_thread_.find(place.thread);
  if (own != outer_of_thread_.end()) {
    const auto after = std::upper_bound(
        own->second.begin(), own->second.end(), place.at,
        [this](std::int64_t t, std::size_t index) { return t < outer_[index].op.time.start; });
    if (after != own->second.begin()) {
      const OuterOperator& one = outer_[*std::prev(after)];
      if (place.at <= one.op.time.end) {
        if (one.work.phase == LayerPhase::forward) {
          const LayerWork exact = of_forward(place.thread, {place.at, place.at});
          return exact.phase == LayerPhase::forward ? exact : one.work;
        }
        LayerWork work = one.work;
        if (one.recomputed == 0 || work.phase != LayerPhase::backward) return work;
        const std::vector<KinetoStretch>& again = recomputed_.at(place.thread);
        const auto next = std::upper_bound(
            again.begin(), again.end(), place.at,
            [](std::int64_t t, const KinetoStretch& stretch) { return t < stretch.start; });
        const bool inside = next != again.begin() && place.at < std::prev(next)->end;
        if (inside) work.phase = LayerPhase::recompute;
        return work;
      }
    }
  }
  if (in_update(place.thread, place.at)) return {LayerPhase::update, 0, 0};
  return of_forward(place.thread, {place.at, place.at});
}

}  // namespace stageline
