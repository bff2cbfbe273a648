// The work and the bytes of a shape, added up by layer once, and what follows from them for any
// schedule on any cut.
//
//      work      Σ layers · micro-batches + updates over the devices
//      layer     the slowest stage of the best cut is at least so slow
//      way       one micro-batch forward through all layers, and back
//      fill      of a straight pipeline: ahead of stage s + micro-batches · s + back, for all s
//      gathers   of divided weights, beyond the compute that hides them; of families alone
//      loop      Σ of that work and of what each device waits for at both ends, over the devices
//      held      Σ micro-batches · stash · its way from F to the end of I, over the memory that
//                weights leave of all devices: as long must a step be for all of it to find room
//
// Messages, reductions and idle time only add to these.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost_models/recomputation.hpp"
#include "schedulers/scheduler.hpp"
#include "tools/planner/bounds.hpp"
#include "tools/planner/candidate.hpp"
#include "tools/study/case.hpp"

namespace stageline::planner {

/// What is known of a schedule's orders, whatever the costs.
struct ScheduleTraits {
  enum class Backward : std::uint8_t {
    whole,   // B
    apart,   // I and W
    either,  // some of both
  };
  enum class InFlight : std::uint8_t {
    one,        // at least
    ascending,  // min(m, p - s) on device s before its first backward, as 1F1B
    twice,      // min(m, 2 (p - s) - 1)
    all,        // m
  };
  std::string_view name;
  Backward backward = Backward::either;
  InFlight in_flight = InFlight::one;
  bool pairs = false;  // runs overlapped pairs
  int under_way = 0;   // micro-batches that are between their first F and last B; 0: any number
};
/// The traits of a schedule; of one that is not in the table nothing is known.
ScheduleTraits traits_of(const Scheduler& scheduler);

/// The stashes that stage `stage` of so many has made before its first backward, at least.
int least_in_flight(const ScheduleTraits& traits, int stage, int stages, int microbatches);

/// By layer what the gathers of its weights and the reductions of its gradients take beyond its
/// compute, at least: no stage that RankedCluster::priced() makes on one rank has less of them than
/// its layers here. `model`: of one rank, undivided. Empty where that is not known, or nothing.
///
/// exposed_gathers() says what a stage of units has: forward g₀ + Σ max(0, gᵢ₊₁ − Fᵢ), and so at
/// least max(0, gᵢ − Fᵢ₋₁) for each; backward no less than Σ (gᵢ + rᵢ − Bᵢ), and no less than
/// max(0, gᵢ − Bᵢ₊₁) for each.
std::vector<BlockingTimes> least_gathers(RankedCluster& ranks, const Model& model);

/// By layer, the blocking collectives in its ops, at least.
struct LayerBlocking {
  std::vector<BlockingTimes> all;
  std::vector<BlockingTimes> hidden_in_pairs;  // of those, what an overlapped pair may hide
};
/// The same of a model of one rank, undivided, as RankedCluster::least_blocking() has it.
LayerBlocking least_blocking(RankedCluster& ranks, const Model& model);
/// None at all.
LayerBlocking no_blocking(const Model& model);

class ShapeLoads {
 public:
  /// `asked`: a case of the shape. Its schedule, cut, recomputation and offloading are ignored.
  /// Throws what with_state() throws. O(layers).
  explicit ShapeLoads(const Case& asked);

  /// The same of a model with undivided state, on a pipeline of those devices.
  ShapeLoads(const Model& model, const Shape& shape, const LayerBlocking& blocking,
             const Cluster& pipeline);

  /// Adds what gathering divided weights exposes, as least_gathers() says, to the families whose
  /// stages are on one rank each. Nothing is known of that for all flushed schedules.
  void add_gathers(const std::vector<BlockingTimes>& gathers);

  /// The bound of all flushed schedules and all cuts.
  ShapeBound shape() const;

  /// The work alone, of all schedules and recomputations, and of cuts within the layers, too.
  /// `flushed`: of schedules that flush.
  Time least_work(bool flushed) const;

  /// The bound of one schedule on all cuts. Throws UsageError where it cannot be placed on the
  /// devices, or wants more stages than there are layers. `limit`: the most that a device may hold.
  /// O(stages · log(layers)) steps.
  ShapeBound family(const ScheduleSpec& spec, const Recomputation& recomputation,
                    const Offloading& offloading, std::optional<Bytes> limit = {}) const;

