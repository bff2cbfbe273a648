#include "tools/study/whatif/waterfall.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>

#include "sim/analysis/metrics.hpp"
#include "sim/base/index.hpp"
#include "sim/interference.hpp"
#include "tools/study/whatif/counterfactuals.hpp"

namespace stageline {
namespace {

__extension__ using Wide = __int128;

// Shares of `whole` in proportion to the parts, whose sum is `whole` times `scale`: rounded down,
// and the picoseconds that are left go to the largest remainders.
std::vector<Time> rounded(const std::vector<Wide>& parts, Wide scale, Time whole) {
  std::vector<Time> shares;
  std::vector<std::pair<Wide, std::size_t>> rest;
  Time left = whole;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Wide quotient = parts[i] / scale;
    Wide remainder = parts[i] % scale;
    if (remainder < 0) {
      remainder += scale;
      --quotient;
    }
    shares.emplace_back(static_cast<std::int64_t>(quotient));
    left -= shares.back();
    rest.emplace_back(-remainder, i);
  }
  std::sort(rest.begin(), rest.end());
  for (std::size_t k = 0; left > Time{}; ++k, left -= Time{1}) {
    shares[rest[k % rest.size()].second] += Time{1};
  }
  return shares;
}

class Attribution {
 public:
  Attribution(const Case& asked, const Outcome& nominal)
      : runs_(asked, nominal), synchronous_(nominal.synchrony == Synchrony::synchronous) {
    found_.step = runs_.step(0);
    for (const StepCause cause : runs_.present()) all_ |= bit_of(cause);
  }

  Waterfall take(CauseOrder order) {
    found_.order = order;
    const Counterfactual last = runs_.without(all_);
    const Counterfactual uneven = runs_.without(all_ & ~bit_of(StepCause::imbalance));
    found_.ideal = mean_of(uneven);
    if (order == CauseOrder::fixed) {
      in_order();
    } else if (runs_.present().size() <= std::size_t{most_exact_causes}) {
      over_all_orders();
    } else {
      over_sampled_orders();
    }
    list_devices(last, uneven);
    split_idle(last);
    return std::move(found_);
  }

 private:
  Time& by(StepCause cause) { return nth(found_.by, cause); }

  // The causes are removed from the last to the first.
  void in_order() {
    Removed removed = 0;
    const std::vector<StepCause>& present = runs_.present();
    for (auto cause = present.rbegin(); cause != present.rend(); ++cause) {
      const Removed next = removed | bit_of(*cause);
      by(*cause) = runs_.step(removed) - runs_.step(next);
      removed = next;
    }
  }

  // φ = Σ over sets S without the cause of |S|! (n - |S| - 1)! / n! · (step(S) - step(S + cause)).
  void over_all_orders() {
    const std::vector<StepCause>& present = runs_.present();
    const std::size_t n = present.size();
    std::vector<Wide> factorial{1};
    for (std::size_t k = 1; k <= n; ++k)
      factorial.push_back(factorial.back() * static_cast<int>(k));
    std::vector<Wide> sums(n);
    for (Removed set = 0; set < (Removed{1} << n); ++set) {
      std::size_t size = 0;
      Removed removed = 0;
      for (std::size_t k = 0; k < n; ++k) {
        if ((set >> k & 1U) == 0) continue;
        ++size;
        removed |= bit_of(present[k]);
      }
      const Time step = runs_.step(removed);
      for (std::size_t k = 0; k < n; ++k) {
        if ((set >> k & 1U) != 0) continue;
        const Time saved = step - runs_.step(removed | bit_of(present[k]));
        sums[k] += factorial[size] * factorial[n - size - 1] * saved.count();
      }
    }
    found_.orders = static_cast<int>(factorial[n]);
    share_out(sums, factorial[n]);
  }

