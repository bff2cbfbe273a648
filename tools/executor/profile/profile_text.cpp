// What the profiler prints and writes.
#include "tools/executor/profile/profile_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost_models/breakdown.hpp"
#include "sim/base/index.hpp"
#include "tools/base/csv_cell.hpp"
#include "tools/report/text/costs.hpp"

namespace stageline::executor {
namespace {

using stageline::print;  // of times

std::string software_of(const ProcessReport& process, const std::string& libraries) {
  std::string text = "LibTorch " + process.libtorch;
  if (!libraries.empty()) return text + ", " + libraries;
  if (!process.onednn.empty()) text += ", oneDNN " + process.onednn;
  if (!process.blas.name.empty()) text += ", " + process.blas.name;
  return text;
}

std::string settings_of(const Circumstances& about) {
  const ProfileRequest& request = about.request;
  std::string text = fmt::format("{}, {}", request.dtype, name(request.optimizer));
  if (request.device == "cpu") {
    text += fmt::format(
        ", {} thread{} on core{} {}", about.process.threads, about.process.threads == 1 ? "" : "s",
        about.process.cores.size() == 1 ? "" : "s", print_cores(about.process.cores));
  }
  return text;
}

std::string unsteady(const Profile& profile) {
  const Steadiness& is = profile.steadiness;
  return fmt::format(
      "Batch {} did not become steady: from the first to the second half of {} rounds the step's "
      "median moved by {:.1f} % and that of {} by {:.1f} %.",
      profile.model.batch, profile.model.whole.samples, is.step * 100,
      is.worst_layer.empty() ? "no large layer" : "\"" + is.worst_layer + "\"", is.worst * 100);
}

}  // namespace

Provenance provenance_of(const Circumstances& about) {
  Provenance provenance;
  provenance.origin = Origin::measured;
  provenance.device =
      about.request.device == "cpu" ? about.process.cpu.model : about.profiles[0].device;
  provenance.software = software_of(about.process, about.profiles[0].libraries);
  provenance.settings = settings_of(about);
  provenance.method = fmt::format(
      "Medians of passes over {} of the model, op by op, by turns with the whole model run plainly; "
      "gradients are added to those of earlier micro-batches, and the learning rate is 0.",
      about.request.share == Share::whole ? "all" : "one half and then the other");
  provenance.source = about.command;
  provenance.date = about.date;
  for (const Profile& profile : about.profiles) {
    if (!profile.steady) provenance.notes.push_back(unsteady(profile));
  }
  for (const std::string& warning : about.warned) {
    provenance.notes.push_back("Warning: " + warning + (warning.back() == '.' ? "" : "."));
  }
  for (std::string note : about.request.shape.notes) {
    note[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(note[0])));
    provenance.notes.push_back(note + ".");
  }
  return provenance;
}

std::string summary(const std::vector<Model>& models) {
  std::string text;
  for (const Model& model : models) {
    text +=
        fmt::format("\n{} · {} layers · batch {}\n", model.name, model.layers.size(), model.batch);
    text += report::costs_report(model, {}, {.top = 10, .quiet = true});
  }
  return text;
}

std::string why_unfit(const std::vector<Model>& models, double bound) {
  for (const Model& model : models) {
    const std::optional<CostCheck> check = check_of(model);
    if (!check || !check->difference || std::abs(*check->difference) <= bound) continue;
    // Autograd spends some microseconds an op of its own, which small layers do not hide.
    const std::string hint =
        *check->difference < 0
            ? "take a larger --batch (the whole is run by autograd, whose own time shows beside "
              "small "
              "layers)"
            : fmt::format("run it again on an idle machine, longer (--rounds {})",
                          4 * check->samples);
    return fmt::format(
        "the trace is unfit and was not written: at batch {} the layers add up to {} and the whole "
        "model takes {}, {:+.1f} %, where at most {:g} % is allowed and {:.1f} % is noise; {}, or "
        "allow more (--bound {:.0f})",
        model.batch, print(check->layers), print(check->whole), *check->difference * 100,
        bound * 100, check->noise.value_or(0) * 100, hint,
        std::ceil(std::abs(*check->difference) * 100));
  }
  return "";
}

std::string samples_csv(const std::vector<Profile>& profiles) {
  std::string text = "batch,layer,op,round,us\n";
  for (const Profile& profile : profiles) {
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      for (std::size_t t = 0; t < timed_count; ++t) {
        const std::vector<Time>& samples = profile.samples[i][t];
        const std::size_t each =
            std::max<std::size_t>(1, samples.size() / as_size(profile.model.whole.samples));
        for (std::size_t k = 0; k < samples.size(); ++k) {
          text += fmt::format("{},{},{},{},{:.3f}\n", profile.model.batch,
                              csv_cell(profile.model.layers[i].name), name(static_cast<Timed>(t)),
                              k / each, static_cast<double>(samples[k].count()) / 1e6);
        }
      }
    }
  }
  return text;
}

std::string list_of_models() {
  std::string text;
  for (const std::string& name : model_names()) {
    std::string options;
    for (const std::string& option : model_options(name)) options += " " + option + "=";
    text += fmt::format("{:<12} {}{}\n", name, model_summary(name),
                        options.empty() ? "" : " · options:" + options);
  }
  return text;
}

}  // namespace stageline::executor
