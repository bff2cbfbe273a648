// Does it learn what the program says? The delayed run against the pipelined one, to the last bit;
// a training that goes on from a checkpoint against one that was never stopped; hybrid training and
// plain training against autograd.
#include "sim/index.hpp"
#include "tools/executor/train/trainer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "sim/errors.hpp"
#include "tests/specs.hpp"
#include "tools/base/files.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/run/execute.hpp"
#include "tools/executor/train/checkpoint.hpp"
#include "tools/executor/train/evaluator.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/training/times.hpp"

namespace stageline::executor {
namespace {

const DataSource& digits() {
  static const DataSource source = open_data("digits,train=64,test=30");
  return source;
}
const DataSource& textures() {
  static const DataSource source = open_data("textures,train=40,test=20");
  return source;
}

const LinkSpec quick{parse_bandwidth("2GB/s"), std::chrono::microseconds(30)};

// Two images at a time through a narrow LeNet-5, or a narrow ResNet-20 with skips across stages and
// batch norms.
TrainingRequest request_of(const std::string& model, const ScheduleSpec& spec, int devices,
                           std::int64_t steps, std::optional<LinkSpec> link = std::nullopt) {
  TrainingRequest request;
  request.model = model;
  request.shape = parse_shape(model);
  const std::size_t comma = model.find(',');
  TraceRequest trace;
  trace.text = "model:" + model.substr(0, comma) + "@h100,batch=2" +
               (comma == std::string::npos ? "" : model.substr(comma));
  request.trace = trace.text;
  request.asked.model = open_trace(trace);
  request.asked.cluster = uniform_cluster(devices, link, std::nullopt, link);
  request.asked.spec = spec;
  request.asked.microbatches = 4;
  request.dtype = at::kDouble;
  request.recipe.rate = 0.003;  // two images a step: more would diverge
  request.recipe.weight_decay = 1e-3;
  request.recipe.warm_up = 5;
  request.recipe.milestones = {steps / 2};
  request.recipe.steps = request.pipelined = steps;
  request.data = model.rfind("lenet5", 0) == 0 ? &digits() : &textures();
  request.devices.resize(as_size(devices));
  request.evaluate_every = steps / 4;
  return request;
}

TrainingResult trained(const TrainingRequest& request) {
  set_threads(1);  // as the executor's workers have: sums of parts may differ in the last bit
  return train(request, [](const TrainingProgress&) {});
}

// Losses of all steps, looks at the test set, weights, what the optimizer and the batch norms keep.
void check_same(const TrainingResult& a, const TrainingResult& b) {
  for (const LoggedStep& step : a.log.steps) REQUIRE(std::isfinite(step.loss));
  CHECK((a.log.steps == b.log.steps));
  CHECK((a.log.evaluations == b.log.evaluations));
  CHECK(a.digest == b.digest);
  REQUIRE(a.state.stage.size() == b.state.stage.size());
  for (std::size_t s = 0; s < a.state.stage.size(); ++s) {
    const StageState& mine = a.state.stage[s];
    const StageState& its = b.state.stage[s];
    REQUIRE(mine.optimizer.size() == its.optimizer.size());
    for (std::size_t i = 0; i < mine.optimizer.size(); ++i) {
      for (std::size_t k = 0; k < mine.optimizer[i].size(); ++k) {
        CHECK(mine.optimizer[i][k].equal(its.optimizer[i][k]));
      }
    }
    REQUIRE(mine.statistics.size() == its.statistics.size());
    for (std::size_t r = 0; r < mine.statistics.size(); ++r) {
      for (std::size_t i = 0; i < mine.statistics[r].size(); ++i) {
        for (std::size_t k = 0; k < mine.statistics[r][i].size(); ++k) {
          CHECK(mine.statistics[r][i][k].equal(its.statistics[r][i][k]));
        }
      }
    }
  }
}

std::vector<ScheduleSpec> asynchronous_specs(int devices) {
  std::vector<ScheduleSpec> some;
  for (const ScheduleSpec& spec : test::all_specs(devices)) {
    if (spec.scheduler->synchrony == Synchrony::asynchronous) some.push_back(spec);
  }
  return some;
}

std::string scratch(const std::string& name) {
  return (std::filesystem::temp_directory_path() /
          ("stageline-" + std::to_string(::getpid()) + name))
      .string();
}

}  // namespace

TEST_CASE("delayed training is pipelined training, bit by bit, under every asynchronous schedule") {
  std::set<std::string> names;
  int tried = 0;
  for (int devices = 2; devices <= 4; ++devices) {
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
        const TrainingProgram training = training_program(request.asked, 12);
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
          "stash+weight_prediction", "stash+spike_compensation+rate_by_delay"}) {
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
  CHECK(tried.size() == 10);
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
         pipelined.log.steps.back().end + one_device_step(request.asked, 1) * 20));
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
  const TrainingLog log = trained(request).log;
  REQUIRE(log.stages.size() == 3);
  for (int s = 0; s < 3; ++s) CHECK(nth(log.stages, s).staleness_max == 2 * (2 - s));
  const std::vector<Time> ends = hybrid_step_ends(request.asked, 30, 30);
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
  CHECK_THROWS_WITH_AS(parse_corrections("stash+vertical_sync"),
                       doctest::Contains("take one of them"), UsageError);
}

}  // namespace stageline::executor
