// Small trainings, and whether two of them are the same.
#pragma once

#include "sim/base/index.hpp"
#include "tools/executor/train/trainer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "sim/base/errors.hpp"
#include "tests/specs.hpp"
#include "tools/base/files.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/run/execute.hpp"
#include "tools/executor/train/checkpoint.hpp"
#include "tools/executor/train/evaluator.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/lab/training/times.hpp"

namespace stageline::executor::trainings {

inline const lab::DataSource& digits() {
  static const lab::DataSource source = lab::open_data("digits,train=64,test=30");
  return source;
}
inline const lab::DataSource& textures() {
  static const lab::DataSource source = lab::open_data("textures,train=40,test=20");
  return source;
}

inline const LinkSpec quick{parse_bandwidth("2GB/s"), std::chrono::microseconds(30)};

// Two images at a time through a narrow LeNet-5, or a narrow ResNet-20 with skips across stages and
// batch norms.
inline TrainingRequest request_of(const std::string& model, const ScheduleSpec& spec, int devices,
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

inline TrainingResult trained(const TrainingRequest& request) {
  set_threads(1);  // as the executor's workers have: sums of parts may differ in the last bit
  return train(request, [](const TrainingProgress&) {});
}

// Losses of all steps, looks at the test set, weights, what the optimizer and the batch norms keep.
inline void check_same(const TrainingResult& a, const TrainingResult& b) {
  for (const lab::LoggedStep& step : a.log.steps) REQUIRE(std::isfinite(step.loss));
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

}  // namespace stageline::executor::trainings
