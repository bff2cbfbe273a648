// The course of a training: hybrid phases, stops and checkpoints, the seed, evaluations, the log,
// and what is refused.
#include "sim/base/index.hpp"
#include "tools/executor/train/trainer.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "sim/base/errors.hpp"
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
using trainings::digits;
using trainings::request_of;
using trainings::textures;
using trainings::trained;

std::string scratch(const std::string& name) {
  return (std::filesystem::temp_directory_path() /
          ("stageline-" + std::to_string(::getpid()) + name))
      .string();
}

}  // namespace

TEST_CASE("hybrid training goes on from what all stages have, and is plain from there") {
  TrainingRequest request =
      request_of("lenet5,width=2", parse_schedules("stale_weights").at(0), 3, 60);
  request.pipelined = 40;
  request.evaluate_every = 20;
  const TrainingResult hybrid = trained(request);
  TrainingRequest first = request;
  first.recipe.steps = 40;
  first.recipe.milestones = request.recipe.milestones;
  const TrainingResult pipelined = trained(first);
  CHECK(hybrid.log.evaluations.at(2).loss == pipelined.log.evaluations.back().loss);
  CHECK(hybrid.log.steps[39].loss == pipelined.log.steps[39].loss);
  // From there by hand.
  TensorModel model =
      tensor_model(request.shape, request.optimizer, at::TensorOptions(at::kDouble), request.seed);
  std::vector<std::size_t> next(pipelined.state.stage.size());
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    const auto s = as_size(pipelined.partition.stage_of[l]);
    const StageState& stage = pipelined.state.stage[s];
    model.weights[l].values = stage.versions.at(stage.newest).values[next[s]];
    model.weights[l].state = stage.optimizer[next[s]++];
  }
  for (std::uint32_t step = 40; step < 60; ++step) {
    zero_gradients(model);
    MicroBatch batch = empty_micro_batch(model);
    Batches{request.data, 2, request.seed, {}}.fill(step, model, batch);
    for (std::size_t l = 0; l < model.layers.size(); ++l) forward(model, l, batch);
    CHECK(batch.outputs.back().item<double>() == hybrid.log.steps[step].loss);
    for (std::size_t l = model.layers.size(); l-- > 0;) backward(model, l, batch);
    const OptimizerStep numbers{rate_at(request.recipe, step), 0.9, 1e-3};
    for (std::size_t l = 0; l < model.layers.size(); ++l)
      update(model, l, numbers, NewWeights::beside);
  }
  // And it takes the time of both, with one drain.
  CHECK((hybrid.log.steps.back().end ==
         pipelined.log.steps.back().end + lab::one_device_step(request.asked, 1) * 20));
}

TEST_CASE("a training that is stopped goes on to the same weights, whichever way it was run") {
  const std::string file = scratch("-checkpoint");
  int tried = 0;
  for (const std::string text :
       {"stale_weights", "stale_weights:mapping=paired", "pipedream", "pipedream:replicas=2-1",
        "pipedream_2bw", "layerpipe", "layerpipe:weights=average", "pipefb", "1f1b"}) {
    for (const TrainingMode mode : {TrainingMode::delayed, TrainingMode::pipelined}) {
      for (const TrainingMode then : {TrainingMode::delayed, TrainingMode::pipelined}) {
        CAPTURE(text);
        CAPTURE(std::string(name(mode)));
        CAPTURE(std::string(name(then)));
        TrainingRequest request = request_of("lenet5,width=2", parse_schedules(text).at(0), 3, 48);
        request.pipelined = 36;
        request.evaluate_every = 6;
        request.mode = mode;
        const TrainingResult whole = trained(request);
        request.checkpoint = file;
        request.checkpoint_every = 6;
        // Stopped soon after step 14, and again after step 40.
        for (const std::int64_t until : {std::int64_t{14}, std::int64_t{40}}) {
          std::atomic<bool> stop{false};
          const auto tell = [&](const TrainingProgress& now) { stop = stop || now.step >= until; };
          CHECK_THROWS_AS(train(request, tell, &stop), Stopped);
          request.resume = true;
          request.mode = then;
        }
        const Checkpoint kept = read_checkpoint(file);
        CHECK(kept.state.step >= 36);
        CHECK(kept.state.step < 48);
        check_same(trained(request), whole);
        std::filesystem::remove(file);
        ++tried;
      }
    }
  }
  CHECK(tried == 36);
}

