// Numbers the steps and micro-batches of ranges that were found by names or by operators.
//
//   F  F  B  F  B  B  Optimizer.step   F …     a step ends with its updates, where no ProfilerStep
//   0  1  0  2  1  2                   0       says so; ops without a number in their names count
#include "traces/kineto/found.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace stageline {
namespace {

OpKind kind_of(RangeMeaning meaning) {
  switch (meaning) {
    case RangeMeaning::forward:
      return OpKind::forward;
    case RangeMeaning::backward:
      return OpKind::backward;
    case RangeMeaning::input_grad:
      return OpKind::input_grad;
    case RangeMeaning::weight_grad:
      return OpKind::weight_grad;
    case RangeMeaning::recompute:
      return OpKind::recompute;
    case RangeMeaning::send_forward:
      return OpKind::send_forward;
    case RangeMeaning::receive_forward:
      return OpKind::receive_forward;
    case RangeMeaning::send_backward:
      return OpKind::send_backward;
    case RangeMeaning::receive_backward:
      return OpKind::receive_backward;
    case RangeMeaning::optimizer:
    case RangeMeaning::ignored:
    case RangeMeaning::interleaved:
    case RangeMeaning::layer:
      return OpKind::update;
  }
  return OpKind::update;  // unreachable; g++ requires it
}

bool is_receive(OpKind kind) {
  return kind == OpKind::receive_forward || kind == OpKind::receive_backward;
}

class Assembler {
 public:
  Assembler(const FoundRun& run, const ProfileTimes& times, KinetoRank& rank)
      : run_(run), times_(times), rank_(rank) {}

  void assemble() {
    for (const FoundStep& step : run_.steps) {
      rank_.steps.push_back(step.number);
      rank_.step_lengths.push_back(step.stretch.end - step.stretch.start);
    }
    settle_source();
    settle_stages();
    microbatch_of_.resize(run_.ranges.size());
    for (std::size_t at = 0; at < run_.ranges.size(); ++at) put(at);
    number_from_zero();
    rank_.one_step = run_.steps.empty() && rank_.steps.size() == 1;
    find_inputs();
  }

 private:
  void settle_source() {
    rank_.source = run_.timed_on_gpu                                 ? RangeSource::gpu
                   : run_.has_kernels || rank_.traffic.accelerator() ? RangeSource::launches
                                                                     : RangeSource::cpu;
    rank_.reductions = run_.reductions;
    rank_.recomputed = run_.recomputed;
    if (rank_.style != KinetoStyle::operators || rank_.source == RangeSource::launches) return;
    rank_.work = run_.work;
    rank_.other_work = run_.other_work;
  }

  // Where some names tell the stage, the others are of the rank's only one.
  void settle_stages() {
    std::set<int> stages;
    for (const FoundRange& range : run_.ranges) {
      if (range.stage) stages.insert(*range.stage);
    }
    rank_.named_by_stage = !stages.empty();
    if (stages.empty()) return;
    only_stage_ = *stages.begin();
    if (stages.size() == 1) return;
    for (const FoundRange& range : run_.ranges) {
      if (range.stage || range.meaning == RangeMeaning::optimizer) continue;
      times_.refuse(
          fmt::format("/traceEvents/{}/name", range.event),
          fmt::format("this range does not name its stage, and the rank has {}", stages.size()));
    }
  }

  KinetoStretch time_of(const FoundRange& range) const {
    return range.on_gpu ? *range.on_gpu : range.launch;
  }

  void put(std::size_t at) {
    const FoundRange& range = run_.ranges[at];
    const bool update = range.meaning == RangeMeaning::optimizer;
    const int step = step_of(range, update);
    if (step == none) return;  // an update before everything else
    if (step == outside) {
      ++rank_.outside;
      return;
    }
    const KinetoStretch time = time_of(range);
    if (update) {
      rank_.updates.push_back({step, time.start, time.end});
      return;
    }
    if (run_.timed_on_gpu && !range.on_gpu) ++rank_.without_gpu;
    KinetoRange op;
    op.ops.push_back(op_of(kind_of(range.meaning), range.stage.value_or(only_stage_),
                           number_of(range, at, step)));
    op.step = step;
    op.start = time.start;
    op.end = time.end;
    if (is_receive(op.ops[0].kind)) op.arrival = arrival_of(range);
    rank_.ranges.push_back(std::move(op));
    numbered_.push_back(range.microbatch.has_value());
  }

  static constexpr int none = -1;
  static constexpr int outside = -2;

