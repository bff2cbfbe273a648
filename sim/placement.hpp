// The device of each stage, and the stage of each layer.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/index.hpp"
#include "sim/model.hpp"
#include "sim/op.hpp"

namespace stageline {

/// The roles of a stage that may each have a device of their own.
enum class Role : std::uint8_t {
  forward,
  input_grad,   // I, in one or several parts
  weight_grad,  // W, and with it B, U, PREFETCH and the weights
};
inline constexpr std::array all_roles{Role::forward, Role::input_grad, Role::weight_grad};

/// The devices of one stage's ops. The usual case is one device: `replicas` of size 1 and nothing
/// else. Micro-batch m of a replicated stage belongs to replicas[m mod r], forward and backward.
/// The other tables are for systems that split the roles (stale weights, PipeFB, LayerPipe); empty
/// means "the forward's device".
struct StagePlace {
  std::vector<int> replicas;
  std::vector<int> input_grad;   // one device per part of I
  std::vector<double> share;     // of each part of I; sums to 1
  std::vector<int> weight_grad;  // one device; it updates the weights
  std::vector<int> stash_homes;  // by replica: the device that OFFLOAD copies to; empty: the host

  bool apart() const { return !input_grad.empty() || !weight_grad.empty(); }
  /// Whether no device runs both W and the whole of I.
  bool weight_grad_apart() const {
    return parts() > 1 || homes(Role::input_grad) != homes(Role::weight_grad);
  }
  /// Devices of a role, by part or replica: the tables above with their defaults applied.
  const std::vector<int>& homes(Role role) const {
    switch (role) {
      case Role::forward:
        break;
      case Role::input_grad:
        return input_grad.empty() ? replicas : input_grad;
      case Role::weight_grad:
        return weight_grad.empty() ? replicas : weight_grad;
    }
    return replicas;
  }
  /// The device of part `part` of a role if the stage is not replicated; else of replica `part`. A
  /// role that is not split has the same device for every part.
  int device(Role role, int part = 0) const {
    const std::vector<int>& all = homes(role);
    return all[as_size(part) % all.size()];
  }
  int parts() const { return input_grad.empty() ? 1 : static_cast<int>(input_grad.size()); }
  friend bool operator==(const StagePlace&, const StagePlace&) = default;
};

struct Placement {
  std::vector<StagePlace> stage;

  int stages() const { return static_cast<int>(stage.size()); }
  friend bool operator==(const Placement&, const Placement&) = default;
};

/// Stage s on device s, for the first `stages` devices.
Placement straight_placement(int stages);

/// Stage s on r_s devices of its own, in order: replicated_placement({3, 1}) is PipeDream's "3-1".
Placement replicated_placement(const std::vector<int>& replicas);

/// The device that holds a stash of this stage between OFFLOAD and PREFETCH; -1: the host.
inline int stash_home(const StagePlace& place, std::uint32_t microbatch) {
  if (place.stash_homes.empty()) return -1;
  return place.stash_homes[microbatch % place.stash_homes.size()];
}

/// The device of an op, -1 for none. B, U and PREFETCH are where W is. Not for messages of a stage
/// with split roles: those belong to a wire (sim/rules.hpp).
int device_of(const Placement& placement, Op op);

/// Part `part` of a quantity that I divides: shares are rounded so that the parts add up exactly.
std::int64_t part_of(std::int64_t whole, const StagePlace& place, int part);

/// stage_of[layer]; stages are numbered 0..stages-1.
struct Partition {
  std::vector<int> stage_of;
  int stages = 0;

  friend bool operator==(const Partition&, const Partition&) = default;
};

struct StageEdge {
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  friend auto operator<=>(const StageEdge&, const StageEdge&) = default;
};

/// The edges of a chain: 0>1 1>2 ...
std::vector<StageEdge> chain_edges(int stages);

/// A partition from the last layers of all stages except the final one: cuts {1, 3} over 6 layers
/// give stages 0-1, 2-3, 4-5.
Partition partition_from_cuts(const std::vector<int>& last_layers, int layers);

/// Throws UsageError unless every layer has a stage, no stage is empty, and every stage is convex
/// and feeds only later ones. The message names the layers concerned.
void check(const Partition& partition, const Model& model);

/// Stage edges of a partitioned model with the bytes per micro-batch that cross each of them: every
/// layer's output once per receiving stage. Sorted.
struct StageFlow {
  StageEdge edge;
  Bytes bytes;
  friend bool operator==(const StageFlow&, const StageFlow&) = default;
};
std::vector<StageFlow> stage_flows(const Partition& partition, const Model& model);

/// Layers by stage: "0-5 | 6-11 | 12-20".
std::string print(const Partition& partition);

}  // namespace stageline
