#include "tools/report/text/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/base/json.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"

namespace stageline::report {
namespace {

bool is_product(const Kernel& kernel) {
  return kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::grouped;
}

std::string_view kind_of(const Kernel& kernel) {
  switch (kernel.kind) {
    case KernelKind::gemm:
      return "product";
    case KernelKind::grouped:
      return "grouped products";
    case KernelKind::attention_plain:
    case KernelKind::attention_flash:
      return "attention";
    case KernelKind::elementwise:
      return "elementwise";
  }
  return "";  // unreachable; g++ wants it
}

// "4096 x 8192 x 3584", rows, inner extent and columns; "8 of 512 x …" of grouped ones.
std::string extents_of(const Kernel& kernel) {
  if (!is_product(kernel)) return "";
  const std::string count = kernel.count > 1 ? fmt::format("{:g} of ", kernel.count) : "";
  return fmt::format("{}{:.6g} x {:.6g} x {:.6g}", count, kernel.rows, kernel.inner,
                     kernel.columns);
}

std::string amount_of(double number, std::string_view unit) {
  constexpr std::array<std::string_view, 5> prefixes{"", "k", "M", "G", "T"};
  std::size_t prefix = 0;
  while (number >= 1000 && prefix + 1 < prefixes.size()) {
    number /= 1000;
    ++prefix;
  }
  return fmt::format("{:.4g} {}{}", number, prefixes.at(prefix), unit);
}

// What the kernel does in a second: FLOPs, or bytes where it has no FLOPs.
std::string rate_of(const KernelTime& one) {
  if (!(one.seconds > 0)) return "";
  if (one.kernel.flops > 0) return amount_of(one.kernel.flops / one.seconds, "FLOP/s");
  return amount_of(one.kernel.bytes / one.seconds, "B/s");
}

// Beyond the kernels, forward and backward together; the layer is in whole picoseconds.
double beyond_kernels(const LayerKernelTimes& layer) {
  return std::max(0.0, to_seconds(layer.forward + layer.backward) - layer.kernel_seconds());
}

std::string kernels_table(const std::vector<LayerKernelTimes>& layers, int width) {
  std::vector<Column> columns{
      {"layer", true},        {"pass", true},      {"kernel", true},    {"kind", true, 2},
      {"m x k x n", true, 3}, {"FLOPs", false, 4}, {"bytes", false, 5}, {"time"},
      {"rate", false, 1},     {"of the peak"}};
  std::vector<std::vector<std::string>> rows;
  for (const LayerKernelTimes& layer : layers) {
    const std::string name =
        layer.layers > 1 ? fmt::format("{} (of {} alike)", layer.name, layer.layers) : layer.name;
    bool first = true;
    for (const KernelTime& one : layer.kernels) {
      const Kernel& kernel = one.kernel;
      const bool has_peak = one.peak > 0 && one.seconds > 0;
      rows.push_back({first ? name : "", std::string(stageline::name(one.pass)),
                      std::string(kernel.name), std::string(kind_of(kernel)), extents_of(kernel),
                      kernel.flops > 0 ? amount_of(kernel.flops, "FLOP") : "",
                      kernel.bytes > 0 ? amount_of(kernel.bytes, "B") : "",
                      print(from_seconds(one.seconds)), rate_of(one),
                      has_peak ? percent(kernel.flops / one.seconds / one.peak) : ""});
      first = false;
    }
    rows.push_back({"", "", "launches and waits for the CPU", "", "", "", "",
                    print(from_seconds(beyond_kernels(layer))), "", ""});
  }
  const FittedTable fitted = fitted_table(columns, rows, width);
  if (fitted.left_out.empty()) return fitted.text;
  return fitted.text + wrapped("… without some columns: COLUMNS=0\n", width);
}

}  // namespace

std::string kernels_report(const Model& model, const std::vector<LayerKernelTimes>& layers,
                           int width, bool quiet) {
  std::string text = kernels_table(layers, width);
  if (quiet) return text;
  const Provenance& origin = model.provenance;
  std::string notes;
  for (const std::string& note : origin.notes) notes += "note: " + note + "\n";
  return wrapped(
             fmt::format("{} · micro-batches of {} {} · {} on {}\n{}\n\n", model.name, model.batch,
                         model.sample, name(origin.origin), origin.device, origin.method),
             width) +
         text + "\n" + wrapped(notes, width);
}

std::string kernels_json(const Model& model, const std::vector<LayerKernelTimes>& layers) {
  Json all = Json::array();
  for (const LayerKernelTimes& layer : layers) {
    Json kernels = Json::array();
    for (const KernelTime& one : layer.kernels) {
      Json row{{"pass", stageline::name(one.pass)},
               {"name", one.kernel.name},
               {"kind", kind_of(one.kernel)}};
      if (is_product(one.kernel)) {
        row["count"] = one.kernel.count;
        row["m"] = one.kernel.rows;
        row["k"] = one.kernel.inner;
        row["n"] = one.kernel.columns;
      }
      row["flops"] = one.kernel.flops;
      row["bytes"] = one.kernel.bytes > 0 ? Json(one.kernel.bytes) : Json(nullptr);
      row["time_s"] = one.seconds;
      row["peak_flops"] = one.peak > 0 ? Json(one.peak) : Json(nullptr);
      kernels.push_back(row);
    }
    Json object{{"layer", layer.name}, {"kind", layer.kind}, {"layers", layer.layers}};
    put_time(object, "forward", layer.forward);
    put_time(object, "backward", layer.backward);
    object["kernels"] = kernels;
    all.push_back(object);
  }
  Json result;
  result["model"] = model.name;
  result["microbatch_size"] = model.batch;
  result["device"] = model.provenance.device;
  result["method"] = model.provenance.method;
  result["layers"] = all;
  result["notes"] = model.provenance.notes;
  return result.text();
}

}  // namespace stageline::report
