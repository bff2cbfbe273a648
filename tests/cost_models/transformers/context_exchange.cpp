// Is each way in which context-parallel ranks exchange what attention reads priced as its closed
// form, in bytes, time and memory?
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cost_models/network/ranked_cluster.hpp"
#include "cost_models/roofline.hpp"
#include "cost_models/transformers/kernels.hpp"
#include "sim/base/errors.hpp"
#include "tests/cost_models/collective_clusters.hpp"
#include "tests/cost_models/transformers/configs.hpp"
#include "tests/text.hpp"

namespace stageline::context_exchange_tests {
namespace {

using Collectives = std::vector<LayerCollective>;

constexpr std::int64_t mebi = 1 << 20;
constexpr Dimension group = Dimension::context;

// 8 heads and 4 for keys and values, of 128; a token's queries are 1,024 elements, its keys 512.
Model model_called(const std::string& spec) {
  static const std::vector<DeviceKind> kinds = [] {
    DeviceKind kind;
    kind.name = "h100";
    kind.memory_bandwidth = {3'350'000'000'000};
    kind.peak = {{"fp32", 66.9e12}, {"bf16", 989.4e12}};
    return std::vector<DeviceKind>{kind};
  }();
  return priced_model(spec, kinds, {}, {});
}

Model small_model(const std::string& options) {
  return model_called("model:transformer@h100,layers=1,hidden=1024,heads=8,kv_heads=4,seq=8192," +
                      options);
}

Collectives of_block(const std::string& options) {
  return small_model(options).layers[1].collectives;
}

// Without what hides it, which depends on kernels.
Collectives bare(Collectives list) {
  for (LayerCollective& one : list) one.forward_beside = one.backward_beside = Time{};
  return list;
}

LayerCollective exchange(std::int64_t bytes, int times, int part = 0) {
  LayerCollective one{CollectiveKind::all_to_all, group, Bytes{bytes}, times, times, 0};
  one.use.part = part;
  return one;
}

LayerCollective ring(CollectiveKind kind, std::int64_t bytes, const GroupUse& use) {
  const int forward = kind == CollectiveKind::all_gather ? 1 : 0;
  LayerCollective one{kind, group, Bytes{bytes}, forward, 1, 0};
  one.hidden = 1;
  one.use = use;
  return one;
}

std::string refusal(const std::string& options) {
  return test::complaint<UsageError>([&] { small_model(options); });
}

double attention_flops(LanguageForm form) {
  form.context_balanced = true;
  const auto flops = [&] {
    const LayerKernels kernels = block_kernels(llama_config(), form, 0);
    return std::find_if(kernels.forward.begin(), kernels.forward.end(),
                        [](const Kernel& one) { return one.name == "attention"; })
        ->flops;
  };
  const double balanced = flops();
  form.context_balanced = false;
  return flops() / balanced;
}

Time milliseconds(double number) { return Time{std::llround(number * 1e9)}; }

// The collectives of one layer on ranks of machines of 4 whose devices are of no known kind.
std::vector<UsedAlgorithm> used_by(const Collectives& collectives, int ranks) {
  Degrees degrees;
  degrees.context = ranks;
  degrees.pipeline = 1;
  RankedCluster ranked(test::cluster_of({.machines = ranks / 4, .gpus = 4}), degrees);
  Model model;
  model.layers.resize(1);
  model.layers[0].collectives = collectives;
  model.sharding.context = ranks;
  Partition partition;
  partition.stages = 1;
  partition.stage_of = {0};
  Placement placement;
  placement.stage.resize(1);
  placement.stage[0].replicas = {0};
  std::vector<UsedAlgorithm> all = ranked.algorithms(model, partition, placement);
  std::erase_if(all, [](const UsedAlgorithm& one) { return one.dimension != group; });
  return all;
}

TEST_CASE("a ring moves keys and values of all ranks as messages") {
  const GroupUse blocks{0, false, 4};
  CHECK(bare(of_block("cp=4,cp_exchange=p2p")) ==
        Collectives{ring(CollectiveKind::all_gather, 2 * 8192 * 1024, blocks),
                    ring(CollectiveKind::reduce_scatter, 2 * 8192 * 1024, blocks)});
  CHECK(of_block("cp=4,cp_exchange=ring") == of_block("cp=4,cp_exchange=p2p"));
}

TEST_CASE("all-to-alls move a rank's queries, keys, values and output, each there and back") {
  CHECK(of_block("cp=4,cp_exchange=a2a") ==
        Collectives{exchange(2 * 2048 * 1024, 2), exchange(2 * 2048 * 512, 2)});
  // 8 ranks have a copy of one of 4 heads for keys each.
  CHECK(of_block("cp=8,cp_exchange=a2a") == Collectives{exchange(2 * 1024 * 1024, 4)});
}

TEST_CASE("a hierarchy has all-to-alls among neighbours, and rings of as long blocks across") {
  const GroupUse across{4, true, 2};
  CHECK(bare(of_block("cp=8,cp_exchange=a2a+p2p:4")) ==
        Collectives{exchange(2 * 1024 * 1024, 2, 4), exchange(2 * 1024 * 512, 2, 4),
                    ring(CollectiveKind::all_gather, 2 * 2 * 1024 * 1024, across),
                    ring(CollectiveKind::reduce_scatter, 2 * 2 * 1024 * 1024, across)});
}

TEST_CASE("buffers: all keys, those of two ranks, or what all-to-alls bring") {
  const auto buffers = [](const std::string& options) {
    return small_model(options).layers[1].forward_workspace;
  };
  CHECK(buffers("cp=4") == Bytes{16 * mebi});
  CHECK(buffers("cp=4,cp_exchange=p2p") == Bytes{8 * mebi});
  CHECK(buffers("cp=4,cp_exchange=a2a") == Bytes{8 * mebi});
  CHECK(buffers("cp=8,cp_exchange=a2a+p2p:4") == Bytes{(4 + 4) * mebi});
  const auto kept = [](const std::string& options) {
    const Layer layer = small_model(options).layers[1];
    return layer.stash_input_grad + layer.stash_weight_grad;
  };
  CHECK(kept("cp=4,cp_exchange=a2a") == kept("cp=4"));
  CHECK(kept("cp=4,cp_exchange=p2p") == kept("cp=4"));
  // Copies of keys and values are kept: 4 heads more of 128, twice.
  CHECK(kept("cp=8,cp_exchange=a2a") - kept("cp=8") == Bytes{2 * 1024 * 2 * 4 * 128});
}

TEST_CASE("an exchange that the model cannot have is refused, with one that it can") {
  CHECK(test::contains(refusal("cp=16,cp_exchange=a2a"),
                       "cp_exchange=a2a gives each of 16 ranks whole heads, and there are 8 heads; "
                       "take a divisor of 8, or cp_exchange=p2p"));
  CHECK(test::contains(refusal("cp=4,tp=4,cp_exchange=a2a"), "2 heads on each of tp 4 ranks"));
  CHECK(refusal("cp=2,tp=4,cp_exchange=a2a").empty());
  CHECK(test::contains(refusal("cp=8,cp_exchange=a2a+p2p"), "give a2a+p2p:N"));
  CHECK(test::contains(refusal("cp=8,cp_exchange=a2a+p2p:1"), "2 or more, not \"1\""));
  CHECK(test::contains(refusal("cp=8,cp_exchange=a2a+p2p:3"), "take a divisor of 8 from 2 to 4"));
  CHECK(test::contains(refusal("cp=8,cp_exchange=a2a+p2p:8"), "several equal ones of cp 8"));
  CHECK(test::contains(refusal("cp=8,attention=plain,cp_exchange=a2a+p2p:4"), "part by part"));
  CHECK(refusal("cp=8,attention=plain,cp_exchange=a2a").empty());
  CHECK(test::contains(refusal("cp=8,cp_exchange=alltoall"), "cp_exchange is one of all_gather"));
  const std::string odd = test::complaint<UsageError>([] {
    model_called(
        "model:transformer@h100,layers=1,hidden=1536,heads=12,kv_heads=4,seq=12288,cp=6,"
        "cp_exchange=a2a");
  });
  CHECK(test::contains(odd, "whole heads for keys and values, and there are 4"));
}

TEST_CASE("two pieces from either end share the pairs equally, one piece leaves the last most") {
  for (const int ranks : {1, 2, 4, 8}) {
    for (const CausalSequence& of :
         {CausalSequence{8192, 0, false}, CausalSequence{8192, 512, false},
          CausalSequence{8192, 3000, false}, CausalSequence{8192, 1536, true}}) {
      CAPTURE(ranks);
      CAPTURE(of.window);
      const double whole = causal_pairs(of, 1, 0, false);
      double balanced = 0;
      double single = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        balanced += causal_pairs(of, ranks, rank, true);
        single += causal_pairs(of, ranks, rank, false);
        if (of.window > 0) continue;
        CHECK(causal_pairs(of, ranks, rank, true) == 8192.0 * 8192 / 2 / ranks);
        CHECK(causal_pairs(of, ranks, rank, false) ==
              8192.0 * 8192 * (2 * rank + 1) / 2 / ranks / ranks);
      }
      CHECK(balanced == doctest::Approx(whole));
      CHECK(single == doctest::Approx(whole));
    }
  }
}

TEST_CASE("without balance all wait for the last rank of those that read each other's keys") {
  LanguageForm form = divided_form(1, 1);
  CHECK(attention_flops(form) == 1);
  form.sharding.context = 4;
  CHECK(attention_flops(form) == 7.0 / 4);
  form.context_exchange = ContextExchange::ring;
  CHECK(attention_flops(form) == 7.0 / 4);
  form.context_exchange = ContextExchange::all_to_all;
  CHECK(attention_flops(form) == 1);
  form.context_exchange = ContextExchange::hierarchical;
  form.context_part = 2;
  CHECK(attention_flops(form) == 3.0 / 2);
}

TEST_CASE("a ring reads and writes what it adds up of each part, the kernels of none do so") {
  LanguageForm form = divided_form(1, 1);
  form.sharding.context = 4;
  const auto bytes = [&](bool forward) {
    const LayerKernels kernels = block_kernels(llama_config(), form, 0);
    double sum = 0;
    for (const Kernel& one : forward ? kernels.forward : kernels.input_grad) {
      if (one.name == "ring_sums") sum += one.bytes;
    }
    return sum;
  };
  CHECK(bytes(true) == 0);
  form.context_exchange = ContextExchange::ring;
  // Of 2,048 tokens: queries and output of 8,192 elements each, keys and values of 2,048 together.
  CHECK(bytes(true) == 2.0 * 2048 * (2 * 8192 + 3 * (2.25 * 8192 + 0.5 * 10240)));
  CHECK(bytes(false) == 2.0 * 2048 * (2 * 10240 + 3 * (2.75 * 10240 + 8192)));
  form.context_exchange = ContextExchange::all_to_all;
  CHECK(bytes(true) == 0);
  form.context_exchange = ContextExchange::hierarchical;
  form.context_part = 2;  // so that there are two parts
  CHECK(bytes(true) == 2.0 * 2048 * (2 * 8192 + 2.25 * 8192 + 0.5 * 10240));
}

// Blocks of 450 MB at 450 GB/s: a millisecond each.
TEST_CASE("a ring exposes of each message what its part of attention does not take") {
  constexpr std::int64_t all = 4 * 450'000'000LL;
  Collectives both{ring(CollectiveKind::all_gather, all, {0, false, 4}),
                   ring(CollectiveKind::reduce_scatter, all, {0, false, 4})};
  for (LayerCollective& one : both) {
    one.forward_beside = milliseconds(0.5) * 3;        // attention to a part: 0.5 ms
    one.backward_beside = milliseconds(1.25) * 3 / 2;  // of both: 1.25 ms
  }
  const std::vector<UsedAlgorithm> used = used_by(both, 4);
  REQUIRE(used.size() == 2);
  for (const UsedAlgorithm& one : used) {
    CHECK(one.algorithm == ring_of_messages);
    CHECK(one.most == Bytes{all});
    // Backward 0 + 0.75 + 0.75 + 0, of which either has half.
    const bool gather = one.kind == CollectiveKind::all_gather;
    CHECK(one.exposed == milliseconds(gather ? 3 * (1 - 0.5) + 0.75 : 0.75));
    CHECK(one.exposed + one.hidden == milliseconds(gather ? 6 : 3));
  }
}

TEST_CASE("an all-to-all exposes all that its ranks send to others") {
  const std::vector<UsedAlgorithm> used = used_by({exchange(4 * 450'000'000LL, 1)}, 4);
  REQUIRE(used.size() == 1);
  CHECK(used[0].exposed == milliseconds(2 * 3));
  CHECK(used[0].hidden == Time{});
}

// Within a machine 450 GB/s, between them 50 GB/s.
TEST_CASE("a hierarchy exchanges within machines, and its rings cross each boundary once") {
  Collectives list{exchange(4 * 450'000'000LL, 1, 4),
                   ring(CollectiveKind::all_gather, 2 * 50'000'000LL, {4, true, 2})};
  list[1].input_grad = 0;
  const std::vector<UsedAlgorithm> used = used_by(list, 8);
  REQUIRE(used.size() == 2);
  for (const UsedAlgorithm& one : used) {
    const bool ring = one.kind == CollectiveKind::all_gather;
    CHECK(one.exposed == milliseconds(ring ? 1 : 2 * 3));
  }
  const Collectives odd{exchange(8, 1, 3)};
  CHECK(test::contains(test::complaint<UsageError>([&] { used_by(odd, 8); }),
                       "parts of 3 ranks and 0 blocks, and its group has 8 ranks"));
  // Two neighbours of one machine have no link between machines to wait for.
  const std::vector<UsedAlgorithm> near = used_by({exchange(2 * 450'000'000LL, 1, 2)}, 8);
  REQUIRE(near.size() == 1);
  CHECK(near[0].exposed == milliseconds(2 * 1));
}

TEST_CASE("what was never measured is said, and so is what has no effect") {
  const auto said = [](const std::string& options, const std::string& word) {
    const std::vector<std::string> notes = small_model(options).provenance.notes;
    return std::any_of(notes.begin(), notes.end(),
                       [&](const std::string& note) { return test::contains(note, word); });
  };
  CHECK(said("cp=4,cp_exchange=a2a", "never held against a measured run"));
  CHECK(said("cp=8,cp_exchange=a2a", "4 heads for keys and values are copied to 8 ranks"));
  CHECK(said("cp=8,cp_exchange=a2a+p2p:4", "4 rings of 2 beside attention: never held"));
  CHECK(said("cp=4,cp_exchange=p2p", "go around a ring"));
  CHECK_FALSE(said("cp=4,cp_exchange=p2p", "never held"));
  CHECK(said("cp_exchange=a2a", "cp_exchange=a2a has no effect without context parallelism"));
  CHECK(said("cp_exchange=p2p,attention=plain", "cp_exchange=p2p has no effect"));
  CHECK_THROWS_WITH_AS(small_model("cp=4,cp_exchange=p2p,attention=plain"),
                       doctest::Contains("adds up attention part by part"), UsageError);
  CHECK(said("cp=4,cp_balance=none", "wait for the last one"));
  CHECK(said("cp=4,cp_balance=none,cp_exchange=a2a", "cp_balance=none has no effect"));
}

TEST_CASE("Megatron-Core's rings are its default, where there are ranks for them") {
  CHECK(of_block("cp=4,software=megatron-core-2024") ==
        of_block("cp=4,cp_exchange=p2p,attention=cudnn"));
  CHECK(bare(of_block("cp=4,software=megatron-core-2024,cp_exchange=all_gather")) ==
        bare(of_block("cp=4")));
  CHECK(of_block("cp=4,software=megatron-core-2024,attention=plain") ==
        of_block("cp=4,attention=plain"));
  const auto text = [](const std::string& options) {
    return small_model(options).provenance.notes.back();
  };
  CHECK_FALSE(test::contains(text("software=megatron-core-2024"), "cp_exchange"));
  CHECK(test::contains(text("cp=4,software=megatron-core-2024"), "cp_exchange=p2p"));
}

}  // namespace
}  // namespace stageline::context_exchange_tests
