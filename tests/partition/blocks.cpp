// Does `--partition blocks` cut a language model as its framework does?
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "schedulers/partition/megatron.hpp"
#include "schedulers/partition/partitioner.hpp"
#include "schedulers/partition/transformer_blocks.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/partition/models.hpp"
#include "tests/text.hpp"

namespace stageline::blocks_tests {
namespace {

// embedding, so many blocks, head: as language models are priced.
Model language_layers(int blocks) {
  Model model = testing::chain(std::vector<int>(as_size(blocks) + 2, 1));
  model.name = "tiny";
  for (Layer& layer : model.layers) layer.kind = "block";
  model.layers.front().name = model.layers.front().kind = "embedding";
  model.layers.back().name = model.layers.back().kind = "head";
  for (int block = 0; block < blocks; ++block) {
    nth(model.layers, block + 1).name = fmt::format("block.{}", block);
  }
  return model;
}

// embedding, blocks of attention and mlp with a dropout between them, norm, head.
Model paired_layers(int blocks) {
  Model model = testing::chain(std::vector<int>(as_size(3 * blocks) + 2, 1));
  model.name = "pairs";
  model.layers.front().kind = "embedding";
  for (int block = 0; block < blocks; ++block) {
    nth(model.layers, 3 * block + 1).kind = "attention";
    nth(model.layers, 3 * block + 2).kind = "mlp";
    nth(model.layers, 3 * block + 3).kind = "dropout";
  }
  model.layers.back().kind = "linear";
  return model;
}

PartitionPlan plan_of(const Model& model, const std::string& options, int stages, int devices) {
  const Cluster cluster = testing::devices(devices);
  PartitionRequest request{model, cluster, stages, false, ""};
  return partition(options.empty() ? "blocks" : "blocks:" + options, request);
}

// The blocks of each stage: "3 3 2 2".
std::string blocks_by_stage(const Model& model, const Partition& partition) {
  std::vector<int> counts(as_size(partition.stages));
  for (const BlockLayers& block : blocks_of(model)) {
    ++nth(counts, nth(partition.stage_of, block.first));
  }
  return fmt::format("{}", fmt::join(counts, " "));
}

std::string counts_of(int blocks, const std::string& options, int stages, int devices) {
  const Model model = language_layers(blocks);
  return blocks_by_stage(model, plan_of(model, options, stages, devices).partition);
}

std::string counts_of(int blocks, const std::string& options, int stages) {
  return counts_of(blocks, options, stages, stages);
}

std::string refused(int blocks, const std::string& options, int stages) {
  return test::complaint<UsageError>([&] { counts_of(blocks, options, stages); });
}

}  // namespace

TEST_CASE(
    "stages have equal numbers of blocks, the embedding is the first's, the head the last's") {
  const PartitionPlan plan = plan_of(language_layers(8), "", 4, 4);
  CHECK(print(plan.partition) == "0-2 | 3-4 | 5-6 | 7-9");
  CHECK(plan.reason ==
        "2 blocks a stage; largest stage 3.000 ms, 20.0 % over the mean; 0 B a micro-batch between "
        "stages");
  CHECK(print(plan_of(paired_layers(4), "", 2, 2).partition) == "0-6 | 7-13");
  CHECK(print(plan_of(language_layers(3), "", 1, 1).partition) == "0-4");
}

TEST_CASE("where blocks do not divide, larger stages come first, and the reason says it") {
  CHECK(counts_of(10, "", 4) == "3 3 2 2");
  CHECK(test::contains(plan_of(language_layers(10), "", 4, 4).reason,
                       "3×2, 2×2 blocks a stage, larger stages first: 10 do not divide by 4;"));
}

TEST_CASE("first and last are blocks of a device, as in Megatron-LM's uneven pipelines") {
  CHECK(counts_of(10, "first=1,last=1", 4) == "1 4 4 1");
  CHECK(counts_of(10, "last=1", 4) == "3 3 3 1");
  CHECK(counts_of(11, "first=2", 4) == "2 3 3 3");
  CHECK(counts_of(6, "first=4,last=2", 2) == "4 2");
  // Megatron-LM: "the specified number of layers for all virtual pipeline parallel stages within
  // the first (last) pipeline parallel stage".
  CHECK(counts_of(20, "first=4,last=4", 8, 4) == "2 3 3 2 2 3 3 2");
  CHECK(counts_of(16, "", 8, 4) == "2 2 2 2 2 2 2 2");
}

TEST_CASE("embedding and head count as blocks") {
  CHECK(counts_of(14, "embedding=1,head=1", 4) == "3 4 4 3");
  CHECK(counts_of(15, "head=1", 4) == "4 4 4 3");
  CHECK(counts_of(15, "embedding=1", 8, 4) == "1 2 2 2 2 2 2 2");
  // Stages without a block.
  CHECK(counts_of(2, "embedding=1,head=1", 4) == "0 1 1 0");
  CHECK(print(plan_of(language_layers(2), "embedding=1,head=1", 4, 4).partition) ==
        "0 | 1 | 2 | 3");
}

// The rule of Megatron-LM's get_num_layers_to_build, written down a second time: blocks of chunk
// `chunk` on pipeline rank `rank`; -1 where it refuses.
int megatron_layers(int layers, int ranks, int chunks, int rank, int chunk, int first, int last,
                    bool embedding, bool loss) {
  int here = 0;
  if (first > 0 || last > 0) {
    int left = layers;
    int among = ranks;
    if (first > 0) left -= first, --among;
    if (last > 0) left -= last, --among;
    if (among > 0 && left % among != 0) return -1;
    if (among == 0 && left != 0) return -1;  // asserted by its sum of all stages
    here = among > 0 ? left / among : 0;
    if (rank == 0 && first > 0) here = first;
    if (rank == ranks - 1 && last > 0) here = last;
  } else {
    const int counted = layers + (embedding ? 1 : 0) + (loss ? 1 : 0);
    if (counted % ranks != 0) return -1;
    here = counted / ranks;
  }
  if (here % chunks != 0) return -1;
  here /= chunks;
  if (embedding && rank == 0 && chunk == 0) --here;
  if (loss && rank == ranks - 1 && chunk == chunks - 1) --here;
  return here;
}

TEST_CASE("wherever Megatron-LM takes the numbers, every stage has as many blocks") {
  std::mt19937 random(3);
  const auto below = [&](int limit) { return testing::draw(random, limit); };
  int compared = 0;
  for (int round = 0; round < 20'000; ++round) {
    const int ranks = 2 + below(4);
    const int chunks = 1 + below(3);
    const int layers = 2 + below(40);
    const bool uneven = below(2) == 0;
    const int first = uneven ? below(layers) : 0;
    const int last = uneven ? below(layers) : 0;
    const bool embedding = !uneven && below(2) == 0;
    const bool loss = !uneven && below(2) == 0;
    std::vector<int> wanted;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int rank = 0; rank < ranks; ++rank) {
        wanted.push_back(
            megatron_layers(layers, ranks, chunks, rank, chunk, first, last, embedding, loss));
      }
    }
    // Stages between others that Megatron-LM would leave empty cannot be here.
    if (std::any_of(wanted.begin(), wanted.end(), [](int count) { return count < 0; })) continue;
    if (std::any_of(wanted.begin() + 1, wanted.end() - 1, [](int count) { return count == 0; })) {
      continue;
    }
    if ((wanted.front() == 0 && !embedding) || (wanted.back() == 0 && !loss)) continue;
    std::vector<std::string> options;
    if (first > 0) options.push_back(fmt::format("first={}", first));
    if (last > 0) options.push_back(fmt::format("last={}", last));
    if (embedding) options.emplace_back("embedding=1");
    if (loss) options.emplace_back("head=1");
    const std::string text = fmt::format("{}", fmt::join(options, ","));
    CAPTURE(text);
    CAPTURE(layers);
    CAPTURE(ranks);
    CAPTURE(chunks);
    REQUIRE(counts_of(layers, text, ranks * chunks, ranks) ==
            fmt::format("{}", fmt::join(wanted, " ")));
    ++compared;
  }
  CHECK(compared > 500);
}

