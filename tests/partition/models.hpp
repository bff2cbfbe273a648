// Models for the tests of partitioners, small ones and PipeDream's, and questions about them.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "schedulers/partition/pipedream.hpp"
#include "sim/cluster.hpp"
#include "sim/model.hpp"
#include "traces/traces.hpp"

namespace stageline::testing {

/// A chain with these forward times (ms; no backward) and outputs (bytes; the last one repeats).
inline Model chain(const std::vector<int>& forward, const std::vector<std::int64_t>& output = {0}) {
  Model model;
  model.name = "chain";
  for (std::size_t i = 0; i < forward.size(); ++i) {
    Layer layer;
    layer.name = "layer" + std::to_string(i);
    layer.forward = Time{std::int64_t{forward[i]} * 1'000'000'000};
    layer.output = Bytes{output[std::min(i, output.size() - 1)]};
    model.layers.push_back(layer);
  }
  return model;
}

inline int draw(std::mt19937& random, int below) {
  return static_cast<int>(random() % static_cast<unsigned>(below));
}

/// Times of a few picoseconds, so that ties are common and rounding shows. With `branches`, every
/// layer but the first reads an earlier one, and some read more.
inline Model random_model(std::mt19937& random, int layers, bool branches) {
  Model model;
  model.name = "random";
  for (int i = 0; i < layers; ++i) {
    Layer layer;
    layer.name = "layer" + std::to_string(i);
    layer.forward = Time{draw(random, 5)};
    layer.backward = Time{draw(random, 5)};
    layer.weights = Bytes{draw(random, 4) * 100};
    layer.output = Bytes{draw(random, 4) * 100};
    model.layers.push_back(layer);
    if (!branches || i == 0) continue;
    model.edges.push_back({draw(random, i), i});
    for (int from = 0; from < i; ++from) {
      if (from != model.edges.back().from && draw(random, 4) == 0) model.edges.push_back({from, i});
    }
  }
  return model;
}

inline Cluster devices(int count) { return uniform_cluster(count, std::nullopt, std::nullopt); }

/// All ways to cut `layers` layers into `stages` stages, as last layers.
inline std::vector<std::vector<int>> all_cuts(int layers, int stages) {
  std::vector<std::vector<int>> found;
  for (unsigned mask = 0; mask < 1U << (layers - 1); ++mask) {
    std::vector<int> last_layers;
    for (int layer = 0; layer + 1 < layers; ++layer) {
      if ((mask >> layer & 1U) != 0) last_layers.push_back(layer);
    }
    if (static_cast<int>(last_layers.size()) + 1 == stages) found.push_back(last_layers);
  }
  return found;
}

/// A profile of PipeDream's; nothing, with a message, where the data is absent.
inline std::optional<Model> profile(const std::string& name) {
  const char* data = std::getenv("STAGELINE_DATA");
  const std::string path = std::string(data != nullptr ? data : "") + "/pipedream/" + name;
  std::ifstream file(path);
  if (!file) {
    MESSAGE("skipped: no profile " << name << " under STAGELINE_DATA");
    return std::nullopt;
  }
  std::ostringstream text;
  text << file.rdbuf();
  return read_pipedream_profile(text.str(), name, 0);
}

/// At one level, with everything the recurrence has.
inline PipedreamQuestion question_of(const Model& model, int devices,
                                     const std::string& bandwidth) {
  PipedreamQuestion question;
  for (const Layer& layer : model.layers) {
    question.time.push_back(layer.forward + layer.backward);
    question.weights.push_back(layer.weights);
  }
  question.crossing = crossing_bytes(model);
  question.levels = {{devices, parse_bandwidth(bandwidth)}};
  return question;
}

}  // namespace stageline::testing
