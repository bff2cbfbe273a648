// Are functions of Python that return a configuration read as torchtitan would run them?
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/traces/support.hpp"
#include "tools/answers/answer.hpp"
#include "tools/launch/python_values.hpp"
#include "tools/launch/run_setting.hpp"

namespace stageline::titan_registry_tests {
namespace {

// In the words of torchtitan/models/llama3/config_registry.py, 2026-08-21.
const std::string registry = R"py(
from torchtitan.trainer import Trainer
from . import model_registry


def llama3_70b() -> Trainer.Config:
    """A text, with "quotes" and a = sign."""
    model_spec = model_registry("70B")
    return Trainer.Config(
        loss=ChunkedLossWrapper.Config(
            loss_fn=CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(model_spec)),
        ),
        model_spec=model_spec,
        optimizer=default_adamw(lr=1.5e-4),
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=2 * 8192,  # two sequences
            max_context_length=8192,
        ),
        parallelism=ParallelismConfig(tensor_parallel_degree=8,),
        activation_checkpoint=FullAC.Config(),
    )


def llama3_70b_pipeline() -> Trainer.Config:
    config = llama3_70b()
    compile_config = CompileConfig(enable=True, components=["model"])
    config.compile = compile_config
    config.parallelism.pipeline_parallel_degree = 4
    config.parallelism.num_pp_microbatches = 16
    config.parallelism.pipeline_parallel_schedule = "Interleaved1F1B"
    config.model_spec = model_registry(
        "70B",
        converters=[Float8LinearConverter.Config(model_compile_enabled=compile_config.enable)],
    )
    enable_fused_swiglu(config)
    return config


def _helper():
    return 3
)py";

RunSetting read(const std::string& text, const std::string& config,
                const LaunchAdditions& more = {}) {
  LaunchAdditions additions = more;
  if (!config.empty()) additions.emplace_back("config", config);
  const LaunchArguments arguments =
      read_arguments(Framework::torchtitan, text, "config_registry.py", additions);
  return setting_of(RunFacts(Framework::torchtitan, arguments, additions), {.devices = 64});
}

std::string refused(const std::string& text, const std::string& config = "") {
  return trace_error_of([&] { read(text, config); }).what();
}

std::string body(const std::string& lines) {
  return "def llama3_8b() -> Trainer.Config:\n" + lines;
}

const std::string minimal = "    return Trainer.Config(model_spec=model_registry(\"8B\"))\n";

TEST_CASE("a function of torchtitan's registry is the run that it configures") {
  CHECK(command_of(read(registry, "llama3_70b")) ==
        "stageline simulate model:llama3-70b@h100,seq=8192,software=fsdp-2023 --cluster 'h100x8*8' "
        "--pp 1 --tp 8 --dp 8 --sequence-parallel --zero 3 --precision bf16 --schedule 1f1b "
        "--recompute every:1 --microbatch-size 2 --microbatches 1");
  const RunSetting pipeline = read(registry, "llama3_70b_pipeline");
  const std::string command = command_of(pipeline);
  CHECK(contains(command, "software=torchtitan-2025,dtype=fp8-rowwise"));
  CHECK(contains(command, "--pp 4 --tp 8 --dp 2"));
  CHECK(contains(command, "--schedule interleaved_1f1b"));
  CHECK(contains(command, "--microbatch-size 2 --microbatches 16"));
  bool named = false;
  for (const std::string& note : pipeline.notes) {
    named = named || contains(note, "enable_fused_swiglu ( config )");
  }
  CHECK(named);
  CHECK(contains(
      command_of(read(registry, "llama3_70b_pipeline", {{"parallelism.num_pp_microbatches", "8"}})),
      "--microbatches 8"));
}

TEST_CASE("the defaults of torchtitan hold where a function says nothing") {
  const std::string command = command_of(read(body(minimal), ""));  // the only function
  CHECK(contains(command, "model:llama3-8b@h100,seq=2048"));
  CHECK(contains(command, "--recompute ops --microbatch-size 8"));  // 16384 tokens
}

