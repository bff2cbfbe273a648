// The inner loop takes 16 scenarios a task in vector registers; the compiler makes a version of it
// for each instruction set, chosen when the program is loaded.
#include "sim/batch/batched_sweep.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/batch/versions.hpp"

namespace stageline {

constexpr std::size_t block_width = BatchedSweep::width;

// External linkage: compilers resolve versions of such functions only.
STAGELINE_VERSIONS
void sweep_block(const BatchedSweep::Step* steps, std::size_t tasks, const std::uint32_t* need,
                 const std::int64_t* __restrict__ duration, std::int64_t* __restrict__ available,
                 std::int64_t* __restrict__ lane_free);
STAGELINE_VERSIONS
void sweep_block_shared(const BatchedSweep::Step* steps, std::size_t tasks,
                        const std::uint32_t* need, const std::int64_t* need_lag,
                        const std::uint32_t* held, const std::int64_t* __restrict__ duration,
                        std::int64_t* __restrict__ available, std::int64_t* __restrict__ lane_free);

// Eight scenarios in a register of AVX-512, in two of AVX2.
using Eight = std::int64_t __attribute__((vector_size(64), aligned(8), may_alias));

namespace {
inline const Eight* vectors(const std::int64_t* numbers) {
  return reinterpret_cast<const Eight*>(numbers);
}
inline Eight* vectors(std::int64_t* numbers) { return reinterpret_cast<Eight*>(numbers); }
}  // namespace

STAGELINE_VERSIONS
void sweep_block(const BatchedSweep::Step* steps, std::size_t tasks, const std::uint32_t* need,
                 const std::int64_t* __restrict__ duration, std::int64_t* __restrict__ available,
                 std::int64_t* __restrict__ lane_free) {
  for (std::size_t task = 0; task < tasks; ++task) {
    const BatchedSweep::Step& step = steps[task];
    Eight* const free = vectors(lane_free + std::size_t{step.lane} * block_width);
    Eight low = free[0];
    Eight high = free[1];
    for (std::uint32_t i = step.need_begin; i != step.need_end; ++i) {
      const Eight* const at = vectors(available + std::size_t{need[i]} * block_width);
      low = at[0] > low ? at[0] : low;
      high = at[1] > high ? at[1] : high;
    }
    const std::size_t at = std::size_t{step.task} * block_width;
    const Eight* const takes = vectors(duration + at);
    Eight* const out = vectors(available + at);
    low += takes[0];
    high += takes[1];
    free[0] = low;
    free[1] = high;
    out[0] = low + step.lag;
    out[1] = high + step.lag;
  }
}

// The same with head starts and resources.
STAGELINE_VERSIONS
void sweep_block_shared(const BatchedSweep::Step* steps, std::size_t tasks,
                        const std::uint32_t* need, const std::int64_t* need_lag,
                        const std::uint32_t* held, const std::int64_t* __restrict__ duration,
                        std::int64_t* __restrict__ available,
                        std::int64_t* __restrict__ lane_free) {
  for (std::size_t i = 0; i < tasks; ++i) {
    const BatchedSweep::Step& step = steps[i];
    Eight* const free = vectors(lane_free + std::size_t{step.lane} * block_width);
    const std::size_t place = std::size_t{step.task} * block_width;
    const Eight* const takes = vectors(duration + place);
    Eight* const out = vectors(available + place);
    for (std::size_t half = 0; half < 2; ++half) {
      Eight start = free[half];
      for (std::uint32_t n = step.need_begin; n != step.need_end; ++n) {
        const Eight at = vectors(available + std::size_t{need[n]} * block_width)[half];
        const Eight took = vectors(duration + std::size_t{need[n]} * block_width)[half];
        const Eight started = at - need_lag[n] - took;
        const Eight ahead = at - step.head_start;
        const Eight ready = ahead > started ? ahead : started;
        start = ready > start ? ready : start;
      }
      for (std::uint32_t h = step.held_begin; h != step.held_end; ++h) {
        const Eight at = vectors(lane_free + std::size_t{held[h]} * block_width)[half];
        start = at > start ? at : start;
      }
      start += takes[half];
      free[half] = start;
      for (std::uint32_t h = step.held_begin; h != step.held_end; ++h) {
        vectors(lane_free + std::size_t{held[h]} * block_width)[half] = start;
      }
      out[half] = start + step.lag;
    }
  }
}

void BatchedSweep::add_steps(const TaskGraph& graph, const std::vector<std::uint32_t>& order) {
  steps_.reserve(order.size());
  for (const std::uint32_t task : order) {
    const Path& path = graph.paths[graph.path_of[task]];
    const auto begin = static_cast<std::uint32_t>(held_.size());
    if (lanes_ > graph.lanes.size()) {
      for (const std::uint32_t resource : path.resources) {
        held_.push_back(static_cast<std::uint32_t>(graph.lanes.size()) + resource);
      }
    }
    steps_.push_back({task, graph.lane[task], graph.need_begin[task], graph.need_begin[task + 1],
                      begin, static_cast<std::uint32_t>(held_.size()), path.lag.count(),
                      path.head_start.count()});
  }
  plain_ = held_.empty() && !has_head_starts(graph);
  if (plain_) return;
  lag_.reserve(need_.size());
  for (const std::uint32_t task : need_) {
    lag_.push_back(graph.paths[graph.path_of[task]].lag.count());
  }
}

BatchedSweep::BatchedSweep(const TaskGraph& graph) : need_(graph.need), lanes_(graph.lanes.size()) {
  std::vector<std::uint32_t> order(graph.tasks());
  std::iota(order.begin(), order.end(), 0U);
  add_steps(graph, order);
}

BatchedSweep::BatchedSweep(const TaskGraph& graph, const TaskTimes& nominal)
    : need_(graph.need), lanes_(graph.lanes.size() + graph.resources.size()) {
  if (is_fair(graph)) {
    throw UsageError(
        "links that are shared at fair rates serve all transfers at once, so there is no order to "
        "keep; take --sharing fifo, or leave out --freeze");
  }
  std::vector<std::uint32_t> order(graph.tasks());
  std::iota(order.begin(), order.end(), 0U);
  // A task starts no earlier than what it needs and its predecessor in the lane, nor ends earlier,
  // and has a higher number: the order stays topological. One that takes no time goes before one
  // that starts at that moment.
  const auto place = [&](std::uint32_t task) {
    return std::tuple(start_of(graph, nominal, task), end_of(graph, nominal, task), task);
  };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t one, std::uint32_t other) { return place(one) < place(other); });
  add_steps(graph, order);
}

void BatchedSweep::ends(std::span<const std::int64_t> duration,
                        std::span<std::int64_t> available) const {
  std::vector<std::int64_t> lane_free(lanes_ * width);
  if (plain_) {
    sweep_block(steps_.data(), steps_.size(), need_.data(), duration.data(), available.data(),
                lane_free.data());
  } else {
    sweep_block_shared(steps_.data(), steps_.size(), need_.data(), lag_.data(), held_.data(),
                       duration.data(), available.data(), lane_free.data());
  }
}

void BatchedSweep::makespans(std::span<const std::int64_t> available,
                             std::span<std::int64_t> makespan) const {
  std::fill(makespan.begin(), makespan.end(), 0);
  for (std::size_t task = 0; task < steps_.size(); ++task) {
    for (std::size_t k = 0; k < width; ++k) {
      makespan[k] = std::max(makespan[k], available[task * width + k]);
    }
  }
}

}  // namespace stageline
