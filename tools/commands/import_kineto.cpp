// stageline import kineto: converts profiles of a real run to a native trace and its program.
#include <fmt/core.h>

#include <filesystem>
#include <memory>

#include "sim/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/inputs/recordings.hpp"
#include "traces/kineto/model.hpp"
#include "traces/timelines.hpp"
#include "traces/traces.hpp"

namespace stageline {
namespace {

struct KinetoFlags {
  std::vector<std::string> files;
  std::string out;
  std::string program;
  std::string name = "profile";
  int batch = 0;
  bool quiet = false;
};

void import_kineto(const KinetoFlags& flags) {
  if (flags.out == "-" && flags.program == "-") {
    throw UsageError("only one of --out and --program can go to standard output (-)");
  }
  std::vector<NamedText> profiles;
  std::string source;
  for (const std::string& file : flags.files) {
    profiles.push_back(read_content(file).named);
    source += (source.empty() ? "" : ", ") + std::filesystem::path(file).filename().string();
  }
  const KinetoRun run = read_kineto(profiles);
  const std::vector<Model> models{kineto_model(run, flags.name, flags.batch, source)};
  const std::string trace = write_trace(models);
  const std::string out = flags.out.empty() && flags.program.empty() ? "-" : flags.out;
  if (!flags.program.empty()) write_file(flags.program, print(run.program));
  if (!out.empty()) write_file(out, trace);
  if (flags.quiet || out == "-" || flags.program == "-") return;
  const auto said = [](const std::string& file) {
    return file.empty() ? std::string() : "wrote " + file + ": ";
  };
  if (!out.empty()) {
    fmt::print("{}{} stages, {} a micro-batch\n", said(out), models[0].layers.size(),
               print(forward_backward(models[0])));
  }
  if (!flags.program.empty()) {
    fmt::print("{}{} ranks, {} micro-batches × {} steps\n", said(flags.program),
               run.program.devices.size(), run.program.microbatches, run.program.steps);
  }
  for (const std::string& note : models[0].provenance.notes) print_wrapped("note: " + note + "\n");
}

void add(Flags command) {
  const auto flags = std::make_shared<KinetoFlags>();
  command.option("PROFILE", flags->files, "one per rank, gzip or plain").required();
  command.option("--out,-o", flags->out,
                 "write the trace, one layer per stage; default: stdout unless --program is given");
  command.option("--program", flags->program, "write the program that ran, as program text");
  command.option("--name", flags->name, "name of the model; default: profile");
  command.option("--batch", flags->batch, "samples in a micro-batch, which no profile records")
      .positive();
  command.flag("--quiet", flags->quiet, "print no report");
  command.footer(
      "Example:\n  stageline import kineto rank0.json.gz rank1.json.gz --out mine.json --program "
      "mine.slp\n  stageline simulate mine.json --program mine.slp");
  command.runs([flags] {
    import_kineto(*flags);
    return 0;
  });
}

}  // namespace

extern const Command import_kineto_command;
const Command import_kineto_command = {
    "kineto",
    "Convert profiles of a pipelined run by PyTorch's profiler to its costs and its program", add,
    "import"};

}  // namespace stageline
