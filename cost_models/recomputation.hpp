// What becomes of a stage's stash between its forward and its backward, as a user asks for it:
// parts of it are rebuilt, or it waits in the host's memory. The ops are written by the passes of
// sim/lower/passes.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model.hpp"
#include "sim/placement.hpp"
#include "sim/program.hpp"

namespace stageline {

/// What R makes again. full: the forward of the whole stage, from the stage's input. every: the
/// forward of every block of so many layers, from the block's input, right before the block's
/// backward (Megatron's `uniform` method with that number of layers). selective: of every layer the
/// part that says so (attention's scores, softmax and dropout: Korthikanti et al. 2022, arXiv
/// 2205.05198), or the modules that are named, right before the layer's backward.
enum class Rebuild : std::uint8_t { none, selective, every, full };

struct LayerRecomputation {
  Rebuild rebuild = Rebuild::none;     // not full
  bool begins_block = true;            // only layers with Rebuild::every continue one
  std::vector<std::string> modules{};  // with Rebuild::selective; empty: Layer::selective_stash
  friend bool operator==(const LayerRecomputation&, const LayerRecomputation&) = default;
};

struct StageRecomputation {
  Rebuild rebuild = Rebuild::none;
  int every = 1;  // layers of a block, with Rebuild::every
  /// Where layers of the stage are treated differently, each of them in its order; `rebuild` is
  /// then the most that R makes of any. Empty: all are as `rebuild` says.
  std::vector<LayerRecomputation> layers{};
  /// With Rebuild::selective, those of Layer::modules; empty: Layer::selective_stash.
  std::vector<std::string> modules{};
  /// Whether the stash is there block by block, and not all of it at once.
  bool by_blocks() const { return rebuild == Rebuild::selective || rebuild == Rebuild::every; }
  /// What layer `place` of the stage rebuilds.
  Rebuild of_layer(int place) const {
    return layers.empty() ? rebuild : layers[static_cast<std::size_t>(place)].rebuild;
  }
  const std::vector<std::string>& modules_of_layer(int place) const {
    return layers.empty() ? modules : layers[static_cast<std::size_t>(place)].modules;
  }
  friend bool operator==(const StageRecomputation&, const StageRecomputation&) = default;
};

/// The module that stands for torch's selective policy by ops (torchtitan's "op"): of a block it
/// keeps every second product and the fused attention's output, and makes the rest again.
inline constexpr std::string_view ops_module = "ops";

/// Stages or layers from `first` to `last`, both included; without `last`, all from `first` on.
struct NumberRange {
  int first = 0;
  std::optional<int> last;
  friend bool operator==(const NumberRange&, const NumberRange&) = default;
};

/// What to recompute, for any number of stages or of the model's layers. The last part that names a
/// layer, or its stage, decides. Named layers that are neighbours in a stage and recomputed in the
/// same way are one block (full), or blocks of so many (every).
struct Recomputation {
  struct Part {
    StageRecomputation how;
    std::vector<NumberRange> stages;    // empty, and no layers either: all
    std::vector<NumberRange> layers{};  // instead of stages
    /// Megatron's `block` method: of each stage the first so many blocks, each by itself, and no
    /// other layer; 0: all that is named. `how` is then every:1.
    int first_blocks = 0;
    bool everywhere() const { return stages.empty() && layers.empty(); }
    friend bool operator==(const Part&, const Part&) = default;
  };
  std::vector<Part> parts;              // empty: what the schedule recomputes by itself
  std::optional<RecomputeStart> start;  // empty: as the program says
  friend bool operator==(const Recomputation&, const Recomputation&) = default;
};

/// "full", "selective@2-", "every:2@0,2-3;full@1", "full@layers:3-7,9": parts joined by commas or
/// semicolons, each with its stages, its layers or for all; "layers:3-7" is "every:1@layers:3-7".
/// "modules:moe_act+layernorm" names modules, "ops" is the module ops_module, "block:2" the first
/// two blocks of each stage.
/// Throws UsageError, which begins with `what` ("--recompute"), also where a part decides nothing.
Recomputation parse_recomputation(const std::string& text, const std::string& what);

/// As parse_recomputation() takes it, except `start`; "none" without parts.
std::string print(const Recomputation& asked);

/// "late". Throws UsageError "WHAT is one of …".
RecomputeStart parse_recompute_start(const std::string& text, const std::string& what);

/// By stage of the cut; empty where nothing is asked. A block as long as its stage is
/// Rebuild::full, and a stage without any selective stash, or any of the modules that are named, is
/// not recomputed selectively. Of layers without a selective stash that have a module "core_attn"
/// (fused attention), selective recomputation rebuilds that. Throws UsageError for a stage that the
/// cut does not have, a layer that the model does not have, a module that none of its layers has,
/// and for selective recomputation of a model whose layers do not say what it rebuilds.
std::vector<StageRecomputation> by_stage(const Recomputation& asked, const Model& model,
                                         const Partition& partition);

/// By stage of the cut, whether none is asked for every layer of it: then the schedule may not
/// recompute it either. Throws UsageError as by_stage().
std::vector<bool> kept_stages(const Recomputation& asked, const Partition& partition);

/// By layer, the layers of the block of a transformer that it begins: from one of kind attention to
/// one of kind mlp or moe, or one of kind block; 0: it begins none. Of a model without such layers
/// each layer is one.
std::vector<int> lengths_of_blocks(const Model& model);

/// The time that R takes for a layer of whose forward it repeats all.
Time whole_rebuilding_time(const Layer& layer);

/// What R does for the layer at `place` of a stage: its time without collectives, the part of the
/// stash that it makes again if it is rebuilt selectively (else 0), and the FLOPs that it then
/// repeats. If nothing is asked of a stage, R (by a schedule's own will) runs the whole forward.
Time rebuilding_time(const Layer& layer, const StageRecomputation& stage, int place);
Bytes selective_stash(const Layer& layer, const StageRecomputation& stage, int place);
std::int64_t selective_flops(const Layer& layer, const StageRecomputation& stage, int place);
/// The collectives of the modules that R repeats: `forward` of each.
std::vector<LayerCollective> module_collectives(const Layer& layer, const StageRecomputation& stage,
                                                int place);

/// Whether R does anything for layer `place` of the stage, and whether it runs the layer's whole
/// forward, with its collectives (attention's scores are computed without any).
inline bool is_rebuilt(const StageRecomputation& stage, int place) {
  return stage.layers.empty() || stage.of_layer(place) != Rebuild::none;
}
inline bool repeats_forward(const StageRecomputation& stage, int place) {
  return is_rebuilt(stage, place) && stage.of_layer(place) != Rebuild::selective;
}

/// Which stashes are copied to the host, and how many compute ops before its backward each is
/// issued back: add_offload() takes both. Or the first blocks of each stage, which leave while the
/// stage's other blocks run: block_offload.hpp.
struct Offloading {
  bool all = false;
  std::vector<NumberRange> stages;  // besides
  int ahead = 2;
  bool none = false;  // "none" is asked for: a schedule that copies by itself is refused
  int blocks = 0;     // then no stages
  /// Whether anything is copied, and whether that is whole stashes.
  bool any() const { return of_stages() || blocks > 0; }
  bool of_stages() const { return all || !stages.empty(); }
  friend bool operator==(const Offloading&, const Offloading&) = default;
};

/// "none", "all", "@0,2-3" or "block:20". Throws UsageError, which begins with `what`
/// ("--offload").
Offloading parse_offloading(const std::string& text, const std::string& what);

/// As parse_offloading() takes it, except `ahead`.
std::string print(const Offloading& asked);

/// By stage; empty where nothing is asked. Throws UsageError for a stage out of range.
std::vector<bool> by_stage(const Offloading& asked, int stages);

}  // namespace stageline
