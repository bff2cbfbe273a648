// Do the activations of the first blocks leave the device, and does compute wait where their copies
// take longer than the blocks beside them?
#include "cost_models/block_offload.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "cost_models/stage_costs.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::block_offload_tests {
namespace {

constexpr std::int64_t mb = 1'000'000;
constexpr Time ms{1'000'000'000};

// An embedding, blocks and a head. A block has F 1, I 1, W 1, B 2 ms and keeps 4 MB, 3 of them for
// W, of which 1 is its input.
Model blocks_of(int count) {
  Model model;
  model.name = "blocks";
  model.batch = 1;
  const auto add = [&](const std::string& name, const char* kind) -> Layer& {
    Layer layer;
    layer.name = name;
    layer.kind = kind;
    layer.forward = layer.input_grad = layer.weight_grad = ms;
    layer.backward = 2 * ms;
    layer.output = Bytes{mb};
    model.layers.push_back(layer);
    return model.layers.back();
  };
  add("embedding", "embedding");
  for (int i = 0; i < count; ++i) {
    Layer& block = add(fmt::format("block.{}", i), "block");
    block.stash_input_grad = Bytes{mb};
    block.stash_weight_grad = Bytes{3 * mb};
    block.input_kept = Bytes{mb};
  }
  Layer& head = add("head", "head");
  head.stash_weight_grad = head.input_kept = Bytes{mb};
  return model;
}

Cluster with_host(std::int64_t bytes_per_ms) {
  return uniform_cluster(1, std::nullopt, std::nullopt,
                         LinkSpec{Bandwidth{1000 * bytes_per_ms}, Time{}});
}

Partition whole(const Model& model) {
  return partition_from_cuts({}, static_cast<int>(model.layers.size()));
}

BlockCopies copies(int blocks, int copied, std::int64_t bytes_per_ms) {
  const Model model = blocks_of(blocks);
  const Cluster cluster = with_host(bytes_per_ms);
  return block_copies(model, whole(model), straight_placement(1), cluster, network_of(cluster),
                      copied)
      .front();
}

Costs costs(int blocks, int copied, std::int64_t bytes_per_ms) {
  const Model model = blocks_of(blocks);
  const Cluster cluster = with_host(bytes_per_ms);
  const Partition cut = whole(model);
  if (copied == 0) return stage_costs(model, cut, straight_placement(1), cluster);
  Costs costs = stage_costs_with_copies(model, cut, straight_placement(1), cluster, copied);
  add_copy_waits(costs, model, cut, straight_placement(1), cluster, copied);
  return costs;
}

TEST_CASE("copies run beside as many blocks as they are spread over") {
  // Two of eight: beside blocks 1 to 3, and 4 to 7, at 4 MB each.
  const BlockCopies fast = copies(8, 2, 4 * mb / 3 + 1);
  CHECK(fast.blocks == 8);
  CHECK(fast.copied == 2);
  CHECK(fast.bytes == Bytes{8 * mb});
  CHECK(fast.largest == Bytes{4 * mb});
  CHECK(fast.forward_wait == Time{});
  CHECK(fast.backward_wait == Time{});
  // 4 ms a copy: one more than blocks 1 to 3 take forward, and less than their backward.
  const BlockCopies slow = copies(8, 2, mb);
  CHECK(slow.copying == 8 * ms);
  CHECK(slow.forward_wait == 1 * ms);
  CHECK(slow.input_grad_wait == 1 * ms);
  CHECK(slow.backward_wait == Time{});
  // 40 ms a copy: all but seven blocks of it.
  CHECK(copies(8, 2, mb / 10).forward_wait == 73 * ms);
  CHECK(copies(8, 2, mb / 10).backward_wait == 66 * ms);
}

TEST_CASE("the first copies have the blocks that are left over") {
  // Three of four: beside block 1, block 2 and block 3, since 4 mod 3 is 1.
  CHECK(copies(4, 3, 4 * mb).forward_wait == Time{});
  CHECK(copies(4, 3, 2 * mb).forward_wait == 3 * ms);
  CHECK(copies(4, 3, 2 * mb).backward_wait == Time{});
}

TEST_CASE("without a link copies are free") {
  const Model model = blocks_of(4);
  const BlockCopies free =
      block_copies(model, whole(model), straight_placement(1),
                   uniform_cluster(1, std::nullopt, std::nullopt), free_network(1), 3)
          .front();
  CHECK(free.copying == Time{});
  CHECK(free.forward_wait == Time{});
  CHECK(free.bytes == Bytes{12 * mb});
}

TEST_CASE("a stage keeps the other blocks alone, and holds two copies while it runs") {
  const StageCosts kept = costs(8, 0, mb).stage.front();
  const StageCosts copied = costs(8, 2, mb).stage.front();
  CHECK(kept.stash() == Bytes{33 * mb});
  CHECK(copied.stash() == Bytes{25 * mb});
  CHECK(copied.forward == kept.forward + 1 * ms);
  CHECK(copied.backward == kept.backward);
  CHECK(copied.input_grad == kept.input_grad + 1 * ms);
  // Six blocks and the head at the top, with the copy on its way in the last block.
  const Bytes peak = copied.stash() + *copied.backward_workspace;
  CHECK(peak <= Bytes{25 * mb + 4 * mb + 2 * mb});
  CHECK(peak >= Bytes{25 * mb + 4 * mb});
  CHECK(kept.stash() + *kept.backward_workspace - peak >= Bytes{3 * mb});
}

TEST_CASE("what W reads has come back for a separate I") {
  const StageCosts kept = costs(8, 0, mb).stage.front();
  const StageCosts copied = costs(8, 2, mb).stage.front();
  CHECK(copied.stash_after_input_grad() == kept.stash_after_input_grad());
}

TEST_CASE("most blocks that leave are all but one") {
  CHECK_NOTHROW(copies(4, 3, mb));
  for (const int all : {4, 5}) {
    CHECK_THROWS_WITH_AS(
        copies(4, all, mb),
        fmt::format("--offload block:{}: stage 0 has 4 blocks, and the last one's copy has none to "
                    "run beside; give 3 at most",
                    all)
            .c_str(),
        UsageError);
  }
  CHECK_THROWS_AS(copies(1, 1, mb), UsageError);
}

TEST_CASE("each stage copies blocks of its own, and one without any none") {
  const Model model = blocks_of(4);
  const Partition cut = partition_from_cuts({0, 2}, 6);
  const std::vector<BlockCopies> stages =
      block_copies(model, cut, straight_placement(3),
                   uniform_cluster(3, std::nullopt, std::nullopt), free_network(3), 1);
  CHECK(stages[0].copied == 0);
  CHECK(stages[1].bytes == Bytes{4 * mb});
  CHECK(stages[2].bytes == Bytes{4 * mb});
}

}  // namespace
}  // namespace stageline::block_offload_tests