  /// Sums over all layers, without what only a cut decides.
  struct Totals {
    double forward = 0;   // picoseconds of one micro-batch, with its blocking collectives
    double backward = 0;  // as forward
    double recompute_full = 0;
    double recompute_selective = 0;
    double update = 0;
    double state = 0;           // bytes that the ranks of a pipeline hold
    double stash = 0;           // bytes of one micro-batch
    double stash_kept = 0;      // of it, with selective recomputation
    double stash_of_layer = 0;  // of the layer with most
    double workspace = 0;       // of the layer with most
    double large_layers = 0;    // that take at least half as long as the longest
  };
  Totals totals() const;

  int layers() const { return static_cast<int>(names_.size()); }

 private:
  // By number of layers from the first one on: of one micro-batch, in picoseconds.
  struct Sums {
    std::vector<double> load;  // that a device is busy for
    std::vector<double> way;   // of what must pass before the next stage can go on
    double update = 0;         // of all
  };
  struct Family {
    ScheduleTraits traits;
    int stages = 0;
    bool straight = false;  // stage s on device s alone
    bool apart = false;     // roles of a stage on several devices
    bool flushed = true;
    bool copies = false;  // the last stage holds tied weights that are the first one's
    int most_replicas = 1;
    int least_replicas = 1;
    int chunks = 1;                   // of a sequence
    double least_share = 1;           // of a micro-batch's time that one of them takes
    bool any_chunks = false;          // of a sequence, which may be as short as can be
    Rebuild rebuild = Rebuild::none;  // of every stage
    bool partly_rebuilt = false;      // of some stages, which is not known before the cut
    std::vector<int> first_stage;     // by device: the least on it
    bool hides = false;               // pairs, as much as the transfers in them
  };
  bool hides_transfers(const ScheduleTraits& traits) const;
  Family family_of(const ScheduleSpec& spec, const Recomputation& recomputation) const;
  Sums sums_of(const Family& family) const;
  double rounding_of_slices(const Family& family) const;
  double work(const Sums& sums) const;
  double slowest_stage(const Sums& sums, int stages, double microbatches) const;
  double filled(const Sums& sums, int stages) const;
  void bound_time(const Family& family, ShapeBound& bound) const;
  double looped(const Family& family, const Sums& sums) const;
  void bound_memory(const Family& family, ShapeBound& bound) const;
  Time fitting(const Family& family, Bytes limit) const;
  double all_state(const Family& family) const;
  double fullest_stage(const Family& family) const;

  void add_layers(const Model& model, const LayerBlocking& blocking, const Cluster& cluster);
  void add_devices(const Cluster& cluster, int pipelines, bool blocking);

  struct LayerLoad {
    double forward = 0;
    double input_grad = 0;
    double weight_grad = 0;
    double backward = 0;
    double recompute_full = 0;
    double recompute_selective = 0;
    double update = 0;
    double state = 0;           // bytes that the rank holds
    double copy_update = 0;     // of tied weights, where the first layer is on other devices
    double copy_state = 0;      // as copy_update
    double stash = 0;           // at least
    double stash_kept = 0;      // of it, with selective recomputation
    double workspace = 0;       // of a backward
    double hidden_forward = 0;  // of these times, what an overlapped pair may hide
    double hidden_input_grad = 0;
    double hidden_weight_grad = 0;
    double hidden_backward = 0;
    double gather_forward = 0;
    double gather_backward = 0;
    bool reads_data = false;  // and so has no I
  };
  static double held(const Family& family, const LayerLoad& layer);  // bytes of state
  std::vector<LayerLoad> layer_;
  std::vector<std::string> names_;
  bool keeps_scores_ = false;  // some layer says what selective recomputation rebuilds of it
  bool is_chain_ = true;       // each layer reads the one before
  int devices_ = 1;            // of one pipeline
  std::string first_device_;
  double rates_ = 1;  // of all devices together
  double microbatches_ = 1;
  std::optional<double> pair_overlap_;  // empty: by the transfers in the ops
  bool cut_sequences_ = false;          // a schedule might
};

}  // namespace stageline::planner
