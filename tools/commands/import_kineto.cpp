// stageline import kineto: converts profiles of a real run to a native trace and its program.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/answers/profiled.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/report/text/measured_idle.hpp"
#include "traces/kineto/layers.hpp"
#include "traces/kineto/model.hpp"
#include "traces/kineto/names.hpp"
#include "traces/timelines.hpp"
#include "traces/traces.hpp"

namespace stageline::cli {
namespace {

struct KinetoFlags {
  std::vector<std::string> files;
  std::string out;
  std::string program;
  std::string name = "profile";
  std::string names;
  std::string json;
  int batch = 0;
  bool idle = false;
  bool layers = false;
  bool quiet = false;
};

// A preset, or a mapping file.
RangeNames names_of(const std::string& text) {
  const std::vector<std::string> presets = name_presets();
  const bool file = text.find_first_of("./\\-") != std::string::npos;
  if (!file || std::find(presets.begin(), presets.end(), text) != presets.end()) {
    return name_preset(text);
  }
  return read_range_names(read_text(text), text);
}

// What goes to standard output beside reports.
std::string check_outputs(const KinetoFlags& flags) {
  std::vector<std::string> there;
  for (const auto& [flag, value] :
       {std::pair("--out", &flags.out), std::pair("--program", &flags.program),
        std::pair("--json", &flags.json)}) {
    if (*value == "-") there.emplace_back(flag);
  }
  if (there.size() > 1) {
    throw UsageError(
        fmt::format("only one of {} and {} can go to standard output (-)", there[0], there[1]));
  }
  const bool other = !flags.program.empty() || !flags.json.empty() || flags.idle;
  return flags.out.empty() && !other ? "-" : flags.out;
}

// One device's profile as the layers of its model.
void import_layers(const KinetoFlags& flags, const RangeNames* names) {
  if (flags.files.size() > 1) {
    throw UsageError(fmt::format(
        "--layers divides the profile of one device, and there are {}; give one of them",
        flags.files.size()));
  }
  if (!flags.program.empty() || !flags.json.empty() || flags.idle) {
    throw UsageError("--layers gives a trace of layers, which has no --program, --idle or --json");
  }
  const std::string source = std::filesystem::path(flags.files[0]).filename().string();
  const std::vector<Model> models{
      kineto_layers(read_content(flags.files[0]).named, names, flags.name, flags.batch, source)};
  const bool to_stdout = flags.out.empty() || flags.out == "-";
  write_file(to_stdout ? "-" : flags.out, write_trace(models));
  if (to_stdout || flags.quiet) return;
  show("wrote {}: {} layers, {} a micro-batch\n", flags.out, models[0].layers.size(),
       print(forward_backward(models[0])));
  for (const std::string& note : models[0].provenance.notes) print_wrapped("note: " + note + "\n");
}

void import_kineto(const KinetoFlags& flags) {
  const std::string out = check_outputs(flags);
  std::optional<RangeNames> names;
  if (!flags.names.empty()) names = names_of(flags.names);
  if (flags.layers) return import_layers(flags, names ? &*names : nullptr);
  std::vector<NamedText> profiles;
  std::string source;
  for (const std::string& file : flags.files) {
    for (NamedText& profile : read_profiles(file)) profiles.push_back(std::move(profile));
    source += (source.empty() ? "" : ", ") + std::filesystem::path(file).filename().string();
  }
  const KinetoRun run = read_kineto(profiles, names ? &*names : nullptr);
  const std::vector<Model> models{kineto_model(run, flags.name, flags.batch, source)};
  const std::string trace = write_trace(models);
  std::optional<MeasuredIdle> idle;
  if (flags.idle || !flags.json.empty()) idle = answers::idle_of(run);
  if (!flags.program.empty()) write_file(flags.program, print(run.program));
  if (!out.empty()) write_file(out, trace);
  if (!flags.json.empty()) write_file(flags.json, report::measured_idle_json(run, *idle));
  if (out == "-" || flags.program == "-" || flags.json == "-") return;
  if (flags.idle) show("{}", report::measured_idle_text(run, *idle));
  if (flags.quiet) return;
  const auto said = [](const std::string& file) {
    return file.empty() ? std::string() : "wrote " + file + ": ";
  };
  if (!out.empty()) {
    show("{}{} stages, {} a micro-batch\n", said(out), models[0].layers.size(),
         print(forward_backward(models[0])));
  }
  if (!flags.program.empty()) {
    show("{}{} ranks, {} micro-batches × {} steps\n", said(flags.program),
         run.program.devices.size(), run.program.microbatches, run.program.steps);
  }
  for (const std::string& note : models[0].provenance.notes) print_wrapped("note: " + note + "\n");
}

void add_import_kineto(Flags command) {
  const auto flags = std::make_shared<KinetoFlags>();
  command
      .option("PROFILE", flags->files,
              "one per rank, gzip or plain; or SQLite exports of Nsight Systems")
      .required();
  command
      .option("--out,-o", flags->out,
              "write the trace, one layer per stage; default: stdout unless --program, --idle or "
              "--json is given")
      .writes_file();
  command.option("--program", flags->program, "write the program that ran, as program text")
      .writes_file();
  command.option("--names", flags->names,
                 "what ranges are by their names: torch, megatron, deepspeed, or a mapping file "
                 "(traces/README.md); default: whatever the profiles allow");
  command.flag("--layers", flags->layers,
               "divide the profile of one device into the layers of its model: by its modules "
               "(with_stack=True), or by the ranges that --names calls layers");
  command.flag("--idle", flags->idle, "print the idle time of each rank by cause");
  command.option("--json", flags->json, "write it as JSON to a file, or - for stdout")
      .writes_file();
  command.option("--name", flags->name, "name of the model; default: profile");
  command.option("--batch", flags->batch, "samples in a micro-batch, which no profile records")
      .positive();
  command.flag("--quiet", flags->quiet, "print no report");
  command.footer(
      "Example:\n  stageline import kineto rank0.json.gz rank1.json.gz --out mine.json --program "
      "mine.slp\n  stageline simulate mine.json --program mine.slp\n"
      "  stageline import kineto rank0.json.gz rank1.json.gz --idle\n"
      "  stageline import kineto one_device.json.gz --layers --out layers.json");
  command.runs([flags] {
    import_kineto(*flags);
    return 0;
  });
}

}  // namespace

extern const Command import_kineto_command;
const Command import_kineto_command = {
    "kineto",
    "Convert profiles of a pipelined run by PyTorch's profiler to its costs and its program",
    add_import_kineto, "import"};

}  // namespace stageline::cli
