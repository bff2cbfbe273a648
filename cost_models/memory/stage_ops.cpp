// Adds up what a stage holds before and after each of its layers, in each kind of op.
#include "cost_models/memory/stage_ops.hpp"

#include <algorithm>
#include <utility>

#include "cost_models/memory/layer_steps.hpp"
#include "cost_models/memory/moments.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

class StageOps {
 public:
  StageOps(StageCosts& stage, std::size_t number, const Model& model,
           const std::vector<std::size_t>& layers, const std::vector<bool>& reads_data,
           const LayerStash& stash, const StageRecomputation& recomputed,
           const std::vector<StageTensor>& tensors)
      : stage_(stage),
        number_(number),
        model_(model),
        layers_(layers),
        reads_data_(reads_data),
        stash_(stash),
        recomputed_(recomputed),
        tensors_(tensors) {}

  void set() {
    divide();
    recomputed_.by_blocks() ? rebuild() : forward();
    lone_forward();
    backward();
    divided_input_grad();
    input_grad();
    weight_grad();
  }

 private:
  int layers() const { return static_cast<int>(layers_.size()); }
  const Layer& layer(int place) const { return model_.layers[nth(layers_, place)]; }
  Wide made(int place) const { return nth(stash_.made, nth(layers_, place)).count; }
  Wide left(int place) const { return nth(stash_.left, nth(layers_, place)).count; }
  bool reads_data(int place) const { return nth(reads_data_, nth(layers_, place)); }
  // Whether R makes the layer's block again from its input. If nothing is asked of the stage,
  // it may make all of it.
  bool in_block(int place) const {
    const Rebuild how = recomputed_.of_layer(place);
    return how == Rebuild::every || how == Rebuild::full ||
           (how == Rebuild::none && recomputed_.layers.empty());
  }
  // The input among what a layer that reads the data makes.
  Wide data(int place) const {
    return reads_data(place) ? std::min<Wide>(model_.input.count, made(place)) : 0;
  }
  // What later slices of the sequence attend to: F keeps that of the stash, whatever R makes again.
  Wide keys(int place) const { return layer(place).keys_values.count; }
  // In moments: layer `place` runs between the moments `place` and `place + 1`.

  // Whether F keeps the tensor for R: a block reads it that does not make it. Where layers are
  // recomputed in different ways, also one that would else be gone: it leaves its block for a layer
  // that keeps its stash, and is counted in the block's.
  bool stays(const StageTensor& tensor) const {
    if (recomputed_.layers.empty()) {
      return tensor.maker < 0 || tensor.last_reader >= nth(block_end_, tensor.maker);
    }
    const bool counted_in_block = tensor.counted && in_block(*tensor.counted);
    return std::any_of(tensor.readers.begin(), tensor.readers.end(), [&](int reader) {
      const bool outside = tensor.maker < 0 || reader >= nth(block_end_, tensor.maker);
      return outside && (in_block(reader) || counted_in_block);
    });
  }

  // The places where blocks end, by layer.
  void find_blocks() {
    const int n = layers();
    block_end_.assign(layers_.size(), n);
    if (!recomputed_.by_blocks()) return;
    const bool selective = recomputed_.rebuild == Rebuild::selective;
    for (int place = n; place-- > 0;) {
      const bool last = place + 1 == n;
      if (recomputed_.layers.empty()) {
        const int length = selective ? 1 : recomputed_.every;
        const int block = place / length;
        nth(block_end_, place) = n - block * length > length ? (block + 1) * length : n;
      } else {
        const bool ends = last || nth(recomputed_.layers, place + 1).begins_block;
        nth(block_end_, place) = ends ? place + 1 : nth(block_end_, place + 1);
      }
    }
  }

  // Bytes of the stage's inputs that R reads.
  Wide inputs_read() const {
    if (recomputed_.layers.empty()) {
      return recomputed_.rebuild == Rebuild::selective ? 0 : stage_.boundary.count;
    }
    Wide sum = 0;
    for (int place = 0; place < layers(); ++place) sum += in_block(place) ? data(place) : 0;
    for (const StageTensor& tensor : tensors_) {
      if (tensor.maker < 0 && stays(tensor)) sum += tensor.bytes;
    }
    return sum;
  }

