// Writes the lines above a report.
#include "tools/report/text/heading.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "schedulers/partition/megatron.hpp"
#include "tools/base/provenance.hpp"

namespace stageline {

std::string of_samples(int batch, const std::string& sample) {
  if (batch < 1) return "";
  return fmt::format(" of {} {}{}", batch, sample.empty() ? "sample" : sample,
                     batch == 1 ? "" : "s");
}

std::string model_line(const Setting& setting) {
  const Model& model = setting.model;
  const auto layers = std::count_if(model.layers.begin(), model.layers.end(),
                                    [](const Layer& layer) { return layer.kind != pass_kind; });
  return fmt::format("{} · {} layers · {} a micro-batch on one device ({})\n", model.name, layers,
                     print(forward_backward(model)), origin_of(model.provenance));
}

std::string of_cluster(const Setting& setting, const Case& asked) {
  const bool named = setting.cluster.fixed && !asked.cluster.name.empty();
  return named ? fmt::format(" of {}", asked.cluster.name) : "";
}

std::string heading(const Setting& setting, const Case& asked, bool sweep) {
  const std::string samples = of_samples(setting.model.batch, setting.model.sample);
  std::string text = model_line(setting);
  text += sweep ? fmt::format("{}–{} devices", setting.device_counts.front(),
                              setting.device_counts.back())
                : fmt::format("{} device{}", asked.cluster.devices.size(),
                              asked.cluster.devices.size() == 1 ? "" : "s");
  text += of_cluster(setting, asked);
  const int microbatches =
      asked.program ? asked.program->microbatches / asked.program->settings.sequence_chunks
                    : asked.microbatches;
  text += sweep ? fmt::format(" · micro-batches{}", samples)
                : fmt::format(" · {} micro-batches{} a step", microbatches, samples);
  const bool assigns = !asked.program && !sweep && asked.spec.scheduler->assign != nullptr;
  return text + fmt::format(" · cut: {}\n", assigns ? "the schedule's own" : asked.partition);
}

}  // namespace stageline
