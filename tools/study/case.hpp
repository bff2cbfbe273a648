// The input of study().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/network/ranked_cluster.hpp"
#include "cost_models/recomputation.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/cluster.hpp"
#include "sim/model.hpp"
#include "sim/program.hpp"

namespace stageline {

/// Device d of a pipeline is the cluster's device d, or the order is searched.
enum class DeviceOrdering : std::uint8_t { given, search };
inline constexpr std::array all_device_orderings{DeviceOrdering::given, DeviceOrdering::search};
/// "search", as in --device-order.
std::string_view name(DeviceOrdering ordering);

/// What a search for the order of the devices along the pipeline has found.
struct DeviceOrder {
  std::vector<int> order;          // by position, the device's index in the given cluster
  std::vector<std::string> names;  // of the devices or, with degrees, of machines, in this order
  bool machines = false;           // it is of machines
  std::optional<Time> given;       // step in the given order; empty: it cannot run so
  bool given_fits = true;          // into memory, as far as that is known
  Time found{};                    // step in this order
  bool runs = true;                // it can run so
  bool fits = true;                // into memory, as far as that is known
  std::string placement{};  // on racks, where both were searched: that of this order; else empty
  std::optional<Time> elsewhere{};  // best step with the other placement; empty: it cannot run so
  bool elsewhere_fits = true;
  double orders = 1;  // distinct ones: those of equal devices count once
  int simulated = 1;  // of them

  bool all() const { return simulated >= orders; }
};

/// What a search for the cut has found.
struct FoundCut {
  std::string asked;               // "simulated:blocks", as --partition says it
  int simulated = 0;               // cuts; 0: none can run, and the case has a plain one
  bool all = false;                // there are no others
  Time found{};                    // step with this cut
  bool fits = true;                // into memory, as far as that is known
  std::string plain = "balanced";  // the partitioner that it is held against
  std::optional<Time> plain_step;  // empty: it cannot run so
  bool plain_fits = true;
};

/// One schedule of one model on one cluster, after all names are resolved.
struct Case {
  Model model;                         // one micro-batch
  Cluster cluster;                     // exactly the devices to use; with degrees, the ranks
  ScheduleSpec spec;                   // ignored with a given program
  std::optional<Program> program;      // --program
  std::string partition = "balanced";  // --partition
  std::optional<WeightRule> weights;   // --weights
  std::optional<Messages> messages;    // --messages
  Recomputation recomputation;         // --recompute, --recompute-start
  Offloading offloading;               // --offload, --prefetch
  Sharing sharing = Sharing::fifo;     // --sharing
  /// The devices behind the ranks, with --tp, --cp, --ep, --dp, --zero or --precision; else null.
  /// Cases of one setting share it.
  std::shared_ptr<RankedCluster> ranked;
  int microbatches = 0;  // per step and pipeline
  int steps = 0;         // 0: one, or for asynchronous schedules enough to run steadily
  std::optional<DeviceOrder> device_order{};  // --device-order search: how `cluster` came about
  std::optional<FoundCut> found_cut{};        // --partition simulated: how `partition` came about
  /// The mean slice of a micro-batch, priced as such, where schedule or program cuts sequences;
  /// null: each takes an equal share of what `model` says.
  std::shared_ptr<const Model> slice{};
  std::vector<std::int64_t> slice_lengths{};  // in tokens, of each slice; empty: equal ones
  /// Micro-batches that differ, priced as such: micro-batch n of a pipeline's step, or slice n, is
  /// kinds[kind_of[n % kind_of.size()]]. Empty: all are alike, or `factors` says how they differ.
  std::vector<std::shared_ptr<const Model>> kinds{};
  std::vector<std::uint16_t> kind_of{};
  std::vector<Documents> lengths{};  // of micro-batch n of a pipeline's step; empty: alike
  /// How many times what `model` says micro-batch n of a pipeline's step takes; empty: once.
  std::vector<double> factors{};
  int encoder_stages = 0;  // of each pipeline, the first, on as many devices: Model::encoder's
  std::string slices_refused{};  // why there can be no such slices; lay_out() throws it
  std::string shares_refused{};  // why there can be no shares of a vocabulary, likewise

  /// The mean over micro-batches of what of(model) says of each, where they differ and are no
  /// slices: of each kind, or of `model` in proportion to its factor.
  template <class Of>
  double mean_of(Of&& of) const;

  /// The cut as it was asked for: "balanced", "simulated", "0-5,6-".
  const std::string& cut_asked() const { return found_cut ? found_cut->asked : partition; }
  /// Whole pipelines that are simulated side by side: data-parallel replicas that differ.
  int pipelines() const { return ranked ? ranked->replicas() : 1; }
  /// Replicas that each simulated pipeline represents.
  int copies() const { return ranked ? ranked->copies() : 1; }
  /// Those of the run, and how many.
  const Cluster& all_devices() const { return ranked ? ranked->devices() : cluster; }
  int device_count() const { return static_cast<int>(all_devices().devices.size()); }
};

template <class Of>
double Case::mean_of(Of&& of) const {
  double sum = 0;
  if (!kinds.empty() && !slice) {
    for (const std::uint16_t kind : kind_of) sum += of(*kinds[kind]);
    return sum / static_cast<double>(kind_of.size());
  }
  const std::vector<double>& times = program ? program->settings.costs : factors;
  if (times.empty()) return of(model);
  for (const double factor : times) sum += factor;
  return of(model) * sum / static_cast<double>(times.size());
}

}  // namespace stageline
