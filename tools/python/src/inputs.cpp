#include "tools/python/src/inputs.hpp"

#include <fmt/core.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <utility>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/text/visible.hpp"
#include "tools/inputs/bundled.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/python/src/interrupt.hpp"
#include "traces/traces.hpp"

namespace stageline::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

Trace open(const std::string& text, int microbatch_size, int profile_batch) {
  return without_lock([&] {
    TraceRequest request;
    request.text = text;
    request.batch = microbatch_size;
    request.profile_batch = profile_batch;
    return Trace{text, open_trace(request), microbatch_size, profile_batch};
  });
}

// A quantity of each layer: an array of the length of `forward`, or nothing.
using Quantity =
    std::optional<nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;

class Layers {
 public:
  explicit Layers(Model& model) : model_(model) {}

  void times(const char* name, Time Layer::*member, const Quantity& values) {
    each(name, values, [&](Layer& layer, double value) { layer.*member = from_seconds(value); });
  }
  void bytes(const char* name, Bytes Layer::*member, const Quantity& values) {
    each(name, values, [&](Layer& layer, double value) {
      if (!(value >= 0 && value <= static_cast<double>(most_bytes_held.count))) {
        throw std::invalid_argument("bytes are a number from 0 to 2^62");
      }
      layer.*member = Bytes{std::llround(value)};
    });
  }

 private:
  Model& model_;

  template <class Set>
  void each(const char* name, const Quantity& values, const Set& set) {
    if (!values) return;
    if (values->size() != model_.layers.size()) {
      throw UsageError(fmt::format("{}: {} values for {} layers (as many as forward has)", name,
                                   values->size(), model_.layers.size()));
    }
    for (std::size_t i = 0; i < values->size(); ++i) {
      try {
        set(model_.layers[i], values->data()[i]);
      } catch (const std::invalid_argument& error) {
        throw UsageError(
            fmt::format("{}[{}] is {:g}: {}", name, i, values->data()[i], error.what()));
      }
    }
  }
};

Trace from_arrays(const Quantity& forward, const Quantity& input_grad, const Quantity& weight_grad,
                  const Quantity& backward, const Quantity& update, const Quantity& weights,
                  const Quantity& gradients, const Quantity& optimizer_state,
                  const Quantity& output, const Quantity& stash_input_grad, const Quantity& stash,
                  const Quantity& workspace, const std::vector<std::string>& names,
                  const std::string& name, int batch, const std::string& method) {
  Model model;
  model.name = name;
  model.batch = batch;
  model.layers.resize(forward->size());
  if (model.layers.empty()) throw UsageError("forward: a model has at least one layer");
  if (!names.empty() && names.size() != model.layers.size()) {
    throw UsageError(fmt::format("names: {} for {} layers", names.size(), model.layers.size()));
  }
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    model.layers[i].name = names.empty() ? fmt::format("layer{}", i) : names[i];
    model.layers[i].kind = "layer";
  }
  Layers layers(model);
  layers.times("forward", &Layer::forward, forward);
  layers.times("input_grad", &Layer::input_grad, input_grad);
  layers.times("weight_grad", &Layer::weight_grad, weight_grad);
  for (Layer& layer : model.layers) layer.backward = layer.input_grad + layer.weight_grad;
  layers.times("backward", &Layer::backward, backward);
  layers.times("update", &Layer::update, update);
  layers.bytes("weights", &Layer::weights, weights);
  layers.bytes("gradients", &Layer::gradients, gradients ? gradients : weights);
  layers.bytes("optimizer_state", &Layer::optimizer_state, optimizer_state);
  layers.bytes("output", &Layer::output, output);
  layers.bytes("stash_input_grad", &Layer::stash_input_grad, stash_input_grad);
  layers.bytes("stash", &Layer::stash_weight_grad, stash);
  layers.bytes("workspace", &Layer::workspace, workspace);
  model.bytes_known = weights || output || stash || stash_input_grad;
  model.provenance.origin = method.empty() ? Origin::synthetic : Origin::measured;
  model.provenance.method = method.empty() ? "costs from arrays" : method;
  std::string text = write_trace({model});
  Model read = open_trace({text, 0, 0, {}, {}, {}});
  return {std::move(text), std::move(read)};
}

std::vector<double> seconds_of(const Trace& trace, Time Layer::*member) {
  std::vector<double> values;
  for (const Layer& layer : trace.model.layers) values.push_back(to_seconds(layer.*member));
  return values;
}
std::vector<std::int64_t> bytes_of(const Trace& trace, Bytes Layer::*member) {
  std::vector<std::int64_t> values;
  for (const Layer& layer : trace.model.layers) values.push_back((layer.*member).count);
  return values;
}

// A column over the layers as a NumPy array of its own.
template <class Value>
using Column = nb::ndarray<nb::numpy, Value, nb::ndim<1>>;

template <class Value>
Column<Value> column(std::vector<Value> values) {
  auto* const kept = new std::vector<Value>(std::move(values));
  const nb::capsule owner(kept,
                          [](void* all) noexcept { delete static_cast<std::vector<Value>*>(all); });
  return Column<Value>(kept->data(), {kept->size()}, owner);
}

