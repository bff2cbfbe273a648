// Builds a model from the multiply-accumulates of its layers.
#include "tools/lab/papers/mac_costs.hpp"

#include "cost_models/roofline.hpp"

namespace stageline::lab {
namespace {

Time macs(const LayerShape& layer, Work Primitive::*pass) {
  Time sum{};
  for (const Primitive& op : layer.ops) {
    if (op.kind == PrimitiveKind::conv || op.kind == PrimitiveKind::linear) {
      sum += Time{(op.*pass).flops / 2};
    }
  }
  return sum;
}

}  // namespace

Model mac_model(const std::string& name) {
  const ModelShape shape = parse_shape(name);
  Model model;
  model.name = shape.name;
  model.batch = 1;
  model.sample = shape.sample;
  model.provenance.origin = Origin::synthetic;
  model.provenance.method = "a picosecond for each multiply-accumulate";
  for (const LayerShape& layer : shape.layers) {
    Layer priced;
    priced.name = layer.name;
    priced.kind = layer.kind;
    priced.forward = macs(layer, &Primitive::forward);
    priced.input_grad = macs(layer, &Primitive::input_grad);
    priced.weight_grad = macs(layer, &Primitive::weight_grad);
    priced.backward = priced.input_grad + priced.weight_grad;
    if (priced.forward > Time{}) model.layers.push_back(priced);
  }
  return model;
}

}  // namespace stageline::lab
