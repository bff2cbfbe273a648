// What is rebuilt, what is kept for it, and how long does that take?
#include "cost_models/recomputation.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cost_models/stage_costs.hpp"
#include "sim/base/errors.hpp"
#include "tests/text.hpp"

namespace stageline::recomputation_tests {
namespace {

using test::complaint;
using test::contains;

Recomputation asked(const std::string& text) { return parse_recomputation(text, "--recompute"); }

std::string refused(const std::string& text) {
  return complaint<UsageError>([&] { asked(text); });
}

// A chain of layers that keep their input (10) and make as much; 4 more of the stash is scores,
// which selective recomputation rebuilds, and 30 is the rest.
Model chain(int layers) {
  Model model;
  model.name = "chain";
  model.batch = 1;
  model.input = Bytes{10};
  Layer layer;
  layer.forward = Time{100};
  layer.input_grad = layer.weight_grad = Time{100};
  layer.backward = Time{200};
  layer.output = Bytes{10};
  layer.stash_input_grad = Bytes{14};
  layer.stash_weight_grad = Bytes{30};
  layer.selective_forward = Time{7};
  layer.selective_stash = Bytes{4};
  for (int l = 0; l < layers; ++l) {
    layer.name = "layer" + std::to_string(l);
    model.layers.push_back(layer);
  }
  return model;
}

StageCosts one_stage(const Model& model, const std::string& text) {
  const int layers = static_cast<int>(model.layers.size());
  return stage_costs(model, partition_from_cuts({}, layers), straight_placement(1),
                     uniform_cluster(1, std::nullopt, std::nullopt),
                     text.empty() ? Recomputation{} : asked(text))
      .stage[0];
}

TEST_CASE("parts are ways of recomputing, each for all stages or for some") {
  CHECK(asked("full").parts == std::vector<Recomputation::Part>{{{Rebuild::full, 1}, {}}});
  CHECK(asked("every:12@3-").parts ==
        std::vector<Recomputation::Part>{{{Rebuild::every, 12}, {{3, std::nullopt}}}});
  const std::vector<Recomputation::Part> three{{{Rebuild::selective, 1}, {}},
                                               {{Rebuild::full, 1}, {{0, 0}, {2, 3}}},
                                               {{Rebuild::none, 1}, {{5, 5}}}};
  CHECK(asked("selective,full@0,2-3,none@5").parts == three);
  CHECK(asked("selective;full@0,2-3;none@5").parts == three);
}

TEST_CASE("what is no way of recomputing is refused with the ways there are") {
  CHECK(refused("ful") ==
        "--recompute is none, selective, modules:NAME[+NAME…], ops, full, every:N or block:N, with "
        "@STAGES, @layers:LAYERS or for all "
        "(not \"ful\" (did you mean \"full\"?))");
  CHECK(contains(refused(""), "(not \"\")"));
  CHECK(contains(refused("full,0"), "(not \"0\")"));
  CHECK(refused("every:0") ==
        "--recompute: every:0: N of every:N is a whole number of layers from 1, those of a block");
  CHECK(contains(refused("every:two"), "every:two"));
  CHECK(refused("full@3-1") == "--recompute: the stages 3-1 run backwards; write 1-3");
  for (const char* const stages : {"full@", "full@a", "full@-1", "full@1-b", "full@0,"}) {
    CHECK(contains(refused(stages), "--recompute"));
  }
  CHECK(complaint<UsageError>([] { parse_recompute_start("lat", "--recompute-start"); }) ==
        "--recompute-start is one of early, late (not \"lat\" (did you mean \"late\"?))");
}

TEST_CASE("the last part that names a stage decides, and a stage that is not there is refused") {
  const Model model = chain(6);
  const Partition partition{{0, 0, 1, 1, 1, 2}, 3};
  CHECK(by_stage(Recomputation{}, model, partition).empty());
  const StageRecomputation none;
  const StageRecomputation selective{Rebuild::selective, 1};
  const StageRecomputation full{Rebuild::full, 1};
  const StageRecomputation pairs{Rebuild::every, 2};
  CHECK(by_stage(asked("selective,full@1-,none@2"), model, partition) ==
        std::vector<StageRecomputation>{selective, full, none});
  // A block as long as the stage is the stage.
  CHECK(by_stage(asked("every:2"), model, partition) ==
        std::vector<StageRecomputation>{full, pairs, full});
  CHECK(complaint<UsageError>([&] { by_stage(asked("full@0-3"), model, partition); }) ==
        "--recompute names stage 3, but there are 3 stages, 0 to 2");
  CHECK(contains(complaint<UsageError>([&] { by_stage(asked("full@7-"), model, partition); }),
                 "names stage 7, but there are 3 stages"));
}

TEST_CASE("selective recomputation needs layers that say what it rebuilds") {
  Model model = chain(4);
  for (Layer& layer : model.layers) layer.selective_stash = Bytes{};
  const Partition partition{{0, 0, 1, 1}, 2};
  CHECK(contains(complaint<UsageError>([&] { by_stage(asked("selective"), model, partition); }),
                 "no layer of chain says what selective recomputation rebuilds"));
  model.layers[3].selective_stash = Bytes{4};
  CHECK(by_stage(asked("selective"), model, partition) ==
        std::vector<StageRecomputation>{{}, {Rebuild::selective, 1}});
}

// The chain, of which the layers 1 to 3 say what two modules rebuild.
Model with_modules() {
  Model model = chain(4);
  for (std::size_t l = 1; l < 4; ++l) {
    Layer& layer = model.layers[l];
    layer.modules.push_back({"moe_act", Time{5}, Bytes{3}, 50, {}});
    layer.modules.push_back({"layernorm", Time{2}, Bytes{6}, 0, {}});
  }
  return model;
}

TEST_CASE("modules are named together, in any order") {
  StageRecomputation two{Rebuild::selective, 1};
  two.modules = {"layernorm", "moe_act"};
  CHECK(asked("modules:moe_act+layernorm").parts == std::vector<Recomputation::Part>{{two, {}}});
  CHECK(print(asked("modules:moe_act+layernorm@0,full@1")) == "modules:layernorm+moe_act@0;full@1");
  CHECK(print(asked("ops")) == "ops");
  CHECK(contains(refused("modules:"), "modules: names modules joined by +"));
  CHECK(contains(refused("modules:mlp+"), "modules: names modules joined by +"));
  CHECK(refused("modules:mlp+mlp") == "--recompute: modules:mlp+mlp names mlp twice");
  CHECK(refused("modules:moe+moe_act") ==
        "--recompute: moe_act is part of moe, which makes it again already; leave one out");
  CHECK(contains(refused("modules:ops+mlp"), "write ops alone"));
}

TEST_CASE("a module that no layer has is refused, with those that there are") {
  const Partition partition{{0, 0, 1, 1}, 2};
  const auto why = [&](const std::string& text, const Model& model) {
    return complaint<UsageError>([&] { by_stage(asked(text), model, partition); });
  };
  CHECK(why("modules:mlp", with_modules()) ==
        "--recompute modules:mlp: no layer of chain has that module; they have moe_act and "
        "layernorm");
  CHECK(why("modules:mlp", chain(4)) ==
        "--recompute modules:mlp: no layer of chain has that module; they have none, so take full, "
        "every:N or block:N");
  CHECK(contains(why("ops", with_modules()), "says what torch's policy by ops rebuilds"));
}

TEST_CASE("modules are rebuilt a layer at a time, with the sums of their times and bytes") {
  const StageCosts both = one_stage(with_modules(), "modules:moe_act+layernorm");
  CHECK(both.recompute == Time{3 * 7});
  CHECK(both.boundary == Bytes{44 + 3 * 35});
  CHECK(both.stash() == Bytes{44 + 3 * 35 + 9});
  const StageCosts one = one_stage(with_modules(), "modules:moe_act");
  CHECK(one.recompute == Time{3 * 5});
  CHECK(one.boundary == Bytes{44 + 3 * 41});
  CHECK(one_stage(with_modules(), "none@layers:0-1,modules:moe_act@layers:2-3").recompute ==
        Time{2 * 5});
  // A stage without the module is left alone.
  Model model = with_modules();
  model.layers[1].modules.clear();
  CHECK(by_stage(asked("modules:moe_act"), model, Partition{{0, 0, 1, 1}, 2}).front() ==
        StageRecomputation{});
}

TEST_CASE("of a fused attention, selective recomputation rebuilds the core") {
  Model model = chain(4);
  for (Layer& layer : model.layers) {
    layer.selective_stash = Bytes{};
    layer.selective_forward = Time{};
    layer.modules.push_back({"core_attn", Time{20}, Bytes{1}, 0, {}});
  }
  const StageCosts costs = one_stage(model, "selective");
  CHECK(costs.recompute == Time{4 * 20});
  CHECK(costs.boundary == Bytes{4 * 43});
}

TEST_CASE("block:N is the first blocks of each stage, one by one") {
  const Partition partition{{0, 0, 0, 1, 1, 1}, 2};
  Model model = chain(6);
  CHECK(by_stage(asked("block:2"), model, partition) ==
        by_stage(asked("layers:0-1,3-4"), model, partition));
  CHECK(by_stage(asked("block:9"), model, partition) ==
        by_stage(asked("every:1"), model, partition));
  CHECK(by_stage(asked("full,block:1@1"), model, partition) ==
        by_stage(asked("full@0,layers:3"), model, partition));
  // Embedding and head are no blocks.
  model.layers[0].kind = "embedding";
  for (std::size_t l = 1; l < 5; ++l) model.layers[l].kind = "block";
  CHECK(by_stage(asked("block:1"), model, partition) ==
        by_stage(asked("layers:1,3"), model, partition));
  // Attention and the MLP behind it are one.
  for (const std::size_t l : {1U, 3U}) model.layers[l].kind = "attention";
  for (const std::size_t l : {2U, 4U}) model.layers[l].kind = "mlp";
  CHECK(by_stage(asked("block:1"), model, partition) ==
        by_stage(asked("every:2@layers:1-4"), model, partition));
  CHECK(print(asked("block:2@0-1")) == "block:2@0-1");
  CHECK(contains(refused("block:0"), "N of block:N is a whole number of blocks from 1"));
  CHECK(contains(refused("block:1@layers:2"), "takes stages behind @, no layers"));
}

TEST_CASE("a stage that is recomputed in full keeps its input and takes its forward again") {
  const Model model = chain(4);
  const StageCosts plain = one_stage(model, "");
  CHECK(plain.boundary == Bytes{10});
  CHECK(plain.recompute == Time{400});
  CHECK(plain.stash() == Bytes{4 * 44});
  CHECK(one_stage(model, "full") == plain);
  CHECK(one_stage(model, "none") == plain);
  CHECK(one_stage(model, "every:4") == plain);
}

TEST_CASE("by blocks, a stage keeps the input of each and has one block's stash at a time") {
  const Model model = chain(6);
  for (const int every : {1, 2, 3, 5}) {
    CAPTURE(every);
    const StageCosts blocks = one_stage(model, "every:" + std::to_string(every));
    const int number = (6 + every - 1) / every;
    CHECK(blocks.recompute == Time{600});
    CHECK(blocks.boundary == Bytes{10 * number});
    // Of a block all but its first layer's input is rebuilt.
    CHECK(blocks.stash() == Bytes{10 * number + 44 * every - 10});
    // Behind a separate I all that W reads has added up.
    CHECK(blocks.stash_after_input_grad() == one_stage(model, "").stash_after_input_grad());
    // A layer's output, while F makes the next; and the output gradient, in a backward.
    CHECK(blocks.recomputed_workspace <= Bytes{44});
    CHECK(blocks.backward_workspace <= Bytes{20});
  }
}

TEST_CASE("a tensor that a later block reads is kept as well") {
  Model model = chain(4);
  model.edges = {{0, 1}, {0, 3}, {1, 2}, {2, 3}};  // 0 feeds the last layer, too
  const StageCosts blocks = one_stage(model, "every:2");
  // The stage's input, what 1 makes for 2, and what 0 makes for 3.
  CHECK(blocks.boundary == Bytes{30});
}

TEST_CASE("selective recomputation rebuilds the scores, a layer at a time") {
  const Model model = chain(6);
  const StageCosts selective = one_stage(model, "selective");
  CHECK(selective.recompute == Time{6 * 7});
  CHECK(selective.boundary == Bytes{6 * 40});
  CHECK(selective.stash() == Bytes{6 * 40 + 4});
  CHECK(selective.stash_after_input_grad() == Bytes{6 * 30});
}

TEST_CASE("each stage is recomputed in its own way") {
  const Model model = chain(6);
  const Partition partition{{0, 0, 1, 1, 2, 2}, 3};
  const Costs costs =
      stage_costs(model, partition, straight_placement(3),
                  uniform_cluster(3, std::nullopt, std::nullopt), asked("every:1@0,selective@2"));
  CHECK(costs.stage[0].boundary == Bytes{20});
  CHECK(costs.stage[1].boundary == Bytes{10});
  CHECK(costs.stage[1].recompute == Time{200});
  CHECK(costs.stage[2].boundary == Bytes{80});
  CHECK(costs.stage[2].recompute == Time{14});
}

TEST_CASE("layers of the model are named instead of stages, each a block of its own by default") {
  const std::vector<Recomputation::Part> some{{{Rebuild::full, 1}, {}, {{3, 7}, {9, 9}}},
                                              {{Rebuild::selective, 1}, {{0, 0}}}};
  CHECK(asked("full@layers:3-7,9,selective@0").parts == some);
  CHECK(print(asked("full@layers:3-7,9,selective@0")) == "full@layers:3-7,9;selective@0");
  CHECK(asked("layers:3-").parts == asked("every:1@layers:3-").parts);
  CHECK(parse_recomputation(print(asked("layers:3-")), "--recompute") == asked("layers:3-"));
  CHECK(refused("full@layers:4-2") == "--recompute: the layers 4-2 run backwards; write 2-4");
  CHECK(contains(refused("full@layers:"), "--recompute: layers are numbers from 0 and ranges"));
  const Model model = chain(6);
  const Partition partition{{0, 0, 0, 1, 1, 1}, 2};
  CHECK(complaint<UsageError>([&] { by_stage(asked("layers:4-6"), model, partition); }) ==
        "--recompute names layer 6, but there are 6 layers, 0 to 5");
  using Layers = std::vector<LayerRecomputation>;
  const LayerRecomputation none;
  const LayerRecomputation begins{Rebuild::every, true};
  const LayerRecomputation goes_on{Rebuild::every, false};
  const std::vector<StageRecomputation> stages =
      by_stage(asked("full@layers:1-4,none@layers:3"), model, partition);
  CHECK(stages[0] == StageRecomputation{Rebuild::every, 1, Layers{none, begins, goes_on}});
  CHECK(stages[1] == StageRecomputation{Rebuild::every, 1, Layers{none, begins, none}});
  // Where all layers of a stage are named, the stage is.
  CHECK(by_stage(asked("layers:0-2"), model, partition) ==
        by_stage(asked("every:1@0"), model, partition));
  CHECK(by_stage(asked("full@layers:3-"), model, partition) ==
        by_stage(asked("full@1"), model, partition));
}

TEST_CASE("a part of which later ones name everything decides nothing, and is refused") {
  CHECK(
      refused("full,selective") ==
      "--recompute: \"full\" decides nothing, since \"selective\" behind it names all of its stages, "
      "too; leave one of them out, or give each its own, as in full@0,none@1-");
  for (const char* const text :
       {"full,full", "every:2@0,full", "layers:3-5,none", "full@1,every:2@1",
        "full@1-3;none@0-2;none@3", "full@2-,none@1-", "full,none@0-3,selective@4-",
        "full@layers:2-3,none@layers:1-", "full,none@layers:0-"}) {
    CAPTURE(text);
    CHECK(contains(refused(text), "decides nothing"));
  }
  for (const char* const text :
       {"full,none@1-", "full@1-3,none@0,none@2-3", "full@0-,none@0-4", "full,none@0-3,none@5-",
        "full@0,none@layers:0-", "full@0-2147483647,none@2147483647"}) {
    CAPTURE(text);
    CHECK_NOTHROW(asked(text));
  }
}

TEST_CASE("of layers that are recomputed the input is kept, of the others the stash") {
  const Model model = chain(6);
  // One layer by itself, its input of 10 kept; the other five keep their 44.
  const StageCosts one = one_stage(model, "layers:2");
  CHECK(one.recompute == Time{100});
  CHECK(one.boundary == Bytes{5 * 44 + 10});
  CHECK(one.stash() == Bytes{6 * 44});
  // A block of three: all but its input is rebuilt; as blocks of one, each input is kept.
  const StageCosts block = one_stage(model, "full@layers:1-3");
  CHECK(block.recompute == Time{300});
  CHECK(block.boundary == Bytes{3 * 44 + 10});
  CHECK(block.stash() == Bytes{3 * 44 + 10 + 3 * 44 - 10});
  const StageCosts each = one_stage(model, "layers:1-3");
  CHECK(each.recompute == Time{300});
  CHECK(each.boundary == Bytes{3 * 44 + 30});
  CHECK(each.stash() == Bytes{3 * 44 + 30 + 34});
  // Behind a separate I, W reads the same, however it was made.
  for (const StageCosts& stage : {one, block, each}) {
    CHECK(stage.stash_after_input_grad() == one_stage(model, "").stash_after_input_grad());
  }
  // The first layer's input is the stage's.
  CHECK(one_stage(model, "layers:0").boundary == Bytes{5 * 44 + 10});
  const StageCosts mixed = one_stage(model, "full@layers:0-1,selective@layers:4-5");
  CHECK(mixed.recompute == Time{2 * 100 + 2 * 7});
  CHECK(mixed.boundary == Bytes{10 + 2 * 44 + 2 * 40});
  CHECK(mixed.stash() == Bytes{10 + 2 * 44 + 2 * 40 + 78});
}

TEST_CASE("a tensor that skips a block is kept once, by the block or by the layer that reads it") {
  Model model = chain(4);
  model.edges = {{0, 1}, {0, 3}, {1, 2}, {2, 3}};  // 0 feeds the last layer, too
  // Counted in the stash of 1, which is rebuilt from it; 3 reads what is kept for 1.
  CHECK(one_stage(model, "layers:1").boundary == Bytes{3 * 44 + 10});
  // Rebuilt in 0's block, and read by 3 outside of it: kept, and so is 0's input and 2's.
  CHECK(one_stage(model, "full@layers:0-1").boundary == Bytes{10 + 10 + 2 * 44});
}

TEST_CASE("a stage is kept where none is asked for all of its layers") {
  const Partition partition{{0, 0, 1, 1}, 2};
  const auto kept = [&](const std::string& text) {
    return kept_stages(text.empty() ? Recomputation{} : asked(text), partition);
  };
  CHECK(kept("") == std::vector<bool>{false, false});
  CHECK(kept("none") == std::vector<bool>{true, true});
  CHECK(kept("full@0") == std::vector<bool>{false, false});
  CHECK(kept("none,full@0") == std::vector<bool>{false, true});
  CHECK(kept("full@0,none@1") == std::vector<bool>{false, true});
  CHECK(kept("none@layers:0-2") == std::vector<bool>{true, false});
  CHECK(kept("full,none@layers:2-3") == std::vector<bool>{false, true});
}

TEST_CASE("offloading is of none, of all or of some stages") {
  const auto of = [](const std::string& text, int stages) {
    return by_stage(parse_offloading(text, "--offload"), stages);
  };
  CHECK(of("none", 3).empty());
  CHECK(parse_offloading("none", "--offload").none);
  CHECK(print(parse_offloading("none", "--offload")) == "none");
  CHECK_FALSE(Offloading{}.none);
  CHECK(of("all", 3) == std::vector<bool>{true, true, true});
  CHECK(of("@0,2-", 4) == std::vector<bool>{true, false, true, true});
  CHECK(complaint<UsageError>([&] { of("al", 3); }) ==
        "--offload is none, all, block:N or stages such as @0,2-3 (not \"al\" (did you mean "
        "\"all\"?))");
  const Offloading first = parse_offloading("block:20", "--offload");
  CHECK(first.blocks == 20);
  CHECK(first.any());
  CHECK_FALSE(first.of_stages());
  CHECK(by_stage(first, 3).empty());
  CHECK(print(first) == "block:20");
  for (const char* const none : {"block:", "block:0", "block:-1", "block:two"}) {
    CAPTURE(none);
    CHECK(
        complaint<UsageError>([&] { of(none, 3); }) ==
        fmt::format("--offload: N of block:N is a whole number of blocks from 1, the first ones of "
                    "a stage (not \"{}\")",
                    std::string(none).substr(6)));
  }
  CHECK(complaint<UsageError>([&] { of("@1,5", 3); }) ==
        "--offload names stage 5, but there are 3 stages, 0 to 2");
}

}  // namespace
}  // namespace stageline::recomputation_tests
