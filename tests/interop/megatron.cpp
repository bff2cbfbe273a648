// Megatron's pipeline layout, both ways.
#include <doctest/doctest.h>

#include <random>

#include "cost_models/roofline.hpp"
#include "cost_models/shapes/shapes.hpp"
#include "cost_models/stage_costs.hpp"
#include "schedulers/partition/megatron.hpp"
#include "schedulers/partition/partitioner.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/text.hpp"
#include "traces/traces.hpp"

namespace stageline::megatron_tests {
namespace {

Model model_of(const std::vector<std::pair<std::string, std::string>>& layers) {
  Model model = uniform_model("layers=" + std::to_string(layers.size()));
  model.name = "tiny";
  for (std::size_t i = 0; i < layers.size(); ++i) {
    model.layers[i].name = layers[i].first;
    model.layers[i].kind = layers[i].second;
  }
  return model;
}

// embedding, so many blocks of attention and mlp, norm, head: as model:gpt names them.
Model transformer(int blocks) {
  std::vector<std::pair<std::string, std::string>> layers{{"embedding", "embedding"}};
  for (int i = 0; i < blocks; ++i) {
    layers.emplace_back("h." + std::to_string(i) + ".attention", "attention");
    layers.emplace_back("h." + std::to_string(i) + ".mlp", "mlp");
  }
  layers.emplace_back("norm", "norm");
  layers.emplace_back("head", "linear");
  return model_of(layers);
}

Partition cut(const std::string& layout, const Model& model) {
  return partition_from_cuts(cuts_from_megatron(layout, model),
                             static_cast<int>(model.layers.size()));
}

Placement looped(int stages, int devices) {
  Placement placement;
  for (int s = 0; s < stages; ++s) placement.stage.push_back({{s % devices}, {}, {}, {}, {}});
  return placement;
}

std::string refusal(const std::string& layout) {
  return test::complaint<UsageError>([&] { parse_megatron(layout); });
}

TEST_CASE("repetitions are written out") {
  using Stages = std::vector<std::string>;
  CHECK(parse_megatron("E|t|L") == Stages{"E", "t", "L"});
  CHECK(parse_megatron("Et*3|t,t|tL\n") == Stages{"Ettt", "tt", "tL"});
  CHECK(parse_megatron("E(t|)*3L") == Stages{"Et", "t", "t", "L"});
  CHECK(parse_megatron("E(t*2|)*2tL") == Stages{"Ett", "tt", "tL"});
  CHECK(parse_megatron("E(|tt)*2,mL") == Stages{"E", "tt", "ttmL"});
  const Stages large = parse_megatron("Et*3|(tt|)*29,m|L");
  CHECK(large.size() == 32);
  CHECK(large.front() == "Ettt");
  CHECK(large[29] == "tt");
  CHECK(large[30] == "m");
  CHECK(large[31] == "L");
}

TEST_CASE("a layout that is none is refused, with the column") {
  CHECK(refusal("Et|x|L") ==
        "Megatron layout \"Et|x|L\", column 4: \"x\" is not known; E is the embedding, t a decoder "
        "layer, m a multi-token prediction layer, L the loss, | ends a stage");
  CHECK(refusal("Et|(t|L") ==
        "Megatron layout \"Et|(t|L\", column 4: the group is not closed by a )");
  CHECK(test::contains(refusal("E(t|)L"), "column 2: a group is followed by *n"));
  CHECK(test::contains(refusal("E((t)*2|)*2L"), "column 3: a group inside a group"));
  CHECK(test::contains(refusal("E()*2L"), "column 2: the group is empty"));
  CHECK(test::contains(refusal("Et*|L"), "column 4: * is followed by how many times, from 1 to"));
  CHECK(test::contains(refusal("Et*0|L"), "column 4: * is followed by how many times"));
  CHECK(test::contains(refusal("Et*2*3|L"), "column 5: \"*\" is not known"));
  CHECK(test::contains(refusal("Et*9999999|L"), "how many times, from 1 to 1048576"));
  CHECK(test::contains(refusal("E(t*1000|)*1000000L"), "how many times, from 1 to 1047"));
  CHECK(refusal("Et|L|") ==
        "Megatron layout \"Et|L|\": stage 2 of 3 has no layer, but only one between others, which "
        "passes on what it gets, may have none: L is in the last; leave out a |");
  CHECK(test::contains(refusal("|Et|L"), "stage 0 of 3 has no layer"));
  CHECK(test::contains(refusal("tE|L"), "E comes after t; the order is E, t, m, L"));
  CHECK(test::contains(refusal("Em|tL"), "t comes after m"));
  CHECK(test::contains(refusal("t|tL"), "there must be one E (the embedding), and there are 0"));
  CHECK(test::contains(refusal("EEt|L"), "there must be one E (the embedding), and there are 2"));
  CHECK(test::contains(refusal("Et|t"), "there must be one L (the loss), and there are 0"));
}

TEST_CASE("a stage between others may be empty, and passes on what it gets") {
  using Stages = std::vector<std::string>;
  CHECK(parse_megatron("Et||tL") == Stages{"Et", "", "tL"});
  CHECK(parse_megatron("E|*3tL") == Stages{"E", "", "", "tL"});
  const Model gpt = transformer(2);
  CHECK(
      test::complaint<UsageError>([&] { cut("Et||tL", gpt); }) ==
      "Megatron layout \"Et||tL\": stage 1 of 3 has no layer, and tiny has none of kind pass that "
      "could stand for it");
  const Model passing = with_empty_stages("Et||tL", gpt);
  REQUIRE(passing.layers.size() == gpt.layers.size() + 1);
  CHECK(passing.layers[3].kind == pass_kind);
  CHECK(passing.layers[3].output == gpt.layers[2].output);
  const Partition partition = cut("Et||tL", passing);
  CHECK(print(partition) == "0-2 | 3 | 4-7");
  CHECK(write_megatron(partition, looped(3, 3), passing) == "Et||tL\n");
  CHECK(with_empty_stages("Et|tL", gpt).layers.size() == gpt.layers.size());
  CHECK(test::contains(test::complaint<UsageError>([&] { cut("Et|tL", passing); }),
                       "pass1 of tiny is a stage by itself"));
}

// Blocks with a skip around each, so that two tensors cross most cuts.
Model with_skips(std::mt19937& random, int blocks) {
  Model model = transformer(blocks);
  for (Layer& layer : model.layers) {
    layer.output = Bytes{1 + static_cast<std::int64_t>(random() % 100)};
    if (random() % 2 == 0) layer.output_kept = layer.output;
    layer.stash_input_grad = Bytes{200 + static_cast<std::int64_t>(random() % 100)};
  }
  if (random() % 2 == 0) return model;
  model.edges = edges_of(model);
  for (int block = 0; block < blocks; ++block) model.edges.push_back({2 * block, 2 * block + 2});
  return model;
}

TEST_CASE("an empty stage costs messages and nothing else") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const int blocks = 2 + static_cast<int>(random() % 5);
    const Model model = with_skips(random, blocks);
    // The layout with empty stages, and without.
    std::string full = "E";
    std::string plain = "E";
    std::vector<bool> empty{false};
    for (int block = 0; block <= blocks; ++block) {
      if (block == 1 || random() % 2 == 0) {
        const int more = static_cast<int>(random() % 3);
        full += "|" + std::string(as_size(more), '|');
        plain += "|";
        empty.insert(empty.end(), as_size(more), true);
        empty.push_back(false);
      }
      const char* const letter = block < blocks ? "t" : "L";
      full += letter;
      plain += letter;
    }
    CAPTURE(full);
    const Model passing = with_empty_stages(full, model);
    const auto costs_of = [](const Model& of, const Partition& partition) {
      return stage_costs(of, partition, looped(partition.stages, 1),
                         uniform_cluster(1, std::nullopt, std::nullopt));
    };
    const Costs with = costs_of(passing, cut(full, passing));
    const Costs without = costs_of(model, cut(plain, model));
    REQUIRE(with.stage.size() == empty.size());
    std::size_t next = 0;
    for (std::size_t s = 0; s < empty.size(); ++s) {
      const StageCosts& stage = with.stage[s];
      if (empty[s]) {
        CHECK(stage.forward == Time{});
        CHECK(stage.backward == Time{});
        CHECK(stage.weights == Bytes{});
        CHECK(stage.stash() == Bytes{});
        CHECK(stage.boundary > Bytes{});
        continue;
      }
      const StageCosts& same = without.stage[next++];
      CHECK(stage.forward == same.forward);
      CHECK(stage.backward == same.backward);
      CHECK(stage.weights == same.weights);
      if (model.edges.empty()) CHECK(stage.stash() == same.stash());
    }
  }
}

