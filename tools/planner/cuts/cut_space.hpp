// All cuts of a case, and what they cost by closed forms: the ground that the search for a cut
// walks on. What is found is judged by simulation; these numbers only say where to look first.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/partition/partitioner.hpp"
#include "sim/base/index.hpp"
#include "tools/study/case.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline::planner {

/// The first unit of every stage but the first: ascending, from 1 to units - 1. A unit is a layer;
/// with whole blocks it is a transformer block, what stands before the first, or behind the last.
using Begins = std::vector<int>;

struct CutEstimate {
  double step = 0;           // ps
  double missing_share = 0;  // of the memory of the device that lacks most; 0: it fits, or unknown

  /// Smaller is more promising.
  double order() const { return step * (1 + 4 * missing_share); }
};

/// A stage wherever it is cut: its devices, and what its schedule has of it in flight.
struct CutStage {
  std::size_t kind = 0;      // of its slowest device, among the different rates
  double overhead = 0;       // ps of each op
  double turns = 1;          // replicas that take turns
  bool apart = false;        // F and B on devices of their own
  std::vector<int> devices;  // with its forwards
  double sharers = 1;        // stages of the device among these that has most
  double ahead = 1;          // forwards before the first gradient leaves, at most
  double held = 1;           // stashes held at a time, at most, by one device
  double versions = 1;       // of the weights
  double limit = 0;          // bytes of its smallest device; infinite: unknown
  Rebuild rebuild = Rebuild::none;
  std::vector<double> into;  // by unit: ps of a message, if the stage begins there
  struct Load {
    std::size_t resource = 0;
    double each = 0;  // ps a byte, of activations and gradients together
  };
  std::vector<Load> loads;  // of its boundary on the links
};

/// The contiguous cuts of a case's model into the stages of its schedule. Times are picoseconds a
/// micro-batch, on the slowest of a stage's devices and with its blocking collectives.
class CutSpace {
 public:
  /// Throws UsageError for a given program, for a schedule that cuts the model itself, where blocks
  /// are to be kept whole and there are none, where there are fewer units than stages, and what
  /// checked_layout() throws for a balanced cut.
  CutSpace(const Case& asked, bool whole_blocks);

  int stages() const { return static_cast<int>(stage_.size()); }
  int units() const { return static_cast<int>(first_layer_.size()) - 1; }
  /// How many cuts there are.
  double cuts() const;
  /// The first cut in lexicographic order, and the next after one; false: that was the last.
  Begins first_cut() const;
  bool next_cut(Begins& cut) const;

  /// As --partition takes it: "0-5,6-11,12-".
  std::string text(const Begins& cut) const;
  /// What that partitioner says; empty where it refuses, or where a stage begins inside a unit.
  std::optional<Begins> cut_by(const std::string& partitioner) const;

  const CutStage& stage(int s) const { return nth(stage_, s); }
  /// Until a device of the stage is free again: F, B or I and W, over the replicas that take turns.
  double time(int s, int from, int to) const;
  /// From the start of F to the end of what sends the gradient, B or I, without waiting.
  double passage(int s, int from, int to) const;
  double forward(int s, int from, int to) const;
  /// Weights, gradients, optimizer state and the stashes in flight, in bytes.
  double memory(int s, int from, int to) const;
  /// In front of a unit, one way, in bytes.
  double crossing(int unit) const { return nth(crossing_, unit); }

  CutEstimate estimate(const Begins& cut) const;

 private:
  void make_units(const Model& model, bool whole_blocks);
  void sum_times();
  void sum_bytes();
  void place_stages();
  void count_in_flight();
  void price_routes();

  Case balanced_;  // as asked, cut by "balanced"
  Layout layout_;  // of that
  int microbatches_ = 1;
  bool flushed_ = true;
  bool split_ = false;            // I and W are apart
  std::vector<int> first_layer_;  // by unit, and the number of layers
  struct Times {                  // by unit: of all units before it
    std::vector<double> forward;
    std::vector<double> back;   // B or I
    std::vector<double> later;  // W behind a separate I
  };
  std::vector<Times> times_;     // by kind of device
  std::vector<double> weights_;  // sums as above, bytes
  std::vector<double> state_;    // gradients and optimizer state
  std::vector<double> stash_;
  std::vector<double> selective_;  // of the stash, what selective recomputation rebuilds
  std::vector<double> crossing_;   // by unit
  std::vector<CutStage> stage_;
  std::vector<double> limit_;  // by device of the pipeline, bytes
  std::size_t resources_ = 0;
};

/// Those whose cuts every search looks at.
inline constexpr std::array plain_partitioners{"balanced", "blocks", "by_device"};

/// As of a case (tools/planner/cuts/cut_search.hpp).
std::vector<Begins> promising_cuts(const CutSpace& space, int most);

}  // namespace stageline::planner
