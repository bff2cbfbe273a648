// Does a training log hold all of it, and is a broken one refused?
#include "tools/lab/training/log.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "sim/base/errors.hpp"
#include "traces/json/tree.hpp"

namespace stageline::log_tests {
namespace {

lab::TrainingLog small_log() {
  lab::TrainingLog log;
  log.settings.model = "lenet5";
  log.settings.trace = "model:lenet5@h100";
  log.settings.schedule = "stale_weights:mapping=paired";
  log.settings.partition = "ppv:1";
  log.settings.weights = "latest";
  log.settings.correction = "none";
  log.settings.devices = 2;
  log.settings.microbatches = 1;
  log.settings.batch = 32;
  log.settings.data = "digits,train=6000,test=1000";
  log.settings.optimizer = "momentum";
  log.settings.recipe = "rate 0.05, \"momentum\" 0.9\nµ";
  log.settings.number_format = "fp32";
  log.settings.steps = 4;
  log.settings.pipelined = 3;
  log.seed = 7;
  log.mode = "delayed";
  log.stages = {{0, 1, 30, 1.5, 2}, {2, 6, 10, 0, 0}};
  log.software = {"LibTorch 2.13.0", "oneDNN 3.7"};
  log.command = "stageline-train lenet5";
  log.date = "2026-11-22";
  log.wall_seconds = 12.25;
  log.steps = {{Time{1'000'000'000'001}, 2.25},
               {Time{1'500'000'000'000}, 0.1},
               {Time{1'500'000'000'000}, 1e-9},
               {Time{2'000'000'000'000}, 3}};
  log.evaluations = {{0, Time{}, 2.302585092994046, 0.1},
                     {2, Time{1'500'000'000'000}, 0.25, 0.875}};
  return log;
}

// With `from` replaced once by `to`.
std::string refusal(const std::string& from, const std::string& to) {
  std::string text = lab::to_json(small_log());
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  try {
    lab::parse_training_log(text, "log.json");
    return "";
  } catch (const TraceError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("what is written is read back unchanged") {
  lab::TrainingLog log = small_log();
  CHECK(lab::parse_training_log(lab::to_json(log), "log.json") == log);
  log.software.clear();
  log.stages.clear();
  log.steps.clear();
  log.evaluations.clear();
  CHECK(lab::parse_training_log(lab::to_json(log), "log.json") == log);
  log = small_log();
  log.settings.steps = 3000;
  for (int i = 5; i <= 3000; ++i) {
    log.steps.push_back({Time{i * 999'999'999'999}, 1.0 / i});
  }
  CHECK(lab::parse_training_log(lab::to_json(log), "log.json") == log);
}

TEST_CASE("without its steps a log stands in another document, and keeps all else") {
  lab::TrainingLog log = small_log();
  const std::string text = "{\n  \"log\": " + lab::without_steps(log, 2) + "\n}\n";
  CHECK(text.find("\n    \"seed\": 7") != std::string::npos);
  const JsonValue tree = parse_json(text, "logs.json");
  log.steps.clear();
  CHECK(lab::read_without_steps(JsonNode(tree, "", "logs.json").at("log")) == log);

  log.evaluations.back().step = 5;
  const auto refused = [&] {
    const JsonValue broken = parse_json(lab::without_steps(log, 0), "logs.json");
    try {
      lab::read_without_steps(JsonNode(broken, "/log", "logs.json"));
      return std::string();
    } catch (const TraceError& error) {
      return std::string(error.what());
    }
  };
  CHECK(refused().find("logs.json at /log/evaluations/1/step") == 0);  // of 4
  log.evaluations.back().step = 4;
  log.evaluations.front().end = Time{1'600'000'000'000};
  CHECK(refused().find("logs.json at /log/evaluations/1/end_ps") == 0);
}

TEST_CASE("a loss that is no number is null, and comes back as none") {
  lab::TrainingLog log = small_log();
  log.steps[2].loss = std::numeric_limits<double>::quiet_NaN();
  log.steps[3].loss = std::numeric_limits<double>::infinity();
  log.evaluations[1].loss = -std::numeric_limits<double>::infinity();
  log.evaluations[1].accuracy = std::numeric_limits<double>::quiet_NaN();
  const std::string text = lab::to_json(log);
  CHECK(text.find("2.25, 0.1, null, null]") != std::string::npos);
  const lab::TrainingLog back = lab::parse_training_log(text, "log.json");
  CHECK(back.steps[1].loss == 0.1);
  CHECK(std::isnan(back.steps[2].loss));
  CHECK(std::isnan(back.steps[3].loss));
  CHECK(std::isnan(back.evaluations[1].loss));
  CHECK(std::isnan(back.evaluations[1].accuracy));
}

TEST_CASE("a log that cannot have been is refused, with the place") {
  CHECK(refusal("training 1", "training 2") ==
        "log.json at /format: a training log has \"stageline-training 1\" here, not "
        "\"stageline-training 2\"");
  CHECK(refusal("\"pipelined\": 3", "\"pipelined\": 5") ==
        "log.json at /settings/pipelined: this must be from 0 to 4 (it is 5)");
  CHECK(
      refusal("\"devices\": 2", "\"devices\": 0").find("/settings/devices: this must be from 1") !=
      std::string::npos);
  CHECK(refusal("\"recipe\"", "\"recipes\"") ==
        "log.json at /settings/recipes: "
        "\"recipes\" is not a known key here (did you mean \"recipe\"?)");
  CHECK(
      refusal("\"first_layer\": 2", "\"first_layer\": 3") ==
      "log.json at /stages/1/first_layer: stages follow one another in the model: the first layer "
      "of this one must be 2 (it is 3)");
  CHECK(refusal("\"staleness_mean\": 1.5", "\"staleness_mean\": 2.5") ==
        "log.json at /stages/0/staleness_mean: "
        "the mean must not be above the maximum (2.5 is above 2)");
  CHECK(refusal("\"staleness_max\": 0", "\"staleness_max\": -1") ==
        "log.json at /stages/1/staleness_max: staleness must not be negative (it is -1)");
  CHECK(refusal("1000000000001", "1500000000001") ==
        "log.json at /steps/end_ps/1: a step must not end before the one before it (1500000000000 "
        "is before 1500000000001)");
  CHECK(refusal("2.25, 0.1", "2.25") ==
        "log.json at /steps/loss: there must be a loss for each "
        "of the 4 steps of end_ps (this list has 3)");
  CHECK(refusal("2.25, 0.1", "\"low\", 0.1") ==
        "log.json at /steps/loss/0: this must be a number, not a text");
  CHECK(refusal("\"steps\": 4", "\"steps\": 3") ==
        "log.json at /steps/end_ps: the training has 3 steps (this list has 4)");
  CHECK(refusal("\"accuracy\": 0.875", "\"accuracy\": 87.5") ==
        "log.json at /evaluations/1/accuracy: an accuracy is a share from 0 to 1 (it is 87.5)");
  CHECK(refusal("\"step\": 2, \"end_ps\": 1500000000000", "\"step\": 4, \"end_ps\": 1") ==
        "log.json at /evaluations/1/end_ps: step 4 ends at 2000000000000 (this has 1)");
  CHECK(refusal("\"step\": 2", "\"step\": 0") ==
        "log.json at /evaluations/1/step: evaluations are in order of their steps (0 follows 0)");
  CHECK(
      refusal("\"step\": 2", "\"step\": 5").find("/evaluations/1/step: this must be from 0 to 4") !=
      std::string::npos);
  CHECK(refusal("{\n  \"format\"", "{\n  format").find("log.json at line 2") == 0);
}

TEST_CASE("the table has a line a step, exact seconds, and the test set where it was looked at") {
  lab::TrainingLog log = small_log();
  log.steps[3].loss = std::numeric_limits<double>::quiet_NaN();
  CHECK(lab::to_csv(log) ==
        "step,samples,simulated_seconds,loss,test_loss,test_accuracy\n"
        "0,0,0.000000000000,,2.302585092994046,0.1\n"
        "1,32,1.000000000001,2.25,,\n"
        "2,64,1.500000000000,0.1,0.25,0.875\n"
        "3,96,1.500000000000,1e-09,,\n"
        "4,128,2.000000000000,nan,,\n");
}

TEST_CASE("the stale share is that of the weights in stages that read old ones, while pipelined") {
  lab::TrainingLog log = small_log();
  CHECK(log.stale_share() == 0.75);
  log.settings.pipelined = 0;
  CHECK(log.stale_share() == 0);
  log = small_log();
  log.stages.clear();
  CHECK(log.stale_share() == 0);
}

}  // namespace stageline::log_tests
