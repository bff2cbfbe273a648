// What becomes of a stage's stash between its forward and its backward, as a user asks for it:
// parts of it are rebuilt, or it waits in the host's memory. The ops are written by the passes of
// sim/lower/passes.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/model.hpp"
#include "sim/placement.hpp"
#include "sim/program.hpp"

namespace stageline {

/// What R makes again. full: the forward of the whole stage, from the stage's input. every: the
/// forward of every block of so many layers, from the block's input, right before the block's
/// backward (Megatron's `uniform` method with that number of layers). selective: of every layer the
/// part that says so (attention's scores, softmax and dropout: Korthikanti et al. 2022, arXiv
/// 2205.05198), right before the layer's backward.
enum class Rebuild : std::uint8_t { none, selective, every, full };

struct StageRecomputation {
  Rebuild rebuild = Rebuild::none;
  int every = 1;  // layers of a block, with Rebuild::every
  /// Whether the stash is there block by block, and not all of it at once.
  bool by_blocks() const { return rebuild == Rebuild::selective || rebuild == Rebuild::every; }
  friend bool operator==(const StageRecomputation&, const StageRecomputation&) = default;
};

/// Stages from `first` to `last`, both included; without `last`, all from `first` on.
struct StageRange {
  int first = 0;
  std::optional<int> last;
  friend bool operator==(const StageRange&, const StageRange&) = default;
};

/// What to recompute, for any number of stages. The last part that names a stage decides.
struct Recomputation {
  struct Part {
    StageRecomputation how;
    std::vector<StageRange> stages;  // empty: all
    friend bool operator==(const Part&, const Part&) = default;
  };
  std::vector<Part> parts;              // empty: what the schedule recomputes by itself
  std::optional<RecomputeStart> start;  // empty: as the program says
  friend bool operator==(const Recomputation&, const Recomputation&) = default;
};

/// "none", "full", "selective@2-", "every:2@0,2-3;full@1": parts joined by commas or semicolons,
/// each with the stages after '@' or for all. Throws UsageError, which begins with `what`
/// ("--recompute").
Recomputation parse_recomputation(const std::string& text, const std::string& what);

/// As parse_recomputation() takes it, except `start`; "none" without parts.
std::string print(const Recomputation& asked);

/// "late". Throws UsageError "WHAT is one of …".
RecomputeStart parse_recompute_start(const std::string& text, const std::string& what);

/// By stage of the cut; empty where nothing is asked. A block as long as its stage is
/// Rebuild::full, and a stage without any selective stash is not recomputed selectively. Throws
/// UsageError for a stage that the cut does not have, and for selective recomputation of a model
/// whose layers do not say what it rebuilds.
std::vector<StageRecomputation> by_stage(const Recomputation& asked, const Model& model,
                                         const Partition& partition);

/// The time that R adds for the layer.
Time rebuilding_time(const Layer& layer, const StageRecomputation& how);

/// Which stashes are copied to the host, and how many compute ops before its backward each is
/// issued back: add_offload() takes both.
struct Offloading {
  bool all = false;
  std::vector<StageRange> stages;  // besides
  int ahead = 2;
  friend bool operator==(const Offloading&, const Offloading&) = default;
};

/// "none", "all" or "@0,2-3". Throws UsageError, which begins with `what` ("--offload").
Offloading parse_offloading(const std::string& text, const std::string& what);

/// As parse_offloading() takes it, except `ahead`.
std::string print(const Offloading& asked);

/// By stage; empty where nothing is asked. Throws UsageError for a stage out of range.
std::vector<bool> by_stage(const Offloading& asked, int stages);

}  // namespace stageline
