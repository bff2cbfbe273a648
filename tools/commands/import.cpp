// stageline import: another tool's profile to a native trace.
#include <fmt/format.h>

#include <memory>

#include "sim/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/common.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

struct ImportFlags {
  CommonFlags common;
  std::string out;
};

void import_trace(const ImportFlags& flags) {
  if (flags.common.trace.empty()) throw UsageError("import needs a TRACE, or kineto and profiles");
  TraceRequest request{flags.common.trace, 0, flags.common.profile_batch, {}};
  const std::vector<Model> models = open_trace_sizes(request);
  const std::string text = write_trace(models);
  write_file(flags.out.empty() ? "-" : flags.out, text);
  if (flags.out.empty() || flags.out == "-" || flags.common.quiet) return;
  fmt::print("wrote {}: {} layers, {} a micro-batch{}\n", flags.out, models.back().layers.size(),
             print(forward_backward(models.back())),
             models.back().batch > 0 ? fmt::format(" of {}", models.back().batch) : "");
  for (const std::string& note : models.back().provenance.notes) fmt::print("note: {}\n", note);
}

}  // namespace

void add_import(CLI::App& app, int&) {
  CLI::App* const command =
      app.add_subcommand("import", "Convert a profile (PipeDream graph.txt) to a native trace");
  const auto flags = std::make_shared<ImportFlags>();
  add_trace_flags(*command, flags->common);
  command->add_option("--out,-o", flags->out, "file to write; default stdout");
  command->add_flag("--quiet", flags->common.quiet, "no report");
  command->footer(
      "Example:\n  stageline import vgg16/graph.txt --batch 128 --out vgg16.json\n"
      "model: and uniform: traces can be written out the same way.");
  add_import_kineto(*command);
  command->get_option("TRACE")->required(false);
  command->callback([command, flags] {
    if (command->get_subcommands().empty()) import_trace(*flags);
  });
}

}  // namespace stageline