TEST_CASE("a layout cuts a transformer between its blocks") {
  const Model gpt = transformer(6);
  CHECK(print(cut("Et*2|t|t*2|tL", gpt)) == print(cut("Ett|t|tt,|tL", gpt)));
  CHECK(print(cut("Et*2|t|t*2|tL", gpt)) == "0-4 | 5-6 | 7-10 | 11-14");
  CHECK(print(cut("E|t*6|L", gpt)) == "0 | 1-12 | 13-14");
  CHECK(test::complaint<UsageError>([&] { cut("Et*2|tL", gpt); }) ==
        "Megatron layout \"Et*2|tL\" has 3 decoder layers (t), but tiny has 6");
  CHECK(test::complaint<UsageError>([&] { cut("Et*6|mL", gpt); }) ==
        "Megatron layout \"Et*6|mL\" has 1 multi-token prediction layers (m), but tiny has 0");
}

TEST_CASE("the built-in gpt is such a transformer") {
  const ModelShape shape = parse_shape("gpt,layers=4");
  Model gpt;
  gpt.name = shape.name;
  for (const LayerShape& layer : shape.layers) {
    gpt.layers.emplace_back();
    gpt.layers.back().name = layer.name;
    gpt.layers.back().kind = layer.kind;
  }
  const Partition partition = cut("Et|tt|tL", gpt);
  CHECK(write_megatron(partition, looped(3, 3), gpt) == "Et|t*2|tL\n");
  CHECK(gpt.layers[2].name == "h.0.mlp");
  CHECK(partition.stage_of[2] == 0);
  CHECK(partition.stage_of[3] == 1);
}