  // Sets what of each layer's share R makes again, and where the layer's block ends; and of a stage
  // that is rebuilt block by block what F keeps, and its stash.
  void divide() {
    const int n = layers();
    rebuilt_.assign(layers_.size(), 0);
    find_blocks();
    inputs_ = inputs_read();
    if (!recomputed_.by_blocks()) {
      for (int place = 0; place < n; ++place) stage_.boundary += layer(place).keys_values;
      return;
    }
    std::vector<Wide> kept(layers_.size());
    for (int place = 0; place < n; ++place) {
      nth(kept, place) =
          in_block(place) ? data(place) + keys(place)
                          : made(place) - selective_stash(layer(place), recomputed_, place).count;
    }
    Wide for_blocks = inputs_;
    for (const StageTensor& tensor : tensors_) {
      if (recomputed_.rebuild == Rebuild::selective || !stays(tensor)) continue;
      if (tensor.maker >= 0) for_blocks += tensor.bytes;
      if (!tensor.counted) continue;
      if (in_block(*tensor.counted)) {
        nth(kept, *tensor.counted) += tensor.share;
      } else {  // in the stash of a layer that keeps it
        for_blocks -= std::min(tensor.share, tensor.bytes);
      }
    }
    Wide all_kept = 0;
    Wide kept_by_blocks = 0;
    Wide largest = 0;
    for (int begin = 0; begin < n; begin = nth(block_end_, begin)) {
      Wide block = 0;
      for (int place = begin; place < nth(block_end_, begin); ++place) {
        const Wide keeps = std::clamp<Wide>(nth(kept, place), 0, std::max<Wide>(made(place), 0));
        nth(rebuilt_, place) = made(place) - keeps;
        block += nth(rebuilt_, place);
        all_kept += keeps;
        if (in_block(place)) kept_by_blocks += keeps - keys(place);
      }
      largest = std::max(largest, block);
    }
    beside_ = std::max<Wide>(for_blocks - kept_by_blocks, 0);
    const Wide boundary = all_kept + beside_;
    const Bytes stash = fitting(boundary + largest, number_);
    const Bytes behind_input_grad = stage_.stash_after_input_grad();
    stage_.boundary = fitting(boundary, number_);
    stage_.stash_weight_grad = std::min({stage_.stash_weight_grad, behind_input_grad, stash});
    stage_.stash_input_grad = stash - stage_.stash_weight_grad;
    stage_.stash_gradient = behind_input_grad - stage_.stash_weight_grad;
  }

  // The shares of the stash that the layers below each moment have made, as far as they are there
  // in a backward: all that was kept, and of what is rebuilt the block's.
  void add_made(Moments& held) const {
    held.add(0, layers(), beside_);
    for (int place = 0; place < layers(); ++place) {
      held.add(place + 1, layers(), made(place) - nth(rebuilt_, place));
      held.add(place + 1, nth(block_end_, place), nth(rebuilt_, place));
    }
  }

  // The last moment of a forward at which a tensor is there beside the stash: it outlives its last
  // reader in this stage if a later stage reads it.
  int last_held(const StageTensor& tensor) const {
    return tensor.leaves || tensor.is_result ? layers() : tensor.last_reader;
  }

  // From the layer on that counts it, a tensor is in the stash.
  void forward() {
    Moments held(layers_.size());
    add_made(held);
    for (const StageTensor& tensor : tensors_) {
      const int last = last_held(tensor);
      held.add(tensor.maker + 1, std::min(last, tensor.counted.value_or(last)), tensor.bytes);
    }
    for (int place = 0; place < layers(); ++place) held.add(0, place, data(place));
    LayerSteps steps = steps_of(held, stage_.stash().count);
    for (int place = 0; place < layers(); ++place) {
      steps.add(place, layer(place).forward, layer(place).forward_workspace, {});
    }
    stage_.steps.forward = steps.finish(stage_.workspace);
  }

