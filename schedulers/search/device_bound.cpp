#include "schedulers/search/device_bound.hpp"

#include <algorithm>
#include <limits>
#include <queue>

#include "schedulers/parts/stage_times.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

__extension__ using Wide = __int128;

// The stages as a line.
struct Line {
  std::vector<StageTimes> stages;
  std::vector<Time> way;       // by stage: of F's message to the next
  std::vector<Time> back_way;  // by stage: of I's message to the one before
};

std::optional<Line> line_of(const Problem& problem) {
  if (!problem.costs.kinds.empty()) return std::nullopt;  // it takes equal micro-batches
  Line line{stage_times(problem, true), {}, {}};
  for (const double pace : problem.costs.pace) {
    if (pace < 1) return std::nullopt;
  }
  for (std::size_t s = 0; s < line.stages.size(); ++s) {
    const StageTimes& stage = line.stages[s];
    const bool last = s + 1 == line.stages.size();
    if (stage.to.size() != (last ? 0U : 1U) || stage.back.size() != (s > 0 ? 1U : 0U)) {
      return std::nullopt;
    }
    if (!last && as_size(stage.to.front().stage) != s + 1) return std::nullopt;
    if (problem.costs.stage[s].backward < stage.backward + stage.weight) return std::nullopt;
    line.way.push_back(last ? Time{} : stage.to.front().wire + stage.to.front().latency);
    line.back_way.push_back(s == 0 ? Time{} : stage.back.front().wire + stage.back.front().latency);
  }
  return line;
}

struct Job {
  Time head{};
  Time work{};
  Time tail{};
};

// The end of the last tail, if ops may be interrupted: of those that are there the one with the
// longest tail goes first.
Time preemptive(std::vector<Job> jobs) {
  const auto sooner = [](const Job& a, const Job& b) { return a.head < b.head; };
  std::stable_sort(jobs.begin(), jobs.end(), sooner);
  const auto shorter = [](const Job& a, const Job& b) { return a.tail < b.tail; };
  std::priority_queue<Job, std::vector<Job>, decltype(shorter)> here(shorter);
  Time now{};
  Time end{};
  std::size_t next = 0;
  while (next < jobs.size() || !here.empty()) {
    if (here.empty()) now = std::max(now, jobs[next].head);
    while (next < jobs.size() && jobs[next].head <= now) here.push(jobs[next++]);
    Job job = here.top();
    here.pop();
    const Time until = next < jobs.size() ? jobs[next].head : Time::max();
    if (until - now < job.work) {
      job.work -= until - now;
      now = until;
      here.push(job);
      continue;
    }
    now += job.work;
    end = std::max(end, now + job.tail);
  }
  return end;
}

class Bounds {
 public:
  Bounds(const Problem& problem, const StashLimit& limit, Line line)
      : problem_(problem), limit_(limit), line_(std::move(line)), m_(problem.microbatches) {
    const std::size_t count = line_.stages.size();
    ahead_.resize(count);
    back_.resize(count);
    on_.resize(problem.devices.size());
    for (std::size_t s = 0; s < count; ++s) {
      on_[as_size(line_.stages[s].device)].push_back(s);
      if (s == 0) continue;
      ahead_[s] = ahead_[s - 1] + line_.stages[s - 1].forward + line_.way[s - 1];
      back_[s] = back_[s - 1] + line_.stages[s].backward + line_.back_way[s];
    }
  }

  StashBounds all() const {
    StashBounds bounds;
    for (std::size_t d = 0; d < on_.size(); ++d) {
      if (on_[d].empty()) continue;
      const Time begins = ahead_[on_[d].front()];
      for (const StashBound& one : {own(d), area(d), machine(d, on_[d].front(), true)}) {
        keep(bounds.span, one);
        StashBound later = one;
        later.value += begins;
        keep(bounds.makespan, later);
      }
      const StashBound whole = machine(d, 0, as_size(line_.stages[0].device) == d);
      keep(bounds.span, whole);
      keep(bounds.makespan, whole);
    }
    return bounds;
  }

 private:
  using Why = StashBound::Why;

  static void keep(StashBound& best, const StashBound& one) {
    if (one.value > best.value) best = one;
  }
  // From the start of an F to the first moment at which that micro-batch's I can start.
  Time there_and_back(std::size_t s) const {
    return ahead_.back() - ahead_[s] + line_.stages.back().forward + back_.back() - back_[s];
  }
  bool is_limited(std::size_t d) const { return d < limit_.most.size() && limit_.most[d] >= 0; }
  std::int64_t whole(std::size_t s) const {
    return limit_.unit == StashLimit::Unit::bytes ? problem_.costs.stage[s].stash().count : 1;
  }
  std::int64_t left(std::size_t s) const {
    return limit_.unit == StashLimit::Unit::bytes
               ? problem_.costs.stage[s].stash_after_input_grad().count
               : 1;
  }

