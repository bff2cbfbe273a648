// Is a setting written as flags of a framework that are read back as the same setting?
#include <doctest/doctest.h>

#include <string>

#include "schedulers/partition/megatron_layout.hpp"
#include "tests/traces/support.hpp"
#include "tools/launch/emission.hpp"
#include "tools/launch/flag_table.hpp"
#include "tools/launch/run_setting.hpp"
#include "tools/planner/space.hpp"

namespace stageline::emission_tests {
namespace {

EmissionAsked asked() {
  EmissionAsked asked;
  asked.spec = parse_schedules("1f1b").front();
  asked.samples = 64;
  asked.setting.degrees.tensor = 2;
  asked.setting.degrees.pipeline = 2;
  asked.setting.degrees.data = 4;
  asked.setting.degrees.zero = Zero::optimizer;
  asked.setting.sequence_parallel = true;
  asked.setting.microbatch_size = 2;
  asked.setting.microbatches = 8;
  asked.setting.recomputation = parse_recomputation("every:1", "--recompute");
  asked.stages = parse_megatron("Et*2|t*2L");
  return asked;
}

std::string read_back(Framework framework, const std::string& text, const RunAround& around,
                      const LaunchAdditions& additions = {}) {
  const LaunchArguments arguments = read_arguments(framework, text, "a.run", additions);
  return command_of(setting_of(RunFacts(framework, arguments, additions), around));
}

TEST_CASE("flags of Megatron-LM are read back as the setting that they were written from") {
  EmissionAsked one = asked();
  one.spec = parse_schedules("interleaved_1f1b:chunks=2").front();
  one.stages = parse_megatron("Et|t|t|tL");
  const std::string flags = emitted(Framework::megatron, one);
  CHECK(flags ==
        "  --tensor-model-parallel-size 2 \\\n  --pipeline-model-parallel-size 2 \\\n"
        "  --sequence-parallel \\\n  --micro-batch-size 2 \\\n  --global-batch-size 64 \\\n"
        "  --pipeline-model-parallel-layout 'Et|t|t|tL' \\\n  --recompute-granularity full \\\n"
        "  --recompute-method uniform \\\n  --recompute-num-layers 1 \\\n"
        "  --use-distributed-optimizer \\\n  --overlap-grad-reduce \\\n  --bf16\n");
  const std::string back = read_back(
      Framework::megatron,
      "pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
      "--vocab-size 32000 \\\n" +
          flags,
      {.devices = 16});
  CHECK(contains(back,
                 "--pp 2 --tp 2 --dp 4 --sequence-parallel --zero 1 --precision bf16 --schedule "
                 "interleaved_1f1b:chunks=2 --partition 'Et|t|t|tL' --recompute every:1 "
                 "--microbatch-size 2 --microbatches 8"));
}

constexpr const char* small_gpt =
    "pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 "
    "--vocab-size 32000 \\\n";

TEST_CASE("checkpoints of whole stages and groups of ranks are written and read back") {
  EmissionAsked one = asked();
  one.setting.recomputation = parse_recomputation("full", "--recompute");
  one.setting.degrees.shard_group = {ShardSpan::ranks, 2};
  const std::string flags = emitted(Framework::megatron, one);
  CHECK(contains(flags, "--recompute-method uniform \\\n  --recompute-num-layers 2"));
  CHECK(contains(flags, "--num-distributed-optimizer-instances 2"));
  const std::string back = read_back(Framework::megatron, small_gpt + flags, {.devices = 16});
  CHECK(contains(back, "--recompute every:2"));
  CHECK(contains(back, "--shard-group 2"));
  one.setting.sequence_parallel = false;
  one.setting.degrees.shard_group = {};
  CHECK(contains(emitted(Framework::deepspeed, one), "\"activation_checkpoint_interval\": 3"));
  EmissionAsked titan = asked();
  titan.setting.degrees.zero = Zero::weights;
  titan.setting.degrees.shard_group = {ShardSpan::ranks, 2};
  const std::string toml = emitted(Framework::torchtitan, titan);
  CHECK(contains(toml, "data_parallel_replicate_degree = 2"));
  CHECK(contains(toml, "data_parallel_shard_degree = 2"));
}

TEST_CASE("blocks that are offloaded are written without a pipeline, and read back") {
  EmissionAsked one = asked();
  one.setting.degrees.pipeline = 1;
  one.stages = parse_megatron("Et*4L");
  one.setting.recomputation = {};
  one.setting.offloading = parse_offloading("block:3", "--offload");
  const std::string flags = emitted(Framework::megatron, one);
  CHECK(contains(flags, "--cpu-offloading-num-layers 3"));
  CHECK(contains(read_back(Framework::megatron, small_gpt + flags, {.devices = 8}),
                 "--offload block:3"));
  const std::string beside =
      small_gpt + flags.substr(0, flags.size() - 1) + " --pipeline-model-parallel-size 2";
  const TraceError why =
      trace_error_of([&] { read_back(Framework::megatron, beside, {.devices = 16}); });
  CHECK(contains(why.what(), "not known beside a pipeline"));
  one.setting.recomputation = parse_recomputation("selective", "--recompute");
  CHECK(contains(usage_error_of([&] { emitted(Framework::megatron, one); }),
                 "offloading beside recomputation"));
}

TEST_CASE("how context-parallel ranks exchange is written where defaults differ") {
  EmissionAsked one = asked();
  one.setting.degrees.context = 2;
  CHECK(contains(emitted(Framework::megatron, one), "--cp-comm-type all_gather"));
  one.setting.trace = "model:llama3-8b@h100,cp_exchange=ring";
  CHECK(contains(emitted(Framework::megatron, one), "--cp-comm-type p2p"));
  EmissionAsked titan = one;
  titan.setting.degrees.zero = Zero::weights;
  CHECK(contains(emitted(Framework::torchtitan, titan), "context_parallel_rotate_method"));
  one.setting.trace = "model:llama3-8b@h100,software=megatron-core-2024";
  CHECK(contains(emitted(Framework::megatron, one), "--cp-comm-type p2p"));
  one.setting.cp_comm_type = "a2a";
  CHECK(contains(emitted(Framework::megatron, one), "--cp-comm-type a2a"));
  titan.setting.cp_comm_type = "a2a";
  CHECK(contains(usage_error_of([&] { emitted(Framework::torchtitan, titan); }),
                 "cannot express context-parallel ranks that exchange heads"));
  one.setting.degrees.context = 8;
  one.setting.cp_comm_type = "a2a+p2p:4";
  const std::string parts = emitted(Framework::megatron, one);
  CHECK(contains(parts, "--cp-comm-type a2a+p2p"));
  CHECK(contains(parts, "--hierarchical-context-parallel-sizes 4 2"));
}

TEST_CASE("TOML of torchtitan is read back, too") {
  EmissionAsked one = asked();
  one.setting.degrees.zero = Zero::weights;
  const std::string toml = emitted(Framework::torchtitan, one);
  CHECK(contains(toml, "pipeline_parallel_schedule = \"1F1B\""));
  CHECK(contains(toml, "[activation_checkpoint]\nmode = \"full\""));
  EmissionAsked kept = one;
  kept.setting.recomputation = {};
  CHECK(contains(emitted(Framework::torchtitan, kept), "mode = \"none\""));
  CHECK(contains(toml, R"([["tok_embeddings","layers.0","layers.1"],)"
                       R"(["layers.2","layers.3","norm","output"]])"));
  const std::string why =
      usage_error_of([&] { read_arguments(Framework::torchtitan, toml, "a.toml", {}); });
  if (contains(why, "which this build does not read")) return;
  CHECK(contains(read_back(Framework::torchtitan, toml, {.model = "llama3-8b"}),
                 "--pp 2 --tp 2 --dp 4 --sequence-parallel --zero 3 --precision bf16 --schedule "
                 "1f1b --partition 'Ett|ttL' --recompute every:1 --microbatch-size 2 "
                 "--microbatches 8"));
}

TEST_CASE("JSON of DeepSpeed is read back, too") {
  EmissionAsked one = asked();
  one.setting.sequence_parallel = false;
  const std::string json = emitted(Framework::deepspeed, one);
  CHECK(contains(json, "\"gradient_accumulation_steps\": 8"));
  CHECK(contains(read_back(Framework::deepspeed, json, {.model = "llama3-8b"}),
                 "--pp 2 --tp 2 --dp 4 --zero 1 --precision mixed --schedule 1f1b --partition "
                 "blocks --recompute every:1 --microbatch-size 2 --microbatches 8"));
}

TEST_CASE("what a framework cannot express is refused with what to search instead") {
  const auto refused = [](Framework framework, const EmissionAsked& one) {
    return usage_error_of([&] { emitted(framework, one); });
  };
  EmissionAsked one = asked();
  one.spec = parse_schedules("zb_h1").front();
  CHECK(contains(refused(Framework::megatron, one), "megatron has no schedule zb_h1; it has 1f1b"));
  one = asked();
  one.spec = parse_schedules("interleaved_1f1b:group=1").front();
  CHECK(contains(
      refused(Framework::megatron, one),
      "megatron cannot express groups of 1, fewer micro-batches than its pipeline has ranks, "
      "2; search with group=2 or more"));
  one = asked();
  CHECK(contains(refused(Framework::torchtitan, one),
                 "torchtitan cannot express ZeRO 1; search with --zero 0,3"));
  CHECK(contains(refused(Framework::deepspeed, one), "sequence parallelism"));
  one.setting.recomputation = parse_recomputation("full", "--recompute");
  one.setting.degrees.zero = Zero::weights;
  CHECK(contains(refused(Framework::torchtitan, one), "--recompute full"));
  one = asked();
  one.setting.offloading.blocks = 1;
  CHECK(contains(refused(Framework::megatron, one), "offloading beside a pipeline"));
  one.setting.sequence_parallel = false;
  CHECK(contains(refused(Framework::deepspeed, one), "stashes that are offloaded"));
  one = asked();
  one.setting.degrees.shard_group = {ShardSpan::ranks, 2};
  one.setting.sequence_parallel = false;
  CHECK(contains(refused(Framework::deepspeed, one), "2 groups that divide state"));
  one.setting.degrees.shard_group = {ShardSpan::machine, 0};
  CHECK(contains(refused(Framework::megatron, one), "give its number of ranks"));
  one = asked();
  one.setting.sequence_parallel = false;
  one.setting.degrees.zero = Zero::weights;
  CHECK(contains(refused(Framework::deepspeed, one), "ZeRO 2 and 3 beside a pipeline"));
  one.setting.degrees.zero = Zero::none;
  one.stages = parse_megatron("Et|t*5L");
  CHECK(contains(refused(Framework::deepspeed, one), "search with --partition blocks"));
}

TEST_CASE("a search that runs in a framework has its schedules alone") {
  planner::PlanSpace space;
  restrict_to(Framework::deepspeed, Model{}, space);
  REQUIRE(space.schedules.size() == 1);
  CHECK(spelled(space.schedules.front()) == "1f1b");
  planner::PlanSpace named;
  named.schedules = parse_schedules("zb_v");
  CHECK(contains(usage_error_of([&] { restrict_to(Framework::nemo, Model{}, named); }),
                 "nemo has no schedule zb_v"));
  REQUIRE(space.plain_alone);
  Model model;
  model.layers.resize(8);
  space.schedules = schedules_of(Framework::megatron);
  for (const planner::Family& family : planner::families_of(space, model, 1)) {
    CHECK(spelled(family.spec) == "1f1b");  // chunks are of a pipeline
  }
  CHECK(planner::families_of(space, model, 2).size() > 1);
  for (const ScheduleSpec& spec : schedules_of(Framework::torchtitan)) {
    CAPTURE(spelled(spec));
    CHECK_FALSE(schedule_name(Framework::torchtitan, spec).empty());
  }
}

TEST_CASE("a flag of another tool is answered with ours") {
  CHECK(said_by_stageline("--tensor-model-parallel-size") == "stageline says --tp N");
  CHECK(said_by_stageline("--tensor_model_parallel_size") == "stageline says --tp N");
  CHECK(contains(said_by_stageline("--gbs"), "--microbatches N"));
  CHECK(contains(said_by_stageline("--global-batch-size"), "--samples N"));
  CHECK(contains(said_by_stageline("--vpp"), "interleaved_1f1b:chunks=N"));
  CHECK(contains(said_by_stageline("--num-layers-per-virtual-pipeline-stage"), "chunks=N"));
  CHECK(said_by_stageline("--colour").empty());
}

}  // namespace
}  // namespace stageline::emission_tests