TEST_CASE("a cut by blocks is a layout of Megatron, and is read as the same cut") {
  const auto layout_of = [](int blocks, const std::string& options, int stages, int devices) {
    const Model model = language_layers(blocks);
    const Partition partition = plan_of(model, options, stages, devices).partition;
    Placement placement;
    for (int s = 0; s < stages; ++s) placement.stage.push_back({{s % devices}, {}, {}, {}, {}});
    const std::string layout = write_megatron(partition, placement, model);
    CHECK(partition_from_cuts(cuts_from_megatron(layout, model),
                              static_cast<int>(model.layers.size())) == partition);
    const Cluster cluster = testing::devices(devices);
    CHECK(stageline::partition(layout, {model, cluster, stages, false, ""}).partition == partition);
    return layout;
  };
  CHECK(layout_of(32, "", 8, 8) == "Et*4|(t*4|)*6t*4L\n");
  CHECK(layout_of(61, "first=4,last=1", 16, 16) == "Et*4|(t*4|)*14tL\n");
  CHECK(layout_of(14, "embedding=1,head=1", 8, 4) == "Et|(t*2|)*6tL\n");
  CHECK(layout_of(2, "embedding=1,head=1", 4, 4) == "E|(t|)*2L\n");
}

TEST_CASE("of a schedule in a V, first is for both stages of the first device") {
  const Model model = language_layers(20);
  const Cluster cluster = testing::devices(4);
  PartitionRequest request{model, cluster, 8, false, ""};
  for (int stage = 0; stage < 8; ++stage) request.placed.push_back({std::min(stage, 7 - stage)});
  CHECK(blocks_by_stage(model, partition("blocks:first=2", request).partition) ==
        "1 3 3 3 3 3 3 1");
  CHECK(test::complaint<UsageError>([&] { partition("blocks:first=2,last=2", request); }) ==
        "blocks: first=2 and last=2 are both for device 0, which has the first and the last of 8 "
        "stages; give one of them");
}

