// Each list is a member of an object, so that all of them make one object.
#include "tools/commands/listed_json.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "cost_models/network/algorithm.hpp"
#include "cost_models/shapes/shapes.hpp"
#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/hugging_face.hpp"
#include "cost_models/transformers/software.hpp"
#include "schedulers/aliases.hpp"
#include "schedulers/partition/partitioner.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"
#include "tools/inputs/inputs.hpp"
#include "traces/traces.hpp"

namespace stageline::cli {
namespace {

Json member(const char* key, Json items) {
  Json object = Json::object();
  object[key] = std::move(items);
  return object;
}

Json knobs_json(const Scheduler& scheduler) {
  Json knobs = Json::array();
  for (const Knob& knob : scheduler.knobs) {
    knobs.push_back({{"name", knob.name},
                     {"values", knob.values},
                     {"summary", knob.summary},
                     {"default", knob.fallback}});
  }
  return knobs;
}

Json device_json(const Cluster& cluster, const Device& device) {
  Json json{{"name", device.name}, {"kind", Json()}, {"memory_bytes", Json()}};
  if (device.kind >= 0) json["kind"] = nth(cluster.kinds, device.kind).name;
  if (device.memory) json["memory_bytes"] = device.memory->count;
  return json;
}

}  // namespace

Json schedules_json() {
  Json items = Json::array();
  for (const Scheduler* const one : schedulers()) {
    items.push_back({{"name", one->name},
                     {"summary", one->summary},
                     {"synchronous", one->synchrony == Synchrony::synchronous},
                     {"source", one->source},
                     {"knobs", knobs_json(*one)}});
  }
  Json aliases = Json::array();
  for (const ScheduleAlias& alias : schedule_aliases()) {
    aliases.push_back({{"name", alias.word}, {"schedule", alias.spec}});
  }
  return {{"schedules", std::move(items)}, {"aliases", std::move(aliases)}};
}

Json partitioners_json() {
  Json items = Json::array();
  for (const Partitioner* const one : partitioners()) {
    items.push_back({{"name", one->name},
                     {"summary", one->summary},
                     {"options", one->options},
                     {"source", one->source}});
  }
  items.push_back({{"name", "simulated"},
                   {"summary", "the best of the cuts that were simulated, for each schedule"},
                   {"options", "most=N, blocks"},
                   {"source", ""}});
  return member("partitioners", std::move(items));
}

Json priced_models_json() {
  Json models = Json::array();
  for (const std::string& name : model_names()) {
    models.push_back(
        {{"name", name}, {"summary", model_summary(name)}, {"options", Json(model_options(name))}});
  }
  Json of_language = Json::array();
  for (const FamilyMember& one : families()) {
    of_language.push_back({{"name", one.config.name}, {"summary", one.summary}});
  }
  Json kinds = Json::array();
  for (const DeviceKind& kind : known_kinds()) kinds.push_back(kind.name);
  return {{"models", std::move(models)},
          {"language_models", std::move(of_language)},
          {"language_model_sizes", Json(transformer_options())},
          {"model_types", Json(hugging_face_types())},
          {"device_kinds", std::move(kinds)}};
}

Json software_json() {
  Json items = Json::array();
  for (const SoftwareGeneration& one : software_generations()) {
    items.push_back({{"name", one.name},
                     {"summary", one.summary},
                     {"options", one.options},
                     {"expert_options", one.experts},
                     {"source", one.source}});
  }
  return member("software", std::move(items));
}

Json clusters_json() {
  Json items = Json::array();
  for (const Bundled& bundled : bundled_clusters()) {
    const Cluster cluster = read_cluster(std::string(bundled.text), std::string(bundled.name));
    Json devices = Json::array();
    for (const Device& device : cluster.devices) devices.push_back(device_json(cluster, device));
    items.push_back({{"name", bundled.name}, {"devices", std::move(devices)}});
  }
  return member("clusters", std::move(items));
}

Json collectives_json() {
  Json items = Json::array();
  for (const Algorithm* const one : algorithms()) {
    items.push_back({{"name", one->name}, {"summary", one->summary}, {"source", one->source}});
  }
  return member("collectives", std::move(items));
}

Json traces_json() {
  Json items = Json::array();
  for (const Bundled& bundled : bundled_traces()) {
    const std::vector<Model> models =
        read_trace(std::string(bundled.text), std::string(bundled.name));
    const Model& first = models.front();
    Json sizes = Json::array();
    for (const Model& one : models) {
      if (one.batch > 0) sizes.push_back(one.batch);
    }
    items.push_back({{"name", bundled.name},
                     {"model", first.name},
                     {"layers", first.layers.size()},
                     {"microbatch_sizes", std::move(sizes)},
                     {"costs", name(first.provenance.origin)},
                     {"device", first.provenance.device},
                     {"settings", first.provenance.settings},
                     {"date", first.provenance.date}});
  }
  return member("traces", std::move(items));
}

}  // namespace stageline::cli
