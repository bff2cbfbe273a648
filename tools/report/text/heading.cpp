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

std::string heading(const Setting& setting, const Case& asked) {
  const std::string samples = of_samples(setting.model.batch, setting.model.sample);
  const std::size_t devices = asked.cluster.devices.size();
  const int microbatches =
      asked.program ? asked.program->microbatches / asked.program->settings.sequence_chunks
                    : asked.microbatches;
  const bool assigns = !asked.program && asked.spec.scheduler->assign != nullptr;
  return model_line(setting) + fmt::format("{} device{}{} · {} micro-batches{} a step · cut: {}\n",
                                           devices, devices == 1 ? "" : "s",
                                           of_cluster(setting, asked), microbatches, samples,
                                           assigns ? "the schedule's own" : asked.partition);
}

std::string sweep_heading(const Setting& setting, const Case& first, const Case& last) {
  const std::string samples = of_samples(setting.model.batch, setting.model.sample);
  const int least = first.microbatches;
  const int most = last.microbatches;
  const std::string microbatches =
      least == most
          ? fmt::format("{} micro-batches{} a step", most, samples)
          : fmt::format("{} micro-batches{} for each device: {} to {} a step",
                        most / static_cast<int>(last.cluster.devices.size()), samples, least, most);
  return model_line(setting) + fmt::format("{}–{} devices{} · {} · cut: {}\n",
                                           first.cluster.devices.size(),
                                           last.cluster.devices.size(), of_cluster(setting, last),
                                           microbatches, first.partition);
}

}  // namespace stageline
