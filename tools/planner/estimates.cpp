#include "tools/planner/estimates.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "cost_models/tied_weights.hpp"
#include "schedulers/parts/grouped_order.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "sim/routes.hpp"

namespace stageline::planner {
namespace {

// Beyond what is likely to fit: how many times as long what does not is taken to be.
constexpr double too_large_factor = 100;

// Groups of interleaved 1F1B below the number of devices leave gaps in which no whole B fits: for
// each micro-batch and chunk behind the first, the time of a third of both. Of 6 simulated cases
// with equal F, I and W on 4 to 16 devices, 2026-11-30, within 5 % of the step.
constexpr double small_groups_fill = 1.4;
constexpr double small_groups_wait = 1.0 / 3;

// What the orders of a schedule look like from afar. With p devices with v stages each:
//   fill   × (p − 1) / v    micro-batches of a device's work that it waits for in a step
//   held   × p + more       micro-batches' stashes on the fullest device
struct Habit {
  std::string_view name;
  double fill = 1;
  double held = 1;
  double more = 0;
  int copies = 1;       // of the weights
  bool search = false;  // makes its order by a search, which takes as long as judging many others
};
constexpr double all = -1;  // of the micro-batches

constexpr Habit habits[] = {
    {"gpipe", 1, all},
    {"looped_bfs", 1, all},
    {"eager_1f1b", 1, 2, -1},
    {"chimera", 0.5, 1, 0, 2},
    {"dualpipe", 0.3, 1, 1, 2},
    {"dualpipe_v", 0.3, 1, 1},
    {"hanayo", 1, 1},
    {"zb_h1", 0.4, 1},
    {"zb_h2", 0.1, 2, -1},
    {"zb_v", 0.1, 1, 0, 1, true},
    {"v_half", 0.7, 0.5, 1, 1, true},
    {"v_min", 1.3, 0.34, 1, 1, true},
    {"zb_auto", 0.4, 1, 0, 1, true},
    {"list", 0.4, 1, 0, 1, true},
    {"cyclic", 0.4, 1, 0, 1, true},
    {"interleaved_zb", 0.4, 1},
    {"svpp", 0.4, 1},
};

Habit habit_of(const ScheduleSpec& spec) {
  const std::string_view name = spec.scheduler->name;
  const auto* const known = std::find_if(std::begin(habits), std::end(habits),
                                         [&](const Habit& habit) { return habit.name == name; });
  return known == std::end(habits) ? Habit{name} : *known;
}

// The micro-batches of a group of interleaving: as many as devices by default.
int interleaved_group(const ScheduleSpec& spec, int devices) {
  const auto knob = spec.knobs.find("group");
  if (knob == spec.knobs.end()) return devices;
  return std::max(1, parse_number<int>(knob->second).value_or(devices));
}

double picoseconds(double count) { return count * 1e-12; }

}  // namespace

bool searches_order(const ScheduleSpec& spec) { return habit_of(spec).search; }

Reach reach_of(const Cluster& cluster) {
  Reach reach;
  const int devices = static_cast<int>(cluster.devices.size());
  const int host = cluster.devices.front().host;
  reach.in_a_machine = static_cast<int>(
      std::count_if(cluster.devices.begin(), cluster.devices.end(),
                    [&](const Device& device) { return host >= 0 && device.host == host; }));
  reach.in_a_machine = std::max(1, reach.in_a_machine);
  if (cluster.links.empty()) return reach;
  Routes routes(cluster);
  const auto rate_to = [&](int other) {
    try {
      const Bandwidth rate = routes.between(0, other).bandwidth;
      return rate.is_unlimited() ? 0 : static_cast<double>(rate.bytes_per_second);
    } catch (const UsageError&) {
      return 0.0;  // not joined: who needs that link is refused
    }
  };
  if (devices > 1) reach.inside = reach.across = rate_to(1);
  if (devices > reach.in_a_machine) reach.across = rate_to(reach.in_a_machine);
  return reach;
}

Estimates::Estimates(const ShapeLoads& loads, const Model& model, const Shape& shape,
                     const Reach& reach, std::optional<Bytes> limit)
    : totals_(loads.totals()),
      reach_(reach),
      limit_(limit),
      degrees_(shape.degrees),
      devices_(shape.degrees.pipeline),
      microbatches_(shape.microbatches) {
  const Model held = shape.degrees.pipeline > 1 ? model : held_once(model);
  for (const Layer& layer : held.layers) {
    weights_ += static_cast<double>(layer.weights.count);
    gradients_ += static_cast<double>(layer.gradients.count);
    outputs_ += static_cast<double>(layer.output.count);
    output_ = std::max(output_, static_cast<double>(layer.output.count));
  }
}

// Seconds of a gather, or a reduction to parts, of so many bytes among those that hold the same
// weights: in rings through all the network cards that they have.
double Estimates::exchange(double bytes) const {
  const int ranks = degrees_.context * degrees_.data / shard_groups(degrees_);
  if (ranks == 1) return 0;
  const bool inside = ranks * degrees_.tensor <= reach_.in_a_machine;
  const int beside = std::clamp(reach_.in_a_machine / degrees_.tensor, 1, ranks);
  double rate = reach_.inside;
  if (!inside && reach_.across > 0) {
    rate = reach_.across * beside;
    if (reach_.inside > 0) rate = std::min(rate, reach_.inside);
  }
  return rate > 0 ? bytes * (ranks - 1) / ranks / rate : 0;
}

Estimates::Memory Estimates::memory_of(const Family& family, int stages) const {
  Rebuild rebuild = Rebuild::none;
  for (const auto& part : family.recomputation.parts) rebuild = part.how.rebuild;
  if (const auto own = family.spec.knobs.find("recompute");
      own != family.spec.knobs.end() && own->second != "never") {
    rebuild = Rebuild::full;
  }
  switch (rebuild) {
    case Rebuild::none:
      return {totals_.stash, 0, 0};
    case Rebuild::selective:
      return {totals_.stash_kept, totals_.stash_of_layer, totals_.recompute_selective};
    case Rebuild::every:
      return {outputs_, totals_.stash_of_layer, totals_.recompute_full};
    case Rebuild::full:
      return {output_ * stages, totals_.stash / stages, totals_.recompute_full};
  }
  return {};  // unreachable; g++ wants it
}

Estimates::Estimate Estimates::of(const Family& family, int stages) const {
  const Habit habit = habit_of(family.spec);
  const Memory memory = memory_of(family, stages);
  const double devices = devices_;
  const double chunks = std::max(1.0, stages / devices);
  const std::string_view name = family.spec.scheduler->name;
  // A stage has whole layers.
  const double each = totals_.large_layers / std::max(1.0, static_cast<double>(stages));
  const double uneven = each > 0 ? std::ceil(each - 1e-9) / each : 1;
  double forward = picoseconds(totals_.forward) / devices;
  double backward = picoseconds(totals_.backward + memory.again) / devices;
  // Divided weights are exchanged in every op, divided gradients in every backward.
  const bool in_every_op = reduces_in_every_backward(degrees_);
  if (in_every_op && degrees_.zero == Zero::weights) {
    const double gather = exchange(weights_ / devices);
    if (memory.again > 0) backward += std::max(0.0, gather - forward);
    forward = std::max(forward, gather);
    backward = std::max(backward, gather + exchange(gradients_ / devices));
  } else if (in_every_op) {
    backward = std::max(backward, exchange(gradients_ / devices));
  }
  double waiting = habit.fill * (devices - 1) / chunks;
  double held = habit.held == all ? microbatches_ : habit.held * devices + habit.more;
  if (name == "interleaved_1f1b" || name == "interleaved_zb") {
    const int group = interleaved_group(family.spec, degrees_.pipeline);
    const bool small = group < degrees_.pipeline;
    // Small groups are apart by as many as half the devices, W right behind I.
    const Grouping grouping = small ? grouping_of(degrees_.pipeline, group) : Grouping{group, 1};
    const double apart = grouping.group * grouping.in_flight;
    held = ((small ? devices : 2 * devices - 1) + (chunks - 1) * apart) / chunks;
    if (small && name == "interleaved_zb") waiting = (devices - 1) / chunks;
    if (small && name == "interleaved_1f1b") {
      waiting = small_groups_fill * (devices - 1) / chunks +
                small_groups_wait * microbatches_ * (1 - 1 / chunks);
    }
  }
  // It takes what it is allowed.
  const auto knob = family.spec.knobs.find("limit");
  const std::string_view allowed = name == "zb_auto" && knob != family.spec.knobs.end()
                                       ? std::string_view(knob->second)
                                       : std::string_view{};
  if (allowed == "2p") held *= 2;
  if (name == "naive") {
    waiting = microbatches_ * (devices - 1);
    held = 1;
  }
  if (name == "gems") {
    waiting = microbatches_ * (devices - 1) / 2;
    held = 2;
  }
  if (name == "seq1f1b" || name == "svpp") {
    const auto pieces = family.spec.knobs.find("sequence_chunks");
    const double parts = pieces == family.spec.knobs.end() ? 2 : std::stod(pieces->second);
    waiting /= parts;
    held = 1 + held / parts;
  }
  held = std::clamp(held, 1.0, microbatches_);
  double step = (microbatches_ + waiting) * (forward + backward) * uneven +
                picoseconds(totals_.update) / devices;
  // Reduced while the last backward of the last stage runs.
  if (in_every_op && degrees_.zero == Zero::gradients) step += exchange(weights_ / devices);
  if (!in_every_op) {
    const double reduced = exchange(gradients_ / devices);
    const double behind = degrees_.zero == Zero::none ? reduced : exchange(weights_ / devices);
    const double whole = degrees_.zero == Zero::none ? 2 * reduced : reduced;
    step += std::max(0.0, whole - backward / chunks);
    // Weights that stay gathered are gathered beside the first forward.
    const double hidden = degrees_.zero == Zero::weights ? forward / chunks : 0;
    if (degrees_.zero != Zero::none) step += std::max(0.0, behind - hidden);
  }
  const double fixed =
      uneven * totals_.state * habit.copies / devices + memory.rebuilt + totals_.workspace;
  const double stash = uneven * memory.stash / devices;
  const double need = fixed + held * stash;
  if (!limit_) return {step, need};
  const auto most = static_cast<double>(limit_->count);
  if (allowed == "memory") {
    // With room for few micro-batches the next one waits until a stash of the first stage has been
    // to the last stage and back, and its W is done; folded in a V, stashes are kept half as long.
    const double room = std::floor((most - fixed) / std::max(1.0, stash));
    if (room < 1) return {step * too_large_factor, std::max(need, most)};
    const double folded = chunks > 1 ? 0.5 : 1;
    const double way = folded * devices * (forward + backward / 2) + backward / 2;
    return {step * std::max(1.0, way / (room * (forward + backward))), std::max(need, most)};
  }
  const double share = need / std::max(1.0, most);
  return {share > 1 ? step * share * too_large_factor : step, need};
}

}  // namespace stageline::planner
