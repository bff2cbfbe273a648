// stageline import: converts another tool's profile to a native trace.
#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/base/json.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "traces/traces.hpp"

namespace stageline::cli {
namespace {

struct ImportFlags {
  CommonFlags common;
  std::string out;
};

// What became of the file, as JSON.
std::string imported_json(const ImportFlags& flags, const std::vector<Model>& models,
                          const std::vector<std::string>& notes) {
  const Model& model = models.back();
  Json sizes = Json::array();
  for (const Model& one : models) {
    if (one.batch > 0) sizes.push_back(one.batch);
  }
  Json json{{"trace", flags.common.trace()},
            {"model", model.name},
            {"costs", name(model.provenance.origin)},
            {"layers", model.layers.size()},
            {"microbatch_sizes", std::move(sizes)},
            {"microbatch_size", model.batch > 0 ? Json(model.batch) : Json()}};
  put_time(json, "forward_backward", forward_backward(model));
  json["notes"] = Json(notes);
  return json.text();
}

void import_trace(const ImportFlags& flags) {
  if (flags.common.trace().empty())
    throw UsageError("import needs a TRACE, kineto and profiles, or nccl-tests and logs");
  TraceRequest request{flags.common.trace(), 0, flags.common.count("profile_batch"), {}};
  request.calibration = open_calibration(flags.common.text("calibration"));
  const std::vector<Model> models = open_trace_sizes(request);
  const std::string out = flags.out.empty() ? "-" : flags.out;
  const bool silent = to_stdout({{"--out", out}, {"--json", flags.common.json}});
  std::vector<std::string> notes = models.back().provenance.notes;
  if (const std::string no_effect = no_effect_on_kernels(request, models.back());
      !no_effect.empty()) {
    notes.push_back(no_effect);
  }
  write_file(out, write_trace(models));
  if (!flags.common.json.empty()) {
    write_file(flags.common.json, imported_json(flags, models, notes));
  }
  if (silent || flags.common.quiet) return;
  show("wrote {}: {} layers, {} a micro-batch{}\n", flags.out, models.back().layers.size(),
       print(forward_backward(models.back())),
       models.back().batch > 0 ? fmt::format(" of {}", models.back().batch) : "");
  for (const std::string& note : notes) print_wrapped("note: " + note + "\n");
}

void add_import(Flags command) {
  const auto flags = std::make_shared<ImportFlags>();
  add_trace_flags(command, flags->common);
  add_setting(command, flags->common, "calibration");
  command.option("--out,-o", flags->out, "file to write; default: stdout").writes_file();
  command
      .option("--json", flags->common.json,
              "write what was read as JSON to a file, or - for stdout; with --out")
      .writes_file();
  command.flag("--quiet", flags->common.quiet, "print no report");
  command.footer(
      "Example:\n  stageline import vgg16/graph.txt --batch 128 --out vgg16.json\n"
      "model: and uniform: traces can be written out the same way.");
  command.find("TRACE").required(false);
  command.runs([command, flags] {
    if (!command.subcommand_given()) import_trace(*flags);
    return 0;
  });
}

}  // namespace

extern const Command import_command;
const Command import_command = {
    "import", "Convert a profile (PipeDream graph.txt) to a native trace", add_import, ""};

}  // namespace stageline::cli
