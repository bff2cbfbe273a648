// Valid programs of every shape, seeded: any stage graph, several stages on a device, replicas,
// B or I and W, independent W, recompute, offload, overlapped pairs; in an order drawn at random
// from those that can finish. Needs sim/ only.
#pragma once

#include <algorithm>
#include <map>
#include <random>

#include "sim/base/index.hpp"
#include "tests/schedules/reference.hpp"

namespace stageline::test {

struct RandomProgram {
  Program program;  // compute and copies; complete() has not seen it
  Costs costs;
};

/// `Random`: a generator of 32-bit numbers, as of <random>.
template <class Random>
class ProgramsDrawn {
 public:
  explicit ProgramsDrawn(Random random) : random_(std::move(random)) {}

  /// With `shared`, messages go over ports that several lanes use; else over wires of their own.
  RandomProgram make(bool shared) {
    RandomProgram made;
    header(made.program);
    made.costs = costs(made.program, shared);
    if (shared) hold_for_others(made.program);
    place_ops(made.program);
    return made;
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<std::uint32_t>(count)); }
  bool coin(int one_in) { return below(one_in) == 0; }

  void header(Program& program) {
    const int devices = 1 + below(4);
    const int stages = 1 + below(5);
    program.schedule = "random";
    program.microbatches = 1 + below(4);
    program.steps = 1 + below(2);
    program.settings.weights = static_cast<WeightRule>(below(5));
    // Not drawn, so that the rest stays as it was.
    if (stages % 2 == 0) program.settings.recompute = RecomputeStart::late;
    if (devices % 2 == 0) program.settings.copies = Copies::issued;
    for (int d = 0; d < devices; ++d) program.devices.push_back("gpu" + std::to_string(d));
    program.ops.resize(program.devices.size());
    for (int s = 0; s < stages; ++s) {
      StagePlace place;
      const int replicas = coin(3) ? 1 + below(devices) : 1;
      for (int i = 0, first = below(devices); i < replicas; ++i) {
        place.replicas.push_back((first + i) % devices);
      }
      program.placement.stage.push_back(place);
      program.independent_w.push_back(coin(4));
      for (int from = 0; from < s; ++from) {
        if (coin(from + 1 == s ? 1 : 4) && !coin(6)) {
          program.edges.push_back(
              {static_cast<std::uint16_t>(from), static_cast<std::uint16_t>(s)});
        }
      }
    }
    std::sort(program.edges.begin(), program.edges.end());
    const bool together =
        std::all_of(program.placement.stage.begin(), program.placement.stage.end(),
                    [](const StagePlace& place) { return place.replicas.size() == 1; });
    const bool by_step = program.settings.weights == WeightRule::flush ||
                         program.settings.weights == WeightRule::double_buffer;
    if (together && by_step && coin(2)) {
      program.settings.sequence_chunks = 2 + below(2);
      program.microbatches *= program.settings.sequence_chunks;
    }
  }

  // Every third stage copies its stashes to the next device instead of the host. Not drawn, so that
  // the rest stays as it was.
  static void hold_for_others(Program& program) {
    const auto devices = static_cast<int>(program.devices.size());
    for (std::size_t s = 0; devices > 1 && s < program.placement.stage.size(); s += 3) {
      StagePlace& place = program.placement.stage[s];
      for (const int device : place.replicas) {
        place.stash_homes.push_back((device + 1) % devices);
      }
    }
  }

  Route route(bool shared, Network& network) {
    Route one;
    one.bandwidth = Bandwidth{1'000'000'000'000 / (1 + below(3))};
    one.latency = Time{below(4)};
    // A shared route takes one of two buses, or both; an unshared one has a wire of its own.
    if (shared) {
      const int which = below(3);
      if (which != 1) one.resources.push_back(0);
      if (which != 0) one.resources.push_back(1);
    } else {
      one.resources.push_back(static_cast<int>(network.resources.size()));
      network.resources.push_back("wire" + std::to_string(network.resources.size()));
    }
    return one;
  }

