// A case of layers that differ, with costs drawn at random.
#pragma once

#include <cstdint>
#include <optional>
#include <random>

#include "schedulers/scheduler.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/study/study.hpp"
#include "traces/traces.hpp"

namespace stageline::test {

/// Twelve layers, fewer where the schedule assigns devices itself; `link`: devices have links.
inline Case uneven_case(std::mt19937& random, const ScheduleSpec& spec, int devices, bool link) {
  Case asked;
  asked.model = uniform_model("layers=12");
  const auto time = [&](unsigned most) {
    return Time{1'000'000} * (1 + static_cast<int>(random() % most)) + Time{random() % 1000};
  };
  for (Layer& layer : asked.model.layers) {
    layer.forward = time(12);
    layer.input_grad = time(12);
    layer.weight_grad = time(11);
    layer.backward = layer.input_grad + layer.weight_grad;
    layer.update = time(3);
    layer.output = Bytes{static_cast<std::int64_t>(1 + random() % 9) * 1000};
    layer.gradients = layer.weights = Bytes{static_cast<std::int64_t>(1 + random() % 9) * 1000};
  }
  const LinkSpec wire{Bandwidth{1'000'000'000}, Time{1'000'000} * (1 + random() % 4)};
  asked.cluster = uniform_cluster(devices, link ? std::optional(wire) : std::nullopt, std::nullopt);
  asked.spec = spec;
  asked.microbatches = devices * (1 + static_cast<int>(random() % 3));
  if (spec.scheduler->assign != nullptr) {
    asked.model.layers.resize(static_cast<std::size_t>(devices) + 3);
  }
  return asked;
}

}  // namespace stageline::test
