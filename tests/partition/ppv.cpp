// Does a pipeline placement vector cut where the stale-weights paper says?
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "cost_models/roofline.hpp"
#include "cost_models/shapes/shapes.hpp"
#include "schedulers/partition/partitioner.hpp"
#include "sim/base/errors.hpp"
#include "tests/partition/models.hpp"

namespace stageline::ppv_tests {

using namespace stageline::testing;

namespace {

// Two residual blocks of a profile, layer by layer as a framework sees it. `+` adds.
Model small_resnet() {
  struct Entry {
    const char* name;
    const char* kind;
    std::int64_t weights;
  };
  Model model = chain(std::vector<int>(13, 1));
  model.name = "small";
  const std::vector<Entry> entries = {
      {"conv1", "conv", 40}, {"bn1", "norm", 4},    {"relu1", "activation", 0},
      {"conv2", "conv", 40}, {"bn2", "norm", 4},    {"add2", "add", 0},
      {"relu2", "relu", 0},  {"conv3", "conv", 40}, {"bn3", "batch_norm", 4},
      {"add3", "add", 0},    {"relu3", "relu", 0},  {"pool", "pool", 0},
      {"fc", "linear", 100}};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    model.layers[i].name = entries[i].name;
    model.layers[i].kind = entries[i].kind;
    model.layers[i].weights = Bytes{entries[i].weights};
    if (i > 0) model.edges.push_back({static_cast<int>(i) - 1, static_cast<int>(i)});
  }
  model.edges.push_back({2, 5});
  model.edges.push_back({6, 9});
  return model;
}

PartitionPlan plan_of(const Model& model, const std::string& vector, int stages) {
  const Cluster cluster = devices(stages);
  return partition("ppv:" + vector, {model, cluster, stages, false, ""});
}

std::string cut(const Model& model, const std::string& vector, int stages) {
  return print(plan_of(model, vector, stages).partition);
}

std::string refusal(const Model& model, const std::string& vector, int stages) {
  try {
    return cut(model, vector, stages);
  } catch (const UsageError& error) {
    return error.what();
  }
}

Model measured(const std::string& name) {
  for (const Bundled& bundled : bundled_traces()) {
    if (bundled.name != name + "-cpu") continue;
    return read_trace(std::string(bundled.text), name).front();
  }
  FAIL("no bundled trace of ", name);
  return {};
}

// On whatever device is bundled first: no time is looked at.
Model priced(const std::string& name) {
  const Bundled& bundled = bundled_clusters().front();
  const std::vector<DeviceKind> kinds =
      read_cluster(std::string(bundled.text), std::string(bundled.name)).kinds;
  return priced_model(name + "@" + kinds.front().name, kinds);
}

// Of the parameters, batch normalization's included, those before the last cut.
double stale_percent(const Model& model, const std::string& vector) {
  const Partition partition = plan_of(model, vector, 2).partition;
  std::int64_t before = 0;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    all += model.layers[i].parameters;
    if (partition.stage_of[i] + 1 < partition.stages) before += model.layers[i].parameters;
  }
  return 100 * static_cast<double>(before) / static_cast<double>(all);
}

}  // namespace

TEST_CASE("normalizations, adds, activations and pools stay with the layer before them") {
  const Model model = small_resnet();
  CHECK(cut(model, "1", 2) == "0-2 | 3-12");
  CHECK(cut(model, "2", 2) == "0-6 | 7-12");
  CHECK(cut(model, "3", 2) == "0-11 | 12");
  CHECK(cut(model, "1,2,3", 4) == "0-2 | 3-6 | 7-11 | 12");
}

TEST_CASE("the plan says behind which layers it cuts, and of how many it counted") {
  CHECK(plan_of(small_resnet(), "1,2", 3).reason ==
        "behind relu1, relu2 of 4 layers with weights (normalizations not counted); largest stage "
        "6.000 ms, 38.5 % over the mean; 0 B a micro-batch between stages");
}