TEST_CASE("what optimizers and feedback keep is in the checkpoint") {
  struct Kept {
    std::string schedule;
    Optimizer optimizer;
    std::string correction;
  };
  const std::vector<Kept> all = {{"pipedream_2bw", Optimizer::muon, "error_feedback"},
                                 {"pipedream", Optimizer::adam, "error_feedback"},
                                 {"stale_weights", Optimizer::momentum, "nesterov+error_feedback"}};
  const std::string file = scratch("-kept");
  for (const Kept& one : all) {
    CAPTURE(one.schedule);
    TrainingRequest request =
        request_of("lenet5,width=2", parse_schedules(one.schedule).at(0), 3, 48);
    request.pipelined = 36;
    request.evaluate_every = 6;
    request.optimizer = one.optimizer;
    request.corrections = parse_corrections(one.correction);
    const TrainingResult whole = trained(request);
    request.checkpoint = file;
    request.checkpoint_every = 6;
    for (const std::int64_t until : {std::int64_t{1}, std::int64_t{14}, std::int64_t{40}}) {
      std::atomic<bool> stop{false};
      const auto tell = [&](const TrainingProgress& now) { stop = stop || now.step >= until; };
      CHECK_THROWS_AS(train(request, tell, &stop), Stopped);
      request.resume = true;
      request.mode = until < 10 ? TrainingMode::pipelined : TrainingMode::delayed;
    }
    check_same(trained(request), whole);
    std::filesystem::remove(file);
  }
}

TEST_CASE("plain steps keep a correction that is an optimizer's step of its own, and no other") {
  TrainingRequest request =
      request_of("lenet5,width=2", parse_schedules("stale_weights").at(0), 3, 12);
  request.pipelined = 0;
  const std::string momentum = trained(request).digest;
  request.corrections = parse_corrections("error_feedback");
  CHECK(trained(request).digest == momentum);
  request.corrections = parse_corrections("nesterov");
  const TrainingResult plain = trained(request);
  CHECK(plain.log.settings.correction == "nesterov");
  TensorModel model =
      tensor_model(request.shape, request.optimizer, at::TensorOptions(at::kDouble), request.seed);
  for (std::uint32_t step = 0; step < 12; ++step) {
    zero_gradients(model);
    MicroBatch batch = empty_micro_batch(model);
    Batches{request.data, 2, request.seed, {}}.fill(step, model, batch);
    for (std::size_t l = 0; l < model.layers.size(); ++l) forward(model, l, batch);
    CHECK(batch.outputs.back().item<double>() == plain.log.steps[step].loss);
    for (std::size_t l = model.layers.size(); l-- > 0;) backward(model, l, batch);
    const OptimizerStep numbers{rate_at(request.recipe, step), 0.9, 1e-3, 0.9 * (1 - 0.9), 1 - 0.9};
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
      update(model, l, numbers, NewWeights::beside);
    }
  }
}

TEST_CASE("an evaluation stops, too, when it is asked to") {
  const TrainingRequest request =
      request_of("lenet5,width=2", parse_schedules("stale_weights").at(0), 3, 8);
  const std::atomic<bool> stop{true};
  int told = 0;
  CHECK_THROWS_AS(train(
                      request, [&](const TrainingProgress&) { ++told; }, &stop),
                  Stopped);
  CHECK(told == 0);  // of the evaluation at step 0
}

TEST_CASE("a checkpoint that does not fit is refused with what differs") {
  const std::string file = scratch("-other");
  TrainingRequest request =
      request_of("lenet5,width=2", parse_schedules("stale_weights").at(0), 3, 8);
  request.checkpoint = file;
  trained(request);
  CHECK_THROWS_WITH_AS(trained(request), doctest::Contains("give --resume"), UsageError);
  request.resume = true;
  TrainingRequest other = request;
  other.seed = 2;
  CHECK_THROWS_WITH_AS(trained(other), doctest::Contains("its seed is 1, not 2"), UsageError);
  other = request;
  other.recipe.rate = 0.5;
  CHECK_THROWS_WITH_AS(trained(other), doctest::Contains("recipe"), UsageError);
  const std::string whole = read_file(file);
  write_file(file, whole.substr(0, whole.size() / 2));
  CHECK_THROWS_WITH_AS(trained(request), doctest::Contains("no whole checkpoint"), UsageError);
  write_file(file, "");
  CHECK_THROWS_WITH_AS(trained(request), doctest::Contains("no whole checkpoint"), UsageError);
  std::filesystem::remove(file);
}