TEST_CASE("which function is meant must be said where there are several") {
  CHECK(contains(refused(registry),
                 "2 functions return a configuration; name one with --set config=NAME: llama3_70b, "
                 "llama3_70b_pipeline"));
  CHECK(contains(refused(registry, "llama3_70"), "did you mean \"llama3_70b\"?"));
  CHECK(contains(refused(registry, "_helper"), "_helper returns what is not read"));
}

TEST_CASE("what is computed is refused where it is needed, with its line") {
  const auto training = [](const std::string& tokens) {
    return body(
        "    return Trainer.Config(model_spec=model_registry(\"8B\"),\n"
        "        training=TrainingConfig(num_tokens_per_microbatch_per_dp_rank=" +
        tokens + "))\n");
  };
  CHECK(contains(refused(training("batch(3)")), "line 3"));
  CHECK(contains(refused(training("4096 if big else 2048")), "must be a whole number"));
  CHECK(contains(refused(training("3000")), "no whole number of sequences of 2048"));
  CHECK_NOTHROW(read(training("(1 + 1) * 2048"), ""));
  const std::string degree = "    config.parallelism.tensor_parallel_degree = world // 2\n";
  const std::string taken = "    config = Trainer.Config(model_spec=model_registry(\"8B\"))\n";
  const std::string last = "    return config\n";
  CHECK(contains(refused(body(taken + degree + last)), "which is computed: world // 2"));
  for (const std::string line :
       {"    if big:\n        config.parallelism.tensor_parallel_degree = 2\n",
        "    other = config\n    other.parallelism.tensor_parallel_degree = 2\n",
        "    config.parallelism, x = a, b\n"}) {
    CAPTURE(line);
    CHECK(contains(refused(body(taken + line + last)), "may change what it returns"));
  }
}

TEST_CASE("products that are converted in a way that is not read are refused") {
  const std::string text = body(
      "    return Trainer.Config(model_spec=model_registry(\n        \"8B\", "
      "converters=[NVFP4LinearConverter.Config(fqns=[\"layers\"])]))\n");
  CHECK(contains(refused(text), "line 3: NVFP4LinearConverter.Config changes products"));
  CHECK(contains(refused(body("    return Trainer.Config(model_spec=spec_of(\"8B\"))\n")),
                 "model_spec is not read: spec_of"));
  CHECK(contains(refused(body("    return Trainer.Config(\"\n")), "a text does not end"));
  CHECK(contains(refused(body("    return Trainer.Config(\n")), "a bracket does not end"));
}

TEST_CASE("values of Python are read without running it") {
  const PythonFile file(R"py(
def f():
    a = [1, (2), (3,), "b" "c", True, None, -4, 1_000]
    return Made(x=a, y=g(), z=a[0], w={"k": 1}, v=[i for i in a], u=f"{a}")

def g():
    return 7 // 2 - 1

def loop():
    return loop()
)py",
                        "a.py");
  CHECK(file.functions() == std::vector<std::string>{"f", "g", "loop"});
  const PythonValue made = file.result_of("f").value;
  REQUIRE(made.kind == PythonKind::call);
  CHECK(made.text == "Made");
  const PythonValue& list = *made.find("x");
  REQUIRE(list.items.size() == 8);
  CHECK(list.items[1].second.text == "2");
  CHECK(list.items[2].second.kind == PythonKind::list);
  CHECK(list.items[3].second.text == "bc");
  CHECK(list.items[4].second.kind == PythonKind::flag);
  CHECK(list.items[5].second.kind == PythonKind::none);
  CHECK(list.items[6].second.text == "-4");
  CHECK(list.items[7].second.text == "1000");
  CHECK(made.find("y")->text == "2");
  CHECK(made.find("v")->items[0].second.kind == PythonKind::unread);
  for (const char* const key : {"z", "w", "u"}) {
    CAPTURE(key);
    CHECK(made.find(key)->kind == PythonKind::unread);
  }
  CHECK_THROWS(file.result_of("loop"));
}

}  // namespace
}  // namespace stageline::titan_registry_tests
