// Finds the blocks of each stage, and times their copies window by window.
#include "cost_models/block_offload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "cost_models/recomputation.hpp"
#include "cost_models/stage_costs.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/rates.hpp"

namespace stageline {
namespace {

// Layers of one stage, from `begin` on.
struct Block {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// By stage, in the order of layers.
std::vector<std::vector<Block>> blocks_of(const Model& model, const Partition& partition) {
  const std::vector<int> lengths = lengths_of_blocks(model);
  std::vector<std::vector<Block>> blocks(as_size(partition.stages));
  for (std::size_t l = 0; l < lengths.size(); ++l) {
    if (lengths[l] == 0) continue;
    const int stage = partition.stage_of[l];
    std::size_t end = l + 1;
    while (end < l + as_size(lengths[l]) && partition.stage_of[end] == stage) ++end;
    nth(blocks, stage).push_back({l, end});
  }
  return blocks;
}

Bytes stash_of(const Model& model, const Block& block) {
  Bytes bytes{};
  for (std::size_t l = block.begin; l < block.end; ++l) {
    bytes += model.layers[l].stash_input_grad + model.layers[l].stash_weight_grad;
  }
  return bytes;
}

// The block beside which copy `k` ends: Transformer Engine's layer_window_map.
std::size_t end_of_window(std::size_t k, std::size_t copied, std::size_t blocks) {
  return blocks / copied * (k + 1) - 1 + std::min(k + 1, blocks % copied);
}

// What compute waits for copies of these times; `beside`: of compute, by block.
Time wait_for(std::span<const Time> copies, std::span<const Time> beside) {
  Time wait{};
  std::size_t begin = 1;  // the first copy waits for its block
  for (std::size_t k = 0; k < copies.size(); ++k) {
    const std::size_t end = end_of_window(k, copies.size(), beside.size()) + 1;
    Time compute{};
    for (std::size_t i = begin; i < end; ++i) compute += beside[i];
    wait += std::max(Time{}, copies[k] - compute);
    begin = end;
  }
  return wait;
}

class StageCopies {
 public:
  StageCopies(const Model& model, const std::vector<Block>& blocks, const Device& device,
              const Route& there, const Route& back)
      : model_(model), blocks_(blocks), rates_(rates_of(device)), there_(there), back_(back) {}

  BlockCopies of(int copied) const {
    BlockCopies copies;
    copies.blocks = static_cast<int>(blocks_.size());
    copies.copied = std::min(copied, copies.blocks);
    std::vector<Time> out;
    std::vector<Time> in;
    for (int i = 0; i < copies.copied; ++i) {
      const Bytes bytes = stash_of(model_, nth(blocks_, i));
      copies.bytes += bytes;
      copies.largest = std::max(copies.largest, bytes);
      out.push_back(there_.latency + transfer_time(bytes, there_.bandwidth));
      in.push_back(back_.latency + transfer_time(bytes, back_.bandwidth));
    }
    for (const Time time : out) copies.copying += time;
    copies.forward_wait = wait_for(out, times(&Layer::forward));
    copies.input_grad_wait = wait_for(in, times(&Layer::input_grad));
    copies.backward_wait = wait_for(in, times(&Layer::backward));
    return copies;
  }

 private:
  // By block, on the device.
  std::vector<Time> times(Time Layer::*pass) const {
    std::vector<Time> times;
    for (const Block& block : blocks_) {
      ClassTimes sum;
      for (std::size_t l = block.begin; l < block.end; ++l) {
        const Time time = model_.layers[l].*pass;
        sum += {time, model_.layers[l].memory_bound ? time : Time{}};
      }
      times.push_back(at_rates(sum, rates_));
    }
    return times;
  }

  const Model& model_;
  const std::vector<Block>& blocks_;
  Rates rates_;
  const Route& there_;
  const Route& back_;
};

void check_stage(std::size_t stage, const StagePlace& place, int copied, std::size_t blocks) {
  if (place.apart()) {
    throw UsageError(fmt::format(
        "--offload block:{}: forward and backward of stage {} are on different devices; "
        "take all, or stages such as @{}",
        copied, stage, stage));
  }
  if (blocks > 0 && as_size(copied) >= blocks) {
    throw UsageError(
        fmt::format("--offload block:{}: stage {} has {} block{}, and the last one's copy has none "
                    "to run beside; give {} at most",
                    copied, stage, blocks, blocks == 1 ? "" : "s",
                    blocks == 1 ? "0, which is none" : fmt::format("{}", blocks - 1)));
  }
}

void hold_beside(Layer& layer, Bytes bytes) {
  for (Bytes Layer::*const workspace :
       {&Layer::forward_workspace, &Layer::backward_workspace, &Layer::input_grad_workspace}) {
    layer.*workspace += bytes;
  }
}

// The layer keeps nothing on the device, and its ops hold the activations of its block.
void take_stash(Layer& layer, Bytes block) {
  hold_beside(layer, block);
  layer.stash_gradient += layer.stash_weight_grad;
  layer.stash_input_grad = layer.stash_weight_grad = layer.selective_stash = Bytes{};
  layer.input_kept = layer.output_kept = Bytes{};
}

Model without_copied_stash(Model model, const Partition& partition, int copied) {
  for (const std::vector<Block>& blocks : blocks_of(model, partition)) {
    std::vector<Bytes> stashes;
    for (const Block& block : blocks) stashes.push_back(stash_of(model, block));
    const std::size_t leaving = std::min(as_size(copied), blocks.size());
    if (leaving == 0) continue;
    const Bytes on_its_way =
        *std::max_element(stashes.begin(), stashes.begin() + static_cast<std::ptrdiff_t>(leaving));
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      for (std::size_t l = blocks[b].begin; l < blocks[b].end; ++l) {
        Layer& layer = model.layers[l];
        hold_beside(layer, on_its_way);
        if (b < leaving) take_stash(layer, stashes[b] - std::min(stashes[b], layer.input_kept));
      }
    }
  }
  return model;
}

}  // namespace

std::vector<BlockCopies> block_copies(const Model& model, const Partition& partition,
                                      const Placement& placement, const Cluster& cluster,
                                      const Network& network, int copied) {
  const std::vector<std::vector<Block>> blocks = blocks_of(model, partition);
  std::vector<BlockCopies> copies;
  for (std::size_t s = 0; s < blocks.size(); ++s) {
    const StagePlace& place = placement.stage[s];
    check_stage(s, place, copied, blocks[s].size());
    BlockCopies slowest;
    for (const int device : place.replicas) {
      const BlockCopies one =
          StageCopies(model, blocks[s], nth(cluster.devices, device), nth(network.to_host, device),
                      nth(network.from_host, device))
              .of(copied);
      if (slowest.blocks == 0 || one.backward_wait > slowest.backward_wait) slowest = one;
    }
    copies.push_back(slowest);
  }
  return copies;
}

Costs stage_costs_with_copies(const Model& model, const Partition& partition,
                              const Placement& placement, const Cluster& cluster, int copied) {
  return stage_costs(without_copied_stash(model, partition, copied), partition, placement, cluster);
}

void add_copy_waits(Costs& costs, const Model& model, const Partition& partition,
                    const Placement& placement, const Cluster& cluster, int copied) {
  const std::vector<BlockCopies> copies =
      block_copies(model, partition, placement, cluster, costs.network, copied);
  for (std::size_t s = 0; s < copies.size(); ++s) {
    StageCosts& stage = costs.stage[s];
    stage.forward += copies[s].forward_wait;
    stage.input_grad += copies[s].input_grad_wait;
    stage.backward += copies[s].backward_wait;
  }
}

}  // namespace stageline
