// Do whole pipelines train replicated as one device would, with the optimizer's state of each
// replica whole or divided?
#include "tools/executor/run/execute.hpp"

#include <doctest/doctest.h>  // behind LibTorch, which has a CHECK of its own

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "tests/executor/sequential.hpp"
#include "tests/executor/trials.hpp"
#include "tests/specs.hpp"
#include "tools/executor/run/optimizer_shards.hpp"

namespace stageline::executor {
namespace {

using sequential::plain_training;
using sequential::reads_of;
using sequential::StaleTraining;
using sequential::Trained;
using trials::anywhere;
using trials::case_of;
using trials::gpt;
using trials::losses_apart;
using trials::replicas_agree;
using trials::replicated_trial;
using trials::ReplicatedTrial;
using trials::weights_apart;

const LinkSpec quick{parse_bandwidth("2GB/s"), std::chrono::microseconds(30)};

ReplicatedTrial of_schedule(const std::string& schedule, int devices, int replicas, int steps = 1,
                            int microbatches = 4) {
  const ScheduleSpec spec = parse_schedules(schedule).at(0);
  return replicated_trial(gpt, case_of(gpt, spec, devices, microbatches, steps, std::nullopt),
                          replicas);
}

void check_training(const ReplicatedTrial& trial, bool sharded) {
  CAPTURE(sharded);
  Job job = trial.job;
  job.sharded_optimizer = sharded;
  Executor executor(job, trial.costs, anywhere(job.program.devices.size()));
  const Execution run = executor.run();
  const Trained expected =
      trial.synchronous ? plain_training(job) : StaleTraining(job, reads_of(job, run)).train();
  CHECK(losses_apart(run, expected) < 1e-9);
  CHECK(weights_apart(executor, expected) < 1e-9);
  CHECK(replicas_agree(executor, job));
}

std::string refusal(const Job& job, const Costs& costs) {
  try {
    const Executor executor(job, costs, anywhere(job.program.devices.size()));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("two replicas of every pipeline train as one device does") {
  std::set<std::string> names;
  int tried = 0;
  for (const ScheduleSpec& spec : test::all_specs(2)) {
    const std::string name = spelled(spec);
    CAPTURE(name);
    const std::optional<LinkSpec> link = tried % 2 == 0 ? std::nullopt : std::optional(quick);
    std::optional<ReplicatedTrial> trial;
    try {
      trial = replicated_trial(gpt, case_of(gpt, spec, 2, 4, 2, link), 2, link);
    } catch (const UsageError&) {
      continue;  // it does not go on two devices, or has no replicas
    }
    check_training(*trial, false);
    check_training(*trial, true);
    ++tried;
    names.insert(std::string(spec.scheduler->name));
  }
  MESSAGE(tried << " pipelines, 2 × 2, each with and without a sharded optimizer");
  // All but those that split the roles of stages, count delays in micro-batches or cut sequences.
  CHECK(names.size() + 4 >= schedulers().size());
}

TEST_CASE("replicas have the same bits after each step, and plain training's weights") {
  for (const bool sharded : {false, true}) {
    CAPTURE(sharded);
    ReplicatedTrial trial = of_schedule("1f1b", 2, 2);  // a step: 8 micro-batches, which repeat
    trial.job.sharded_optimizer = sharded;
    Executor executor(trial.job, trial.costs, anywhere(4));
    for (int step = 1; step <= 4; ++step) {
      CAPTURE(step);
      executor.run();
      CHECK(replicas_agree(executor, trial.job));
      Job so_far = trial.job;
      so_far.program.steps = step;
      CHECK(weights_apart(executor, plain_training(so_far)) < 1e-9);
    }
  }
}

TEST_CASE("any optimizer is divided among any number of replicas") {
  for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
    for (const int replicas : {2, 3, 5}) {
      CAPTURE(static_cast<int>(optimizer));
      CAPTURE(replicas);
      ReplicatedTrial trial = of_schedule("gpipe", 1, replicas, 3, 1);
      trial.job.training.optimizer = optimizer;
      trial.job.training.recipe.weight_decay = 0;
      check_training(trial, true);
    }
  }
}

TEST_CASE("a shard has its share of the elements, and the shards are all of them") {
  const Tensors weights = {at::zeros({3, 5}), at::zeros({4}), at::zeros({0}), at::zeros({7, 2})};
  for (const std::size_t replicas : {1U, 2U, 3U, 8U, 40U}) {
    CAPTURE(replicas);
    std::vector<at::Tensor> seen;
    for (const at::Tensor& weight : weights) seen.push_back(at::zeros_like(weight));
    for (std::size_t r = 0; r < replicas; ++r) {
      std::int64_t count = 0;
      for (const Piece& piece : pieces_of(weights, r, replicas)) {
        count += piece.count;
        view_of(seen[piece.weight], piece).add_(1);
      }
      CHECK(count >= 33 / static_cast<std::int64_t>(replicas));
      CHECK(count <= 33 / static_cast<std::int64_t>(replicas) + 1);
    }
    for (const at::Tensor& weight : seen) CHECK(weight.equal(at::ones_like(weight)));
  }
}

TEST_CASE("each replica holds its share of the optimizer's state, and the peak falls by the rest") {
  for (const int replicas : {2, 4}) {
    CAPTURE(replicas);
    ReplicatedTrial trial = of_schedule("gpipe", 1, replicas, 1, 2);
    trial.job.training.optimizer = Optimizer::adam;
    trial.job.training.shape = parse_shape("gpt,layers=3,hidden=16,heads=2,seq=4,vocab=11");
    std::vector<HeldBytes> held[2];
    for (const bool sharded : {false, true}) {
      trial.job.sharded_optimizer = sharded;
      Executor executor(trial.job, trial.costs, anywhere(trial.job.program.devices.size()));
      held[sharded ? 1 : 0] = executor.run_counted();
    }
    std::int64_t elements = 0;
    const TensorModel model =
        tensor_model(trial.job.training.shape, Optimizer::sgd, at::TensorOptions(at::kDouble), 1);
    for (const LayerWeights& weights : model.weights) {
      for (const at::Tensor& value : weights.values) elements += value.numel();
    }
    constexpr std::int64_t state = 2 * 8;  // bytes of an element: two moments
    std::int64_t all = 0;
    for (std::size_t d = 0; d < held[1].size(); ++d) {
      const std::int64_t whole = held[0][d].optimizer;
      const std::int64_t share = held[1][d].optimizer;
      CHECK(whole == elements * state);
      CHECK(share >= elements / replicas * state);
      CHECK(share <= (elements / replicas + 1) * state);
      all += share;
      // The rest of what is held depends on when ops run, by little.
      const auto saved = static_cast<double>(held[0][d].peak - held[1][d].peak);
      CHECK(saved > 0.8 * static_cast<double>(whole - share));
    }
    CHECK(all == elements * state);
  }
}

TEST_CASE("a sharded optimizer is refused where there is nothing to divide, or no whole step") {
  ReplicatedTrial alone = of_schedule("1f1b", 2, 1);
  alone.job.sharded_optimizer = true;
  CHECK(
      refusal(alone.job, alone.costs).starts_with("a sharded optimizer (ZeRO) divides its state"));
  ReplicatedTrial imitated = of_schedule("1f1b", 2, 2);
  imitated.job.sharded_optimizer = true;
  imitated.job.imitated = true;
  CHECK(refusal(imitated.job, imitated.costs).find("leave --imitate out") != std::string::npos);
  ReplicatedTrial corrected = of_schedule("pipedream", 2, 2);
  corrected.job.sharded_optimizer = true;
  corrected.job.program.settings.correction = std::string(moving_average);
  CHECK(refusal(corrected.job, corrected.costs).find("without corrections") != std::string::npos);
}

TEST_CASE("an op that would wait for an update that waits for it is refused, and named") {
  // Stage 0 on a needs what b's update makes, which b lists behind a forward of what a makes next.
  const std::string text =
      "stageline-program 1\nmicrobatches: 4\nweights: stash\nstage 0: a+b\nstage 1: b\n"
      "a: 0F0 0B0 0U0 0F2 0B2 0U1\n"
      "b: 0F1 1F0 1B0 1F1 1B1 0B1 1F2 1B2 0U0.1 0F3 1F3 1B3 0B3 0U1.1\n";
  Case asked = case_of(gpt, parse_schedules("1f1b").at(0), 2, 4, 0, std::nullopt);
  asked.program = parse_program(text);
  asked.microbatches = 4;
  trials::Trial trial = trials::trial(gpt, asked);
  CHECK(refusal(trial.job, trial.outcome.costs) == "");
  trial.job.sharded_optimizer = true;
  CHECK(refusal(trial.job, trial.outcome.costs) ==
        "with a sharded optimizer 0F2 on a needs the weights that 0U0.1 "
        "makes on b, which waits for it; write updates of all replicas ahead of the next forwards");
}

}  // namespace stageline::executor