TEST_CASE("other layers belong to the block before them, or to the loss") {
  const Model model = model_of({{"tokens", "embedding"},
                                {"positions", "embedding"},
                                {"a", "attention"},
                                {"gate", "linear"},
                                {"b", "moe"},
                                {"between", "dropout"},
                                {"c", "block"},
                                {"final", "norm"},
                                {"more", "mtp"},
                                {"head", "linear"},
                                {"loss", "loss"}});
  CHECK(print(cut("E|t|t|m|L", model)) == "0-1 | 2-5 | 6-7 | 8 | 9-10");
  CHECK(write_megatron(cut("Et|tm|L", model), looped(3, 1), model) == "Et|tm|L\n");
}

TEST_CASE("a model that is no transformer is refused") {
  const auto refused = [](const Model& model) {
    return test::complaint<UsageError>([&] { cuts_from_megatron("Et|tL", model); });
  };
  CHECK(
      refused(model_of({{"conv", "conv"}, {"fc", "linear"}})) ==
      "a Megatron layout is of transformers, and tiny has no blocks (layers of kind attention and "
      "mlp, or block)");
  CHECK(test::contains(refused(model_of({{"a", "block"}, {"b", "block"}, {"head", "linear"}})),
                       "begins with the embedding, and tiny begins with a block (a)"));
  CHECK(test::contains(refused(model_of({{"e", "embedding"}, {"a", "block"}, {"b", "block"}})),
                       "ends with the loss, and tiny ends with layer b, which is none"));
  CHECK(test::contains(refused(model_of({{"e", "embedding"}, {"a", "attention"}, {"h", "linear"}})),
                       "a block begins with layer a of tiny, but no mlp ends it"));
}

TEST_CASE("what is written is read as the same cut") {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const int blocks = 1 + static_cast<int>(random() % 12);
    const Model model = transformer(blocks);
    std::vector<int> last_layers;
    for (int unit = 0; unit <= blocks; ++unit) {
      if (random() % 2 == 0) last_layers.push_back(2 * unit);
    }
    const Partition partition =
        partition_from_cuts(last_layers, static_cast<int>(model.layers.size()));
    const std::string layout =
        write_megatron(partition, looped(partition.stages, partition.stages), model);
    CAPTURE(layout);
    CHECK(looks_like_megatron(layout));
    CHECK(cut(layout, model) == partition);
  }
}

TEST_CASE("equal stages are written once") {
  const Model model = transformer(12);
  const Partition partition = cut("E(tt|)*5t|tL", model);
  CHECK(write_megatron(partition, looped(7, 7), model) == "Et*2|(t*2|)*4t|tL\n");
  CHECK(cut("Et*2|(t*2|)*4t|tL", model) == partition);
}

TEST_CASE("what Megatron would place elsewhere is refused") {
  const Model model = transformer(4);
  const Partition partition = cut("Et|t|t|tL", model);
  CHECK(write_megatron(partition, looped(4, 2), model) == "Et|(t|)*2tL\n");
  const auto refused = [&](Placement placement, const Partition& of) {
    return test::complaint<UsageError>([&] { write_megatron(of, placement, model); });
  };
  Placement v_shape = looped(4, 2);
  std::swap(v_shape.stage[2], v_shape.stage[3]);
  CHECK(refused(v_shape, partition) ==
        "Megatron puts stage k on device k mod 2, so stage 2 on device 0, and here it is on device "
        "1");
  Placement replicated = looped(4, 4);
  replicated.stage[1].replicas = {1, 4};
  CHECK(refused(replicated, partition) ==
        "Megatron has each stage on one device, and stage 1 lives on several");
  CHECK(refused(looped(3, 2), cut("Et|t|ttL", model)) ==
        "Megatron has as many stages on each device, and 3 stages do not go into 2 devices");
  CHECK(
      refused(looped(2, 2), partition_from_cuts({3}, 11)) ==
      "Megatron cuts between its layers only, and a block (layers h.1.attention to h.1.mlp) is cut "
      "between stages 0 and 1; give a --partition that keeps it whole");
}

TEST_CASE("a layout is a partition like any other") {
  const Model model = transformer(6);
  const Cluster cluster = uniform_cluster(3, std::nullopt, std::nullopt);
  const PartitionRequest request{model, cluster, 3, false, "", {}};
  CHECK(print(partition("Et*2|tt|ttL", request).partition) == "0-4 | 5-8 | 9-14");
  CHECK(test::contains(test::complaint<UsageError>([&] { partition("Et*3|t*3L", request); }),
                       "has 2 stages, but the schedule makes 3 on 3 devices"));
  // A layer of that name comes first.
  const Model named = model_of({{"E", "linear"}, {"b", "linear"}, {"c", "linear"}});
  const PartitionRequest by_name{named, cluster, 2, false, "", {}};
  CHECK(print(partition("E", by_name).partition) == "0 | 1-2");
}

}  // namespace
}  // namespace stageline::megatron_tests
