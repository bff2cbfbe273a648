// The setting of a question: the trace and the cluster that it names, opened, and the cases that it
// asks about.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/network/ranked_cluster.hpp"
#include "cost_models/recomputation.hpp"
#include "sim/cluster.hpp"
#include "sim/degrees.hpp"
#include "sim/model.hpp"
#include "tools/inputs/device_rates.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/inputs/layer_groups.hpp"
#include "tools/inputs/lengths.hpp"
#include "tools/study/case.hpp"

namespace stageline {

class PricedLengths;
class PricedSlices;
struct LayerKernelTimes;  // cost_models/transformers/kernel_times.hpp

/// A question as plain values. Traces, clusters and cuts may be files; nothing has been opened yet.
struct SettingRequest {
  std::string trace;        // as open_trace() takes it
  int microbatch_size = 0;  // samples; 0: as in the trace
  std::string lengths{};    // of sequences, as lengths_of() takes them; empty: alike
  std::optional<LengthsOrder> lengths_order{};  // of micro-batches; empty: as given
  int profile_batch = 0;                        // samples in a minibatch of a PipeDream profile
  std::string encoder{};        // before the model, as open_trace() takes it; empty: none
  bool frozen_encoder = false;  // is not trained
  ClusterRequest cluster;       // `priced_for` is ignored: the trace says it
  std::vector<int> devices;     // one count, or a sweep; empty: all of the cluster, or 4
  bool whole_cluster = false;   // refuse degrees that leave devices of a named cluster out
  /// Named, or programs, which say their devices and micro-batches; empty: the default of the
  /// question.
  std::vector<ScheduleSpec> schedules{};
  std::string partition = "balanced";  // as partition_text() takes it, or "simulated"
  /// Several cuts, for a comparison to show side by side; `partition` is the first of them. Empty:
  /// that one.
  std::vector<std::string> partitions{};
  std::optional<WeightRule> weights;  // default: the rule of the schedule
  std::optional<Messages> messages;   // default: async, or as the program says
  Recomputation recomputation;        // default: as the schedule does
  /// Several, for a comparison to show side by side; `recomputation` is the first of them. Empty:
  /// that one.
  std::vector<Recomputation> recomputations{};
  Offloading offloading;              // default: as the schedule does
  int microbatches = 0;               // per step; 0: as programs say, or four for each device
  int steps = 0;                      // 0: one, or enough to run steadily
  Degrees degrees{};                  // beside the pipeline; none by default
  bool degrees_are_searched = false;  // for each candidate of a plan, so that `degrees` say nothing
  std::optional<Sharing> sharing;     // empty: fair with degrees, else fifo
  std::string collectives = "best";   // as parse_algorithms() takes it
  std::string buckets = "megatron";   // rule by which gradients are reduced
  bool sequence_parallel = false;     // with tensor parallelism
  bool all_pipelines = false;         // simulate data-parallel replicas that are alike, too
  bool replicas_vary = false;         // what is drawn differs between them: simulate all, of up to
                                      // most_varied_ranks pipeline ranks
  std::vector<Slowdown> slow{};       // devices or machines that are slower than the cluster says
  DeviceOrdering device_order = DeviceOrdering::given;
  std::string calibration{};   // file of fitted rates, or its text from the brace on; empty: the
                               // built-in ones
  std::string software{};      // generation, of a language model; empty: as its spelling says
  std::string cuda_graphs{};   // "partial"; empty: as its spelling or its software says
  std::string cp_comm_type{};  // "p2p"; empty: as its spelling or its software says
  std::shared_ptr<GroupedModels> groups{};  // opens the trace in groups of layers; null: as it is
};

/// Thousands of scenarios of more ranks take minutes a schedule.
inline constexpr int most_varied_ranks = 64;

/// The trace, and the cluster it runs on.
struct Setting {
  Model model;
  ClusterChoice cluster;
  std::vector<int> device_counts;  // one, or a sweep; of all devices, with degrees
  /// With degrees, the ranks of each of the device counts.
  std::map<int, std::shared_ptr<RankedCluster>> ranked;
  std::vector<std::string> notes{};  // on rates of devices, and on what if
  bool orders_searched = false;      // of the devices, by searched_case()
  /// The same with another placement of the devices on racks, where orders are searched and the
  /// request leaves it open; else null.
  std::shared_ptr<const Setting> elsewhere{};
  bool all_asked = false;      // SettingRequest::all_pipelines
  bool replicas_vary = false;  // SettingRequest::replicas_vary
  /// Slices of the trace, for schedules that cut sequences; null: it does not say what one takes.
  std::shared_ptr<PricedSlices> slices{};
  /// Micro-batches of sequences of other lengths; null: the trace does not say what one takes.
  std::shared_ptr<PricedLengths> lengths{};
};

/// Opens what the request names. Throws UsageError and TraceError.
Setting read_setting(const SettingRequest& request);

/// The kernels of the setting's model, of a micro-batch; empty where it is no language model.
std::vector<LayerKernelTimes> kernels_of(const SettingRequest& request, const Setting& setting);

/// One case of the setting, on that many devices, in the given order and with the cut as its name:
/// searched_case() looks for those that the request wants searched.
Case make_case(const SettingRequest& request, const Setting& setting, const ScheduleSpec& spec,
               int devices);

/// What a reader of any result must know: notes of the trace, assumptions about the cluster. Whole
/// sentences without a full stop.
std::vector<std::string> notes(const Setting& setting);

/// "8" or a sweep "2..16" or "2,4,8..10", upwards, each from 1 to 65536. Throws UsageError.
std::vector<int> parse_devices(const std::string& text);

/// "blocking". Throws UsageError, which begins with `what`: "--messages is one of async, …".
Messages parse_messages(const std::string& text, const std::string& what);

}  // namespace stageline
