// Gives each stage its tensors, and each edge what its sender keeps of it.
#include "cost_models/memory/op_memory.hpp"

#include <algorithm>

#include "cost_models/memory/stage_ops.hpp"
#include "cost_models/memory/stage_tensors.hpp"

namespace stageline {

void add_op_memory(std::vector<StageCosts>& stages, std::vector<EdgeCosts>& edges,
                   const Model& model, const Partition& partition, const LayerStash& stash,
                   const std::vector<StageRecomputation>& recomputed) {
  const StageTensors tensors(model, partition);
  std::vector<std::vector<StageTensor>> seen(stages.size());  // by stage
  const auto kept_of = [&](StageEdge edge) -> Bytes* {
    const auto found = std::find_if(edges.begin(), edges.end(),
                                    [&](const EdgeCosts& one) { return one.edge == edge; });
    return found == edges.end() ? nullptr : &found->activation_kept;
  };
  for (std::size_t maker = 0; maker < model.layers.size(); ++maker) {
    if (tensors.readers(maker).empty()) {
      // The result. A model that says what is kept has it in its last layer's stash.
      if (!tensors.says()) seen[tensors.stage_of(maker)].push_back(tensors.result(maker));
      continue;
    }
    const std::vector<std::size_t> of = tensors.stages(maker);
    for (const std::size_t stage : of) {
      const bool with_readers = !recomputed[stage].layers.empty();
      seen[stage].push_back(tensors.in(stage, maker, stash, with_readers));
    }
    const std::size_t home = tensors.stage_of(maker);
    const StageTensor sent = tensors.in(home, maker, stash, false);
    if (!tensors.says() || !sent.counted) continue;
    for (const std::size_t stage : of) {
      if (stage == home) continue;
      Bytes* const kept =
          kept_of({static_cast<std::uint16_t>(home), static_cast<std::uint16_t>(stage)});
      const Wide both = std::min(sent.share, sent.bytes);
      if (kept != nullptr) *kept += Bytes{static_cast<std::int64_t>(both)};
    }
  }
  for (std::size_t s = 0; s < stages.size(); ++s) {
    set_stage_ops(stages[s], s, model, tensors.layers(s), tensors.reads_data(), stash,
                  recomputed[s], seen[s]);
  }
}

}  // namespace stageline
