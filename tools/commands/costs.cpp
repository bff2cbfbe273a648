// stageline costs: the costs of the layers of one trace, or of two traces side by side.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "cost_models/batch.hpp"
#include "cost_models/sharding.hpp"
#include "sim/base/errors.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/report/text/costs.hpp"
#include "tools/report/text/kernels.hpp"

namespace stageline::cli {
namespace {

struct CostsFlags {
  CommonFlags common;
  std::string against;
  int against_batch = 0;
  std::string by = "layer";
  int top = 0;
  bool kernels = false;
};

struct Opened {
  Model model;
  std::vector<int> sizes;  // that the trace has
  TraceRequest request;
};

std::vector<int> sizes_of(const std::vector<Model>& models) {
  std::vector<int> sizes;
  for (const Model& model : models) sizes.push_back(model.batch);
  return sizes;
}

Sharding sharding_of(const CommonFlags& flags) {
  const SettingRequest request = request_of(flags);
  return {request.degrees.tensor, request.degrees.context, request.degrees.expert,
          request.sequence_parallel, request.degrees.expert_tensor};
}

// A trace that states the degrees of its layers need not be asked for them.
void check_degrees(const Model& model, const CommonFlags& flags) {
  const Degrees degrees = request_of(flags).degrees;
  if (degrees.tensor > 1 || degrees.context > 1 || degrees.expert > 1) {
    check_sharding(model, degrees);
  }
}

// The largest batch size unless one is requested, as in every command.
Opened open_first(const CommonFlags& flags) {
  const int batch = flags.count("microbatch_size");
  TraceRequest request{flags.trace(), batch, flags.count("profile_batch"), {}};
  request.calibration = open_calibration(flags.text("calibration"));
  request.software = flags.text("software");
  request.cuda_graphs = flags.text("cuda_graphs");
  request.sharding = sharding_of(flags);
  const std::vector<Model> models = open_trace_sizes(request);
  Opened opened{batch > 0 ? at_batch(models, batch) : models.back(), sizes_of(models), request};
  check_degrees(opened.model, flags);
  const std::string no_effect = no_effect_on_kernels(request, opened.model);
  if (!no_effect.empty()) opened.model.provenance.notes.push_back(no_effect);
  return opened;
}

// TRACE2 at the batch size of TRACE, with notes on the conversion.
struct Brought {
  Model model;
  std::vector<std::string> notes;
};

Brought open_second(const CostsFlags& flags, int batch) {
  const Sharding sharding = sharding_of(flags.common);
  std::vector<Model> models =
      open_trace_sizes({flags.against, 0, flags.against_batch, {}, sharding});
  check_degrees(models.front(), flags.common);
  const std::vector<int> sizes = sizes_of(models);
  for (Model& model : models) {
    if (model.batch == batch) return {std::move(model), {}};
  }
  if (batch == 0 || sizes.front() == 0) {
    return {std::move(models.front()),
            {fmt::format("the micro-batch size of {} is not known, so the times are compared as "
                         "they are",
                         batch == 0 ? "TRACE" : "TRACE2")}};
  }
  // A model is priced again; measured costs are interpolated or scaled.
  models = open_trace_sizes({flags.against, batch, flags.against_batch, {}, sharding});
  return {at_batch(models, batch),
          {fmt::format("TRACE2 has micro-batches of {}; it was brought to the {} of TRACE",
                       fmt::join(sizes, ", "), batch)}};
}

// The kernels in the place of the layers.
void list_kernels(const CostsFlags& flags, const Opened& opened) {
  const std::vector<LayerKernelTimes> layers = open_kernels(opened.request);
  if (layers.empty()) {
    throw UsageError(
        fmt::format("--kernels is of a language model, whose kernels are priced "
                    "(model:NAME@DEVICE), and \"{}\" has times of layers alone; leave it out",
                    opened.request.text));
  }
  Forms forms;
  forms.json = [&] { return report::kernels_json(opened.model, layers); };
  forms.text = [&] {
    return report::kernels_report(opened.model, layers, text_width(), flags.common.quiet);
  };
  deliver({flags.common.json}, forms);
}

void costs(const CostsFlags& flags) {
  const Opened first = open_first(flags.common);
  if (flags.kernels) {
    list_kernels(flags, first);
    return;
  }
  const CostsBy by = flags.by == "kind" ? CostsBy::kind : CostsBy::layer;
  const report::CostsOptions options{by, flags.top, colour_wanted(), flags.common.quiet,
                                     text_width()};
  Forms forms;
  if (flags.against.empty()) {
    forms.json = [&] { return report::costs_json(first.model, first.sizes, by); };
    forms.text = [&] {
      return wrapped(report::costs_report(first.model, first.sizes, options), options.width);
    };
    deliver({flags.common.json}, forms);
    return;
  }
  const Brought second = open_second(flags, first.model.batch);
  forms.json = [&] { return report::against_json(first.model, second.model, second.notes, by); };
  forms.text = [&] {
    return wrapped(report::against_report(first.model, second.model, second.notes, options),
                   options.width);
  };
  deliver({flags.common.json}, forms);
}

void add_costs(Flags command) {
  const auto flags = std::make_shared<CostsFlags>();
  add_trace_flags(command, flags->common);
  add_setting(command, flags->common, "microbatch_size");
  add_settings(
      command, flags->common,
      {"calibration", "software", "cuda_graphs", "tp", "cp", "ep", "etp", "sequence_parallel"});
  const Flags model = command.in(SettingGroup::model);
  const Flags output = command.in(SettingGroup::output);
  const Flag against =
      model.option("--against", flags->against,
                   "TRACE2, any trace: print the ratios TRACE / TRACE2 layer by layer");
  model
      .option("--against-batch", flags->against_batch,
              "--batch for TRACE2, where that is a PipeDream profile")
      .positive()
      .needs(against);
  const Flag by = output.option("--by", flags->by, "one row per layer or per kind; default: layer");
  by.one_of({"layer", "kind"});
  const Flag top =
      output
          .option("--top", flags->top,
                  "the N most expensive rows, and one for all others; default: all rows, "
                  "or 32 where there are more than 64")
          .range(1, 1 << 30);
  output
      .flag("--kernels", flags->kernels,
            "the kernels of a language model's layers: extents, FLOPs, bytes, time, and share of "
            "the peak")
      .excludes(against)
      .excludes(by)
      .excludes(top);
  add_output_flags(command, flags->common);
  command.footer(
      "Example:\n  stageline costs model:resnet50@h100,batch=32 --top 10\n"
      "  stageline costs model:resnet50@h100 --against model:resnet50@a100 --by kind\n"
      "  stageline costs model:llama3-70b@h100 --tp 8 --sequence-parallel --kernels\n"
      "Of a trace that was measured, the layers are checked against the whole model.");
  command.runs([flags] {
    costs(*flags);
    return 0;
  });
}

}  // namespace

extern const Command costs_command;
const Command costs_command = {
    "costs", "The costs of the layers of a trace, or how two traces differ", add_costs, ""};

}  // namespace stageline::cli
