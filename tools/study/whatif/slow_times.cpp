// Prices the ops of a run for every set of slow items that may be drawn.
#include "tools/study/whatif/slow_times.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/op_time.hpp"
#include "sim/rates.hpp"
#include "tools/study/whatif/slow_devices.hpp"

namespace stageline {
namespace {

using Items = std::vector<std::size_t>;  // of Perturbation::slow, ascending

// How slow devices and links are in a scenario.
struct State {
  std::vector<double> device;  // by simulated device: how many times as long its compute takes
  Items links;                 // that are slow
  // Not <=>: vectors have none in Emscripten's library.
  friend bool operator<(const State& a, const State& b) {
    return std::tie(a.device, a.links) < std::tie(b.device, b.links);
  }
};

bool same_collectives(const Costs& one, const Costs& other) {
  return std::equal(
      one.stage.begin(), one.stage.end(), other.stage.begin(), other.stage.end(),
      [](const StageCosts& a, const StageCosts& b) { return a.blocking == b.blocking; });
}

class SlowPricer {
 public:
  SlowPricer(const Perturbation& perturbation, const Case& asked, const Layout& layout,
             const Costs& costs, const std::vector<std::string>& names)
      : items_(perturbation.slow),
        asked_(asked),
        layout_(layout),
        costs_(costs),
        names_(names),
        members_(members_of_devices(asked)) {}

  // How many times as long the slowest member takes, over the slowest one of usual speed.
  double slowness(int device, const Items& drawn) const {
    const Cluster& cluster = asked_.ranked ? asked_.ranked->devices() : asked_.cluster;
    double usual = 0;
    double now = 0;
    for (const int member : nth(members_, device)) {
      const double takes = 1 / rates_of(nth(cluster.devices, member)).matrix;
      double factor = 1;
      for (const std::size_t item : drawn) {
        if (items_[item].devices.empty()) continue;
        if (is_about(items_[item].name, asked_, names_, device, member)) {
          factor *= items_[item].factor;
        }
      }
      usual = std::max(usual, takes);
      now = std::max(now, takes * factor);
    }
    return usual > 0 ? now / usual : 1;
  }

  State state_of(const Items& drawn) const {
    State state;
    for (int d = 0; d < static_cast<int>(members_.size()); ++d) {
      state.device.push_back(slowness(d, drawn));
    }
    for (const std::size_t item : drawn) {
      if (items_[item].devices.empty()) state.links.push_back(item);
    }
    return state;
  }

  // Without a network.
  const Costs& priced(const State& state) {
    const auto known = known_.find(state);
    if (known != known_.end()) return known->second;
    Costs costs = anew(state);
    costs.network = {};
    return known_.emplace(state, std::move(costs)).first->second;
  }

 private:
  // What gathers hide behind compute is another part of them where that takes longer; all else is
  // the same compute at another pace.
  Costs anew(const State& state) const {
    const Degrees* const degrees = asked_.ranked ? &asked_.ranked->grid().degrees() : nullptr;
    const bool hides = degrees != nullptr &&
                       (degrees->zero == Zero::weights || reduces_in_every_backward(*degrees));
    if (state.links.empty() && !hides) return at_pace(state, costs_);
    Case changed = asked_;
    Cluster cluster = asked_.ranked ? asked_.ranked->devices() : asked_.cluster;
    for (const std::size_t item : state.links)
      slow_links(cluster, items_[item].name, items_[item].factor);
    if (!hides) return at_pace(state, priced_on(std::move(cluster), std::move(changed)));
    for (std::size_t d = 0; d < state.device.size(); ++d) {
      for (const int member : members_[d]) {
        slow_down(nth(cluster.devices, member), state.device[d]);
      }
    }
    return priced_on(std::move(cluster), std::move(changed));
  }

  Costs priced_on(Cluster cluster, Case changed) const {
    if (!changed.ranked) {
      changed.cluster = std::move(cluster);
      return costs_of(changed, layout_);
    }
    changed.ranked = asked_.ranked->on(std::move(cluster));
    changed.cluster = changed.ranked->ranks();
    if (changed.ranked->replicas() != asked_.ranked->replicas()) {
      throw UsageError(
          "these slow devices or links change which replicas are alike, so that others would have to be simulated; state their speed in the cluster file");
    }
    return costs_of(changed, layout_);
  }

  static Costs at_pace(const State& state, Costs costs) {
    costs.pace.resize(state.device.size(), 1);
    for (std::size_t d = 0; d < state.device.size(); ++d) costs.pace[d] *= state.device[d];
    return costs;
  }

