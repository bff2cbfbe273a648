// Do the rows of a trace's costs add up, is a measured trace checked, are two traces matched?
#include "cost_models/breakdown.hpp"

#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "traces/traces.hpp"

namespace stageline::breakdown_tests {
namespace {

Layer layer(const std::string& name, const std::string& kind, std::int64_t forward,
            std::int64_t input_grad, std::int64_t weight_grad, std::int64_t update = 0) {
  Layer made;
  made.name = name;
  made.kind = kind;
  made.forward = Time{forward};
  made.input_grad = Time{input_grad};
  made.weight_grad = Time{weight_grad};
  made.backward = made.input_grad + made.weight_grad;
  made.update = Time{update};
  return made;
}

Model model_of(std::vector<Layer> layers) {
  Model model;
  model.name = "m";
  model.batch = 1;
  model.layers = std::move(layers);
  return model;
}

std::vector<std::string> names_of(const std::vector<CostRow>& rows) {
  std::vector<std::string> names;
  for (const CostRow& row : rows) names.push_back(row.name);
  return names;
}

std::vector<std::string> names_of(const std::vector<CostPair>& pairs) {
  std::vector<std::string> names;
  for (const CostPair& pair : pairs) names.push_back(pair.first.name);
  return names;
}

template <class Run>
std::string usage_error_of(Run run) {
  try {
    run();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

using Names = std::vector<std::string>;

TEST_CASE("weights that are the first layer's are counted and updated there alone") {
  Layer embedding = layer("embedding", "embedding", 1, 0, 1, 8);
  embedding.weights = Bytes{800};
  Layer head = layer("head", "head", 5, 5, 5, 9);
  head.weights = Bytes{900};
  head.tied_weights = Bytes{800};
  const std::vector<CostRow> rows = cost_rows(model_of({embedding, head}), CostsBy::layer);
  CHECK(rows[1].weights == Bytes{100});
  CHECK(rows[1].update == Time{1});
  CHECK(sum_of(rows, "total").weights == Bytes{900});
  CHECK(sum_of(rows, "total").update == Time{9});
}

TEST_CASE("a row holds a layer's times, both stashes together and the spreads of F, B and update") {
  Layer one = layer("a", "conv", 1, 2, 3, 4);
  one.backward = Time{50};
  one.output = Bytes{6};
  one.stash_input_grad = Bytes{7};
  one.stash_weight_grad = Bytes{80};
  one.weights = Bytes{9};
  one.forward_spread = Time{100};
  one.input_grad_spread = Time{200};
  one.weight_grad_spread = Time{400};
  one.update_spread = Time{800};
  CostRow row = cost_rows(model_of({one}), CostsBy::layer).at(0);
  CHECK(row.step() == Time{1 + 50 + 4});
  CHECK(row.output == Bytes{6});
  CHECK(row.stash == Bytes{87});
  CHECK(row.weights == Bytes{9});
  CHECK(row.spread == Time{100 + 200 + 400 + 800});
  one.backward_spread = Time{1600};
  row = cost_rows(model_of({one}), CostsBy::layer).at(0);
  CHECK(row.spread == Time{100 + 1600 + 800});
}

TEST_CASE("rows by kind add up the layers of a kind, the most expensive kind first") {
  const Model model = model_of({layer("a", "relu", 1, 1, 0), layer("b", "conv", 10, 10, 10, 5),
                                layer("c", "relu", 2, 2, 0), layer("d", "pool", 3, 3, 0)});
  const std::vector<CostRow> rows = cost_rows(model, CostsBy::kind);
  // relu and pool take 6 each: relu came first.
  CHECK(names_of(rows) == Names{"conv", "relu", "pool"});
  CHECK(rows[1].layers == 2);
  CHECK(rows[1].forward == Time{3});
  CHECK(rows[1].step() == Time{6});
  CHECK(sum_of(rows, "all").step() == sum_of(cost_rows(model, CostsBy::layer), "all").step());
  CHECK(sum_of(rows, "all").layers == 4);
}

TEST_CASE("a row of several layers has no spread, since quartiles do not add up") {
  Model model = model_of({layer("a", "x", 1, 1, 1), layer("b", "x", 1, 1, 1)});
  for (Layer& one : model.layers) one.forward_spread = Time{1};
  CHECK(cost_rows(model, CostsBy::kind).at(0).spread == Time{});
  CHECK(sum_of(cost_rows(model, CostsBy::layer), "total").spread == Time{});
}

TEST_CASE("the largest rows come largest first, and earlier ones first where they are as large") {
  const std::vector<Time> times{Time{3}, Time{9}, Time{3}, Time{7}};
  CHECK(largest(times, 3) == std::vector<std::size_t>{1, 3, 0});
  CHECK(largest(times, 4) == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(largest(times, 1000) == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(largest({}, 1).empty());
}

TEST_CASE("layers that add up to more than can be counted are refused") {
  Model model = uniform_model("layers=100,forward=100000s");
  CHECK(usage_error_of([&] { cost_rows(model, CostsBy::layer); }).find("add up to 1e+07 s") !=
        std::string::npos);
  model = uniform_model("layers=2");
  for (Layer& one : model.layers) one.stash_weight_grad = Bytes{std::int64_t{1} << 62U};
  CHECK(usage_error_of([&] { cost_rows(model, CostsBy::layer); }).find("bytes") !=
        std::string::npos);
  model = uniform_model("layers=90,forward=100000s");
  CHECK(sum_of(cost_rows(model, CostsBy::layer), "").forward == 90 * parse_time("100000s"));
}

TEST_CASE("the layers are checked against the whole run, part by part") {
  Model model = model_of({layer("a", "x", 30, 40, 20, 5), layer("b", "x", 70, 80, 60, 5)});
  CHECK(!check_of(model));
  model.whole = {21, Time{80}, Time{250}, Time{10}, Time{17}, Time{34}};
  const std::optional<CostCheck> check = check_of(model);
  REQUIRE(check);
  CHECK(check->samples == 21);
  CHECK(check->layers == Time{100 + 200 + 10});
  CHECK(check->whole == Time{340});
  CHECK(*check->difference == doctest::Approx(310.0 / 340 - 1));
  CHECK(*check->forward == doctest::Approx(0.25));
  CHECK(*check->backward == doctest::Approx(-0.2));
  CHECK(*check->update == doctest::Approx(0));
  CHECK(*check->spread == doctest::Approx(0.05));
  CHECK(*check->noise == doctest::Approx(0.1));
  CHECK(check->within_noise);
  model.whole.noise = Time{29};
  CHECK(!check_of(model)->within_noise);
  model.whole.noise = Time{30};  // as large as the difference
  CHECK(check_of(model)->within_noise);
}

TEST_CASE("a whole run without time or without updates has no difference in them") {
  Model model = model_of({layer("a", "x", 30, 40, 20, 5)});
  model.whole = {3, Time{30}, Time{60}, Time{}, Time{}, Time{}};
  CHECK(check_of(model)->difference);
  CHECK(!check_of(model)->update);
  model.whole = {3, {}, {}, {}, {}, {}};
  CHECK(!check_of(model)->difference);
  CHECK(!check_of(model)->noise);
  CHECK(!check_of(model)->within_noise);
}

TEST_CASE("I and W apart are compared with the backward in one piece") {
  CostRow row;
  CHECK(!split_over_fused(row));
  row.input_grad = Time{30};
  row.weight_grad = Time{24};
  row.backward = Time{50};
  CHECK(*split_over_fused(row) == doctest::Approx(1.08));
}

TEST_CASE("two traces are matched by the names of their layers, in the order of the first") {
  const Model first = model_of(
      {layer("a", "x", 1, 1, 0), layer("only", "x", 5, 5, 5), layer("b", "y", 10, 10, 10)});
  const Model second = model_of(
      {layer("b", "z", 20, 20, 20), layer("other", "z", 7, 7, 7), layer("a", "x", 4, 4, 0)});
  const CostsAgainst against = costs_against(first, second);
  CHECK(names_of(against.layers) == Names{"a", "b"});
  CHECK(against.layers[1].second.forward == Time{20});
  CHECK(against.only_first == Names{"only"});
  CHECK(against.only_second == Names{"other"});
  CHECK(against.total.first.step() == Time{32});
  CHECK(against.total.second.step() == Time{68});
  CHECK(against.updates);
}

TEST_CASE("two traces without a layer in common are refused, with their first names") {
  const Model first = model_of({layer("conv1", "x", 1, 1, 1)});
  const Model second = model_of({layer("node1", "x", 1, 1, 1)});
  CHECK(usage_error_of([&] {
          costs_against(first, second);
        }).find("(their first are \"conv1\" and \"node1\")") != std::string::npos);
}

TEST_CASE("updates are left out of both where only one trace knows them") {
  const Model with = model_of({layer("a", "x", 1, 1, 1, 100), layer("b", "x", 1, 1, 1)});
  const Model without = model_of({layer("a", "x", 2, 2, 2), layer("b", "x", 2, 2, 2)});
  for (const CostsAgainst& against : {costs_against(with, without), costs_against(without, with)}) {
    CHECK(!against.updates);
    CHECK(against.layers[0].first.update + against.layers[0].second.update == Time{});
    CHECK(against.total.longer() == Time{12});
  }
  CHECK(costs_against(with, with).total.longer() == Time{106});
}

TEST_CASE("pairs by kind go by the first trace's kinds") {
  const Model first = model_of(
      {layer("a", "relu", 1, 1, 0), layer("b", "conv", 10, 10, 10), layer("c", "relu", 2, 2, 0)});
  Model second = first;
  for (Layer& one : second.layers) one.kind = "other";
  const std::vector<CostPair> pairs = cost_pairs(costs_against(first, second), CostsBy::kind);
  CHECK(names_of(pairs) == Names{"conv", "relu"});
  CHECK(pairs[1].second.layers == 2);
  CHECK(pairs[1].second.step() == Time{6});
}

TEST_CASE("the layers that differ most are ranked by ratio and by time") {
  // Totals 1000 and 1682, so 0.59. Off by a factor of: a 1.2, b 1.3, c 2.4, d 4.2; e infinitely,
  // but it is under 1 % of both; f has no partner.
  const auto forward = [](const std::vector<std::pair<std::string, int>>& times) {
    std::vector<Layer> layers;
    for (const auto& [name, time] : times) layers.push_back(layer(name, "x", time, 0, 0));
    return model_of(layers);
  };
  const Model first = forward({{"a", 450}, {"b", 240}, {"c", 100}, {"d", 205}, {"e", 5}});
  const Model second = forward({{"a", 900}, {"b", 300}, {"c", 400}, {"d", 82}, {"e", 0}, {"f", 1}});
  const CostsAgainst against = costs_against(first, second);
  REQUIRE(*ratio(against.total.first.step(), against.total.second.step()) ==
          doctest::Approx(1000.0 / 1682));
  const DifferMost most = differ_most(against);
  CHECK(names_of(most.by_ratio) == Names{"d", "c", "b"});
  CHECK(names_of(most.by_time) == Names{"a", "c", "d"});
}

TEST_CASE("a layer that takes no time in one of two traces differs most by ratio") {
  const Model first = model_of({layer("a", "x", 10, 0, 0), layer("b", "x", 20, 0, 0)});
  const Model second = model_of({layer("a", "x", 0, 0, 0), layer("b", "x", 80, 0, 0)});
  CHECK(names_of(differ_most(costs_against(first, second)).by_ratio) == Names{"a", "b"});
}

TEST_CASE("equal traces do not differ, traces that are twice as fast throughout only in time") {
  const Model one = uniform_model("layers=4,forward=2ms");
  Model twice = one;
  for (Layer& made : twice.layers) {
    made.forward *= 2;
    made.backward *= 2;
  }
  CHECK(differ_most(costs_against(one, one)).by_time.empty());
  CHECK(differ_most(costs_against(one, one)).by_ratio.empty());
  CHECK(differ_most(costs_against(one, twice)).by_ratio.empty());
  CHECK(differ_most(costs_against(one, twice)).by_time.size() == 3);
}

}  // namespace
}  // namespace stageline::breakdown_tests
