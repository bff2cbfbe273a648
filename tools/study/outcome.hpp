// The result of study().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/partition/partitioner.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/steady_state.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/costs.hpp"
#include "sim/engine.hpp"
#include "sim/model.hpp"
#include "sim/program.hpp"

namespace stageline {

/// By group in the order of all_dimensions.
using GroupShares = std::array<double, all_dimensions.size()>;

enum class Fit : std::uint8_t { yes, no, unknown };
std::string_view name(Fit fit);

/// Nothing is offloaded, over no link on any device, or over links.
enum class HostCopies : std::uint8_t { none, free, over_links };

/// What a schedule without flush does to weights and memory.
struct StreamFacts {
  std::vector<int> live;       // by stage, the most mini-batches between the start of F and the end
                               // of their backward at once
  std::vector<int> degree;     // by stage, updates: the staleness of the steady state
  double stale_share = 0;      // weights of stages with a degree above 0, of all weights
  double memory_increase = 0;  // peaks of all devices together over one device without pipeline
  int cycles = 0;              // of the whole program in lockstep, M + 2K; 0: another schedule
};

/// What is shown of the costs of a stage.
struct StageFigures {
  struct Reduction {
    Time alone{};
    Time head_start{};
    Bytes bytes{};
  };
  Time forward{};
  Time input_grad{};
  Time weight_grad{};
  Time backward{};
  Time update{};
  BlockingTimes blocking;  // of an op by itself
  BlockingTimes hidden;    // collectives under its products: no part of the times above
  std::optional<Reduction> reduction;
  Bytes weights{};
  Bytes stash{};
};

/// What is read off spans, lists of ops and costs, once. Shares are 0 where a step takes no time.
struct Figures {
  /// The share of all devices' time in a step that goes into running forwards again: busy time, and
  /// so no part of the bubble, but no progress either. A recompute that overlaps with another op
  /// counts as that op's time.
  double recompute = 0;
  /// The share of all devices' time in a step that blocking collectives take, those of tensor,
  /// context and expert parallelism and of divided weights: busy time, and no part of the bubble.
  /// Without what is hidden.
  double blocking = 0;
  /// The same of collectives that take no time of their own: what overlapped pairs hide of their
  /// transfers, and what runs under the products of its op.
  double hidden = 0;
  GroupShares blocking_by_group{};    // the same of the compute lane of the busiest device
  std::vector<StageFigures> stage;    // empty: costs are unknown
  std::optional<StreamFacts> stream;  // of an asynchronous schedule
  std::vector<PathShare> path;        // time on the critical path by kind of piece
  std::vector<std::int64_t> repeats;  // by stage, its R
  bool is_apart = false;              // has W's apart from I's
  bool is_plain = false;              // for stash_gap(): no R, no copies, no overlapped pairs
  bool has_pairs = false;             // has overlapped pairs
  bool pairs_hide = false;            // which may take less than their ops one after the other
  bool pairs_derived = false;         // by what they exchange, and no share was asked for
  HostCopies copies{};                // where stashes are copied to
};

/// What was simulated and measured. Times are of `program`, except those of the steady state.
struct Outcome {
  std::string schedule;  // "gpipe:recompute=always", or the file of a given program
  Synchrony synchrony = Synchrony::synchronous;
  int devices = 0;
  int microbatches = 0;     // of all pipelines that are simulated
  int copies = 1;           // data-parallel replicas that each of them represents
  int all_devices = 0;      // of the run; as `devices`, which are ranks, without degrees
  int microbatch_size = 0;  // samples; 0: unknown
  std::string sample;       // "image"; empty: "sample"
  PartitionPlan plan;
  Program program;
  std::string reordered;  // why its messages are not in the usual order; empty: they are
  Costs costs;
  TaskGraph graph;
  TaskTimes times;
  Timeline timeline;
  Metrics metrics;
  MemoryProfile memory;
  std::vector<std::optional<Bytes>> memory_limit;  // by device
  std::vector<std::optional<Bytes>> host_limit;    // by host
  std::vector<StageVersions> versions;
  std::vector<PathPiece> critical_path;

  Time step_time{};                  // steady state: from one step's end to the next's
  bool lower_bound = false;          // chunks of sequences are taken for equal shares of one
  bool settled = true;               // that state repeats exactly; else step_time is a mean
  bool grows = false;                // memory or versions grow as long as it runs
  std::optional<Period> period;      // of rounds, and the cycle that decides it: step_time's source
  int round = 1;                     // micro-batches; meaningless without a period
  double throughput = 0;             // per second, in `throughput_unit`
  std::string throughput_unit;       // "images/s", or "micro-batches/s" when the batch is unknown
  double speedup = 0;                // over one device (or rank) that does the same step, updates
                                     // included
  double bubble_fraction = 0;        // 1 - busy / (devices × step time), idle devices counted
  double exposed_communication = 0;  // 1 - step time with free links / step time
  Fit fit = Fit::unknown;
  Figures figures;  // what ops, spans and costs say; these drop_spans() clears

  /// Whether the trace has sizes in bytes; if not, memory is unknown and messages take their
  /// latency alone.
  bool bytes_known() const { return costs.bytes_known; }
  /// Whether a rank has a part of each layer (tp, cp): `speedup` is over such a rank then, whose
  /// collectives do not count.
  bool divides_layers() const { return all_devices > devices * copies; }
  int peak_device() const;    // the highest memory peak; where it does not fit, the most over
  int versions_peak() const;  // most weight versions that any stage holds
  double staleness_max() const;
  bool consistent() const;  // every backward reads the weights that its forward read
  /// Samples of a step of all replicas; micro-batches where their size is unknown.
  double samples() const;
};

}  // namespace stageline
