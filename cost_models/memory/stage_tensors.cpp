// Follows the edges of a model into its stages.
#include "cost_models/memory/stage_tensors.hpp"

#include <algorithm>

namespace stageline {

StageTensors::StageTensors(const Model& model, const Partition& partition)
    : model_(model),
      partition_(partition),
      readers_(model.layers.size()),
      input_(model.layers.size()),
      place_(model.layers.size()),
      stage_layers_(as_size(partition.stages)),
      reads_data_(model.layers.size(), true) {
  for (std::size_t l = 0; l < place_.size(); ++l) {
    std::vector<std::size_t>& of_stage = stage_layers_[stage_of(l)];
    place_[l] = static_cast<int>(of_stage.size());
    of_stage.push_back(l);
  }
  for (const LayerEdge& edge : edges_of(model)) {  // ascending
    nth(readers_, edge.from).push_back(as_size(edge.to));
    nth(reads_data_, edge.to) = false;
    std::size_t& last = nth(input_, edge.to);
    last = std::max(last, as_size(edge.from));
  }
  for (std::vector<std::size_t>& readers : readers_) std::sort(readers.begin(), readers.end());
  says_ = std::any_of(model.layers.begin(), model.layers.end(), [](const Layer& layer) {
    return layer.input_kept > Bytes{} || layer.output_kept > Bytes{};
  });
}

std::vector<std::size_t> StageTensors::stages(std::size_t maker) const {
  std::vector<std::size_t> stages{stage_of(maker)};
  for (const std::size_t reader : readers_[maker]) stages.push_back(stage_of(reader));
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

StageTensor StageTensors::result(std::size_t maker) const {
  StageTensor tensor;
  tensor.maker = place_[maker];
  tensor.bytes = model_.layers[maker].output.count;
  tensor.is_result = true;
  return tensor;
}

StageTensor StageTensors::in(std::size_t stage, std::size_t maker, const LayerStash& stash,
                             bool with_readers) const {
  StageTensor tensor;
  tensor.bytes = model_.layers[maker].output.count;
  const bool made_here = stage_of(maker) == stage;
  if (made_here) tensor.maker = place_[maker];
  const bool maker_keeps = model_.layers[maker].output_kept > Bytes{};
  tensor.by_maker = made_here && maker_keeps;
  tensor.by_other_maker = !made_here && maker_keeps;
  bool by_reader = false;
  std::optional<std::size_t> keeper;  // the first reader here that keeps it
  for (const std::size_t reader : readers_[maker]) {
    if (stage_of(reader) != stage) {
      tensor.leaves = tensor.leaves || made_here;
      continue;
    }
    tensor.last_reader = place_[reader];
    if (with_readers) tensor.readers.push_back(place_[reader]);
    if (!keeps(reader, maker)) continue;
    if (!keeper) keeper = reader;
    by_reader = true;
    if (model_.layers[reader].weight_grad > Time{}) tensor.for_weight_grad = true;
  }
  const std::size_t first = readers_[maker].front();
  Bytes share = std::max(model_.layers[maker].output_kept,
                         keeper ? model_.layers[*keeper].input_kept : Bytes{});
  if (stage_of(first) == stage) {
    if (!says_) share = model_.layers[maker].output;
    const bool may_be = !says_ && stash.made[first] >= share;
    if (may_be || by_reader || tensor.by_maker) tensor.counted = place_[first];
  } else if (tensor.by_maker) {
    tensor.counted = place_[maker];
  } else if (keeper) {
    tensor.counted = place_[*keeper];
  }
  if (tensor.counted) tensor.share = share.count;
  return tensor;
}

bool StageTensors::keeps(std::size_t reader, std::size_t maker) const {
  return input_[reader] == maker && model_.layers[reader].input_kept > Bytes{};
}

}  // namespace stageline