  const std::vector<Slow>& items_;
  const Case& asked_;
  const Layout& layout_;
  const Costs& costs_;
  const std::vector<std::string>& names_;
  std::vector<std::vector<int>> members_;
  std::map<State, Costs> known_;
};

// Ops that take the same time on a device: of one kind, stage and part, and of micro-batches of one
// kind; so is the second op of a pair.
using OpClassKey = std::tuple<int, OpKind, int, int, int, std::optional<OpKind>, int, int>;

}  // namespace

SlowTimes slow_times(const Perturbation& perturbation, const Case& asked, const Layout& layout,
                     const Costs& costs, const Program& program, const TaskGraph& graph) {
  SlowTimes found;
  if (perturbation.slow.empty()) return found;
  SlowPricer pricer(perturbation, asked, layout, costs, graph.devices);
  Items always;
  std::vector<Items> sometimes(asked.cluster.devices.size());  // by device
  for (std::size_t i = 0; i < perturbation.slow.size(); ++i) {
    const Slow& item = perturbation.slow[i];
    if (item.probability <= 0) continue;
    const bool is_link = item.devices.empty();
    if (is_link) {
      if (!costs.has_collectives()) continue;
      if (same_collectives(pricer.priced(pricer.state_of({i})), costs)) continue;
    }
    // The choice of a link that no message takes is what shows that the link is known.
    const bool is_named = is_link && item.name != "links";
    if (item.probability >= 1 && !is_named) {
      always.push_back(i);
      continue;
    }
    for (std::size_t d = 0; d < sometimes.size(); ++d) {
      const auto& on = item.devices;
      if (is_link || std::find(on.begin(), on.end(), static_cast<int>(d)) != on.end()) {
        sometimes[d].push_back(i);
      }
    }
  }
  const auto takes = [&](const Costs& by, std::uint32_t task, int device) {
    const Op op = graph.op[task];
    return task_time_on(by, program.placement, op,
                        op.overlapped ? std::optional(graph.partner[task]) : std::nullopt, device);
  };
  const auto of_set = [&](std::size_t set, const Items& items) {
    Items drawn = always;
    for (std::size_t bit = 0; bit < items.size(); ++bit) {
      if ((set >> bit & 1U) != 0) drawn.push_back(items[bit]);
    }
    std::sort(drawn.begin(), drawn.end());
    return drawn;
  };
  const State usually = pricer.state_of(always);
  found.of_task.assign(graph.tasks(), SlowTimes::none);
  std::map<OpClassKey, std::uint32_t> known;
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    if (lane_of(op.kind) != LaneKind::compute) continue;
    const int device = graph.lanes[graph.lane[task]].device;
    const Items& items = nth(sometimes, device);
    if (items.empty() && always.empty()) continue;
    if (items.size() > as_size(most_slow_items)) {
      throw UsageError(fmt::format(
          "{} slow devices or links with a probability concern {}, and at most {} are told apart; "
          "name several at once (gpu*:1.2@0.1)",
          items.size(), nth(graph.devices, device), most_slow_items));
    }
    std::optional<OpKind> second;
    int second_stage = 0;
    int second_size = 0;
    if (op.overlapped) {
      second = graph.partner[task].kind;
      second_stage = graph.partner[task].stage;
      second_size = costs.kind(graph.partner[task].microbatch);
    }
    // Updates number steps.
    const int size = counts_microbatches(op.kind) ? costs.kind(op.microbatch) : 0;
    const auto next = static_cast<std::uint32_t>(found.choices.size());
    const auto [at, is_new] = known.try_emplace(
        OpClassKey{device, op.kind, op.stage, op.part, size, second, second_stage, second_size},
        next);
    found.of_task[task] = at->second;
    if (!is_new) continue;
    SlowTimes::Choice& choice = found.choices.emplace_back();
    choice.items = items;
    const Time plain = takes(costs, task, device);
    for (std::size_t set = 0; set < std::size_t{1} << items.size(); ++set) {
      State state = usually;
      const State drawn = pricer.state_of(of_set(set, items));
      nth(state.device, device) = nth(drawn.device, device);
      state.links = drawn.links;
      const Time slow = takes(pricer.priced(state), task, device);
      choice.time.push_back(std::max(Time{}, graph.duration[task] + (slow - plain)));
    }
  }
  return found;
}

}  // namespace stageline
