// Jobs of small models in double precision, and how far their runs are from a reference. Behind
// LibTorch, which has a CHECK of its own.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/stage_costs.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/lower/passes.hpp"
#include "tests/executor/sequential.hpp"
#include "tools/executor/run/execute.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/study/study.hpp"

namespace stageline::executor::trials {

// Small, and with every kind of edge: a chain with skips inside a layer, and skips across layers.
inline const std::string gpt = "gpt,layers=3,hidden=16,heads=2,seq=4,vocab=11";
inline const std::string resnet = "resnet20";

inline Training training_of(const std::string& shape) {
  Training training;
  training.shape = parse_shape(shape);
  training.batch = 2;
  training.optimizer = Optimizer::momentum;
  training.dtype = at::kDouble;
  training.recipe.rate = 0.02;
  return training;
}

inline Case case_of(const std::string& shape, const ScheduleSpec& spec, int devices,
                    int microbatches, int steps, std::optional<LinkSpec> link) {
  Case asked;
  // "gpt,layers=3" is priced as "model:gpt@h100,layers=3".
  const std::size_t comma = shape.find(',');
  const std::string options = comma == std::string::npos ? "" : shape.substr(comma);
  TraceRequest request;
  request.text = "model:" + shape.substr(0, comma) + "@h100,batch=2" + options;
  asked.model = open_trace(request);
  asked.cluster = uniform_cluster(devices, link, std::nullopt, link);
  asked.spec = spec;
  asked.microbatches = microbatches;
  asked.steps = steps;
  return asked;
}

struct Trial {
  Outcome outcome;
  Job job;
};

inline Trial trial(const std::string& shape, const Case& asked) {
  Outcome outcome = study(asked);
  Job job{outcome.program, stage_graph(outcome.program), outcome.plan.partition, training_of(shape),
          false};
  return {std::move(outcome), std::move(job)};
}

/// A job, what its links cost, and whether its reference is plain training.
struct ReplicatedTrial {
  Job job;
  Costs costs;
  bool synchronous = true;
};

/// Of so many replicas of the whole pipeline, all over links like those of one.
inline ReplicatedTrial replicated_trial(const std::string& shape, const Case& of_one, int replicas,
                                        std::optional<LinkSpec> link = std::nullopt) {
  const Outcome one = study(of_one);
  const auto devices = static_cast<int>(of_one.cluster.devices.size());
  const Cluster cluster = uniform_cluster(devices * replicas, link, std::nullopt, link);
  ReplicatedTrial all;
  all.synchronous = one.synchrony == Synchrony::synchronous;
  Program program = replicated(one.program, replicas);
  all.costs = stage_costs(of_one.model, one.plan.partition, program.placement, cluster);
  program = complete(std::move(program), all.costs);
  validate(program);
  StageGraph graph = stage_graph(program);
  all.job =
      Job{std::move(program), std::move(graph), one.plan.partition, training_of(shape), false};
  return all;
}

/// So many on whatever cores there are.
inline std::vector<Accelerator> anywhere(std::size_t count) {
  return std::vector<Accelerator>(count);
}

/// The largest difference of any weight, against the largest weight of its tensor.
inline double weights_apart(const Executor& executor, const sequential::Trained& trained) {
  double worst = 0;
  for (std::size_t l = 0; l < trained.weights.size(); ++l) {
    for (std::size_t i = 0; i < trained.weights[l].size(); ++i) {
      const at::Tensor& expected = trained.weights[l][i];
      const at::Tensor got = executor.weights(l).values.at(i).detach();
      const double scale = std::max(expected.abs().max().item<double>(), 1e-3);
      worst = std::max(worst, (got - expected).abs().max().item<double>() / scale);
    }
  }
  return worst;
}

inline double losses_apart(const Execution& run, const sequential::Trained& trained) {
  REQUIRE(run.losses.size() == trained.losses.size());
  double worst = 0;
  for (std::size_t m = 0; m < run.losses.size(); ++m) {
    worst = std::max(worst, std::abs(run.losses[m] - trained.losses[m]));
  }
  return worst;
}

/// Runs it, and checks weights and losses against plain training, or against one that is as stale.
inline void check_against_training(const Trial& tried) {
  Executor executor(tried.job, tried.outcome.costs, anywhere(tried.job.program.devices.size()));
  Execution run = executor.run();
  const bool plain = tried.outcome.synchrony == Synchrony::synchronous;
  const std::vector<sequential::StageReads> reads = sequential::reads_of(tried.job, run);
  for (const sequential::StageReads& stage : reads) {
    if (stage.mixed) {
      CHECK(tried.job.program.settings.correction == moving_average);
      return;  // no single version stands for what was read
    }
  }
  const sequential::Trained expected = plain ? sequential::plain_training(tried.job)
                                             : sequential::StaleTraining(tried.job, reads).train();
  run.losses = sequential::of_whole_sequences(tried.job, run.losses);
  CHECK(losses_apart(run, expected) < 1e-9);
  CHECK(weights_apart(executor, expected) < 1e-9);
  CHECK(weights_apart(executor, {{sequential::clones(executor.weights(0).values)}, {}}) == 0);
}

/// Whether all replicas of every stage have the same bits.
inline bool replicas_agree(const Executor& executor, const Job& job) {
  for (std::size_t l = 0; l < job.partition.stage_of.size(); ++l) {
    const auto& replicas = nth(job.program.placement.stage, job.partition.stage_of[l]).replicas;
    const sequential::Values first = executor.weights(l).values;
    for (int r = 1; r < static_cast<int>(replicas.size()); ++r) {
      const sequential::Values& other = executor.weights(l, r).values;
      for (std::size_t i = 0; i < first.size(); ++i) {
        if (!first[i].equal(other.at(i))) return false;
      }
    }
  }
  return true;
}

}  // namespace stageline::executor::trials