  int step_of(const FoundRange& range, bool update) {
    if (!run_.steps.empty()) {
      const auto after = std::upper_bound(
          run_.steps.begin(), run_.steps.end(), range.launch.start,
          [](std::int64_t at, const FoundStep& step) { return at < step.stretch.start; });
      if (after == run_.steps.begin()) return outside;
      if (range.launch.start >= std::prev(after)->stretch.end) return outside;
      return static_cast<int>(after - run_.steps.begin()) - 1;
    }
    if (update) {
      if (rank_.steps.empty()) return none;
      updated_ = true;
    } else if (rank_.steps.empty() || updated_ || repeats(range)) {
      rank_.steps.push_back(static_cast<std::int64_t>(rank_.steps.size()));
      updated_ = false;
      named_.clear();
    }
    if (!update && range.microbatch) named_.insert(key_of(range));
    return static_cast<int>(rank_.steps.size()) - 1;
  }

  using Key = std::tuple<RangeMeaning, int, std::uint32_t>;  // stage and micro-batch as named
  static Key key_of(const FoundRange& range) {
    return {range.meaning, range.stage.value_or(0), range.microbatch.value_or(0)};
  }
  bool repeats(const FoundRange& range) const {
    return range.microbatch && named_.count(key_of(range)) > 0;
  }

  std::uint32_t number_of(const FoundRange& range, std::size_t at, int step) {
    std::uint32_t& number = microbatch_of_[at];
    if (range.microbatch) return number = *range.microbatch;
    rank_.counted = true;
    if (range.forward_of) return number = microbatch_of_[*range.forward_of];
    return number = count_[{step, range.meaning, range.stage.value_or(only_stage_)}]++;
  }

  // Names may count micro-batches from 1, or through all steps.
  void number_from_zero() {
    std::map<int, std::uint32_t> least;
    for (std::size_t at = 0; at < rank_.ranges.size(); ++at) {
      if (!numbered_[at]) continue;
      const std::uint32_t number = rank_.ranges[at].ops[0].microbatch;
      auto& first = least.try_emplace(rank_.ranges[at].step, number).first->second;
      first = std::min(first, number);
    }
    for (std::size_t at = 0; at < rank_.ranges.size(); ++at) {
      if (numbered_[at]) rank_.ranges[at].ops[0].microbatch -= least[rank_.ranges[at].step];
    }
  }

  // A receive that blocks ends when its message is there, unless the backend's own range is later.
  std::optional<std::int64_t> arrival_of(const FoundRange& range) const {
    if (run_.timed_on_gpu) {
      return range.on_gpu ? std::optional(range.on_gpu->end) : std::nullopt;
    }
    if (run_.has_kernels) return {};
    std::int64_t end = range.launch.end;
    for (auto one = first_receive_from(range.launch.start);
         one != run_.receives.end() && one->start <= range.launch.end; ++one) {
      end = std::max(end, one->end);
    }
    return end;
  }

  std::vector<KinetoStretch>::const_iterator first_receive_from(std::int64_t start) const {
    return std::lower_bound(
        run_.receives.begin(), run_.receives.end(), start,
        [](const KinetoStretch& one, std::int64_t at) { return one.start < at; });
  }

  std::optional<KinetoStretch> inside_of(const KinetoRange& range) const {
    const auto first = first_receive_from(range.start);
    if (first == run_.receives.end() || first->end > range.end) return {};
    return *first;
  }

  // The input of an op arrived, at the latest, with the receive that ended last before the op and
  // since the one before it.
  void find_inputs() {
    if (rank_.source == RangeSource::launches) return;
    std::vector<KinetoStretch> by_end = run_.receives;
    std::sort(by_end.begin(), by_end.end(),
              [](const KinetoStretch& a, const KinetoStretch& b) { return a.end < b.end; });
    std::int64_t before = std::numeric_limits<std::int64_t>::min();
    for (KinetoRange& range : rank_.ranges) {
      if (lane_of(range.ops[0].kind) != LaneKind::compute) continue;
      const auto after =
          std::upper_bound(by_end.begin(), by_end.end(), range.start,
                           [](std::int64_t at, const KinetoStretch& one) { return at < one.end; });
      range.inside = inside_of(range);
      if (after != by_end.begin() && std::prev(after)->end > before)
        range.input = *std::prev(after);
      before = range.end;
    }
  }

  const FoundRun& run_;
  const ProfileTimes& times_;
  KinetoRank& rank_;
  int only_stage_ = 0;
  bool updated_ = false;                      // since the last op
  std::set<Key> named_;                       // ops of the present step whose names have a number
  std::vector<std::uint32_t> microbatch_of_;  // by range
  std::vector<bool> numbered_;                // by rank_.ranges: its name has the micro-batch
  std::map<std::tuple<int, RangeMeaning, int>, std::uint32_t> count_;  // by step and stage
};

}  // namespace

void assemble(const FoundRun& run, const ProfileTimes& times, KinetoRank& rank) {
  Assembler(run, times, rank).assemble();
}

}  // namespace stageline