TEST_CASE("a model without known weights has all its layers counted") {
  CHECK(cut(chain({1, 1, 1, 1}), "1,3", 3) == "0 | 1-2 | 3");
}

TEST_CASE("the paper's vectors stand at the end of the 16 channels, with its stale shares") {
  struct Row {
    const char* name;
    const char* vector;
    double percent;
  };
  for (const Row& row :
       {Row{"resnet20", "7", 5.37}, Row{"resnet56", "19", 4.98}, Row{"resnet110", "37", 4.89},
        Row{"resnet224", "75", 4.85}, Row{"resnet362", "121", 4.83}}) {
    CAPTURE(row.name);
    const Model model = priced(row.name);
    const ModelShape shape = model_shape(row.name);
    const Partition partition = plan_of(model, row.vector, 2).partition;
    std::size_t first = 0;  // of the second stage
    while (partition.stage_of[first] == 0) ++first;
    CHECK(shape.layers[first - 1].output == std::vector<std::int64_t>{16, 32, 32});
    CHECK(shape.layers[first].output == std::vector<std::int64_t>{32, 16, 16});
    CHECK(std::abs(stale_percent(model, row.vector) - row.percent) < 0.005);
  }
}

TEST_CASE("a measured trace is cut as the same model priced by a roofline") {
  for (const char* name : {"resnet20", "resnet56", "resnet110", "vgg16", "gpt"}) {
    CAPTURE(name);
    const Model estimated = priced(name);
    for (const char* vector : {"1,2,3", "3,5,11", "4,7,10"}) {
      CHECK(cut(measured(name), vector, 4) == cut(estimated, vector, 4));
    }
  }
  CHECK(cut(measured("resnet20"), "7", 2) == "0-6 | 7-20");
  // The two pools behind conv2 and conv4 stay with them.
  CHECK(cut(measured("vgg16"), "2,4", 3) == "0-2 | 3-5 | 6-20");
}

TEST_CASE("in PipeDream's profile of ResNet-18 the cut is behind batch norm, add and ReLU") {
  const auto model = profile("resnet18.graph.txt");
  if (!model) return;
  const Partition partition = plan_of(*model, "5", 2).partition;
  std::size_t first = 0;
  while (partition.stage_of[first] == 0) ++first;
  CHECK(model->layers[first].kind == "conv");
  CHECK(model->layers[first - 1].kind == "activation");
  CHECK(stage_flows(partition, *model).size() == 1);
}

TEST_CASE("vectors that do not fit are refused with the numbers") {
  const Model model = small_resnet();
  CHECK(refusal(model, "4", 2) ==
        "partition \"ppv:4\": position 4 is too large: the model \"small\" has 4 layers with "
        "weights (normalizations not counted), and a cut must leave at least 1 behind it");
  CHECK(refusal(model, "2,2", 3) ==
        "partition \"ppv:2,2\": position 2 does not lie behind 2; write them ascending");
  CHECK(refusal(model, "3,1", 3) ==
        "partition \"ppv:3,1\": position 1 does not lie behind 3; write them ascending");
  CHECK(refusal(model, "1", 4) ==
        "partition \"ppv:1\" has 1 position and so makes 2 stages, but the schedule makes 4 on 4 "
        "devices; give 3 positions");
  CHECK(refusal(model, "1,2", 2) ==
        "partition \"ppv:1,2\" has 2 positions and so makes 3 stages, but the schedule makes 2 on "
        "2 devices; give 1 position");
  for (const char* bad : {"0", "x", "1,,2", "1.5", "-1"}) {
    CAPTURE(bad);
    CHECK(refusal(model, bad, 2).find("is no position; write whole numbers from 1") !=
          std::string::npos);
  }
  const Cluster cluster = devices(2);
  CHECK_THROWS_WITH_AS(
      partition("ppv", {model, cluster, 2, false, ""}),
      "partitioner \"ppv\" needs the layers with weights to cut behind, like ppv:7 or ppv:7,13",
      UsageError);
}

}  // namespace stageline::ppv_tests