  StashBound own(std::size_t d) const {
    Time work{};
    Time most_behind{};  // I and W
    std::int64_t least_held = std::numeric_limits<std::int64_t>::max();
    std::vector<Time> forwards;
    for (const std::size_t s : on_[d]) {
      const StageTimes& stage = line_.stages[s];
      work += (stage.forward + stage.backward + stage.weight) * m_;
      most_behind = std::max(most_behind, stage.backward + stage.weight);
      least_held = std::min({least_held, whole(s), left(s)});
      forwards.push_back(stage.forward);
    }
    const auto all = m_ * static_cast<std::int64_t>(on_[d].size());
    std::int64_t held = all;
    if (is_limited(d) && least_held > 0) held = std::min(held, limit_.most[d] / least_held);
    held = std::max<std::int64_t>(held, 1);
    // The last stage of the device has its first I first.
    const std::size_t first = on_[d].front();
    const std::size_t last = on_[d].back();
    std::sort(forwards.rbegin(), forwards.rend());
    Time possible{};
    std::int64_t room = held;
    for (const Time forward : forwards) {
      const std::int64_t number = std::min(room, m_);
      possible += forward * number;
      room -= number;
    }
    const Time until = ahead_[last] - ahead_[first] + there_and_back(last);
    const Time warm = std::max(until - possible, Time{});
    const Time behind =
        there_and_back(last) - line_.stages[last].forward - most_behind * (held - 1);
    const Time cool = all > held ? std::max(behind, Time{}) : Time{};
    return {work + warm + cool, Why::own, d, d, warm + cool};
  }

  StashBound area(std::size_t d) const {
    if (!is_limited(d) || limit_.most[d] == 0) return {};
    Wide held = 0;
    for (const std::size_t s : on_[d]) {
      const StageTimes& stage = line_.stages[s];
      held += Wide{(there_and_back(s) + stage.backward).count()} * whole(s) * m_ +
              Wide{stage.weight.count()} * left(s) * m_;
    }
    const Wide value = held / limit_.most[d];
    if (value > Time::max().count() / 4) return {};
    return {Time{static_cast<std::int64_t>(value)}, Why::area, d, d, Time{}};
  }

  // From the first F of stage `from` to the end of its device; W's of another device have nothing
  // behind them.
  StashBound machine(std::size_t d, std::size_t from, bool same) const {
    std::vector<Job> jobs;
    for (const std::size_t s : on_[d]) {
      const StageTimes& stage = line_.stages[s];
      Time slowest{};  // of the F's on the way, and of the I's then
      for (std::size_t t = from; t <= s; ++t) slowest = std::max(slowest, line_.stages[t].forward);
      Time slowest_round = slowest;
      for (std::size_t t = s; t < line_.stages.size(); ++t) {
        slowest_round =
            std::max({slowest_round, line_.stages[t].forward, line_.stages[t].backward});
      }
      Time slowest_back{};
      for (std::size_t t = from; t <= s; ++t) {
        slowest_back = std::max(slowest_back, line_.stages[t].backward);
      }
      const Time returns = back_[s] - stage.backward - (back_[from] - line_.stages[from].backward);
      const Time there = ahead_[s] - ahead_[from];
      const Time round = there_and_back(s);
      for (std::int64_t k = 0; k < m_; ++k) {
        const Time tail = returns + slowest_back * (m_ - 1 - k) + line_.stages[from].weight;
        jobs.push_back(
            {there + slowest * k, stage.forward, round - stage.forward + stage.backward + tail});
        const Time back = there + round + slowest_round * k;
        jobs.push_back({back, stage.backward, tail});
        if (same) jobs.push_back({back + stage.backward, stage.weight, Time{}});
      }
    }
    return {preemptive(std::move(jobs)), Why::machine, d, as_size(line_.stages[from].device),
            Time{}};
  }

  const Problem& problem_;
  const StashLimit& limit_;
  Line line_;
  std::int64_t m_;
  std::vector<Time> ahead_;
  std::vector<Time> back_;
  std::vector<std::vector<std::size_t>> on_;  // by device: its stages
};

}  // namespace

std::optional<StashBounds> device_bounds(const Problem& problem, const StashLimit& limit) {
  std::optional<Line> line = line_of(problem);
  if (!line || line->stages.empty()) return std::nullopt;
  return Bounds(problem, limit, *std::move(line)).all();
}

}  // namespace stageline
