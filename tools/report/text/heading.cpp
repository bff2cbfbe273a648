// Writes the lines above a report.
#include "tools/report/text/heading.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "schedulers/partition/megatron.hpp"
#include "sim/text/visible.hpp"
#include "tools/base/amounts.hpp"
#include "tools/base/provenance.hpp"
#include "tools/inputs/degrees.hpp"
#include "tools/report/text/training.hpp"

namespace stageline::report {

std::string of_samples(int batch, const std::string& sample) {
  if (batch < 1) return "";
  return fmt::format(" of {} {}{}", batch, sample.empty() ? "sample" : sample,
                     batch == 1 ? "" : "s");
}

namespace {

// "80 blocks" of a language model, whose embedding and head nobody counts; else "56 layers".
std::string counted_layers(const Model& model) {
  const auto of = [&](auto&& counts) {
    return std::count_if(model.layers.begin(), model.layers.end(), counts);
  };
  const auto blocks = of([](const Layer& layer) { return layer.kind == "block"; });
  if (model.tokens > 0 && blocks > 0) {
    return fmt::format("{} block{}", blocks, blocks == 1 ? "" : "s");
  }
  return fmt::format("{} layers", of([](const Layer& layer) { return layer.kind != pass_kind; }));
}

}  // namespace

std::string model_line(const Setting& setting) {
  const Model& model = setting.model;
  const bool divided = model.sharding != Sharding{};
  const std::string parameters =
      model.parameters > 0
          ? fmt::format(" · {} parameters", count_text(static_cast<double>(model.parameters)))
          : "";
  return fmt::format("{}{} · {} · {} a micro-batch on one {} ({})\n", visible(model.name),
                     parameters, counted_layers(model), print(forward_backward(model)),
                     divided ? "rank" : "device", origin_of(model.provenance));
}

std::string of_cluster(const Setting& setting, const Case& asked) {
  const bool named = setting.cluster.fixed && !asked.cluster.name.empty();
  return named ? fmt::format(" of {}", asked.cluster.name) : "";
}

namespace {

// "64 devices of h100x8*8: tp 8 × dp 4 × pp 2".
std::string devices_of(const Setting& setting, const Case& asked) {
  const int devices = asked.device_count();
  std::string text =
      fmt::format("{} device{}{}", devices, devices == 1 ? "" : "s", of_cluster(setting, asked));
  if (asked.ranked) text += ": " + print(asked.ranked->grid().degrees());
  return text;
}

// " of 2 sequences of 8192 tokens".
std::string samples_of(const Model& model) {
  const std::string samples = of_samples(model.batch, model.sample);
  return model.tokens > 0 && !samples.empty()
             ? fmt::format("{} of {} tokens", samples, model.tokens)
             : samples;
}

// "2–8", or "2, 4, 8" where some between them were not asked for.
std::string counts_of(const Setting& setting, int first, int last) {
  const std::vector<int>& counts = setting.device_counts;
  const bool all = counts.back() - counts.front() + 1 == static_cast<int>(counts.size());
  return all ? fmt::format("{}–{}", first, last) : fmt::format("{}", fmt::join(counts, ", "));
}

}  // namespace

std::string heading(const Setting& setting, const Case& asked) {
  const std::string samples = samples_of(setting.model);
  const int microbatches =
      asked.program ? asked.program->microbatches / asked.program->settings.sequence_chunks
                    : asked.microbatches;
  const bool assigns = !asked.program && asked.spec.scheduler->assign != nullptr;
  return model_line(setting) + fmt::format("{} · {} micro-batches{} a step{} · cut: {}\n",
                                           devices_of(setting, asked), microbatches, samples,
                                           asked.ranked ? " and pipeline" : "",
                                           assigns ? "the schedule's own" : asked.cut_asked());
}

std::string sweep_heading(const Setting& setting, const Case& first, const Case& last) {
  const std::string samples = samples_of(setting.model);
  const int least = first.microbatches;
  const int most = last.microbatches;
  const std::string microbatches =
      least == most
          ? fmt::format("{} micro-batches{} a step", most, samples)
          : fmt::format("{} micro-batches{} for each {}: {} to {} a step",
                        most * last.pipelines() / static_cast<int>(last.cluster.devices.size()),
                        samples, last.ranked ? "pipeline rank" : "device", least, most);
  return model_line(setting) +
         fmt::format("{} devices{} · {} · cut: {}\n",
                     counts_of(setting, first.device_count(), last.device_count()),
                     of_cluster(setting, last), microbatches, first.cut_asked());
}

}  // namespace stageline::report
