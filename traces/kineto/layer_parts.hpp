// What of a profile is of which layer, for layers.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "traces/kineto/layers.hpp"
#include "traces/kineto/profile_times.hpp"
#include "traces/kineto/rank.hpp"

namespace stageline {

/// Nanoseconds of the rank's own clock.
struct LayerOperator {
  KinetoStretch time;
  std::int64_t sequence = -1;  // -1: none
  int thread = 0;
  bool of_engine = false;
};

struct LaunchedKernel {
  std::string external_id;
  std::string correlation;
  KinetoStretch time;
};

/// A moment of a thread of the CPU.
struct LaunchPlace {
  int thread = 0;
  std::int64_t at = 0;
};

/// The events of a profile that matter for layers, by start.
struct LayerEvents {
  KinetoRank rank;
  std::vector<std::vector<ModuleCall>> calls;  // by thread
  std::vector<LayerOperator> operators;
  std::vector<LaunchedKernel> kernels;                       // without NCCL's
  std::vector<KinetoStretch> steps;                          // ProfilerStep#N
  std::vector<KinetoStretch> updates;                        // Optimizer.step#…
  std::vector<int> update_threads;                           // parallel
  std::unordered_map<std::string, LaunchPlace> by_operator;  // External id
  std::unordered_map<std::string, LaunchPlace> by_call;      // correlation
  std::int64_t collectives = 0;                              // time of NCCL's kernels
  bool has_kernels = false;
};

/// Throws TraceError.
LayerEvents read_layer_events(const NamedText& profile, const RangeNames* names);

/// What a moment of the CPU works on.
enum class LayerPhase : std::uint8_t { other, forward, backward, recompute, update };
struct LayerWork {
  LayerPhase phase = LayerPhase::other;
  std::size_t pass = 0;
  std::size_t layer = 0;
};

/// One micro-batch: the layers that its forward calls, up to the backward.
struct LayerPass {
  std::vector<ModuleCall> calls;
  std::int64_t until = 0;
};

/// An operator that is in no other, and what it is of.
struct OuterOperator {
  LayerOperator op;
  LayerWork work;
  std::int64_t recomputed = 0;  // part of its time
};

/// Assigns all work to layers.
class LayerMap {
 public:
  explicit LayerMap(const LayerEvents& events);

  const std::vector<LayerPass>& passes() const { return passes_; }
  const std::vector<OuterOperator>& operators() const { return outer_; }
  /// What is launched at this moment.
  LayerWork at(LaunchPlace place) const;

 private:
  void find_outermost(const LayerEvents& events);
  void find_passes(const LayerEvents& events);
  void find_backwards(const LayerEvents& events);
  LayerWork of_forward(int thread, KinetoStretch time) const;
  bool in_update(int thread, std::int64_t at) const;

  const LayerEvents& events_;
  std::vector<OuterOperator> outer_;                         // by start
  std::map<int, std::vector<std::size_t>> outer_of_thread_;  // indices
  std::map<int, std::vector<KinetoStretch>> recomputed_;     // by thread, by start
  std::vector<LayerPass> passes_;
  int main_ = 0;
};

}  // namespace stageline
