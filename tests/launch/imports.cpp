// Is a run of another framework read as the question that its writer would ask?
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/traces/support.hpp"
#include "tools/answers/answer.hpp"
#include "tools/launch/run_setting.hpp"
#include "tools/launch/shell_words.hpp"

namespace stageline::launch_tests {
namespace {

RunSetting read_text_of(Framework framework, const std::string& text, const RunAround& around = {},
                        const LaunchAdditions& additions = {}) {
  const LaunchArguments arguments = read_arguments(framework, text, "a.run", additions);
  return setting_of(RunFacts(framework, arguments, additions), around);
}

std::string example(const std::string& name) { return source_text("tests/launch/runs/" + name); }

bool has_note(const RunSetting& setting, const std::string& words) {
  for (const std::string& note : setting.notes) {
    if (contains(note, words)) return true;
  }
  return false;
}

std::string refused(Framework framework, const std::string& text) {
  return trace_error_of([&] { read_text_of(framework, text); }).what();
}

const std::string short_run =
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 512 "
    "--num-attention-heads 8 --seq-length 1024 --micro-batch-size 1 --global-batch-size 16 --bf16 "
    "--vocab-size 32000 ";

TEST_CASE("a script of Megatron-LM is the command that asks for the same run") {
  const RunSetting setting = read_text_of(Framework::megatron, example("megatron.sh"));
  CHECK(command_of(setting) ==
        "stageline simulate model:transformer@h100,layers=24,hidden=2048,heads=16,kv_heads=8,"
        "gated=yes,ffn=5632,vocab=32000,tied=no,norm=rms,positions=rotary,seq=4096,"
        "software=megatron-core-2024 --cluster 'h100x8*4' --pp 2 --tp 4 --dp 4 "
        "--sequence-parallel --zero 1 --precision bf16 --schedule interleaved_1f1b:chunks=2 "
        "--partition blocks --recompute every:1 --microbatch-size 2 --microbatches 8");
  CHECK(has_note(setting, "left out, though they change times or memory: overlap-param-gather"));
  CHECK(has_note(setting, "nothing is known of them here: some-fork-flag"));
}

TEST_CASE("the request of a run answers as one that is written by hand") {
  const RunSetting setting =
      read_text_of(Framework::megatron,
                   short_run + "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2");
  const answers::Result from_run = answer(answers::parse_request(request_of(setting)));
  const answers::Result by_hand = answer(answers::parse_request(R"({
    "trace": "model:transformer@h100,layers=8,hidden=512,heads=8,vocab=32000,tied=yes,norm=layer,positions=learned,bias=yes,ffn=2048,seq=1024,software=megatron-core-2024,dropout=yes",
    "tp": 2, "pp": 2, "dp": 2, "precision": "bf16", "buckets": "none", "partition": "blocks",
    "microbatch_size": 1, "microbatches": 8})"));
  REQUIRE(from_run.rows.size() == 1);
  REQUIRE(from_run.rows[0].outcome);
  REQUIRE(by_hand.rows[0].outcome);
  CHECK(from_run.rows[0].outcome->step_time == by_hand.rows[0].outcome->step_time);
  CHECK(from_run.rows[0].outcome->throughput == by_hand.rows[0].outcome->throughput);
}

TEST_CASE("Megatron's defaults hold where a flag is not there") {
  const std::string command = command_of(read_text_of(Framework::megatron, short_run));
  for (const char* const words :
       {"ffn=2048", "tied=yes", "norm=layer", "positions=learned", "bias=yes", "dropout=yes",
        "--buckets none", "--pp 1 --dp 8", "--microbatches 2"}) {
    CAPTURE(words);
    CHECK(contains(command, words));
  }
  CHECK_FALSE(contains(command, "--zero"));
  CHECK_FALSE(contains(command, "--sequence-parallel"));
  CHECK(
      contains(command_of(read_text_of(Framework::megatron, short_run + "--swiglu")), "ffn=1344"));
}

TEST_CASE("the flags that decide a cut, a schedule and the state are read") {
  const auto with = [&](const std::string& more) {
    return command_of(
        read_text_of(Framework::megatron, short_run + "--pipeline-model-parallel-size 2 " + more));
  };
  CHECK(contains(with("--pipeline-model-parallel-layout 'Et*2|t*2|t*2|t*2L'"),
                 "--schedule interleaved_1f1b:chunks=2 --partition 'Et*2|t*2|t*2|t*2L'"));
  CHECK(contains(with("--decoder-last-pipeline-num-layers 3"), "--partition blocks:last=3"));
  CHECK(contains(with("--num-virtual-stages-per-pipeline-rank 4"), "interleaved_1f1b:chunks=4"));
  const std::string two = "--num-virtual-stages-per-pipeline-rank 2 ";
  CHECK(contains(with(two + "--microbatch-group-size-per-virtual-pipeline-stage 4"),
                 "interleaved_1f1b:chunks=2,group=4"));
  CHECK_THROWS_WITH_AS(with(two + "--microbatch-group-size-per-virtual-pipeline-stage 1"),
                       doctest::Contains("is 1, and Megatron-Core runs no groups of fewer "
                                         "micro-batches than the 2 ranks of its pipeline"),
                       TraceError);
  CHECK(contains(with("--recompute-granularity selective --recompute-modules core_attn mlp"),
                 "--recompute modules:core_attn+mlp"));
  CHECK(contains(with("--recompute-granularity full --recompute-method block "
                      "--recompute-num-layers 2"),
                 "--recompute block:2"));
  const std::string four = "--context-parallel-size 4";
  CHECK(contains(with(four), "cp_exchange=p2p"));
  CHECK(contains(with(four + " --cp-comm-type all_gather"), "cp_exchange=all_gather"));
  CHECK(contains(with(four + " --cp-comm-type a2a"), "cp_exchange=a2a"));
  CHECK(contains(with(four + " --cp-comm-type a2a+p2p --hierarchical-context-parallel-sizes 2 2"),
                 "cp_exchange=a2a+p2p:2"));
  CHECK_THROWS_AS(with(four + " --cp-comm-type a2a+p2p"), TraceError);
  CHECK(contains(with("--grad-reduce-in-bf16"), "--precision mixed"));
  CHECK(contains(with("--fp8-format hybrid --fp8-recipe tensorwise"), "dtype=fp8-current"));
  CHECK(contains(with("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params"),
                 "--zero 3"));
}

// The command of a run of Megatron-Bridge with that layout.
std::string text_in_list(const std::string& layout) {
  const std::string text =
      "model:\n  num_layers: 6\n  hidden_size: 512\n  num_attention_heads: 8\n  seq_length: 512\n"
      "  vocab_size: 32000\n  pipeline_model_parallel_size: 2\n  pipeline_model_parallel_layout: " +
      layout + "\ntrain:\n  micro_batch_size: 1\n  global_batch_size: 8\n";
  const LaunchArguments arguments = read_arguments(Framework::megatron_bridge, text, "a.yaml", {});
  return command_of(
      setting_of(RunFacts(Framework::megatron_bridge, arguments, {}), {.devices = 2}));
}

// toml++ and yaml-cpp need not be there.
bool reads_documents() {
  for (const Framework framework : {Framework::torchtitan, Framework::nemo}) {
    const std::string why = usage_error_of([&] {
      read_arguments(framework, framework == Framework::nemo ? "a: 1" : "a = 1", "a", {});
    });
    if (contains(why, "which this build does not read")) return false;
  }
  return true;
}

TEST_CASE("TOML, YAML and JSON are read by the paths of their keys") {
  if (!reads_documents()) {
    MESSAGE("skipped: this build reads no TOML or no YAML");
    return;
  }
  const RunAround around{.devices = 64};
  CHECK(command_of(read_text_of(Framework::torchtitan, example("torchtitan.toml"), around)) ==
        "stageline simulate model:llama3-8b@h100,seq=8192,software=torchtitan-2025 --cluster "
        "'h100x8*8' --pp 4 --tp 2 --dp 8 --sequence-parallel --zero 3 --precision bf16 --schedule "
        "interleaved_1f1b --partition blocks:embedding=1,head=1 --recompute every:1 "
        "--microbatch-size 1 --microbatches 8");
  const RunSetting deepspeed =
      read_text_of(Framework::deepspeed, example("deepspeed.json"), {.model = "llama3-8b"});
  CHECK(command_of(deepspeed) ==
        "stageline simulate model:llama3-8b@h100 --cluster 'h100x8*2' --pp 1 --dp 16 --zero 1 "
        "--precision mixed --schedule 1f1b --microbatch-size 2 --microbatches 8");
  CHECK(has_note(deepspeed, "zero_optimization.offload_optimizer.device"));
  const std::string nemo = command_of(read_text_of(Framework::nemo, example("nemo.yaml")));
  CHECK(contains(nemo, "layers=16,hidden=2048,heads=16,kv_heads=8,gated=yes,ffn=5632"));
  CHECK(contains(nemo, "--cluster 'h100x8*2' --pp 2 --tp 4 --dp 2 --sequence-parallel --zero 1"));
  CHECK(contains(nemo, "--recompute selective --microbatch-size 1 --microbatches 16"));
  const std::string bridge = command_of(
      read_text_of(Framework::megatron_bridge, example("megatron_bridge.yaml"), {.devices = 16}));
  CHECK(contains(bridge, "loss=fused,cp_exchange=p2p"));
  CHECK(contains(bridge, "--pp 2 --tp 2 --cp 2 --dp 2"));
  const std::string listed = text_in_list(
      "[[embedding, decoder, decoder], [decoder, decoder, decoder], [], [decoder, loss]]");
  CHECK(contains(listed, "--schedule interleaved_1f1b:chunks=2"));
  CHECK(contains(listed, "--partition 'Ett|ttt||tL'"));
}

TEST_CASE("variables, arrays, defaults and sums of a shell are followed") {
  const auto words_of = [](const std::string& text, const LaunchAdditions& set = {}) {
    return shell_commands(text, "a.sh", set).back().words;
  };
  using Words = std::vector<std::string>;
  CHECK(words_of("A=1; B=\"$A 2\"\nrun $B \"$B\" '$B'") == Words{"run", "1", "2", "1 2", "$B"});
  CHECK(words_of("A=(x \"y z\")\nA+=(w)\nrun \"${A[@]}\"") == Words{"run", "x", "y z", "w"});
  CHECK(words_of("run ${A:-4} ${B:=5}") == Words{"run", "4", "5"});
  CHECK(words_of("A=3\nrun $((A * (2 + 2) - 1)) \\\n  last # a remark") ==
        Words{"run", "11", "last"});
  CHECK(words_of("A=3\nrun $A", {{"A", "7"}}) == Words{"run", "7"});
  CHECK(words_of("cat <<EOF\nit's no quote\nEOF\nrun") == Words{"run"});
}

TEST_CASE("what a Trainer decides is named, or refused where it is a number") {
  const std::string batch = R"("train_batch_size": 64, "train_micro_batch_size_per_gpu": 2)";
  const RunSetting decided =
      read_text_of(Framework::deepspeed, "{" + batch + R"(, "fp16": {"enabled": "auto"}})",
                   {.model = "llama3-8b", .devices = 8});
  CHECK(has_note(decided, "fp16.enabled \"auto\""));
  CHECK_FALSE(contains(command_of(decided), "fp16"));
  CHECK(contains(trace_error_of([] {
                   read_text_of(Framework::deepspeed, R"({"train_batch_size": "auto"})",
                                {.model = "llama3-8b", .devices = 8});
                 }).what(),
                 "train_batch_size is a whole number (it is \"auto\"); give it with --set"));
}

TEST_CASE("what may hold flags and is not known is named") {
  const RunSetting branch = read_text_of(
      Framework::megatron, "MORE=()\nif [ -n \"$A\" ]; then\nMORE+=(--fp8-format hybrid)\nfi\n" +
                               short_run + "--log-throughput ${MORE[@]}");
  CHECK(has_note(branch, "nothing is known of them here: $MORE, which line 3 sets in a branch"));
  const RunSetting behind = read_text_of(Framework::megatron, short_run + "$EXTRA");
  CHECK(has_note(behind, "$EXTRA, which no line before it sets"));
  const RunSetting said =
      read_text_of(Framework::megatron, short_run + "$EXTRA", {}, {{"EXTRA", "--swiglu --lr 1"}});
  CHECK(contains(command_of(said), "gated=yes"));
}

TEST_CASE("a run of another model than a decoder is refused by its program, or by what it says") {
  const std::string run = short_run + "--swiglu";
  const auto with = [&](const std::string& program) {
    std::string text = run;
    return refused(Framework::megatron, text.replace(text.find("pretrain_gpt.py"), 15, program));
  };
  CHECK(contains(with("pretrain_t5.py"), "pretrain_t5.py trains an encoder, and a decoder"));
  CHECK(contains(with("examples/bert/pretrain_bert.py"), "price its config.json"));
  CHECK(contains(with("pretrain_vlm.py"), "--encoder"));
  CHECK(contains(refused(Framework::megatron, run + " --decoder-num-layers 12"),
                 "decoder-num-layers is 12"));
  CHECK_NOTHROW(command_of(read_text_of(Framework::megatron, run)));
}

TEST_CASE(
    "a command of torchtitan whose configuration is Python is answered with the file to give") {
  for (const char* const text :
       {"NGPU=64 MODULE=llama3 CONFIG=llama3_70b ./run_train.sh --parallelism.x 4",
        "torchrun --nproc_per_node 8 -m torchtitan.train --module llama3 --config llama3_8b"}) {
    CAPTURE(text);
    const std::string message = refused(Framework::torchtitan, text);
    CHECK(contains(message, "in config_registry.py of its module; give that file"));
    CHECK(contains(message, "--set config=NAME"));
  }
  if (!reads_documents()) return;
  const std::string toml = example("torchtitan.toml");
  const RunAround around{.devices = 64};
  CHECK(command_of(
            read_text_of(Framework::torchtitan, "# ./run_train.sh reads this\n" + toml, around)) ==
        command_of(read_text_of(Framework::torchtitan, toml, around)));
}

TEST_CASE("a command in a variable, which a shell of a launcher runs, is read with the launcher") {
  const std::string arguments = short_run.substr(short_run.find("pretrain_gpt.py"));
  const std::string variable =
      "SIZE=1344\nCMD=\"cd /x; python " + arguments + "--ffn-hidden-size $SIZE\"\n";
  const std::string same = command_of(read_text_of(
      Framework::megatron, "torchrun --nproc_per_node 16 " + arguments + "--ffn-hidden-size 1344"));
  CHECK(contains(same, "ffn=1344"));
  for (
      const char* const launcher :
      {"srun --nodes=2 --ntasks-per-node 8 --container-image=x bash -c \"${CMD}\" 2>&1 | tee log",
       "srun -N 2 --ntasks-per-node=8 sh -lc \"$CMD\"",
       "sbatch <<EOF\n#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\nsrun bash -x -c "
       "\"${CMD}\"\nEOF"}) {
    CAPTURE(launcher);
    CHECK(command_of(read_text_of(Framework::megatron, variable + launcher)) == same);
  }
  // What a branch adds is named, and what was there before is known.
  for (const char* const adds : {"ARGS=(\"${ARGS[@]}\" --x 1)", "ARGS+=(--x 1)",
                                 "ARGS=\"$ARGS --x 1\"", "ARGS+=\" --x 1\""}) {
    CAPTURE(adds);
    const bool array = std::string(adds).find('(') != std::string::npos;
    const std::string given = arguments.substr(arguments.find("--"));
    const std::string script = (array ? "ARGS=(" + given + ")" : "ARGS=\"" + given + "\"") +
                               "\nif [ $X = 1 ]; then\n" + adds +
                               "\nfi\ntorchrun --nproc_per_node 8 pretrain_gpt.py " +
                               (array ? "${ARGS[@]}" : "$ARGS");
    const RunSetting setting = read_text_of(Framework::megatron, script);
    CHECK(command_of(setting) == command_of(read_text_of(Framework::megatron, short_run)));
    CHECK(has_note(setting, "ARGS, which line 3 sets in a branch"));
  }
  // A value that a branch replaces is not known, though it begins alike.
  CHECK(contains(refused(Framework::megatron, "TP=1\nif true; then\nTP=16\nfi\n" + short_run +
                                                  "--tensor-model-parallel-size $TP"),
                 "TP, which line 3 sets in a branch"));
  // What is not known is named where it stands.
  CHECK(contains(refused(Framework::megatron, "CMD=\"python " + arguments +
                                                  "--tensor-model-parallel-size $TP --x 1\"\n"
                                                  "srun -N 1 bash -c \"$CMD\""),
                 "line 2: tensor-model-parallel-size needs TP, which no line before it sets"));
  // A document that nothing runs holds no commands.
  CHECK(contains(refused(Framework::megatron, "cat <<EOF\n" + short_run + "\nEOF\n"),
                 "no command has the arguments of a training"));
}

TEST_CASE("a run whose model is named says how it differs from it") {
  const auto command = [](const std::string& sizes) {
    return command_of(read_text_of(Framework::megatron,
                                   "torchrun --nproc_per_node 8 pretrain_gpt.py --seq-length 4096 "
                                   "--micro-batch-size 1 --global-batch-size 16 --bf16 " +
                                       sizes,
                                   {.model = "deepseek-v3"}));
  };
  CHECK(contains(command("--num-layers 61 --hidden-size 7168 --mtp-num-layers 1"),
                 "model:deepseek-v3@h100,mtp=1,seq=4096"));
  CHECK(contains(command("--num-layers 16 --num-attention-heads 128"),
                 "model:deepseek-v3@h100,layers=16,seq=4096"));
  CHECK(contains(trace_error_of([&] { command("--num-layers 61 --hidden-size 4096"); }).what(),
                 "is 4096, and that of deepseek-v3 is 7168"));
}

TEST_CASE("what a script does not say is refused with its line and a way on") {
  CHECK(contains(refused(Framework::megatron, short_run + "--tensor-model-parallel-size $TP"),
                 "line 1: tensor-model-parallel-size needs TP, which no line before it sets; give "
                 "it with --set TP=VALUE"));
  CHECK(contains(refused(Framework::megatron, "if true; then\nTP=2\nfi\n" + short_run +
                                                  "--tensor-model-parallel-size $TP"),
                 "which line 2 sets in a branch"));
  CHECK(contains(refused(Framework::megatron, short_run + "\n" + short_run),
                 "line 2: this is a second command"));
  CHECK(contains(refused(Framework::megatron, "echo hello"), "no command has the arguments"));
  std::string doubled = "A=xxxxxxxx\n";
  for (int i = 0; i < 64; ++i) doubled += "A=\"$A$A\"\n";
  CHECK(contains(refused(Framework::megatron, doubled), "more than 16777216 bytes"));
  CHECK(contains(refused(Framework::megatron, "echo 'hello"), "the quote ' that begins here"));
  CHECK(contains(refused(Framework::megatron, short_run + "--tensor-model-parallel-size 3"),
                 "8 devices, which tp 3 × cp 1 × pp 1 = 3 does not divide"));
  CHECK(contains(refused(Framework::megatron, short_run + "--num-layers many"),
                 "num-layers is a whole number (it is \"many\")"));
  CHECK(contains(refused(Framework::megatron, short_run + "--multi-latent-attention"),
                 "give --model, such as deepseek-v3"));
  CHECK(contains(refused(Framework::deepspeed, "{\"train_batch_size\": 8}"),
                 "nothing says how many devices run it"));
  if (!reads_documents()) return;
  CHECK(contains(refused(Framework::torchtitan, "[model]\nname = \n"), "this is not TOML"));
  CHECK(contains(refused(Framework::nemo, "model: [1"), "this is not YAML"));
}

}  // namespace
}  // namespace stageline::launch_tests
