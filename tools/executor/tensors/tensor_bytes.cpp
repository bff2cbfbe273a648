// What the layers keep, from the storages of their tensors.
#include <algorithm>
#include <map>

#include "sim/base/index.hpp"
#include "tools/executor/tensors/tensor_model.hpp"

namespace stageline::executor {
namespace {

using at::Tensor;

Bytes bytes_of(const Tensor& tensor) {
  return {static_cast<std::int64_t>(tensor.storage().nbytes())};
}

// The class scores where the last op is the loss: no layer reads the loss.
const Tensor& visible_output(const TensorModel& model, std::size_t layer, const MicroBatch& batch) {
  const bool last = layer + 1 == model.layers.size();
  return last ? batch.stash[layer].back().kept[0].tensor : batch.outputs[layer];
}

// The storage of each kept tensor, with the layer that owns it and the layers that read it.
struct Held {
  Bytes bytes{};
  std::size_t owner = 0;
  bool for_weight_grad = false;
};

}  // namespace

std::vector<LayerBytes> count_bytes(TensorModel& model, MicroBatch batch) {
  const std::size_t count = model.layers.size();
  std::vector<std::size_t> first_reader(count);
  for (std::size_t i = count; i-- > 0;) {
    for (const int from : {model.layers[i].input, model.layers[i].skip}) {
      if (from >= 0) nth(first_reader, from) = i;
    }
  }
  std::vector<LayerBytes> result(count);
  std::map<const void*, Held> held;
  std::vector<Tensor> alive;  // so that no storage is used twice
  // Adds the storage of a tensor that its maker gives to `owner`.
  const auto name_owner = [&](const Tensor& tensor, std::size_t owner) {
    held[tensor.storage().data()].owner = owner;
    alive.push_back(tensor);
  };
  name_owner(batch.input, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const int from = model.layers[i].input;
    const Tensor input = from < 0 ? Tensor() : nth(batch.outputs, from);
    forward(model, i, batch);
    name_owner(batch.outputs[i], first_reader[i]);
    for (const OpStash& op : batch.stash[i]) {
      for (const KeptTensor& kept : op.kept) {
        if (!kept.tensor.defined() || kept.tensor.numel() == 0) continue;
        const auto [at, is_new] = held.try_emplace(kept.tensor.storage().data());
        if (is_new) at->second.owner = i;
        at->second.bytes = bytes_of(kept.tensor);
        at->second.for_weight_grad |= kept.for_weight_grad;
        if (input.defined() && input.is_alias_of(kept.tensor)) {
          result[i].input_kept = at->second.bytes;
        }
        if (batch.outputs[i].is_alias_of(kept.tensor)) result[i].output_kept = at->second.bytes;
      }
    }
    const Tensor& output = visible_output(model, i, batch);
    result[i].output = output.sizes().vec();
    result[i].output_bytes = {static_cast<std::int64_t>(output.nbytes())};
  }
  std::vector<Bytes> kept(count);
  std::vector<Bytes> for_weight_grad(count);
  for (const auto& [place, one] : held) {
    kept[one.owner] += one.bytes;
    if (one.for_weight_grad) for_weight_grad[one.owner] += one.bytes;
  }
  zero_gradients(model);
  for (std::size_t i = count; i-- > 0;) {
    input_grad(model, i, batch);
    for (const OpStash& op : batch.stash[i]) {
      if (op.gradient.defined()) for_weight_grad[i] += bytes_of(op.gradient);
    }
    // All that a layer keeps that reads the data is kept for W, as is the gradient at its output.
    if (model.layers[i].input < 0) {
      for_weight_grad[i] = kept[i] + bytes_of(batch.gradients[i]);
    }
    result[i].stash_weight_grad = std::min(kept[i], for_weight_grad[i]);
    result[i].stash_input_grad = kept[i] - result[i].stash_weight_grad;
    result[i].stash_gradient = for_weight_grad[i] - result[i].stash_weight_grad;
  }
  return result;
}

}  // namespace stageline::executor
