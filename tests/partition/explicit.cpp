// What does `--partition TEXT` accept, and what does it say to the rest?
#include <doctest/doctest.h>

#include "schedulers/partition/partitioner.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/partition/models.hpp"

namespace stageline::explicit_tests {

using namespace stageline::testing;

namespace {

// vgg-like: ten layers, one whose name holds commas
Model ten_layers() {
  Model model = chain({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const char* names[] = {
      "conv1", "relu1", "Conv2d(64, 128)", "relu2", "pool2", "conv3", "relu3", "fc6", "fc7", "fc8"};
  for (std::size_t i = 0; i < 10; ++i) model.layers[i].name = names[i];
  return model;
}

std::string cut(const std::string& text, int stages) {
  const Model model = ten_layers();
  const Cluster cluster = devices(stages);
  const PartitionPlan plan = partition(text, {model, cluster, stages, false, ""});
  CHECK(plan.replicas == std::vector<int>(as_size(stages), 1));
  return print(plan.partition);
}

std::string refusal(const std::string& text, int stages = 3) {
  try {
    return cut(text, stages);
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("layer ranges say which layers each stage has") {
  CHECK(cut("0-3,4-6,7-9", 3) == "0-3 | 4-6 | 7-9");
  CHECK(cut("0-3,4-6,7-", 3) == "0-3 | 4-6 | 7-9");
  CHECK(cut("0,1-8,9", 3) == "0 | 1-8 | 9");
  CHECK(cut("0-", 1) == "0-9");
  // As a cut is printed.
  for (const char* const printed : {"0-3 | 4-6 | 7-9", "0 | 1-8 | 9", "0-1 | 2 | 3-9"}) {
    CHECK(cut(printed, 3) == printed);
  }
}

TEST_CASE("names say the last layer of each stage, and the last stage is implied") {
  CHECK(cut("relu1,pool2", 3) == "0-1 | 2-4 | 5-9");
  CHECK(cut("conv1,Conv2d(64, 128),fc7", 4) == "0 | 1-2 | 3-8 | 9");
  CHECK(cut("fc6", 2) == "0-7 | 8-9");
}

TEST_CASE("where a name begins another one, the longer is meant") {
  Model model = chain({1, 1, 1, 1});
  model.layers[1].name = "conv(3,64)";
  model.layers[2].name = "conv(3";
  const Cluster cluster = devices(2);
  CHECK(print(partition("conv(3,64)", {model, cluster, 2, false, ""}).partition) == "0-1 | 2-3");
  CHECK(print(partition("conv(3", {model, cluster, 2, false, ""}).partition) == "0-2 | 3");
}

TEST_CASE("names that are numbers are names when all of them are") {
  Model model = chain({1, 1, 1, 1});
  const char* names[] = {"10", "11", "12", "13"};
  for (std::size_t i = 0; i < 4; ++i) model.layers[i].name = names[i];
  const Cluster cluster = devices(2);
  CHECK(print(partition("11", {model, cluster, 2, false, ""}).partition) == "0-1 | 2-3");
  CHECK(print(partition("0-0,1-", {model, cluster, 2, false, ""}).partition) == "0 | 1-3");
}

TEST_CASE("the reason of an explicit cut gives its balance") {
  const Model model = ten_layers();
  const Cluster cluster = devices(2);
  CHECK(partition("fc6", {model, cluster, 2, false, ""}).reason ==
        "as given; largest stage 36.00 ms, 30.9 % over the mean; 0 B a micro-batch between stages");
}

TEST_CASE("ranges that leave layers out say which") {
  CHECK(refusal("0-3,5-6,7-") ==
        "partition \"0-3,5-6,7-\": layer 4 is missing before \"5-6\"; the ranges must follow each "
        "other without a gap, from layer 0 to layer 9");
  CHECK(refusal("2-3,4-6,7-") ==
        "partition \"2-3,4-6,7-\": layers 0 to 1 are missing before \"2-3\"; the ranges must "
        "follow each other without a gap, from layer 0 to layer 9");
  CHECK(refusal("0-3,4-6,7-8") ==
        "partition \"0-3,4-6,7-8\": layer 9 is missing at the end; end the last range with a dash, "
        "\"7-\", to reach the last layer");
}

TEST_CASE("ranges that hold layers twice say which") {
  CHECK(refusal("0-3,2-6,7-") ==
        "partition \"0-3,2-6,7-\": layers 2 to 3 are in both \"0-3\" and \"2-6\"; each layer "
        "belongs to one stage");
  CHECK(refusal("0-3,3-6,7-") ==
        "partition \"0-3,3-6,7-\": layer 3 is in both \"0-3\" and \"3-6\"; each layer belongs to "
        "one stage");
  CHECK(refusal("0-,5-,7-") ==
        "partition \"0-,5-,7-\": layers 5 to 9 are in both \"0-\" and \"5-\"; each layer belongs "
        "to one stage");
  CHECK(refusal("0-3,4-6,1-") ==
        "partition \"0-3,4-6,1-\": \"1-\" comes after \"4-6\" but begins before it; stages are "
        "contiguous and in the order of the layers");
}

TEST_CASE("ranges that are no ranges are refused") {
  CHECK(refusal("0-3,4-12") ==
        "partition \"0-3,4-12\": \"4-12\" names layer 12, but the model has layers 0 to 9 only");
  CHECK(refusal("0-3,6-4,7-") ==
        "partition \"0-3,6-4,7-\": \"6-4\" ends before it begins; write the smaller number first");
  const std::string tail =
      " is no layer range; write the first and the last layer of each stage as whole numbers, like "
      "0-5,6-11,12-";
  CHECK(refusal("0-3,,7-") == "partition \"0-3,,7-\": \"\"" + tail);
  CHECK(refusal("-3,4-") == "partition \"-3,4-\": \"-3\"" + tail);
  CHECK(refusal("0-3-5,6-") == "partition \"0-3-5,6-\": \"0-3-5\"" + tail);
  CHECK(refusal("0-99999999999") == "partition \"0-99999999999\": \"0-99999999999\"" + tail);
}

TEST_CASE("names that do not fit are refused, with the nearest") {
  CHECK(refusal("relu1,poool2") ==
        "partition \"relu1,poool2\": \"poool2\" is no layer of the model, whose 10 layers are "
        "\"conv1\" to \"fc8\"; name the last layer of every stage but the last (did you mean "
        "\"pool2\"?)");
  CHECK(refusal("pool2,relu1") ==
        "partition \"pool2,relu1\": \"relu1\" is layer 1 and comes after layer 4; name the last "
        "layers of the stages in the order of the model, each once");
  CHECK(refusal("relu1,fc8") ==
        "partition \"relu1,fc8\": \"fc8\" is the model's last layer, so nothing is left for the "
        "stage behind it; leave it out, the last stage is implied");
}

TEST_CASE("a name that several layers have is refused, with a way out") {
  Model model = ten_layers();
  model.layers[3].name = "relu1";
  const Cluster cluster = devices(2);
  CHECK_THROWS_WITH_AS(partition("relu1", {model, cluster, 2, false, ""}),
                       "partition \"relu1\": 2 layers are named \"relu1\", the first is layer 1; "
                       "give layer ranges, like 0-1,2-",
                       UsageError);
}

TEST_CASE("a text that is nothing known gets the possibilities and the nearest") {
  CHECK(refusal("ballanced") ==
        "partition \"ballanced\" is neither a partitioner (balanced, by_device, uniform, "
        "blocks, parameters, type, pipedream, ppv) nor "
        "layer "
        "ranges like 0-5,6-11,12- nor the names of the stages' last layers like conv1 (did you "
        "mean \"balanced\"?)");
  CHECK(refusal("pipedreem:cost=paper").find("did you mean \"pipedream\"?") != std::string::npos);
  CHECK(refusal("relu11").find("did you mean \"relu1\"?") != std::string::npos);
  CHECK(refusal("").find("partition \"\" is neither a partitioner") == 0);
  CHECK(refusal("0-x,5-").find("is neither a partitioner") != std::string::npos);
}

TEST_CASE("an explicit cut has as many stages as the schedule") {
  CHECK(refusal("0-3,4-", 3) ==
        "partition \"0-3,4-\" has 2 stages, but the schedule makes 3 on 3 devices; give as many "
        "ranges as stages");
  const Model model = ten_layers();
  const Cluster cluster = devices(3);
  CHECK(print(partition("0-3,4-", {model, cluster, 3, true, ""}).partition) == "0-3 | 4-9");
  CHECK_THROWS_AS(partition("0,1,2,3-", {model, cluster, 3, true, ""}), UsageError);
}

TEST_CASE("options are for partitioners that have some") {
  CHECK(refusal("balanced:x=1") == "partitioner \"balanced\" takes no options (\"x=1\" was given)");
}

TEST_CASE("a stage on several machines takes turns among them") {
  // inside a machine the large weights of the last layer forbid to replicate it
  Model model = chain({3, 1});
  model.layers[1].weights = parse_bytes("1GB");
  model.edges.clear();
  const Cluster cluster = devices(8);
  const PartitionPlan plan =
      partition("pipedream:levels=4@1GB/s,2@1000TB/s", {model, cluster, 8, true, ""});
  CHECK(plan.replicas == std::vector<int>{6, 2});
  CHECK(plan.devices == std::vector<std::vector<int>>{{0, 4, 1, 5, 2, 6}, {3, 7}});
  CHECK(plan.reason.find("plan 6-2, slowest stage or transfer 501.0 µs a minibatch, 7.98×") == 0);
}

TEST_CASE("a slower device kind scales the times, and different ones each their own") {
  const Model model = chain({4, 4});
  Cluster cluster = devices(2);
  for (Device& device : cluster.devices) device.rate = 0.5;
  CHECK(partition("pipedream", {model, cluster, 2, false, ""}).reason ==
        "plan straight, 2 stages, slowest stage 8.000 ms a minibatch, 2.00× one device");
  cluster.devices[1].rate = 1;
  CHECK(partition("pipedream", {model, cluster, 2, false, ""}).reason ==
        "plan straight, 2 stages, slowest stage 8.000 ms a minibatch, 1.00× one device");
}

TEST_CASE("weights that take longer to reduce than the tables hold are refused") {
  Model model = chain({1, 1});
  model.layers[0].weights = parse_bytes("100TB");
  const Cluster cluster = devices(2);
  CHECK_THROWS_AS(partition("pipedream:bandwidth=1B/s", {model, cluster, 2, true, ""}), UsageError);
}

TEST_CASE("options of pipedream that do not fit are refused") {
  const Model model = chain({1, 1, 1, 1, 1, 1, 1, 1});
  const Cluster cluster = devices(4);
  const auto refusal = [&](const std::string& options, bool replicate = true) -> std::string {
    try {
      return partition("pipedream:" + options, {model, cluster, 4, replicate, ""}).reason;
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  CHECK(refusal("cost=max") == "pipedream: cost=\"max\" is neither \"code\" nor \"paper\"");
  CHECK(refusal("csot=code") ==
        "pipedream: option \"csot\" is not known (cost, transfers, replicate, bandwidth, levels)"
        " (did you mean \"cost\"?)");
  CHECK(refusal("cost") == "pipedream: \"cost\" in \"cost\" has no value; write key=value");
  CHECK(refusal("levels=4") ==
        "pipedream: level \"4\" is not \"<machines>@<bandwidth>\" with at least 1 machine, like "
        "levels=4@12GB/s,2@1GB/s");
  CHECK(refusal("levels=4@1GB/s,2@1GB/s") ==
        "pipedream: the levels hold 8 devices, but the plan is for 4; their product must be the "
        "same");
  CHECK(refusal("levels=4@1GB/s,bandwidth=1GB/s") ==
        "pipedream: give bandwidth= or levels=, not both; each level has its own");
  CHECK(refusal("replicate=yes", false) ==
        "pipedream: replicate=yes needs a schedule that can replicate stages, like pipedream; give "
        "replicate=no");
  CHECK(refusal("bandwidth=0GB/s").find("pipedream: bandwidth \"0GB/s\" is zero") == 0);
}

TEST_CASE("explicit and uniform cuts are the same with replicas, and the plan says how many") {
  const Model model = ten_layers();
  const Cluster cluster = devices(4);
  for (const char* text : {"0-3,4-", "relu2", "uniform"}) {
    CAPTURE(text);
    for (const bool replicate : {false, true}) {
      const PartitionPlan plan = partition(text, {model, cluster, 2, replicate, "", {3, 1}});
      CHECK(print(plan.partition) == (text == std::string("uniform") ? "0-4 | 5-9" : "0-3 | 4-9"));
      CHECK(plan.replicas == std::vector<int>{3, 1});
    }
  }
  CHECK(partition("relu2", {model, cluster, 2, false, "", {2, 2}}).reason ==
        "as given; largest stage 22.50 ms a micro-batch, 63.6 % over the mean; 0 B a micro-batch "
        "between stages");
}

TEST_CASE("replicas that do not fit are refused") {
  const Model model = ten_layers();
  const Cluster cluster = devices(4);
  const auto refused = [&](const std::string& text, const std::vector<int>& replicas,
                           bool replicate = false) -> std::string {
    try {
      return partition(text, {model, cluster, 2, replicate, "", replicas}).reason;
    } catch (const UsageError& error) {
      return error.what();
    }
  };
  for (const char* text : {"balanced", "uniform", "pipedream", "relu2"}) {
    CAPTURE(text);
    CHECK(refused(text, {2, 1, 1}) ==
          "replicas 2-1-1 are for 3 stages, but 2 are to be made; give one number a stage");
    CHECK(refused(text, {3, 2}) ==
          "replicas 3-2 are 5 devices, but there are 4; their sum must be the same");
    CHECK(refused(text, {4, 0}) == "replicas 4-0: each stage needs at least 1 device, not 0");
  }
  CHECK(refused("relu2,fc6", {3, 1}, true) ==
        "partition \"relu2,fc6\" has 3 stages, but the schedule makes 2 on 4 devices; give as "
        "many ranges as stages");
  CHECK(refused("pipedream:levels=2@1GB/s,2@1GB/s", {3, 1}, true) ==
        "pipedream: levels= chooses the replicas of every stage, but the schedule has fixed them "
        "at 3-1; leave out levels= or the schedule's replicas");
}

}  // namespace stageline::explicit_tests