  // The R of a stage that is rebuilt block by block, the last block first: all that was kept, and
  // the block's stash as it grows. A block's stash is gone before the next one's.
  void rebuild() {
    Moments held(layers_.size());
    held.add(0, layers(), stage_.boundary.count);
    for (int place = 0; place < layers(); ++place) {
      held.add(place + 1, nth(block_end_, place), nth(rebuilt_, place));
    }
    for (const StageTensor& tensor : tensors_) {
      if (tensor.maker < 0 || !in_block(tensor.maker) || stays(tensor)) continue;
      const int last = std::min(last_held(tensor), nth(block_end_, tensor.maker));
      held.add(tensor.maker + 1, std::min(last, tensor.counted.value_or(last)), tensor.bytes);
    }
    LayerSteps steps = steps_of(held, stage_.stash().count);
    int end = layers();
    while (end > 0) {
      int begin = end - 1;
      while (begin > 0 && nth(block_end_, begin - 1) == end) --begin;
      for (int place = begin; place < end; ++place) {
        if (!in_block(place) && nth(rebuilt_, place) == 0) continue;
        steps.add(place, rebuilding_time(layer(place), recomputed_, place),
                  layer(place).forward_workspace, {});
      }
      end = begin;
    }
    stage_.steps.forward = steps.finish(stage_.workspace);
  }

  // Sets the steps of an F whose stash R rebuilds. What it keeps stays; each layer has of the rest
  // of its stash only what it makes itself, while it runs.
  void lone_forward() {
    Moments held(layers_.size());
    std::vector<Wide> inside;
    for (int place = 0; place < layers(); ++place) {
      if (in_block(place)) {
        inside.push_back(made(place) - data(place) - keys(place));
        held.add(place + 1, layers(), keys(place));
        continue;
      }
      inside.push_back(nth(rebuilt_, place));
      held.add(place + 1, layers(), made(place) - nth(rebuilt_, place));
      held.add(0, place, data(place));
    }
    for (const StageTensor& tensor : tensors_) {
      const int last = last_held(tensor);
      if (tensor.counted ? !in_block(*tensor.counted) : all_keep()) {
        held.add(tensor.maker + 1, std::min(last, tensor.counted.value_or(last)), tensor.bytes);
        continue;
      }
      if (tensor.counted) nth(inside, *tensor.counted) -= tensor.share;
      if (tensor.maker < 0 && stays(tensor)) continue;  // part of inputs_
      held.add(tensor.maker + 1, stays(tensor) ? layers() : last, tensor.bytes);
    }
    LayerSteps steps = steps_of(held, static_cast<std::int64_t>(stage_.boundary.count - inputs_));
    for (int place = 0; place < layers(); ++place) {
      steps.add(place, layer(place).forward, layer(place).forward_workspace,
                {std::max<Wide>(nth(inside, place), 0), 0});
    }
    Bytes most{};
    stage_.steps.lone_forward = steps.finish(most);
    stage_.recomputed_workspace = most;
  }

  // Whether no layer is in a block.
  bool all_keep() const { return recomputed_.rebuild == Rebuild::selective; }

  // What makers keep of tensors whose readers have run backward, and the gradients: of each tensor
  // that some layer above has read.
  void add_backward(Moments& held, bool until_weight_grad) const {
    for (const StageTensor& tensor : tensors_) {
      if (tensor.counted && tensor.by_maker && !(until_weight_grad && tensor.for_weight_grad)) {
        held.add(tensor.maker + 1, *tensor.counted, tensor.share);
      }
      if (tensor.leaves || tensor.last_reader >= 0) {
        held.add(tensor.maker + 1, tensor.leaves ? layers() : tensor.last_reader, tensor.bytes);
      }
    }
  }

  // Gradients of keys and values of earlier slices, as the layers above each moment leave them.
  void add_earlier(Moments& held) const {
    for (int place = 0; place < layers(); ++place) {
      held.add(0, place, layer(place).earlier_gradients.count);
    }
  }

