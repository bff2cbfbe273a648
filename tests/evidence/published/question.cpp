// Is a published row asked as what it states, and is what it does not state said?
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "tests/evidence/published/sample_points.hpp"
#include "tools/published/asked_again.hpp"
#include "tools/published/hardware.hpp"
#include "tools/published/point_model.hpp"
#include "tools/published/points.hpp"

namespace stageline::question_tests {

using test::pipeline_row;
using test::point_of;
using test::with;

namespace {

std::string schedule_of(const Question& question) {
  REQUIRE(question.request.setting.schedules.size() == 1);
  return spelled(question.request.setting.schedules.front());
}

bool assumes(const Question& question, std::string_view words) {
  return std::any_of(question.assumptions.begin(), question.assumptions.end(),
                     [words](const std::string& one) { return one.find(words) != one.npos; });
}

}  // namespace

TEST_CASE("a row of a pipeline is asked with its cut, its degrees and its kernels") {
  const Question question = question_of(point_of(pipeline_row()));
  CHECK(question.why_not.empty());
  const SettingRequest& setting = question.request.setting;
  CHECK(setting.trace ==
        "model:transformer@a100,layers=30,hidden=4096,heads=32,ffn=16384,gated=no,vocab=51200,"
        "tied=no,norm=layer,qkv_bias=yes,bias=yes,positions=learned,seq=1024,"
        "software=megatron-2021");
  CHECK(setting.cluster.cluster == "a100x8");
  CHECK(setting.microbatch_size == 3);
  CHECK(setting.microbatches == 24);
  CHECK(setting.degrees.pipeline == 8);
  CHECK(setting.degrees.precision.name == "fp16");
  CHECK(setting.partition == "0-3,4-7,8-11,12-15,16-19,20-23,24-27,28-31");
  CHECK(schedule_of(question) == "1f1b");
  CHECK_FALSE(setting.recomputation.start);
  CHECK(setting.recomputation.parts.empty());
  CHECK(assumes(question, "3 blocks on the first stage, 3 on the last, 4 at most"));
}

TEST_CASE("schedules are asked as Stageline names them") {
  const auto asked = [](const std::string& schedule, const std::string& chunks = "1") {
    return schedule_of(
        question_of(point_of(with(pipeline_row(), {{"schedule", schedule}, {"vp", chunks}}))));
  };
  CHECK(asked("zb_1p") == "zb_auto");
  CHECK(asked("zb_2p") == "zb_auto:limit=2p");
  CHECK(asked("interleaved_1f1b", "4") == "interleaved_1f1b:chunks=4");
  CHECK(asked("1f1b", "4") == "interleaved_1f1b:chunks=4");
  CHECK(asked("") == "1f1b");
  // In any spelling, with the chunks of the row.
  CHECK(asked("1F1B") == "1f1b");
  CHECK(asked("ZB-2p") == "zb_auto:limit=2p");
  CHECK(asked("Interleaved1F1B", "4") == "interleaved_1f1b:chunks=4");
  CHECK(asked("vpp", "4") == "interleaved_1f1b:chunks=4");
  CHECK(asked("looped_bfs", "4") == "looped_bfs:chunks=4");
  CHECK(asked("PipeDreamFlush", "2") == "interleaved_1f1b");
  const Question unknown = question_of(point_of(with(pipeline_row(), {{"schedule", "wavy"}})));
  CHECK(unknown.why_not == "there is no schedule \"wavy\"");
}

TEST_CASE("blocks are cut into as many stages as the schedule has, by any of its names") {
  const auto stages = [](const std::string& schedule, const std::string& chunks = "1") {
    const Question question =
        question_of(point_of(with(pipeline_row(), {{"schedule", schedule}, {"vp", chunks}})));
    CAPTURE(question.why_not);
    REQUIRE(question.why_not.empty());
    const std::string& cut = question.request.setting.partition;
    return std::count(cut.begin(), cut.end(), ',') + 1;
  };
  for (const char* const name : {"zb_v", "zbv", "ZB-V", "ScheduleZBVZeroBubble", "v_half", "V-Half",
                                 "vmin", "dualpipe_v", "DualPipeV", "cut-in-half"}) {
    CAPTURE(name);
    CHECK(stages(name) == 16);
    CHECK(stages(name, "2") == 16);
  }
  CHECK(stages("1f1b") == 8);
  CHECK(stages("ZB-H1") == 8);
  CHECK(stages("interleaved-1f1b", "2") == 16);
  CHECK(stages("looped_bfs", "4") == 32);
  CHECK(question_of(point_of(with(pipeline_row(), {{"schedule", "zb_v"}, {"vp", "4"}}))).why_not ==
        "zb_v has 16 stages on 8 devices, and vp 4 makes 32");
  CHECK(question_of(point_of(with(pipeline_row(), {{"schedule", "vpp"}, {"vp", "1000000"}})))
            .why_not == "30 blocks are too few for 8000000 stages");
}

TEST_CASE("experts are asked as such, and never as a dense model") {
  const auto asked = [](const std::map<std::string, std::string>& cells) {
    return question_of(point_of(with(pipeline_row(), cells)));
  };
  const Question sparse = asked({{"experts", "8"}, {"topk", "2"}, {"ffn", "8192"}});
  CHECK(sparse.why_not.empty());
  CHECK(sparse.request.setting.trace.find(",experts=8,topk=2,expert_ffn=8192,") !=
        std::string::npos);
  CHECK(assumes(sparse, "each expert is an MLP of two matrices of the width ffn"));
  CHECK(predicted(sparse).step > predicted(asked({{"ffn", "8192"}})).step);
  CHECK(asked({{"experts", "8"}}).why_not ==
        "it has 8 experts, and how many of them a token chooses (topk) is not printed");
  CHECK(asked({{"topk", "2"}}).why_not ==
        "it has topk 2, and the number of its experts is not printed");
  CHECK(asked({{"model", "llama3-8b"}, {"experts", "8"}, {"topk", "2"}}).why_not ==
        "llama3-8b has no experts, and the row has 8");
  CHECK(asked({{"experts", "1"}, {"topk", "1"}}).why_not.empty());
}

TEST_CASE("experts have the tensor degree that is printed, or that of their software") {
  const auto asked = [](const std::map<std::string, std::string>& cells) {
    std::map<std::string, std::string> all{{"model", "qwen3-30b-a3b"},
                                           {"gpus", "16"},
                                           {"tp", "2"},
                                           {"sp", "1"},
                                           {"pp", "1"},
                                           {"dp", "8"},
                                           {"ep", "16"}};
    for (const auto& [column, cell] : cells) all[column] = cell;
    return question_of(point_of(with(pipeline_row(), all)));
  };
  const Question bridge = asked({{"framework", "Megatron-Bridge"}});
  CHECK(bridge.request.setting.degrees.expert_tensor == 1);
  CHECK(assumes(bridge, "experts are not divided by tensor parallelism (etp 1)"));
  CHECK(command_of(bridge).find(" --ep 16 --etp 1 ") != std::string::npos);
  const Question printed = asked({{"framework", "Megatron-Bridge"},
                                  {"ep", "8"},
                                  {"note", "ETP 2: experts divided by tp as well"}});
  CHECK(printed.request.setting.degrees.expert_tensor == 2);
  CHECK_FALSE(assumes(printed, "experts are not divided"));
  CHECK(asked({{"framework", "NeMo 2 / Megatron-Core"}}).request.setting.degrees.expert_tensor ==
        0);
  CHECK(asked({{"framework", "Megatron-Bridge"}, {"tp", "1"}, {"dp", "16"}})
            .request.setting.degrees.expert_tensor == 0);
}

TEST_CASE("a precision that is not known is not taken for fp16") {
  const auto why = [](const std::string& precision) {
    return question_of(point_of(with(pipeline_row(), {{"precision", precision}}))).why_not;
  };
  for (const char* const known :
       {"", "fp16", "fp16 mixed", "BF16", "amp_bf16", "bf16, fp32 gradient accumulation", "MXFP8",
        "eager bf16", "float16"}) {
    CAPTURE(known);
    CHECK(why(known).empty());
  }
  for (const char* const unknown : {"garbage", "fp32", "tf32", "int8", "half"}) {
    CHECK(why(unknown) == "the precision \"" + std::string(unknown) +
                              "\" is not known; bf16, fp16, fp8 and nvfp4 are");
  }
}

TEST_CASE("software that is not known is said to be priced as another") {
  const auto asked = [](const std::string& framework) {
    return question_of(point_of(with(pipeline_row(), {{"framework", framework}})));
  };
  CHECK(assumes(asked("Colossal-AI"),
                "\"Colossal-AI\" is not known: kernels and memory of Megatron"));
  CHECK_FALSE(assumes(asked("Megatron-LM fork"), "is not known"));
}

TEST_CASE("a row of a chip that nobody fitted says whose rates it has") {
  const auto asked = [](const std::string& hardware) {
    return question_of(point_of(with(pipeline_row(), {{"hardware", hardware}})));
  };
  CHECK(assumes(asked("H800"), "kernel rates of h800: nobody fitted them"));
  CHECK_FALSE(assumes(asked("H100"), "nobody fitted them"));
  const Question volta = asked("V100-32GB");
  CHECK(volta.request.setting.trace.find(",dtype=fp16") != std::string::npos);
  CHECK(predicted(volta).step > predicted(asked("A100")).step);
  CHECK(predicted(volta).step < 4 * predicted(asked("A100")).step);
}

TEST_CASE("experts without expert parallelism are experts of Megatron-Core on every rank") {
  const auto row =
      with(pipeline_row(), {{"experts", "8"}, {"topk", "2"}, {"framework", "Megatron-LM"}});
  const SettingRequest asked = question_of(point_of(row)).request.setting;
  CHECK(asked.trace.find(",experts=8,topk=2,expert_ffn=16384") != std::string::npos);
  CHECK(asked.trace.find(",software=megatron-core-2024") != std::string::npos);
  CHECK(asked.degrees.expert == 1);
  CHECK(asked.degrees.precision.name == "bf16");
}

TEST_CASE("torchtitan without a pipeline and a printed batch has one micro-batch a replica") {
  const auto asked = [](const std::map<std::string, std::string>& cells) {
    return question_of(point_of(with(with(pipeline_row(), {{"framework", "torchtitan"},
                                                           {"pp", "1"},
                                                           {"dp", "8"},
                                                           {"micro_batch", ""},
                                                           {"global_batch", ""},
                                                           {"step_time_s", ""},
                                                           {"tokens_per_s_per_gpu", "1000"}}),
                                     cells)));
  };
  const Question one = asked({});
  CHECK(one.why_not.empty());
  CHECK(one.request.setting.microbatches == 1);
  CHECK(one.request.setting.microbatch_size == 1);
  CHECK(assumes(one, "one micro-batch of 1 sequence a replica"));
  CHECK(one.counter == MemoryCounter::reserved);
  CHECK(one.request.setting.trace.find(",loss=torch") != std::string::npos);
  CHECK(assumes(one, "as torch's allocator reserves it"));
  CHECK_FALSE(assumes(asked({{"memory_gib", ""}}), "as torch's allocator reserves it"));
  const Question compiled = asked({{"precision", "bf16 compile"}});
  CHECK(compiled.request.setting.trace.find("software=torchtitan-2025") != std::string::npos);
  CHECK(asked({{"framework", "Megatron-LM"}}).counter == MemoryCounter::allocated);
  CHECK(asked({{"micro_batch", "2"}}).request.setting.microbatch_size == 2);
  CHECK(asked({{"pp", "8"}, {"dp", "1"}}).why_not == "the global batch is not printed");
  CHECK(asked({{"framework", "Megatron-LM"}}).why_not == "the global batch is not printed");
}

TEST_CASE("degrees whose product is beyond 64 bits are not those of the devices") {
  const std::string most = "1000000";
  const Question question = question_of(
      point_of(with(pipeline_row(), {{"tp", most}, {"pp", most}, {"cp", most}, {"dp", most}})));
  CHECK(question.why_not ==
        "its degrees multiply to 999999999999999983222784 devices, and it has 8");
}

TEST_CASE("blocks are cut as the software does") {
  const auto blocks = [](const std::string& layers, const std::string& framework,
                         std::int64_t stages) {
    return blocks_by_stage(
        point_of(with(pipeline_row(), {{"layers", layers}, {"framework", framework}})), stages);
  };
  using Blocks = std::vector<std::int64_t>;
  CHECK(blocks("32", "Megatron-LM", 4) == Blocks{8, 8, 8, 8});
  CHECK(blocks("30", "Megatron-LM", 8) == Blocks{3, 4, 4, 4, 4, 4, 4, 3});
  CHECK(blocks("22", "Megatron-LM", 24).front() == 0);
  CHECK(blocks("22", "Megatron-LM", 24).back() == 0);
  CHECK(blocks("61", "Megatron-Bridge", 32).size() == 32);
  CHECK(blocks("30", "Megatron-DeepSpeed", 8) == Blocks{4, 4, 4, 4, 4, 4, 4, 2});
  CHECK(blocks("30", "Megatron-DeepSpeed", 16).back() == 0);  // the head alone
  CHECK(blocks("24", "Megatron-DeepSpeed", 16).empty());
  for (const char* const framework : {"Megatron-LM", "Megatron-DeepSpeed"}) {
    CHECK(blocks("24", framework, 1'000'000'000'000).empty());
  }
  CHECK(blocks("2", "Megatron-LM", 8).empty());
}

TEST_CASE("machines are bundled ones where their network is as fast") {
  const auto hardware = [](const std::map<std::string, std::string>& cells) {
    return hardware_of(point_of(with(pipeline_row(), cells)));
  };
  CHECK(hardware({}).cluster == "a100x8");
  CHECK(hardware({{"gpus", "32"}, {"network", "RoCE 1600 Gb/s per node"}}).cluster == "a100x8*4");
  const PointHardware slow =
      hardware({{"gpus", "32"}, {"network", "4x Omni-Path 100 Gb/s per node"}});
  CHECK(slow.kind == "a100");
  CHECK(slow.cluster.find("\"count\": 4, \"devices\": \"gpu*\", \"bandwidth\": \"100Gbit/s\"") !=
        std::string::npos);
  CHECK(slow.cluster.find("\"machines\": 4") != std::string::npos);
  CHECK(hardware({{"gpus", "16"}, {"network", ""}}).assumptions.size() == 1);
  CHECK(hardware({{"hardware", "H100-96GB HBM2e 500W"}}).kind == "h100-96gb");
  CHECK(hardware({{"hardware", "a100_40gb"}}).cluster == "p4d");
  CHECK(hardware({{"hardware", "DGX-GB300"}, {"gpus_per_node", "72"}}).cluster == "gb300x72");
  CHECK(hardware({{"hardware", "DGX-B300"}, {"gpus", "16"}}).cluster == "b300x8*2");
  CHECK(hardware({{"hardware", "8x H800 SXM"}}).cluster == "h800x8");
  CHECK(hardware({{"hardware", "H20-96GB"}}).cluster == "h20x8");
  CHECK(hardware({{"hardware", "H200"}}).cluster == "h200x8");
  CHECK(hardware({{"hardware", "8xH20"}}).cluster == "h20x8");
  CHECK(hardware({{"hardware", "8x A100SXM4"}}).cluster == "a100x8");
  CHECK(hardware({{"hardware", "A800"}}).cluster == "a800x8");
  CHECK(hardware({{"hardware", "AMD Instinct MI300X"}}).cluster == "mi300x8");
  CHECK(hardware({{"hardware", "V100-32GB"}}).kind == "v100-sxm");
  for (const char* const card : {"H100 PCIe", "H100 NVL 94GB", "A100-PCIE-40GB", "V100 PCIe"}) {
    CHECK(hardware({{"hardware", card}}).why_not ==
          "no bundled cluster has the device \"" + std::string(card) + "\"");
  }
  CHECK(hardware({{"hardware", "GB200 NVL72"}, {"gpus_per_node", "72"}}).kind == "gb200");
  CHECK(hardware({{"hardware", "GH200"}}).why_not == "no bundled cluster has the device \"GH200\"");
  CHECK(hardware({{"hardware", "TPU v4"}}).why_not ==
        "no bundled cluster has the device \"TPU v4\"");
  CHECK(hardware({{"hardware", "DGX-H100"}, {"gpus", "131072"}}).why_not ==
        "131072 devices are more than the 65536 of a cluster");
  // 64 of the 72 in each rack: five racks for 320 devices, where 72 of each would be in 4.4.
  CHECK(hardware({{"hardware", "GB200 NVL72"}, {"gpus", "320"}, {"gpus_per_node", "72"}}).cluster ==
        "gb200x72*5");
  CHECK(hardware({{"hardware", "GB200 NVL72"}, {"gpus", "2560"}, {"gpus_per_node", "4"}}).cluster ==
        "gb200x72*40");
  const PointHardware costly = hardware_of(point_of(pipeline_row()), {20e-6, 1.25});
  CHECK(costly.cluster.find("\"op_overhead\": \"20000000ps\", \"rate\": 1.25") !=
        std::string::npos);
}

TEST_CASE("the clusters of rows can be opened") {
  for (const char* const network : {"4x Omni-Path 100 Gb/s per node", "RDMA 400 Gb/s per GPU"}) {
    for (const char* const hardware : {"A100-80GB SXM", "a100_40gb", "H100-96GB HBM2e 500W"}) {
      CAPTURE(hardware);
      const PointHardware found = hardware_of(point_of(
          with(pipeline_row(), {{"hardware", hardware}, {"network", network}, {"gpus", "16"}})));
      ClusterRequest request;
      request.cluster = found.cluster;
      request.groups = true;
      const ClusterChoice choice = choose_cluster(request);
      REQUIRE(choice.fixed);
      CHECK(choice.fixed->devices.size() == 16);
      const DeviceKind& kind = nth(choice.fixed->kinds, choice.fixed->devices.front().kind);
      CHECK(kind.name == found.kind);
    }
  }
}

TEST_CASE("models are recognised by name, and changed by their columns") {
  const Point cut = point_of(with(pipeline_row(), {{"model", "llama3-70b cut to 12 layers"},
                                                   {"layers", "12"},
                                                   {"hidden", "8192"},
                                                   {"heads", "64"},
                                                   {"kv_heads", "16"}}));
  CHECK(cut.config.gated);
  CHECK(cut.config.layers == 12);
  CHECK(spelled_model(cut).name == "llama3-70b");
  CHECK(spelled_model(cut).options == ",layers=12,kv_heads=16");
  const Point named = point_of(with(
      pipeline_row(), {{"model", "LLAMA3.1_405B"}, {"layers", ""}, {"hidden", ""}, {"heads", ""}}));
  CHECK(named.config.layers == 126);
  CHECK(spelled_model(named).options.empty());
  const Question unknown = question_of(point_of(
      with(pipeline_row(), {{"model", "GPX"}, {"layers", ""}, {"hidden", ""}, {"heads", ""}})));
  CHECK(unknown.why_not == "the sizes of \"GPX\" are not printed, and it is no model by name");
}

TEST_CASE("rows that cannot be asked say why") {
  const auto why = [](const std::map<std::string, std::string>& cells) {
    return question_of(point_of(with(pipeline_row(), cells))).why_not;
  };
  CHECK(why({{"precision", "NVFP4"}}).empty());
  CHECK(why({{"dp", "2"}}) == "its degrees multiply to 16 devices, and it has 8");
  CHECK(why({{"micro_batch", "5"}}) ==
        "72 sequences of a replica do not divide by the micro-batch of 5");
  CHECK(why({{"recompute", "offload"}}) == "recomputation \"offload\" is not known");
  CHECK(why({{"layers", "4"}}) == "4 blocks are too few for 8 stages");
  CHECK_THROWS_WITH_AS(predicted(question_of(point_of(with(pipeline_row(), {{"layers", "4"}})))),
                       "4 blocks are too few for 8 stages", UsageError);
}

TEST_CASE("products in FP8 are asked as such") {
  const auto asked = [](const std::string& precision, const std::string& framework) {
    return question_of(
        point_of(with(pipeline_row(), {{"precision", precision}, {"framework", framework}})));
  };
  CHECK(asked("FP8-CS", "Megatron-Bridge").request.setting.trace.ends_with(",dtype=fp8-current"));
  struct Words {
    const char* words;
    const char* recipe;
    const char* precision;
  };
  for (const Words& one :
       {Words{"MXFP8", "mxfp8", "mixed"}, Words{"FP8-MX", "mxfp8", "mixed"},
        Words{"NVFP4", "nvfp4", "mixed"}, Words{"FP8-SC", "fp8-block", "fp8-mixed"},
        Words{"FP8-DS", "fp8-delayed", "fp8-mixed"},
        Words{"fp8 tensorwise", "fp8-current", "fp8-mixed"},
        Words{"FP8", "fp8-current", "fp8-mixed"}}) {
    CAPTURE(one.words);
    const SettingRequest setting = asked(one.words, "Megatron-Bridge").request.setting;
    CHECK(setting.trace.ends_with(std::string(",dtype=") + one.recipe));
    CHECK(setting.degrees.precision.name == one.precision);
  }
  CHECK(asked("fp8 rowwise", "torchtitan").request.setting.trace.find(",dtype=fp8-rowwise") !=
        std::string::npos);
  CHECK(asked("compile fp8", "torchtitan").request.setting.trace.find(",dtype=fp8-tensorwise") !=
        std::string::npos);
  CHECK(asked("FP8", "megatron-core").request.setting.trace.ends_with(",dtype=fp8"));
  CHECK(asked("MXFP8", "megatron-core").request.setting.degrees.precision.name == "bf16");
  const Question both = asked("bf16 (fp8 in parentheses)", "Megatron-Bridge");
  CHECK(both.request.setting.trace.ends_with(",dtype=fp8-current"));
  CHECK(assumes(both, "another granularity of quantization"));
  CHECK(asked("BF16", "Megatron-Bridge")
            .request.setting.trace.ends_with("software=megatron-bridge-2025.11"));
}

TEST_CASE("a micro-batch that is not printed is assumed and said") {
  const Question question =
      question_of(point_of(with(pipeline_row(), {{"framework", "torchtitan"},
                                                 {"pp", "1"},
                                                 {"dp", "8"},
                                                 {"micro_batch", ""},
                                                 {"zero", "3"},
                                                 {"precision", "compile bf16"}})));
  CHECK(question.request.setting.microbatch_size == 9);
  CHECK(question.request.setting.microbatches == 1);
  CHECK(question.request.setting.degrees.zero == Zero::weights);
  CHECK(assumes(question, "all 9 sequences of a replica at once"));
  CHECK(question.request.setting.trace.find("software=torchtitan-2025") != std::string::npos);
}

TEST_CASE("TorchTitan beside a pipeline has as many micro-batches as the pipeline has ranks") {
  const auto asked = [](const std::string& framework) {
    return question_of(point_of(with(pipeline_row(), {{"framework", framework},
                                                      {"pp", "2"},
                                                      {"dp", "1"},
                                                      {"gpus", "2"},
                                                      {"tp", "1"},
                                                      {"vp", "1"},
                                                      {"global_batch", "8"},
                                                      {"micro_batch", ""}})));
  };
  CHECK(asked("torchtitan").request.setting.microbatch_size == 4);
  CHECK(asked("torchtitan").request.setting.microbatches == 2);
  CHECK(asked("Megatron-LM").request.setting.microbatch_size == 1);
}

TEST_CASE("MegaScale has fused attention and reduces in buckets") {
  const Question question =
      question_of(point_of(with(pipeline_row(), {{"framework", "MegaScale"}, {"zero", "2"}})));
  CHECK(question.request.setting.trace.find("software=megatron-core-2024") != std::string::npos);
  CHECK(question.request.setting.buckets == "megatron");
  CHECK(question.request.setting.degrees.zero == Zero::gradients);
  CHECK_FALSE(question.request.setting.degrees.zero_every.has_value());
  CHECK(assumes(question, "no parallel blocks"));
}

TEST_CASE("of Megatron-Bridge the recipe says what is recomputed, and the model's name mtp") {
  const auto asked = [](const std::map<std::string, std::string>& more) {
    std::map<std::string, std::string> cells =
        with(pipeline_row(), {{"model", "DeepSeekV3 (w/ MTP)"},
                              {"layers", ""},
                              {"hidden", ""},
                              {"heads", ""},
                              {"hardware", "DGX-B200"},
                              {"where", "26.06 NeMo Container, Pre-Training Performance"},
                              {"precision", "FP8-MX"},
                              {"framework", "Megatron-Bridge"},
                              {"recompute", ""}});
    return question_of(point_of(with(cells, more)));
  };
  const Question eight = asked({});
  CHECK(eight.why_not.empty());
  CHECK(eight.request.setting.trace.find(",mtp=1") != std::string::npos);
  CHECK(eight.request.setting.trace.find(",software=megatron-bridge-2026.06,graphs=partial") !=
        std::string::npos);
  CHECK(eight.request.setting.partition.ends_with("-63"));  // embedding, 61 blocks, module, head
  CHECK(print(eight.request.setting.recomputation) == "modules:mla_up_proj+mlp");
  CHECK(assumes(eight, "modules:mla_up_proj+mlp, as its recipe has it"));
  const Question without = asked({{"model", "DeepSeekV3 (w/o MTP)"}, {"hardware", "DGX-GB200"}});
  CHECK(without.request.setting.trace.find(",mtp=") == std::string::npos);
  CHECK(print(without.request.setting.recomputation) == "modules:mla_up_proj");
  CHECK(asked({{"hardware", "DGX-GB300"}}).request.setting.recomputation.parts.empty());
  CHECK(print(asked({{"recompute", "full"}}).request.setting.recomputation) == "every:1");
}

TEST_CASE("layers are offloaded as the recipe has it") {
  const auto asked = [](const std::map<std::string, std::string>& more) {
    std::map<std::string, std::string> cells =
        with(pipeline_row(), {{"model", "LLAMA3_70B"},
                              {"layers", ""},
                              {"hidden", ""},
                              {"heads", ""},
                              {"hardware", "DGX-GB200"},
                              {"where", "26.04 NeMo Container, Pre-Training Performance"},
                              {"precision", "FP8"},
                              {"framework", "Megatron-Bridge"},
                              {"recompute", ""},
                              {"tp", "1"},
                              {"pp", "1"},
                              {"vp", ""},
                              {"schedule", ""},
                              {"dp", "64"},
                              {"gpus", "64"},
                              {"zero", "3"},
                              {"micro_batch", "1"},
                              {"global_batch", "64"}});
    return question_of(point_of(with(cells, more)));
  };
  const Question question = asked({});
  CHECK(question.why_not == "");
  CHECK(question.request.setting.offloading.blocks == 40);
  CHECK(assumes(question, "activations of 40 layers wait in the host's memory"));
  const Question rebuilt = asked({{"recompute", "full"}});
  CHECK(rebuilt.request.setting.offloading.blocks == 0);
  CHECK(assumes(rebuilt, "its recipe offloads 40 layers where nothing is recomputed"));
}

TEST_CASE("recomputation is asked by blocks, or of plain attention") {
  const auto asked = [](const std::string& recompute, const std::string& framework) {
    return question_of(
        point_of(with(pipeline_row(), {{"recompute", recompute}, {"framework", framework}})));
  };
  const auto rebuild = [](const Question& question) {
    REQUIRE(question.request.setting.recomputation.parts.size() == 1);
    return question.request.setting.recomputation.parts.front().how.rebuild;
  };
  CHECK(rebuild(asked("full", "Megatron-LM")) == Rebuild::every);
  CHECK(rebuild(asked("selective", "Megatron-LM")) == Rebuild::selective);
  const Question fused = asked("selective", "Megatron-Bridge");
  CHECK(rebuild(fused) == Rebuild::selective);
  CHECK(assumes(fused, "selective recomputation runs the fused attention again"));
  for (const std::string recompute : {"selective", "selective per op"}) {
    const Question by_ops = asked(recompute, "torchtitan");
    CHECK(print(by_ops.request.setting.recomputation) == "ops");
    CHECK(assumes(by_ops, "by ops, as in the recipe") == (recompute == "selective"));
  }
}

}  // namespace stageline::question_tests
