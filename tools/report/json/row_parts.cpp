// Builds the objects inside the rows of a comparison.
#include "tools/report/json/row_parts.hpp"

#include <utility>

#include "tools/inputs/degrees.hpp"

namespace stageline::report {
namespace {

constexpr double many_samples = 1e6;
constexpr double billion = 1e9;

Json amounts(double step, const StepEnergy& energy) {
  Json all{{"step", step}};
  if (energy.samples > 0) all["million_samples"] = step / energy.samples * many_samples;
  if (energy.tokens > 0) all["billion_tokens"] = step / energy.tokens * billion;
  return all;
}

struct JsonOfValue {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(Time time) const { return time.count(); }
  Json operator()(Bytes bytes) const { return bytes.count; }
  template <class Value>
  Json operator()(const Value& value) const {
    return value;
  }
};

}  // namespace

void put_zero(Json& object, const Degrees& degrees) {
  object["zero"] = std::string(name(degrees.zero));
  if (degrees.zero >= Zero::gradients) {
    object["zero_every"] = std::string(name(exchanges_every(degrees)));
  }
  if (degrees.zero == Zero::none || degrees.shard_group == ShardGroup{}) return;
  object["shard_group"] = print(degrees.shard_group);
}

void put_figure(Json& row, const FigureRow& figure, const FigureFacts& facts) {
  if (*figure.key == '\0' || (figure.in_json != nullptr && !figure.in_json(facts))) return;
  const FigureValue value = figure.value(facts);
  if (const Time* const time = std::get_if<Time>(&value)) {
    put_time(row, figure.key, *time);
  } else if (value.index() != 0 || *figure.null != '\0') {
    row[figure.key] = std::visit(JsonOfValue(), value);
  }
}

void put_energy(Json& row, const StepEnergy& energy) {
  if (energy.joules) row["energy_joules"] = amounts(*energy.joules, energy);
  if (energy.dollars) row["cost_dollars"] = amounts(*energy.dollars, energy);
}

Json scenarios_json(const ScenarioSteps& steps, const Distribution& distribution, double best) {
  Json item{{"engine", name(steps.engine)}};
  put_time(item, "nominal", steps.nominal);
  put_time(item, "mean", distribution.mean);
  put_time(item, "deviation", distribution.deviation);
  put_time(item, "p5", distribution.p5);
  put_time(item, "p50", distribution.p50);
  put_time(item, "p95", distribution.p95);
  put_time(item, "p99", distribution.p99);
  item["loss"] = loss_of(steps, distribution);
  item["best"] = best;
  if (steps.engine == ScenarioEngine::frozen) item["frozen_error"] = steps.frozen_error;
  item["critical"] = Json::array();
  for (const CriticalShare& share : steps.critical) {
    item["critical"].push_back(
        {{"name", share.name}, {"share", share.share}, {"often", share.often}});
  }
  return item;
}

Json ops_json(const std::vector<Op>& ops) {
  Json list = Json::array();
  for (const Op op : ops) list.push_back(print(op));
  return list;
}

void put_degrees(Json& json, const Case& asked) {
  if (!asked.ranked) return;
  const RankedCluster& ranked = *asked.ranked;
  const Degrees& degrees = ranked.grid().degrees();
  Json object{{"tp", degrees.tensor},
              {"cp", degrees.context},
              {"ep", degrees.expert},
              {"dp", degrees.data},
              {"pp", degrees.pipeline},
              {"order", print_order(degrees.order)},
              {"pipelines_simulated", ranked.replicas()}};
  if (degrees.folded()) object["etp"] = degrees.expert_tensor;
  if (degrees.encoder.pipeline > 0) {
    object["encoder_pp"] = degrees.encoder.pipeline;
    object["encoder_tp"] = degrees.tensor_of_encoder();
  }
  put_zero(object, degrees);
  json["degrees"] = std::move(object);
}

}  // namespace stageline::report
