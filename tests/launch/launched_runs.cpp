// Is a run found in what launched it, and in what it printed of itself?
#include "tools/launch/launched_run.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/traces/support.hpp"
#include "tools/launch/run_setting.hpp"

namespace stageline::launched_runs_tests {
namespace {

std::string run_text(const std::string& name) { return source_text("tests/launch/runs/" + name); }

std::string command_in(const LaunchedRun& run, const RunAround& around = {}) {
  return command_of(setting_of(RunFacts(run.framework, run.arguments, {}), around));
}

// toml++ need not be there.
bool reads_toml() {
  try {
    read_toml_arguments("a = 1", "a.toml");
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

LaunchedRun printed(const std::string& name) {
  std::optional<LaunchedRun> run = printed_run(run_text(name), name);
  REQUIRE(run);
  return *std::move(run);
}

}  // namespace

TEST_CASE("a launch file is read as that of the framework that knows its arguments") {
  const auto framework = [](const std::string& name) {
    return read_launched_run(run_text(name), name, {}).framework;
  };
  CHECK(framework("megatron.sh") == Framework::megatron);
  CHECK(framework("deepspeed.json") == Framework::deepspeed);
  if (reads_toml()) CHECK(framework("torchtitan.toml") == Framework::torchtitan);
  CHECK(contains(trace_error_of([] { read_launched_run("echo hello", "a.sh", {}); }).what(),
                 "no command has the arguments of a training"));
  CHECK(contains(trace_error_of([] { read_launched_run("{\"a\": 1}", "a.txt", {}); }).what(),
                 "a.txt"));
}

TEST_CASE("the arguments that Megatron-LM prints are those of its command line") {
  const LaunchedRun run = printed("megatron.log");
  CHECK(command_in(run) ==
        "stageline simulate model:transformer@h100,layers=24,hidden=2048,heads=16,head_width=128,"
        "kv_heads=8,gated=yes,ffn=5632,vocab=32256,tied=no,norm=rms,positions=rotary,seq=4096,"
        "software=megatron-core-2024 --cluster 'h100x8*2' --pp 2 --tp 4 --dp 2 "
        "--sequence-parallel --zero 1 --precision bf16 --schedule 1f1b --partition blocks "
        "--microbatch-size 2 --microbatches 8");
  const RunFacts facts(run.framework, run.arguments, {});
  CHECK(facts.left_out() == std::vector<std::string>{"overlap_param_gather"});
}

TEST_CASE("experts of a printed list are read with the blocks that have none") {
  const std::string log =
      "---- arguments ----\n  num_experts ......... 8\n  moe_layer_freq ...... [0, 1, 1]\n"
      "  moe_router_topk ..... 2\n  num_layers .......... 3\n  window_size ......... (4096, 0)\n"
      "---- end of arguments ----\n";
  const std::optional<LaunchedRun> run = printed_run(log, "a.log");
  REQUIRE(run);
  const RunFacts facts(run->framework, run->arguments, {});
  CHECK(facts.text("expert_blocks") == "([0]*1+[1]*2)");
  CHECK(facts.text("topk") == "2");
  CHECK(facts.text("window") == "4096 0");
}

TEST_CASE("the configuration that torchtitan prints has its devices and their kind") {
  const LaunchedRun run = printed("torchtitan.log");
  CHECK(run.framework == Framework::torchtitan);
  CHECK(run.device == "a100");
  CHECK(run.arguments.devices_each == 8);
  CHECK(contains(command_in(run), "model:llama3-8b@h100,seq=8192,software=torchtitan-2025"));
  CHECK(contains(command_in(run), "--tp 2 --dp 4 --sequence-parallel --zero 3"));
  CHECK(contains(command_in(run), "--recompute every:1 --microbatch-size 2 --microbatches 1"));
}

TEST_CASE("the kind of device is that of the log, whoever makes it") {
  const auto device = [](const std::string& words) {
    return printed_run(
               "Running with args: {\"training\": {\"seq_len\": 8}}\nCUDA capacity: " + words,
               "a.log")
        ->device;
  };
  CHECK(device("NVIDIA H100 80GB HBM3 with 79.10GiB memory\n") == "h100");
  CHECK(device("AMD Instinct MI300X with 191.45GiB memory\n") == "mi300x");
  CHECK(device("NVIDIA GeForce RTX 3090 with 23.69GiB memory\n").empty());
  CHECK(device("unknown\n").empty());
}

TEST_CASE("the configuration that DeepSpeed prints is its JSON") {
  const LaunchedRun run = printed("deepspeed.log");
  CHECK(run.framework == Framework::deepspeed);
  RunAround around;
  around.model = "llama3-8b";
  CHECK(contains(command_in(run, around), "--dp 8 --zero 3"));
  CHECK(contains(command_in(run, around), "--microbatch-size 4 --microbatches 2"));
}

TEST_CASE("a log without arguments has no run, and one that ends in them is refused") {
  CHECK_FALSE(printed_run(source_text("tests/traces/logs/megatron.txt"), "a.log"));
  CHECK(contains(
      trace_error_of([] { printed_run("--- arguments ---\n  bf16 ... True\n", "a.log"); }).what(),
      "has no end"));
  CHECK(
      contains(trace_error_of([] { printed_run("Running with args: {\"a\": 1", "a.log"); }).what(),
               "has no end"));
}

}  // namespace stageline::launched_runs_tests
