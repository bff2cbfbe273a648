// The measured traces that come with the command: do they keep what the profiler promises?
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cost_models/breakdown.hpp"
#include "cost_models/roofline.hpp"
#include "traces/traces.hpp"

namespace stageline::measured_tests {
namespace {

struct Shipped {
  std::string name;
  std::vector<Model> models;
};

std::vector<Shipped> measured_traces() {
  std::vector<Shipped> found;
  for (const Bundled& bundled : bundled_traces()) {
    std::vector<Model> models = read_trace(std::string(bundled.text), std::string(bundled.name));
    if (models.front().provenance.origin != Origin::measured) continue;
    found.push_back({std::string(bundled.name), std::move(models)});
  }
  return found;
}

// The model as the command that measured it was told: "stageline-profile gpt,seq=256 --batch 1,2".
ModelShape shape_of(const Model& model) {
  std::istringstream words(model.provenance.source);
  std::string command;
  std::string spec;
  words >> command >> spec;
  REQUIRE(command == "stageline-profile");
  return parse_shape(spec);
}

}  // namespace

TEST_CASE("every kind of model comes with a trace measured on a CPU") {
  std::map<std::string, std::size_t> sizes;
  for (const Shipped& trace : measured_traces()) sizes[trace.name] = trace.models.size();
  for (const char* model :
       {"lenet5", "alexnet", "vgg16", "resnet20", "resnet56", "resnet110", "resnet50", "gpt"}) {
    CAPTURE(model);
    CHECK(sizes[std::string(model) + "-cpu"] == 2);
  }
}

TEST_CASE("layers of measured traces add up to the whole model within 3 %") {
  for (const Shipped& trace : measured_traces()) {
    for (const Model& model : trace.models) {
      CAPTURE(trace.name);
      CAPTURE(model.batch);
      const std::optional<CostCheck> check = check_of(model);
      REQUIRE(check);
      REQUIRE(check->difference);
      CHECK(std::abs(*check->difference) <= 0.03);
      REQUIRE(check->noise);
      CHECK(*check->noise <= 0.03);
      CHECK(check->samples >= 16);
      CHECK_FALSE(model.provenance.device.empty());
      CHECK_FALSE(model.provenance.software.empty());
      CHECK_FALSE(model.provenance.settings.empty());
      CHECK(model.provenance.date.size() == 10);
      for (const std::string& note : model.provenance.notes) {
        CHECK(note.find("did not become steady") == std::string::npos);
        CHECK(note.rfind("Warning:", 0) != 0);
      }
    }
  }
}

TEST_CASE("running the halves of a backward apart costs conv nets at most 5 %") {
  for (const Shipped& trace : measured_traces()) {
    for (const Model& model : trace.models) {
      if (model.name == "gpt") continue;
      CAPTURE(trace.name);
      CAPTURE(model.batch);
      const CostRow total = sum_of(cost_rows(model, CostsBy::layer), "total");
      const std::optional<double> share = split_over_fused(total);
      REQUIRE(share);
      CHECK(*share <= 1.05);
      CHECK(*share >= 0.9);  // less would mean that they do not do the same
    }
  }
}

TEST_CASE("measured traces have the layers, weights and outputs of the table of shapes") {
  for (const Shipped& trace : measured_traces()) {
    for (const Model& model : trace.models) {
      CAPTURE(trace.name);
      CAPTURE(model.batch);
      const ModelShape shape = shape_of(model);
      REQUIRE(model.layers.size() == shape.layers.size());
      std::vector<LayerEdge> edges = shape.edges;
      std::sort(edges.begin(), edges.end());  // as a trace has them
      CHECK(model.edges == edges);
      for (std::size_t i = 0; i < shape.layers.size(); ++i) {
        CAPTURE(shape.layers[i].name);
        CHECK(model.layers[i].name == shape.layers[i].name);
        CHECK(model.layers[i].parameters == shape.layers[i].parameters);
        CHECK(model.layers[i].weights.count == 4 * shape.layers[i].weights);
        CHECK(model.layers[i].output.count == 4 * model.batch * output_elements(shape.layers[i]));
      }
    }
  }
}

}  // namespace stageline::measured_tests