  void over_sampled_orders() {
    const std::vector<StepCause>& present = runs_.present();
    std::vector<Wide> sums(present.size());
    std::vector<std::size_t> order(present.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937_64 random(1953);
    for (int sample = 0; sample < sampled_orders; ++sample) {
      // Fisher and Yates; std::shuffle differs by library.
      for (std::size_t k = order.size() - 1; k > 0; --k) {
        std::swap(order[k], order[static_cast<std::size_t>(random() % (k + 1))]);
      }
      Removed removed = 0;
      for (const std::size_t k : order) {
        const Removed next = removed | bit_of(present[k]);
        sums[k] += (runs_.step(removed) - runs_.step(next)).count();
        removed = next;
      }
    }
    found_.orders = sampled_orders;
    share_out(sums, sampled_orders);
  }

  void share_out(const std::vector<Wide>& sums, Wide scale) {
    const std::vector<StepCause>& present = runs_.present();
    if (present.empty()) return;
    const std::vector<Time> shares = rounded(sums, scale, found_.step - runs_.step(all_));
    for (std::size_t k = 0; k < present.size(); ++k) by(present[k]) = shares[k];
  }

  static Time mean_of(const Counterfactual& run) {
    Wide work = 0;
    for (std::uint32_t task = 0; task < run.graph.tasks(); ++task) {
      if (lane_of(run.graph.op[task].kind) == LaneKind::compute) {
        work += run.graph.duration[task].count();
      }
    }
    const Wide parts = Wide{run.program->steps} * static_cast<Wide>(run.program->devices.size());
    return Time{static_cast<std::int64_t>(work / parts)};
  }

  // What a cause has a device do is the same in every order; the rest of it is idle time. Of
  // imbalance the device's own share of the work is taken away, since `work` has it.
  void list_devices(const Counterfactual& last, const Counterfactual& uneven) {
    equal_ = last.busy();
    const std::vector<Time> work = uneven.busy();
    for (std::size_t d = 0; d < work.size(); ++d) {
      DeviceWaterfall device;
      device.name = last.program->devices[d];
      device.work = work[d];
      found_.device.push_back(std::move(device));
    }
    Removed removed = 0;
    std::vector<Time> before = runs_.without(0).busy();
    const std::vector<StepCause>& present = runs_.present();
    for (auto cause = present.rbegin(); cause != present.rend(); ++cause) {
      removed |= bit_of(*cause);
      const std::vector<Time> after =
          *cause == StepCause::imbalance ? equal_ : runs_.without(removed).busy();
      for (std::size_t d = 0; d < before.size(); ++d) {
        const Time busy = before[d] - after[d];
        DeviceWaterfall& device = found_.device[d];
        nth(device.idle, *cause) = by(*cause) - busy;
        if (*cause != StepCause::imbalance) nth(device.busy, *cause) = busy;
      }
      before = after;
    }
  }

  // What is idle when all else is removed: fill and drain, and the rest.
  void split_idle(const Counterfactual& last) {
    const Time step = runs_.step(all_);
    Wide filling = 0;
    Wide all = 0;
    std::vector<DeviceMetrics> devices(equal_.size());
    if (synchronous_) {
      TaskGraph graph = last.graph;
      const TaskTimes times = simulate_together(graph, {});
      devices = metrics_of(*last.program, graph, times).device;
    }
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const DeviceMetrics& device = devices[d];
      const Time at_ends =
          nth(device.idle_by, IdleKind::fill) + nth(device.idle_by, IdleKind::drain);
      const Time used = device.idle - nth(device.idle_by, IdleKind::unused);
      filling += at_ends.count();
      all += used.count();
      split(step - equal_[d], at_ends.count(), used.count(), found_.device[d].idle);
    }
    split(step - found_.ideal, filling, all, found_.by);
  }

  static void split(Time idle, Wide filling, Wide all, TimeByCause& into) {
    const Time ends =
        all > 0 ? Time{static_cast<std::int64_t>(Wide{idle.count()} * filling / all)} : Time{};
    nth(into, StepCause::fill_and_drain) = ends;
    nth(into, StepCause::dependency) = idle - ends;
  }

  Counterfactuals runs_;
  bool synchronous_;
  Removed all_ = 0;
  std::vector<Time> equal_;  // by device, compute of a step without any cause
  Waterfall found_;
};

}  // namespace

std::string_view name(StepCause cause) {
  switch (cause) {
    case StepCause::imbalance:
      return "imbalance";
    case StepCause::fill_and_drain:
      return "fill and drain";
    case StepCause::dependency:
      return "dependency";
    case StepCause::recompute:
      return "recompute";
    case StepCause::interference:
      return "interference";
    case StepCause::messages:
      return "messages";
    case StepCause::blocking_collectives:
      return "blocking collectives";
    case StepCause::reductions:
      return "gradient reductions";
    case StepCause::optimizer:
      return "optimizer";
    case StepCause::copies:
      return "copies to the host";
    case StepCause::memory_limit:
      return "memory limit";
    case StepCause::jitter:
      return "jitter";
  }
  return "";
}

Waterfall waterfall_of(const Case& asked, const Outcome& nominal, CauseOrder order) {
  return Attribution(asked, nominal).take(order);
}

void add_jitter(Waterfall& waterfall, Time longer) {
  waterfall.step += longer;
  nth(waterfall.by, StepCause::jitter) += longer;
  for (DeviceWaterfall& device : waterfall.device) {
    nth(device.idle, StepCause::jitter) += longer;
  }
}

}  // namespace stageline