void add_columns(nb::class_<Trace>& type) {
  const auto times = [&](const char* name, Time Layer::*member, const char* text) {
    type.def_prop_ro(
        name, [member](const Trace& trace) { return column(seconds_of(trace, member)); },
        nb::rv_policy::automatic, text);
  };
  times("forward", &Layer::forward, "F of each layer, seconds (NumPy).");
  times("input_grad", &Layer::input_grad, "I of each layer, seconds (NumPy).");
  times("weight_grad", &Layer::weight_grad, "W of each layer, seconds (NumPy).");
  times("backward", &Layer::backward, "B (I and W in one op) of each layer, seconds (NumPy).");
  times("update", &Layer::update, "Optimizer step of each layer, seconds (NumPy).");
  const auto bytes = [&](const char* name, Bytes Layer::*member, const char* text) {
    type.def_prop_ro(
        name, [member](const Trace& trace) { return column(bytes_of(trace, member)); },
        nb::rv_policy::automatic, text);
  };
  bytes("weights", &Layer::weights, "Parameters of each layer, bytes (NumPy).");
  bytes("output", &Layer::output, "What the next layer reads, bytes (NumPy).");
  bytes("stash_input_grad", &Layer::stash_input_grad, "Held from F to I alone, bytes (NumPy).");
  bytes("stash", &Layer::stash_weight_grad, "Held from F to W, bytes (NumPy).");
}

// The devices of a cluster that has a name, as dicts.
nb::list devices_of(const std::string& name) {
  const Cluster cluster = without_lock([&] {
    ClusterRequest request;
    request.cluster = name;
    return choose_cluster(request).fixed.value_or(Cluster{});
  });
  nb::list devices;
  for (const Device& device : cluster.devices) {
    nb::dict one;
    one["name"] = device.name;
    one["kind"] = device.kind < 0 ? "" : nth(cluster.kinds, device.kind).name;
    one["memory"] = device.memory ? nb::cast(device.memory->count) : nb::none();
    one["reserve"] = device.reserve.count;
    one["rate"] = device.rate;
    one["host"] = device.host < 0 ? "" : nth(cluster.hosts, device.host).name;
    devices.append(one);
  }
  return devices;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Scheduler* one : schedulers()) names.emplace_back(one->name);
  return names;
}

}  // namespace

void bind_inputs(nb::module_& module) {
  nb::class_<Trace> trace(module, "Model",
                          "Layers with their costs for one micro-batch, on one device.");
  trace
      .def_prop_ro(
          "text", [](const Trace& self) { return self.text; },
          "What asks for it: a name, a spelled cost model, or a trace as JSON.")
      .def_prop_ro(
          "opened_with",
          [](const Trace& self) {
            nb::dict settings;
            if (self.microbatch_size > 0) settings["microbatch_size"] = self.microbatch_size;
            if (self.profile_batch > 0) settings["profile_batch"] = self.profile_batch;
            return settings;
          },
          nb::for_getter(nb::sig("def opened_with(self, /) -> dict[str, int]")),
          "What was said of its micro-batches when it was opened, as settings.")
      .def("__reduce__",
           [](const nb::object& self) {
             const auto& trace = nb::cast<const Trace&>(self);
             return nb::make_tuple(
                 nb::module_::import_("stageline._api").attr("_opened"),
                 nb::make_tuple(trace.text, trace.microbatch_size, trace.profile_batch));
           })
      .def_prop_ro("name", [](const Trace& self) { return self.model.name; })
      .def_prop_ro(
          "batch", [](const Trace& self) { return self.model.batch; },
          "Samples in a micro-batch; 0: unknown.")
      .def_prop_ro(
          "bytes_known", [](const Trace& self) { return self.model.bytes_known; },
          "Whether it has sizes; if not, memory is unknown.")
      .def_prop_ro(
          "origin", [](const Trace& self) { return name(self.model.provenance.origin); },
          "\"measured\", \"estimated\" or \"synthetic\".")
      .def_prop_ro(
          "layers",
          [](const Trace& self) {
            std::vector<std::string> names;
            for (const Layer& layer : self.model.layers) names.push_back(layer.name);
            return names;
          },
          "Names of the layers, in order.")
      .def(
          "to_json", [](const Trace& self) { return write_trace({self.model}); },
          "The trace as text, as files hold it.")
      .def("__len__", [](const Trace& self) { return self.model.layers.size(); })
      .def("__repr__", [](const Trace& self) {
        return fmt::format("<stageline.Model {}: {} layers, {} a micro-batch, {}>",
                           visible(self.model.name), self.model.layers.size(),
                           print(forward_backward(self.model)), name(self.model.provenance.origin));
      });
  add_columns(trace);
  module.def("open_trace", &open, "text"_a, "microbatch_size"_a = 0, "profile_batch"_a = 0,
             "Opens what the command takes as TRACE.");
  module.def("from_arrays", &from_arrays, "forward"_a, "input_grad"_a = nb::none(),
             "weight_grad"_a = nb::none(), "backward"_a = nb::none(), "update"_a = nb::none(),
             "weights"_a = nb::none(), "gradients"_a = nb::none(), "optimizer_state"_a = nb::none(),
             "output"_a = nb::none(), "stash_input_grad"_a = nb::none(), "stash"_a = nb::none(),
             "workspace"_a = nb::none(), "names"_a = std::vector<std::string>{}, "name"_a = "model",
             "batch"_a = 1, "method"_a = "",
             "A model of arrays of doubles, times in seconds and sizes in bytes.");
  module.def("cluster_devices", &devices_of, "name"_a,
             nb::sig("def cluster_devices(name: str) -> list[dict[str, typing.Any]]"),
             "Its devices (dicts).");
  module.def("schedules", &schedule_names, "Names of all schedules.");
  module.def(
      "bundled_traces", [] { return bundled_names(bundled_traces()); },
      "Names that trace() knows.");
  module.def(
      "bundled_clusters", [] { return bundled_names(bundled_clusters()); },
      "Names that cluster() knows.");
}

}  // namespace stageline::python
