// Prices a model's shape by a roofline.
#include "cost_models/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "cost_models/pricing.hpp"
#include "cost_models/slices.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

double seconds(const Pricing& price, double flops, double bytes) {
  if (flops == 0 && bytes == 0) return 0;
  return std::max(flops / price.flops_per_second, bytes / price.bytes_per_second) + price.overhead;
}

// FLOPs and bytes of one pass of an op, for a micro-batch or a slice of it.
struct PassWork {
  double flops = 0;
  double bytes = 0;
};

PassWork pass_work(const Work& work, const Pricing& price) {
  const double batch = static_cast<double>(price.batch) / price.slices;
  const double elements = batch * static_cast<double>(work.reads + work.writes) +
                          static_cast<double>(work.reads_once + work.writes_once);
  return {batch * static_cast<double>(work.flops),
          elements * static_cast<double>(price.format.bytes)};
}

Time time_of(const std::string& layer, std::span<const Primitive> ops, Work Primitive::*pass,
             const Pricing& price) {
  double sum = 0;
  for (const Primitive& op : ops) {
    const PassWork done = pass_work(op.*pass, price);
    sum += seconds(price, done.flops, done.bytes);
  }
  return fitting_time(layer, sum);
}

// Whether memory bounds the ops of more than half of its time.
bool memory_bound(const LayerShape& layer, const Pricing& price) {
  double by_memory = 0;
  double by_arithmetic = 0;
  for (const Primitive& op : layer.ops) {
    for (const auto pass : {&Primitive::forward, &Primitive::input_grad, &Primitive::weight_grad}) {
      const PassWork done = pass_work(op.*pass, price);
      const double memory = done.bytes / price.bytes_per_second;
      const double arithmetic = done.flops / price.flops_per_second;
      (memory > arithmetic ? by_memory : by_arithmetic) += std::max(memory, arithmetic);
    }
  }
  return by_memory > by_arithmetic;
}

Time update_time(const LayerShape& layer, const Pricing& price) {
  const auto bytes = static_cast<double>(update_bytes(price.format, price.optimizer));
  return fitting_time(layer.name, seconds(price, 0, static_cast<double>(layer.weights) * bytes));
}

// A slice of what the samples of a micro-batch take together.
Bytes slice_of(std::int64_t bytes, const Pricing& price) {
  return Bytes{bytes / price.slices + (bytes % price.slices != 0 ? 1 : 0)};
}

Layer priced(const LayerShape& shape, const Pricing& price) {
  Layer layer;
  layer.name = shape.name;
  layer.kind = shape.kind;
  layer.forward = time_of(shape.name, shape.ops, &Primitive::forward, price);
  layer.input_grad = time_of(shape.name, shape.ops, &Primitive::input_grad, price);
  layer.weight_grad = time_of(shape.name, shape.ops, &Primitive::weight_grad, price);
  layer.backward = layer.input_grad + layer.weight_grad;
  layer.update = update_time(shape, price);
  set_state(layer, shape.weights, price);
  const auto tensor_bytes = [&](std::int64_t elements) {
    return slice_of(fitting_product(shape.name, "its activations", elements,
                                    fitting_product(shape.name, "its activations", price.batch,
                                                    price.format.bytes)),
                    price);
  };
  layer.output = tensor_bytes(output_elements(shape));
  layer.stash_input_grad = tensor_bytes(shape.stash_input_grad);
  layer.stash_weight_grad = tensor_bytes(shape.stash_weight_grad);
  layer.stash_gradient = tensor_bytes(shape.stash_gradient);
  const auto mask_bytes = [&](std::int64_t masks) {
    return slice_of(fitting_product(shape.name, "its dropout masks", masks, price.batch), price);
  };
  const bool only_weight_grad = total(shape, &Primitive::input_grad) == Work{};
  (only_weight_grad ? layer.stash_weight_grad : layer.stash_input_grad) += mask_bytes(shape.masks);
  layer.parameters = shape.parameters;
  if (shape.parameters == 0) layer.tied_weights = layer.weights;
  layer.memory_bound = memory_bound(shape, price);
  const auto selective = std::span(shape.ops).subspan(
      as_size(shape.selective_begin), as_size(shape.selective_end - shape.selective_begin));
  layer.selective_forward = time_of(shape.name, selective, &Primitive::forward, price);
  layer.selective_stash = tensor_bytes(shape.selective_stash) + mask_bytes(shape.selective_masks);
  for (const CollectiveShape& c : shape.collectives) {
    const Bytes own =
        slice_of(fitting_product(shape.name, "its collectives", c.bytes, price.batch), price);
    layer.collectives.push_back(
        {c.kind, c.group, tensor_bytes(c.elements) + own, c.forward, c.input_grad, c.weight_grad});
  }
  return layer;
}

Provenance provenance_of(const ModelShape& shape, const DeviceKind& device, const Pricing& price,
                         const RooflineOptions& options) {
  Provenance p;
  p.origin = Origin::estimated;
  p.device = device_title(device);
  const bool bound = options.efficiency == 1 && options.overhead == Time{};
  p.method = fmt::format(
      "estimated: roofline{}, {}, {}, efficiency {:g}{}", bound ? ", a lower bound" : "",
      price.format.name, name(price.optimizer), options.efficiency,
      options.overhead == Time{} ? std::string{}
                                 : fmt::format(", {} an op", print(options.overhead)));
  p.source = fmt::format("shapes: {}; peaks: {}", shape.source,
                         device.source.empty() ? "unknown" : device.source);
  p.notes = shape.notes;
  if (std::string note = tf32_note(device, price.format, shape.sample != "sequence");
      !note.empty()) {
    p.notes.push_back(std::move(note));
  }
  if (price.format.master) p.notes.emplace_back(master_copy_note);
  return p;
}

}  // namespace

Model roofline(const ModelShape& shape, const DeviceKind& device, const RooflineOptions& options) {
  if (options.slice.count > 1) {
    const Sharding& ranks = shape.sharding;
    const int each = ranks.context * (ranks.sequence ? ranks.tensor : 1);
    check_slices(shape.name, shape.layers.front().output.front() * each, ranks,
                 options.slice.count);
  }
  const Pricing price =
      pricing_of(device, options, number_formats(), shape.usual_batch, shape.usual_optimizer);
  Model model;
  model.name = shape.name;
  model.batch = static_cast<int>(price.batch);
  model.sample = shape.sample;
  for (const LayerShape& layer : shape.layers) model.layers.push_back(priced(layer, price));
  model.edges = shape.edges;
  std::sort(model.edges.begin(), model.edges.end());
  model.input = slice_of(
      fitting_product("the input", "its bytes", shape.input,
                      fitting_product("the input", "its bytes", price.batch, price.format.bytes)),
      price);
  model.provenance = provenance_of(shape, device, price, options);
  model.sharding = shape.sharding;
  return model;
}

}  // namespace stageline
