// Writes the costs of traces as JSON. The keys are documented in tools/report/json/README.md and
// stable.
#include "tools/report/text/costs.hpp"
#include "tools/base/json.hpp"

namespace stageline::report {
namespace {

Json maybe(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

// The times and bytes of one row.
Json costs_of(const CostRow& row) {
  Json object;
  put_time(object, "forward", row.forward);
  put_time(object, "input_grad", row.input_grad);
  put_time(object, "weight_grad", row.weight_grad);
  put_time(object, "backward", row.backward);
  put_time(object, "update", row.update);
  put_time(object, "total", row.step());
  const auto bytes = [&](Bytes value) {
    return row.bytes_known ? Json(value.count) : Json(nullptr);
  };
  object["output_bytes"] = bytes(row.output);
  object["stash_bytes"] = bytes(row.stash);
  object["weights_bytes"] = bytes(row.weights);
  return object;
}

Json named(const CostRow& row, CostsBy by) {
  Json object;
  if (by == CostsBy::layer) object["name"] = row.name;
  object["kind"] = row.kind;
  if (by == CostsBy::kind) object["layers"] = row.layers;
  return object;
}

Json check_json(const Model& model) {
  const std::optional<CostCheck> check = check_of(model);
  if (!check) return nullptr;
  Json object;
  object["samples"] = check->samples;
  put_time(object, "layers", check->layers);
  put_time(object, "whole", check->whole);
  object["difference"] = maybe(check->difference);
  object["forward_difference"] = maybe(check->forward);
  object["backward_difference"] = maybe(check->backward);
  object["update_difference"] = maybe(check->update);
  object["spread"] = maybe(check->spread);
  object["noise"] = maybe(check->noise);
  object["within_noise"] = check->within_noise;
  return object;
}

Json heading_json(const Model& model) {
  Json object;
  object["model"] = model.name;
  object["costs"] = name(model.provenance.origin);
  object["microbatch_size"] = model.batch > 0 ? Json(model.batch) : Json(nullptr);
  object["device"] = model.provenance.device;
  object["software"] = model.provenance.software;
  object["settings"] = model.provenance.settings;
  object["date"] = model.provenance.date;
  object["method"] = model.provenance.method;
  object["notes"] = model.provenance.notes;
  return object;
}

Json pair_json(const CostPair& pair) {
  Json object;
  object["first"] = costs_of(pair.first);
  object["second"] = costs_of(pair.second);
  object["ratio"] = maybe(ratio(pair.first.step(), pair.second.step()));
  object["forward_ratio"] = maybe(ratio(pair.first.forward, pair.second.forward));
  object["input_grad_ratio"] = maybe(ratio(pair.first.input_grad, pair.second.input_grad));
  object["weight_grad_ratio"] = maybe(ratio(pair.first.weight_grad, pair.second.weight_grad));
  object["backward_ratio"] = maybe(ratio(pair.first.backward, pair.second.backward));
  return object;
}

Json names_of(const std::vector<CostPair>& pairs) {
  Json names = Json::array();
  for (const CostPair& pair : pairs) names.push_back(pair.first.name);
  return names;
}

}  // namespace

std::string costs_json(const Model& model, const std::vector<int>& sizes, CostsBy by) {
  const std::vector<CostRow> rows = cost_rows(model, by);
  const CostRow total = sum_of(rows, "total");
  Json result = heading_json(model);
  Json all_sizes = Json::array();
  for (const int size : sizes) all_sizes.push_back(size > 0 ? Json(size) : Json(nullptr));
  result["microbatch_sizes"] = all_sizes;
  result["total"] = costs_of(total);
  result["split_over_fused"] = maybe(split_over_fused(total));
  result["check"] = check_json(model);
  Json& list = result[by == CostsBy::kind ? "per_kind" : "per_layer"] = Json::array();
  for (const CostRow& row : rows) {
    Json object = named(row, by);
    object.update(costs_of(row));
    object["share"] = maybe(ratio(row.step(), total.step()));
    if (by == CostsBy::layer) put_time(object, "spread", row.spread);
    list.push_back(std::move(object));
  }
  return result.text();
}

std::string against_json(const Model& first, const Model& second,
                         const std::vector<std::string>& adjustments, CostsBy by) {
  const CostsAgainst against = costs_against(first, second);
  const DifferMost most = differ_most(against);
  Json result;
  result["first"] = heading_json(first);
  result["second"] = heading_json(second);
  result["updates"] = against.updates;
  result["total"] = pair_json(against.total);
  result["differ_most"] = {{"by_ratio", names_of(most.by_ratio)},
                           {"by_time", names_of(most.by_time)}};
  result["only_first"] = against.only_first;
  result["only_second"] = against.only_second;
  result["notes"] = adjustments;
  Json& list = result[by == CostsBy::kind ? "per_kind" : "per_layer"] = Json::array();
  for (const CostPair& pair : cost_pairs(against, by)) {
    Json object = named(pair.first, by);
    object.update(pair_json(pair));
    list.push_back(std::move(object));
  }
  return result.text();
}

}  // namespace stageline::report
