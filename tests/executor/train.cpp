// Does it learn what the program says? The delayed run against the pipelined one, to the last bit;
// plain training against autograd.
#include "sim/base/index.hpp"
#include "sim/deadlock.hpp"
#include "tools/executor/train/trainer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "sim/base/errors.hpp"
#include "tests/executor/sampled.hpp"
#include "tests/executor/trainings.hpp"
#include "tests/specs.hpp"
#include "tools/base/files.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/run/execute.hpp"
#include "tools/executor/train/checkpoint.hpp"
#include "tools/executor/train/evaluator.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/lab/training/times.hpp"

namespace stageline::executor {
namespace {

using trainings::check_same;
using trainings::quick;
using trainings::request_of;
using trainings::trained;

std::vector<ScheduleSpec> asynchronous_specs(int devices) {
  std::vector<ScheduleSpec> some;
  for (const ScheduleSpec& spec : test::all_specs(devices)) {
    if (spec.scheduler->synchrony == Synchrony::asynchronous) some.push_back(spec);
  }
  return some;
}

}  // namespace

TEST_CASE("delayed training is pipelined training, bit by bit, under every asynchronous schedule") {
  std::set<std::string> names;
  int tried = 0;
  for (int devices = 2; devices <= 4; ++devices) {
    if (sampled() && devices != 3) continue;
    for (const ScheduleSpec& spec : asynchronous_specs(devices)) {
      const std::string name = spelled(spec);
      CAPTURE(name);
      CAPTURE(devices);
      TrainingRequest request = request_of("lenet5,width=2", spec, devices, 204,
                                           tried % 2 == 0 ? std::optional(quick) : std::nullopt);
      request.recipe.rate = 0.0005;  // some are 40 updates late
      try {
        const TrainingResult delayed = trained(request);
        CHECK(delayed.log.steps.size() == 204);
        request.mode = TrainingMode::pipelined;
        check_same(delayed, trained(request));
        ++tried;
        names.insert(std::string(spec.scheduler->name));
      } catch (const UsageError& error) {
        MESSAGE(name << " on " << devices << ": " << std::string(error.what()));
      }
    }
  }
  MESSAGE(tried << " programs");
  int expected = 0;
  for (const Scheduler* const one : schedulers()) {
    expected += one->synchrony == Synchrony::asynchronous ? 1 : 0;
  }
  CHECK(static_cast<int>(names.size()) == expected);
}

TEST_CASE("left to itself, a run reads the versions that the simulator tells") {
  int told = 0;
  for (int devices = 2; devices <= 4; ++devices) {
    for (const ScheduleSpec& spec : asynchronous_specs(devices)) {
      const std::string name = spelled(spec);
      CAPTURE(name);
      CAPTURE(devices);
      TrainingRequest request = request_of("lenet5,width=2", spec, devices, 12);
      try {
        const lab::TrainingProgram training = lab::training_program(request.asked, 12);
        Job job{training.program,
                stage_graph(training.program),
                training.partition,
                {request.shape, 2}};
        const Execution run = Executor(std::move(job), training.costs, request.devices).run();
        std::map<std::pair<int, Op>, std::uint32_t> versions;
        for (std::uint32_t task = 0; task < run.graph.tasks(); ++task) {
          versions[{run.graph.lanes[run.graph.lane[task]].device, run.graph.op[task]}] =
              run.version[task];
        }
        // Where weights are updated elsewhere, and no delay says exactly which, they come when they
        // come: the same for everybody only in a training, where the table says which to wait for.
        const bool exact = !training.program.settings.delay.empty() &&
                           training.program.settings.weights == WeightRule::latest;
        bool certain = true;
        for (const StagePlace& place : training.program.placement.stage) {
          certain = certain && (!place.apart() || exact);
        }
        const bool rebuilt = training.program.settings.correction == moving_average;
        for (const VersionRead& read : versions_read(training.program, training.timeline)) {
          if (!certain || (rebuilt && read.op.kind != OpKind::forward)) continue;
          if (read.op.kind == OpKind::weight_grad) continue;  // goes by what I has left
          CHECK(versions.at({read.device, read.op}) == read.version);
          ++told;
        }
      } catch (const UsageError&) {  // it does not go on so many devices
      }
    }
  }
  CHECK(told > 1000);
}

TEST_CASE("delayed is pipelined with skips across stages and with batch norms, too") {
  for (const std::string text :
       {"stale_weights", "pipedream:replicas=2-1", "layerpipe", "pipefb"}) {
    CAPTURE(text);
    TrainingRequest request = request_of("resnet20,width=2", parse_schedules(text).at(0), 3, 40);
    const TrainingResult delayed = trained(request);
    request.mode = TrainingMode::pipelined;
    check_same(delayed, trained(request));
  }
}

TEST_CASE("delayed is pipelined under every correction and rule, too") {
  std::set<std::string> tried;
  for (const std::string schedule : {"stale_weights", "pipedream", "pipedream_2bw", "layerpipe"}) {
    for (const std::string text :
         {"stash", "vertical_sync", "double_buffer", "moving_average", "weight_prediction",
          "spike_compensation", "rate_by_delay", "weight_prediction+spike_compensation",
          "stash+weight_prediction", "stash+spike_compensation+rate_by_delay", "nesterov",
          "error_feedback", "stash+nesterov+error_feedback"}) {
      CAPTURE(schedule);
      CAPTURE(text);
      TrainingRequest request =
          request_of("lenet5,width=2", parse_schedules(schedule).at(0), 3, 60);
      request.corrections = parse_corrections(text);
      request.asked.weights = rule_of(request.corrections);
      try {
        const TrainingResult delayed = trained(request);
        request.mode = TrainingMode::pipelined;
        check_same(delayed, trained(request));
        tried.insert(text);
      } catch (const UsageError& error) {
        MESSAGE(schedule << " with " << text << ": " << std::string(error.what()));
      } catch (const Deadlock& error) {
        MESSAGE(schedule << " with " << text << ": " << std::string(error.what()));
      }
    }
  }
  CHECK(tried.size() == 13);
}

TEST_CASE("delayed is pipelined with Muon and error feedback under every asynchronous schedule") {
  for (const Scheduler* const one : schedulers()) {
    if (one->synchrony != Synchrony::asynchronous) continue;
    const std::string schedule(one->name);
    CAPTURE(schedule);
    TrainingRequest request = request_of("lenet5,width=2", parse_schedules(schedule).at(0), 3, 60);
    request.optimizer = Optimizer::muon;
    const std::string without = trained(request).digest;
    request.corrections = parse_corrections("error_feedback");
    const TrainingResult delayed = trained(request);
    CHECK(delayed.digest != without);
    request.mode = TrainingMode::pipelined;
    check_same(delayed, trained(request));
  }
}

TEST_CASE("a synchronous schedule learns what plain training learns") {
  const TrainingRequest plain = request_of("lenet5,width=2", parse_schedules("gpipe").at(0), 2, 20);
  const TrainingResult expected = [&] {
    TrainingRequest request = plain;
    request.pipelined = 0;
    return trained(request);
  }();
  for (const std::string text :
       {"gpipe:recompute=always", "1f1b", "zb_h1", "interleaved_1f1b", "chimera"}) {
    for (const TrainingMode mode : {TrainingMode::delayed, TrainingMode::pipelined}) {
      CAPTURE(text);
      TrainingRequest request = plain;
      request.asked.spec = parse_schedules(text).at(0);
      request.mode = mode;
      const TrainingResult result = trained(request);
      for (std::size_t i = 0; i < result.log.steps.size(); ++i) {
        CHECK(result.log.steps[i].loss ==
              doctest::Approx(expected.log.steps[i].loss).epsilon(1e-9));
      }
      CHECK(result.log.evaluations.back().loss ==
            doctest::Approx(expected.log.evaluations.back().loss).epsilon(1e-9));
    }
  }
}

TEST_CASE("what is not pipelined is what autograd and the optimizer make of it") {
  TrainingRequest request =
      request_of("resnet20,width=2", parse_schedules("stale_weights").at(0), 3, 12);
  request.pipelined = 0;
  const TrainingResult result = trained(request);
  TensorModel model =
      tensor_model(request.shape, request.optimizer, at::TensorOptions(at::kDouble), request.seed);
  const Batches batches{request.data, 2, request.seed, {}};
  for (std::uint32_t step = 0; step < 12; ++step) {
    zero_gradients(model);
    MicroBatch batch = empty_micro_batch(model);
    batches.fill(step, model, batch);
    const at::Tensor loss = whole_forward(model, batch);
    CHECK(loss.item<double>() == doctest::Approx(result.log.steps[step].loss).epsilon(1e-9));
    whole_backward(model, loss);
    OptimizerStep numbers{rate_at(request.recipe, step), 0.9, 1e-3};
    for (std::size_t l = 0; l < model.layers.size(); ++l) update(model, l, numbers);
  }
}

}  // namespace stageline::executor
