// Plans for PipeDream's runtime and for torchgpipe.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/lower/passes.hpp"
#include "tests/interop/csv.hpp"
#include "tests/text.hpp"
#include "traces/pipedream/plans.hpp"

namespace stageline::plans_tests {
namespace {

std::string refusal(const Program& program) {
  return test::complaint<UsageError>([&] { write_pipedream_runtime(program); });
}

TEST_CASE("plan 3-1 is what PipeDream's own optimizer writes for VGG-16 on four GPUs") {
  // runtime/image_classification/models/vgg16/gpus=4/hybrid_conf.json of msr-fiddle/pipedream.
  CHECK(write_pipedream_runtime(test::written(test::spec("pipedream:replicas=3-1"), 4, 12)) ==
        "{\n"
        "    \"module_to_stage_map\": [0, 1, 1],\n"
        "    \"stage_to_rank_map\": {\n"
        "        \"0\": [0, 1, 2],\n"
        "        \"1\": [3]\n"
        "    },\n"
        "    \"stage_to_depth_map\": {\n"
        "        \"0\": 1,\n"
        "        \"1\": 0\n"
        "    }\n"
        "}\n");
}

TEST_CASE("depths are those that PipeDream's runtime would take by itself") {
  for (const std::string plan : {"straight", "1-3", "2-2", "3-1", "2-1-1", "1-2-1", "1-1-2"}) {
    const Program program = test::written(test::spec("pipedream:replicas=" + plan), 4, 24);
    const auto json = nlohmann::json::parse(write_pipedream_runtime(program));
    CAPTURE(plan);
    int left = 4;  // workers from this stage on
    int next = 0;
    for (int s = 0; s < program.stages(); ++s) {
      const auto name = std::to_string(s);
      const auto ranks = json["stage_to_rank_map"][name].get<std::vector<int>>();
      const int replicas = static_cast<int>(ranks.size());
      CHECK(json["stage_to_depth_map"][name] == (left - 1) / replicas);
      std::vector<int> expected(ranks.size());
      std::iota(expected.begin(), expected.end(), next);
      CHECK(ranks == expected);
      left -= replicas;
      next += replicas;
    }
    CHECK(json["module_to_stage_map"].size() == as_size(program.stages()) + 1);
    CHECK(json["module_to_stage_map"].back() == program.stages() - 1);
  }
}

TEST_CASE("messages and updates change nothing, and flush schedules have depths, too") {
  const Program order = test::written(test::spec("1f1b"), 3, 6);
  const std::string plan = write_pipedream_runtime(order);
  CHECK(write_pipedream_runtime(add_transfers(add_updates(order))) == plan);
  CHECK(nlohmann::json::parse(plan)["stage_to_depth_map"] ==
        nlohmann::json{{"0", 2}, {"1", 1}, {"2", 0}});
  // All forwards first is a depth, too.
  CHECK(nlohmann::json::parse(write_pipedream_runtime(
            test::written(test::spec("gpipe"), 2, 6)))["stage_to_depth_map"] ==
        nlohmann::json{{"0", 5}, {"1", 5}});
}

TEST_CASE("what PipeDream's runtime does not do is refused") {
  CHECK(refusal(test::written(test::spec("gpipe:reverse=yes"), 2, 4)) ==
        "PipeDream's runtime runs 3 forwards and then alternates one forward and one backward, "
        "and gpu0 does 0B2 there");
  CHECK(refusal(parse_program(test::straight_text(1, 3, "gpu0: 0F0 0F1 0B0 0B1 0F2 0B2\n"))) ==
        "PipeDream's runtime runs 1 forward and then alternates one forward and one backward, "
        "and gpu0 does 0B1 there");
  CHECK(refusal(test::written(test::spec("1f1b:recompute=always"), 2, 4)) ==
        "PipeDream's runtime has F and B only, and gpu0 does 0R0");
  CHECK(refusal(parse_program(test::straight_text(1, 1, "gpu0: 0F0 0I0 0W0\n"))) ==
        "PipeDream's runtime has F and B only, and gpu0 does 0I0");
  CHECK(refusal(parse_program("stageline-program 1\nmicrobatches: 1\nstage 0: gpu0\nstage 1: gpu0\n"
                              "gpu0: 0F0 1F0 1B0 0B0\n"))
            .find("one stage on a device, and gpu0 has stages 0 and 1") != std::string::npos);
  CHECK(test::contains(refusal(test::written(test::spec("stale_weights"), 3, 4)),
                       "keeps forward and backward of a stage on one device, "
                       "and stage 0 splits them"));
  CHECK(refusal(test::written(test::spec("pipedream:replicas=2-1"), 3, 3)) ==
        "PipeDream's runtime has one depth a stage, and stage 0 does 1 forwards ahead on gpu0, "
        "0 on gpu1; take a number of micro-batches that its 2 replicas divide");
  CHECK(test::contains(
      refusal(parse_program(test::straight_text(1, 1, "gpu0: 0F0 0B0 0F1 0B1\n", "steps: 2\n"))),
      "does not flush between steps, and the program has 2; take --steps 1"));
}

TEST_CASE("torchgpipe's balance is the layers of each partition") {
  CHECK(write_torchgpipe_balance(partition_from_cuts({2, 3}, 9), straight_placement(3)) ==
        "[3, 1, 5]\n");
  CHECK(write_torchgpipe_balance(partition_from_cuts({}, 4), straight_placement(1)) == "[4]\n");
  CHECK(test::complaint<UsageError>([] {
          write_torchgpipe_balance(partition_from_cuts({1}, 4), replicated_placement({2, 1}));
        }) ==
        "torchgpipe puts partition k on device k, and stage 0 does not live on device 0 alone");
  CHECK(test::complaint<UsageError>([] {
          write_torchgpipe_balance({{0, 1, 0, 1}, 2}, straight_placement(2));
        }) ==
        "torchgpipe's partitions are runs of layers, "
        "and layer 2 of stage 0 comes after one of stage 1");
}

TEST_CASE("plans of torchgpipe and PipeDream are read as ranges of layers") {
  CHECK(ranges_of_plan("[3, 3, 2]\n", "a.txt") == "0-2,3-5,6-7");
  CHECK(ranges_of_plan(R"({"module_to_stage_map": [0, 0, 0, 1, 1, 1, 1],
      "stage_to_rank_map": {"0": [0], "1": [1]}})",
                       "conf.json") == "0-2,3-5");
  CHECK(ranges_of_plan("Et|tL", "a.txt").empty());
  CHECK(ranges_of_plan("{\"layers\": []}", "a.json").empty());
  const auto refused = [](const std::string& text) {
    return test::complaint<TraceError>([&] { ranges_of_plan(text, "a"); });
  };
  CHECK(test::contains(refused("[3, 0]"), "a at /1"));
  CHECK(test::contains(refused(R"({"module_to_stage_map": [0, 1, 0, 1]})"),
                       "is stage 0 behind stage 1"));
  CHECK(test::contains(refused(R"({"module_to_stage_map": [0, 0, 1]})"),
                       "no layer in its last stage"));
}

}  // namespace
}  // namespace stageline::plans_tests