TEST_CASE("a seed decides everything, another one changes it") {
  TrainingRequest request =
      request_of("resnet20,width=2", parse_schedules("stale_weights").at(0), 3, 10);
  request.augmentation = {true, true};
  const TrainingResult first = trained(request);
  check_same(first, trained(request));
  request.seed = 2;
  CHECK(trained(request).digest != first.digest);
}

TEST_CASE("the test set is judged by running statistics, image by image") {
  TrainingRequest request =
      request_of("resnet20,width=2", parse_schedules("stale_weights").at(0), 3, 20);
  const TrainingResult result = trained(request);
  // The same images one at a time give the same mean loss: no image sees another.
  TensorModel model =
      tensor_model(request.shape, Optimizer::sgd, at::TensorOptions(at::kDouble), 1);
  std::vector<std::vector<std::size_t>> layers(result.state.stage.size());
  for (std::size_t l = 0; l < model.layers.size(); ++l) {
    nth(layers, result.partition.stage_of[l]).push_back(l);
  }
  for (std::size_t s = 0; s < layers.size(); ++s) {
    const StageState& stage = result.state.stage[s];
    for (std::size_t i = 0; i < layers[s].size(); ++i) {
      model.weights[layers[s][i]].values = stage.versions.at(stage.newest).values[i];
    }
    set_statistics(model, layers[s], stage.statistics[0]);
  }
  double loss = 0;
  const std::size_t images = request.data->test.size();
  for (std::size_t i = 0; i < images; ++i) {
    MicroBatch batch = empty_micro_batch(model);
    batch.purpose = Purpose::evaluation;
    fill_test(*request.data, i, i + 1, model, batch);
    for (std::size_t l = 0; l < model.layers.size(); ++l) forward(model, l, batch);
    loss += batch.outputs.back().item<double>() / static_cast<double>(images);
  }
  CHECK(result.log.evaluations.back().loss == doctest::Approx(loss).epsilon(1e-9));
}

TEST_CASE("the log says how stale each stage was, and when each step would end") {
  TrainingRequest request =
      request_of("lenet5,width=2", parse_schedules("stale_weights").at(0), 5, 30);
  request.asked.partition = "ppv:1,2";
  const lab::TrainingLog log = trained(request).log;
  REQUIRE(log.stages.size() == 3);
  for (int s = 0; s < 3; ++s) CHECK(nth(log.stages, s).staleness_max == 2 * (2 - s));
  const std::vector<Time> ends = lab::hybrid_step_ends(request.asked, 30, 30);
  for (std::size_t i = 0; i < ends.size(); ++i) CHECK((log.steps[i].end == ends[i]));
  CHECK(log.evaluations.front().step == 0);
  CHECK((log.evaluations.back().end == ends.back()));
  CHECK(log.settings.weights == "latest");
}

TEST_CASE("what does not go together is refused") {
  TrainingRequest request =
      request_of("lenet5,width=2", parse_schedules("pipedream:replicas=2-1").at(0), 3, 21);
  CHECK_THROWS_WITH_AS(trained(request), doctest::Contains("take 20 or 22"), UsageError);
  request = request_of("lenet5,width=2", parse_schedules("stale_weights").at(0), 3, 20);
  request.data = &textures();
  CHECK_THROWS_WITH_AS(trained(request), doctest::Contains("try --data digits"), UsageError);
  request.data = &digits();
  request.asked.weights = WeightRule::vertical_sync;
  request.corrections = parse_corrections("weight_prediction");
  CHECK_THROWS_WITH_AS(trained(request), doctest::Contains("--weights latest or stash"),
                       UsageError);
  CHECK_THROWS_WITH_AS(parse_corrections("spike"), doctest::Contains("there is no correction"),
                       UsageError);
  CHECK_THROWS_WITH_AS(parse_corrections("moving_average+weight_prediction"),
                       doctest::Contains("take one of them"), UsageError);
  CHECK_THROWS_WITH_AS(parse_corrections("nesterov+spike_compensation"),
                       doctest::Contains("how the velocity moves the weights"), UsageError);
  request.asked.weights = std::nullopt;
  request.optimizer = Optimizer::muon;
  request.corrections = parse_corrections("nesterov");
  CHECK_THROWS_WITH_AS(trained(request),
                       doctest::Contains("needs --optimizer momentum (this is muon)"), UsageError);
  CHECK_THROWS_WITH_AS(parse_corrections("stash+vertical_sync"),
                       doctest::Contains("take one of them"), UsageError);
}

}  // namespace stageline::executor
