// Does every device get an equal part of the vocabulary's weights and passes, and is nothing lost?
#include "cost_models/spread_vocabulary.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::spread_vocabulary_tests {
namespace {

Layer layer_of(const char* kind, std::int64_t weights, std::int64_t time) {
  Layer layer;
  layer.name = layer.kind = kind;
  layer.parameters = weights / 2;
  layer.weights = layer.gradients = Bytes{weights};
  layer.optimizer_state = Bytes{6 * weights};
  layer.forward = layer.input_grad = layer.weight_grad = Time{time};
  layer.backward = Time{2 * time};
  layer.update = Time{time};
  layer.output = Bytes{100};
  return layer;
}

// A hidden state of 100 bytes, and logits of 1000.
Model small_model() {
  Model model;
  model.name = "small";
  model.layers = {layer_of("embedding", 4000, 8), layer_of("block", 300, 50),
                  layer_of("block", 300, 50), layer_of("head", 4010, 400)};
  Layer& embedding = model.layers.front();
  embedding.input_grad = Time{};
  embedding.backward = embedding.weight_grad;
  embedding.stash_weight_grad = Bytes{7};
  Layer& head = model.layers.back();
  head.output = Bytes{4};
  head.stash_input_grad = Bytes{100};
  head.stash_weight_grad = Bytes{1100};
  head.backward_workspace = Bytes{2100};
  head.forward_flops = 801;
  return model;
}

TEST_CASE("shares have equal parts of the head and of both ends' weights, which add up exactly") {
  for (const int shares : {1, 2, 3, 7}) {
    CAPTURE(shares);
    const Model spread = spread_vocabulary(small_model(), shares, false);
    REQUIRE(spread.layers.size() == as_size(2 + shares));
    Layer sum;
    for (int i = 0; i < shares; ++i) {
      const Layer& share = nth(spread.layers, 2 + i);
      CHECK(share.weights.count / 2 - 8010 / shares / 2 <= 1);
      CHECK(share.stash_weight_grad.count - (100 + 1000 / shares) <= 1);  // its input, whole
      CHECK(share.backward_workspace.count - (100 + 2000 / shares) <= 1);
      CHECK(share.backward == share.input_grad + share.weight_grad);
      sum.weights += share.weights;
      sum.gradients += share.gradients;
      sum.optimizer_state += share.optimizer_state;
      sum.parameters += share.parameters;
      sum.forward_flops += share.forward_flops;
      sum.update += share.update;
      sum.forward += share.forward - Time{8};  // each has the whole lookup
      sum.weight_grad += share.weight_grad - Time{8};
      sum.input_grad += share.input_grad;
    }
    CHECK(sum.weights == Bytes{8010});
    CHECK(sum.gradients == Bytes{8010});
    CHECK(sum.optimizer_state == Bytes{48060});
    CHECK(sum.parameters == 4005);
    CHECK(sum.forward_flops == 801);
    CHECK(sum.update == Time{408});
    CHECK(sum.forward == Time{400});
    CHECK(sum.input_grad == Time{400});
    CHECK(sum.weight_grad == Time{400});
    CHECK(spread.layers.front().stash_weight_grad == Bytes{7});  // what the embedding keeps
  }
}

TEST_CASE("tied weights are divided once") {
  Model tied = small_model();
  tied.layers.back().tied_weights = Bytes{4000};
  tied.layers.back().parameters = 5;
  const Model spread = spread_vocabulary(tied, 2, false);
  CHECK(nth(spread.layers, 2).weights + nth(spread.layers, 3).weights == Bytes{4010});
  CHECK(nth(spread.layers, 2).optimizer_state + nth(spread.layers, 3).optimizer_state ==
        Bytes{24060});
  CHECK(nth(spread.layers, 2).tied_weights == Bytes{});
}

TEST_CASE("shares are beside each other, and the loss reads three numbers a row from each") {
  const Model spread = spread_vocabulary(small_model(), 2, true);
  CHECK(spread.edges == std::vector<LayerEdge>{{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}});
  CHECK(spread.layers.back().kind == "loss");
  CHECK(spread.layers.back().forward == Time{});
  CHECK(nth(spread.layers, 2).output == Bytes{12});
}

TEST_CASE("a model whose ends are no vocabulary is refused") {
  Model other = small_model();
  other.layers.back().kind = "linear";
  CHECK_THROWS_WITH_AS(
      spread_vocabulary(other, 2, false),
      "small: a vocabulary is divided where the first layer is of kind \"embedding\", the last of "
      "kind \"head\" and others are between, and of its 4 layers the first is of kind \"embedding\" "
      "and the last \"linear\"; take vocabulary=whole, or give the layers these kinds in the trace",
      UsageError);
  Model skips = small_model();
  skips.edges = {{0, 1}, {1, 2}, {1, 3}, {2, 3}};
  CHECK_THROWS_WITH_AS(
      spread_vocabulary(skips, 2, false),
      "small: a vocabulary is divided where the embedding is read by the next layer alone and the "
      "head reads the one before alone, and layer 1 (\"block\") is read by layer 3 (\"head\"); take "
      "vocabulary=whole",
      UsageError);
}

// Of 4 devices, three messages of a third of the hidden state each way out; an all-reduce moves
// 2·3/4 of it over each link of a ring, in three messages half of it each.
TEST_CASE("messages between the last stage and the shares take the time of a ring") {
  Costs costs = uniform_costs(8, 4, Time{1}, Time{1}, Time{1});
  costs.edges.clear();
  for (const StageEdge edge :
       {StageEdge{2, 3}, StageEdge{3, 4}, StageEdge{3, 5}, StageEdge{3, 6}, StageEdge{3, 7}}) {
    costs.edges.push_back({edge, Bytes{1200}, Bytes{1200}});
  }
  exchange_in_rings(costs, 4);
  CHECK(costs.edges[0].activation == Bytes{1200});  // between stages of the pipeline
  for (const std::size_t edge : {1U, 2U, 3U}) {
    CHECK(costs.edges[edge].activation == Bytes{400});
    CHECK(costs.edges[edge].gradient == Bytes{600});
  }
  CHECK(costs.edges[4].activation == Bytes{1200});  // on the same device
}

}  // namespace
}  // namespace stageline::spread_vocabulary_tests