TEST_CASE("what cannot be cut is refused with the numbers") {
  CHECK(refused(3, "", 4) ==
        "blocks: the 3 blocks of \"tiny\" leave none for stage 3 of 4; use fewer stages");
  CHECK(refused(5, "embedding=3", 4) ==
        "blocks: the 5 blocks of \"tiny\", with the embedding as 3, leave none for stage 0 of 4; "
        "use fewer stages, or count them as fewer blocks");
  CHECK(refused(10, "first=8,last=4", 4) ==
        "blocks: first=8,last=4 are for the first and the last device at most, but \"tiny\" has 10 "
        "blocks for 4 stages");
  CHECK(refused(10, "first=8,last=1", 2) ==
        "blocks: first=8,last=1 are for all stages, but \"tiny\" has 10 blocks for 2 stages");
  CHECK(refused(10, "first=1,head=1", 4) ==
        "blocks: give first= and last=, or embedding= and head=: these count towards equal shares, "
        "which the others replace");
  CHECK(refused(10, "frist=1", 4) ==
        "blocks: option \"frist\" is not known (first, last, embedding, head) (did you mean "
        "\"first\"?)");
  CHECK(test::contains(refused(10, "first=0", 4), "first must be a whole number from 1"));
  CHECK(test::contains(refused(10, "head=x", 4), "head must be a whole number from 0"));
  CHECK(test::contains(refused(10, "head", 4), "not \"\""));
  CHECK(test::contains(refused(1, "", 8), "8 stages need at least 8 layers"));
  const Model plain = testing::chain({1, 2, 3});
  CHECK(test::complaint<UsageError>([&] { plan_of(plain, "", 2, 2); }) ==
        "partitioner \"blocks\" is for transformers, and chain has no blocks (layers of kind "
        "attention and mlp, or block)");
}

}  // namespace stageline::blocks_tests
