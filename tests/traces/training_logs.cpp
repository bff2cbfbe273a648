// Are the logs of trainings read as they are, and refused where they say nothing?
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "tests/traces/support.hpp"
#include "traces/logs/training_log.hpp"

namespace stageline::training_logs_tests {
namespace {

struct Read {
  PrintedLog log;
  LogSummary summary;
};

Read read(const std::string& text) {
  Read read{read_printed_log(text, "a.log"), {}};
  read.summary = summary_of(read.log, "a.log");
  return read;
}

Read read_example(const std::string& name) {
  return read(source_text("tests/traces/logs/" + name));
}

std::string refused(const std::string& text) {
  return trace_error_of([&] { read(text); }).what();
}

TEST_CASE("a log of Megatron-LM gives step, batch, FLOPs, memory and skipped updates") {
  const auto [log, summary] = read_example("megatron.txt");
  CHECK(log.framework == "Megatron-LM");
  CHECK(summary.steps == 3);
  CHECK(summary.warm_up == 1);
  CHECK(summary.seconds == doctest::Approx(2.0));
  CHECK(summary.least == doctest::Approx(1.99));
  CHECK(summary.most == doctest::Approx(2.01));
  CHECK(summary.samples == 32);
  CHECK(summary.device_flops == doctest::Approx(301e12));
  CHECK(summary.memory == doctest::Approx(40960.0 * 1024 * 1024));
  CHECK(summary.skipped == 1);
}

TEST_CASE("a log of torchtitan gives tokens a device, without colours and other ranks") {
  const auto [log, summary] = read_example("torchtitan.txt");
  CHECK(log.framework == "torchtitan");
  CHECK(summary.steps == 2);
  CHECK(summary.seconds == 0);
  CHECK(summary.device_tokens == doctest::Approx(6002));
  CHECK(summary.memory == doctest::Approx(24.0 * 1024 * 1024 * 1024));
}

TEST_CASE("logs of NeMo, DeepSpeed and the Trainer are told apart by their words") {
  const Read nemo = read_example("nemo.txt");
  CHECK(nemo.log.framework == "NeMo");
  CHECK(nemo.summary.seconds == doctest::Approx(3.2));
  CHECK(nemo.summary.samples == 16);
  const Read deepspeed = read_example("deepspeed.txt");
  CHECK(deepspeed.log.framework == "DeepSpeed");
  CHECK(deepspeed.summary.seconds == doctest::Approx(1.0 / 32));  // of a sample
  const Read trainer = read_example("trainer_state.json");
  CHECK(trainer.log.mean_of_run);
  CHECK(trainer.summary.seconds == doctest::Approx(2));
  CHECK(trainer.summary.samples == 32);
}

TEST_CASE("steps behind the first one that are half as long again are warm-up, too") {
  std::string text;
  int number = 0;
  for (const char* const time : {"9000", "4000", "2000", "2000", "2000", "4000"}) {
    text += "iteration " + std::to_string(++number) +
            "/9 | elapsed time per iteration (ms): " + time + " | global batch size: 8 |\n";
  }
  const Read steps = read(text);
  CHECK(steps.summary.warm_up == 2);
  CHECK(steps.summary.seconds == doctest::Approx(2));
  CHECK(steps.summary.most == doctest::Approx(4));
}

TEST_CASE("a log of one step, of two runs, of two batches or of none is refused") {
  const std::string one = "iteration 1/9 | elapsed time per iteration (ms): 90 |\n";
  CHECK(contains(refused(one), "line 1: this is the only step of the log"));
  const std::string text = source_text("tests/traces/logs/megatron.txt");
  CHECK(contains(refused(text + text), "the run began again, at step 1 after step 4 (line 6)"));
  std::string other = text;
  other.replace(other.rfind("global batch size:    32"), 24, "global batch size:    64");
  CHECK(contains(refused(other), "the batch changes, from 32 to 64 samples an update"));
  CHECK(contains(refused("hello\n"), "no line is a step of Megatron-LM"));
  CHECK(contains(refused(""), "the log is empty"));
  CHECK(contains(refused(R"({"log_history": [{"loss": 1}]})"), "this one did not end"));
}

TEST_CASE("logs as users bring them") {
  const char* const data = std::getenv("STAGELINE_DATA");
  const std::string folder = std::string(data == nullptr ? "" : data) + "/cases/files/log_";
  const auto megatron = file_text(folder + "megatron.txt");
  const auto torchtitan = file_text(folder + "torchtitan.txt");
  const auto trainer = file_text(folder + "trainer_state.json");
  if (!megatron || !torchtitan || !trainer) {
    MESSAGE("skipped: STAGELINE_DATA holds no cases/files/log_*");
    return;
  }
  const Read steps = read(*megatron);
  CHECK(steps.summary.seconds == doctest::Approx(4.30).epsilon(0.001));
  CHECK(steps.summary.samples == 64);
  CHECK(read(*torchtitan).summary.device_tokens == doctest::Approx(5518));
  CHECK(1 / read(*trainer).summary.seconds == doctest::Approx(0.0973));
}

}  // namespace
}  // namespace stageline::training_logs_tests