  Costs costs(const Program& program, bool shared) {
    Costs made;
    made.pair_overlap = below(4) / 3.0;
    for (int s = 0; s < program.stages(); ++s) {
      StageCosts stage;
      stage.forward = Time{below(7)};
      stage.input_grad = Time{below(7)};
      stage.weight_grad = Time{below(7)};
      stage.backward = Time{below(12)};
      stage.recompute = Time{below(7)};
      stage.update = Time{below(3)};
      stage.weights = Bytes{1 + below(5)};
      stage.gradients = Bytes{below(9)};
      stage.optimizer_state = Bytes{below(9)};
      stage.stash_input_grad = Bytes{below(5)};
      stage.stash_weight_grad = Bytes{below(5)};
      stage.boundary = Bytes{below(3)};
      stage.workspace = Bytes{below(3)};
      made.stage.push_back(stage);
    }
    for (const StageEdge edge : program.edges) {
      made.edges.push_back({edge, Bytes{below(9)}, Bytes{below(9)}});
    }
    Network& network = made.network;
    network.devices = static_cast<int>(program.devices.size());
    if (shared) network.resources = {"bus0", "bus1"};
    for (int from = 0; from < network.devices; ++from) {
      for (int to = 0; to < network.devices; ++to) {
        network.routes.push_back(from == to ? Route{} : route(shared, network));
      }
      network.to_host.push_back(route(shared, network));
      network.from_host.push_back(route(shared, network));
    }
    return made;
  }

  // What there is to do, in no order yet.
  void all_ops(Program& program) {
    const auto add = [&](Op one) {
      nth(program.ops, device_of(program.placement, one)).push_back(one);
    };
    for (int s = 0; s < program.stages(); ++s) {
      const bool first = std::none_of(program.edges.begin(), program.edges.end(),
                                      [&](StageEdge edge) { return edge.to == s; });
      const int style = below(3);  // B always, I and W always, now one and now the other
      const int skips_input_grad = first ? below(3) : 0;  // never, always, now and then
      const int spares = below(4);                        // recompute, offload, neither, both
      for (std::uint32_t m = 0; m < program.total_microbatches(); ++m) {
        add(op(OpKind::forward, s, m));
        if (style == 0 || (style == 2 && coin(2))) {
          add(op(OpKind::backward, s, m));
        } else {
          if (skips_input_grad == 0 || (skips_input_grad == 2 && coin(2))) {
            add(op(OpKind::input_grad, s, m));
          }
          add(op(OpKind::weight_grad, s, m));
        }
        if ((spares == 0 || spares == 3) && coin(2)) add(op(OpKind::recompute, s, m));
        if ((spares == 1 || spares == 3) && coin(2)) {
          add(op(OpKind::offload, s, m));
          add(op(OpKind::prefetch, s, m));
        }
      }
      // Replicas meet at an update. Drawn here, so that it stands where all can come to it; those
      // of other stages are left to add_updates.
      const auto replicas = nth(program.placement.stage, s).replicas.size();
      for (int k = 0; replicas > 1 && k < updates(program, s); ++k) {
        for (std::size_t r = 0; r < replicas; ++r) {
          add(op(OpKind::update, s, static_cast<std::uint32_t>(k), static_cast<int>(r)));
        }
      }
    }
  }

  // Draws one op after another from those whose needs are met; now and then two as a pair.
  void place_ops(Program& program) {
    all_ops(program);
    const Table table(program);
    std::vector<std::vector<Op>> left = program.ops;
    for (auto& list : program.ops) list.clear();
    std::set<Op> done;
    std::map<Op, std::vector<Op>> needs;
    for (const Op one : table.ops()) {
      std::vector<Op>& of_one = needs[one] = table.needs(one);
      if (one.kind == OpKind::update && one.microbatch > 0) {
        of_one.push_back(op(OpKind::update, one.stage, one.microbatch - 1, one.part));
      }
    }
    const auto ready = [&](Op one) {
      return std::ranges::all_of(needs.at(one), [&](Op need) { return done.contains(need); });
    };
    while (done.size() < table.ops().size()) {
      const auto device = as_size(below(static_cast<int>(left.size())));
      std::vector<Op> some;
      for (const Op one : left[device]) {
        if (ready(one)) some.push_back(one);
      }
      if (some.empty()) continue;
      std::shuffle(some.begin(), some.end(), random_);
      const bool pair = some.size() > 1 && lane_of(some[0].kind) == LaneKind::compute &&
                        lane_of(some[1].kind) == LaneKind::compute && coin(6) &&
                        some[0].kind != OpKind::update && some[1].kind != OpKind::update;
      for (std::size_t i = 0; i < (pair ? 2U : 1U); ++i) {
        std::erase(left[device], some[i]);
        done.insert(some[i]);
        if (pair && i == 0) some[i].overlapped = 1;
        program.ops[device].push_back(some[i]);
      }
    }
  }

  Random random_;
};

/// By a seed, the same on every machine.
class RandomPrograms : public ProgramsDrawn<std::mt19937> {
 public:
  explicit RandomPrograms(std::uint32_t seed) : ProgramsDrawn(std::mt19937(seed)) {}
};

}  // namespace stageline::test