  // By layer, of its share what it frees here while in the whole model its maker keeps it, for W or
  // for I. It is there as long as the layer's op runs, and a workspace is what the op holds beyond
  // what there is behind it in the whole model.
  std::vector<Wide> freed_here(bool for_weight_grad) const {
    std::vector<Wide> freed(layers_.size());
    for (const StageTensor& tensor : tensors_) {
      if (!tensor.counted || !tensor.by_other_maker) continue;
      if (tensor.for_weight_grad == for_weight_grad) nth(freed, *tensor.counted) += tensor.share;
    }
    return freed;
  }

  void backward() {
    Moments held(layers_.size());
    add_made(held);
    add_backward(held, false);
    add_earlier(held);
    LayerSteps steps = steps_of(held, stage_.stash().count);
    const std::vector<Wide> by_input_grad = freed_here(false);
    const std::vector<Wide> by_weight_grad = freed_here(true);
    for (int place = layers(); place-- > 0;) {
      steps.add(place, layer(place).backward, layer(place).backward_workspace,
                {0, nth(by_input_grad, place) + nth(by_weight_grad, place)});
    }
    Bytes most{};
    stage_.steps.backward = steps.finish(most);
    stage_.backward_workspace = most;
  }

  // The gradients inside the stage alone.
  void divided_input_grad() {
    Moments held(layers_.size());
    for (const StageTensor& tensor : tensors_) {
      if (tensor.last_reader >= 0) held.add(tensor.maker + 1, tensor.last_reader, tensor.bytes);
    }
    LayerSteps steps = steps_of(held, 0);
    for (int place = layers(); place-- > 0;) {
      steps.add(place, layer(place).input_grad, layer(place).input_grad_workspace, {});
    }
    Bytes most{};
    steps.finish(most);
    stage_.divided_input_grad_workspace = most;
  }

  // Leaves behind what W reads. A layer that reads the data has no I.
  void input_grad() {
    Moments held(layers_.size());
    add_made(held);
    add_backward(held, true);
    add_earlier(held);
    for (int place = 0; place < layers(); ++place) held.add(0, place, left(place));
    LayerSteps steps = steps_of(held, stage_.stash().count);
    const std::vector<Wide> freed = freed_here(false);
    for (int place = layers(); place-- > 0;) {
      const bool none = reads_data(place);  // its gradient only waits for W
      steps.add(place, none ? Time{} : layer(place).input_grad,
                none ? Bytes{} : layer(place).input_grad_workspace, {0, nth(freed, place)});
    }
    Bytes most{};
    stage_.steps.input_grad = steps.finish(most);
    stage_.input_grad_workspace = most;
  }

  void weight_grad() {
    Moments held(layers_.size());
    for (int place = 0; place < layers(); ++place) held.add(place + 1, layers(), left(place));
    LayerSteps steps = steps_of(held, stage_.stash_after_input_grad().count);
    const std::vector<Wide> freed = freed_here(true);
    for (int place = layers(); place-- > 0;) {
      steps.add(place, layer(place).weight_grad, layer(place).weight_grad_workspace,
                {0, nth(freed, place)});
    }
    Bytes most{};
    stage_.steps.weight_grad = steps.finish(most);
    stage_.weight_grad_workspace = most;
  }

  LayerSteps steps_of(const Moments& held, std::int64_t counted) const {
    return LayerSteps(held.values(), counted, number_);
  }

  StageCosts& stage_;
  std::size_t number_;
  const Model& model_;
  const std::vector<std::size_t>& layers_;
  const std::vector<bool>& reads_data_;
  const LayerStash& stash_;
  const StageRecomputation& recomputed_;
  const std::vector<StageTensor>& tensors_;
  std::vector<Wide> rebuilt_;   // by layer: the part of its share that R makes again, by blocks
  std::vector<int> block_end_;  // by layer: the place behind its block
  Wide inputs_ = 0;             // of the stage, for R
  Wide beside_ = 0;             // kept for R, and in no layer's share
};

}  // namespace

void set_stage_ops(StageCosts& stage, std::size_t number, const Model& model,
                   const std::vector<std::size_t>& layers, const std::vector<bool>& reads_data,
                   const LayerStash& stash, const StageRecomputation& recomputed,
                   const std::vector<StageTensor>& tensors) {
  StageOps(stage, number, model, layers, reads_data, stash, recomputed, tensors).set();
}

}  // namespace stageline
