// PipeDream's partitioner: which layers make a stage, and how many workers replicate it.
//
// Harlap et al., "PipeDream", arXiv 1806.03377; Narayanan et al., SOSP'19 (the levels); read beside
// its code, github.com/msr-fiddle/pipedream, optimizer/optimizer_graph_hierarchical.py.
//
//   T(i..j, k) = [Σ t + 4 (k-1) |w| / (k B)] / k            one stage of layers i..j on k workers
//   A(i..j, k) = min of T(i..j, k) and, over the split s and the last stage's workers k',
//                max(A(i..s, k-k'), 2 a_s / (B k'), T(s+1..j, k'))
//
// t is a layer's forward + backward, |w| the bytes of the weights of i..j, a_s the bytes that cross
// the cut behind layer s, B the bandwidth. How the readings differ, and which of them is which:
//   cost = code    the sum inside T, as its code has it
//   cost = paper   max(Σ t, 4 (k-1) |w| / (k B)) / k, as the paper has it: the all-reduce hides
//   transfers      whether 2 a_s / (B k') counts, the activation there and the gradient back; the
//                  code counts it only when it is given a compression ratio (and then the last
//                  stage's own output too, which is the next stage's input)
//   replicate      without, every stage has one worker ("straight")
//   a_s            the outputs of all layers up to s that a later layer reads, each once
//   the cut        anywhere in the given topological order; the code cuts at antichains of the
//                  graph, a different set of cuts where branches run side by side
//   the input      a profile's "Input" node costs nothing (its forward time is the data loader's)
//   all workers    are used: the code's flag use_fewer_machines is off
//
// These readings give the figures in tests/partition/pipedream.cpp to their last digit.
//
// Levels (SOSP'19): a machine of level l holds `machines` machines of level l-1, which
// are joined at B_l. A of one level, with all of its machines, takes the place of Σ t one level up.
// The code divides a replicated outer stage's all-reduce by the devices of a machine, in one of the
// two places where it counts it; the paper, and this, does not.
//
// Unequal devices, which PipeDream does not have, are ours (pipedream_unequal.cpp).
//
// Times are whole picoseconds: T is rounded down once, a transfer to the nearest.
#pragma once

#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/model.hpp"
#include "sim/rates.hpp"

namespace stageline {

enum class PipedreamCost : std::uint8_t { code, paper };

struct PipedreamLevel {
  int machines = 1;     // that a machine of this level holds; devices, at the first level
  Bandwidth bandwidth;  // between them
  friend bool operator==(const PipedreamLevel&, const PipedreamLevel&) = default;
};

/// All tables by layer, in topological order, of one minibatch.
struct PipedreamQuestion {
  std::vector<Time> time;              // forward + backward on one device
  std::vector<Bytes> weights;          // one version
  std::vector<Bytes> crossing;         // one way, over the cut behind the layer
  std::vector<PipedreamLevel> levels;  // the innermost first; at least one
  PipedreamCost cost = PipedreamCost::code;
  bool transfers = true;
  bool replicate = true;
  /// The devices of each stage where they are given, at one level that holds them all; then only
  /// the cuts are chosen, and `replicate` means nothing. Empty: as many stages as pay.
  std::vector<int> replicas{};
  /// Where devices or the routes between them differ, at one level: the devices in their order,
  /// each with its rates, `time` being that at rate 1. Empty: all alike.
  std::vector<Rates> rates{};
  std::vector<bool> memory_bound{};  // by layer, whether the memory rates apply; with `rates`
  /// devices × devices, of the routes between them; with `rates`. Empty: that of the level.
  std::vector<Bandwidth> between{};
};

struct PipedreamStage {
  int first = 0;  // layers first..last
  int last = 0;
  /// The replicas. Those of a stage that spans machines take turns among the machines, so that
  /// micro-batch m stays on one machine wherever both stages have replicas there.
  std::vector<int> devices;
  friend bool operator==(const PipedreamStage&, const PipedreamStage&) = default;
};

struct PipedreamPlan {
  std::vector<PipedreamStage> stages;
  Time bottleneck{};  // of the slowest stage or transfer: time between minibatches
  Time single{};      // one device, all layers
};

/// Bytes that cross the cut behind each layer: outputs of layers up to it that a later one reads,
/// each once; 0 behind the last.
std::vector<Bytes> crossing_bytes(const Model& model);

/// The plan with the smallest bottleneck that uses all devices. Ties go to: no split before a
/// split, fewer workers for the last stage, then the earlier split. Exact; O(L² n²) for one level
/// of n machines, O(L³ n²) for inner ones, with bounds that skip most of it. With given replicas
/// the smallest bottleneck that they allow, O(L² S) for S stages; of equal ones the earlier last
/// split. With unequal devices (`rates`) a stage takes as long as the slowest of its devices says,
/// its all-reduce and the transfers go over the narrowest routes, and devices keep their order.
/// Throws UsageError when a straight plan or the replicas have more stages than layers, when the
/// replicas or the rates are not those of one level's devices, and when times or table would not
/// fit, or a plan would weigh more than 2·10⁹ splits.
PipedreamPlan pipedream_plan(const PipedreamQuestion& question);

/// T as defined above, at the first level. `first`..`last` are layers.
Time pipedream_stage_time(const PipedreamQuestion& question, int first, int last, int replicas);
/// T of a stage of a plan for that question, unequal devices or not.
Time pipedream_stage_time(const PipedreamQuestion& question, const PipedreamStage& stage);

/// "7-1", or "straight, 4 stages" without replicas.
std::string print(const PipedreamPlan& plan);

}  // namespace stageline
