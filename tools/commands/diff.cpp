// stageline diff: where two programs differ, and the cost of the difference.
#include <fmt/core.h>

#include <memory>

#include "sim/base/errors.hpp"
#include "tools/answers/program_diff.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/report/text/diff.hpp"

namespace stageline::cli {
namespace {

struct DiffFlags {
  std::vector<std::string> files;
  std::vector<std::string> second;
  std::string trace;
  std::string cluster;
  std::string link;
  std::string partition = "balanced";
  int profile_batch = 0;
  int microbatch_size = 0;
  std::string json;
  bool quiet = false;
};

answers::DiffedSide read_side(const std::vector<Content>& files, bool quiet) {
  answers::DiffedSide side;
  if (files.size() == 1 && files[0].format == nullptr) {
    side.compared.name = files[0].named.file;
    side.compared.program = read_valid_program(files[0].named.file, quiet);
    side.program_file = true;
    return side;
  }
  side.run = recording_of(files);
  for (const Content& content : files) {
    side.compared.name += (side.compared.name.empty() ? "" : ", ") + content.named.file;
  }
  side.compared.program = side.run->program;
  side.compared.timeline = side.run->timeline;
  return side;
}

std::vector<Content> read_both(const std::vector<std::string>& files) {
  std::vector<Content> contents;
  for (const std::string& file : files) contents.push_back(read_content(file));
  return contents;
}

std::vector<answers::DiffedSide> read_sides(const DiffFlags& flags) {
  std::vector<std::vector<Content>> sides = sides_of(read_both(flags.files));
  if (!flags.second.empty()) sides.push_back(read_both(flags.second));
  if (sides.size() != 2) {
    throw UsageError(fmt::format(
        "diff takes two programs or timelines, and there {} {}; profiles of one run that follow "
        "each other are one, and --and begins the second",
        sides.size() == 1 ? "is" : "are", sides.size()));
  }
  return {read_side(sides[0], flags.quiet), read_side(sides[1], flags.quiet)};
}

void check_flags(const DiffFlags& flags) {
  if (!flags.trace.empty()) return;
  for (const auto& [set, name] : {std::pair(flags.profile_batch > 0, "--batch"),
                                  std::pair(flags.microbatch_size > 0, "--microbatch-size"),
                                  std::pair(flags.partition != "balanced", "--partition")}) {
    if (set) throw UsageError(fmt::format("{} is about a --trace, and none was given", name));
  }
}

int run(const DiffFlags& flags) {
  check_flags(flags);
  const std::vector<answers::DiffedSide> sides = read_sides(flags);
  const answers::DiffReport report =
      answer(answers::DiffQuestion{sides[0],
                                   sides[1],
                                   {flags.trace, flags.cluster, flags.link, flags.partition,
                                    flags.profile_batch, flags.microbatch_size}});
  Forms forms;
  forms.json = [&] { return report::diff_json(report); };
  forms.text = [&] {
    return wrapped(
        report::diff_text(report, text_width()) + (flags.quiet ? "" : note_lines(report.notes)),
        text_width());
  };
  deliver({flags.json}, forms);
  return report.diff.equal() ? 0 : 1;
}

void add_diff(Flags command) {
  const auto flags = std::make_shared<DiffFlags>();
  command
      .option("FILE", flags->files,
              "a program text, a file of simulate --json --timeline, a Chrome trace, or "
              "PyTorch profiles of one run, one a rank")
      .required();
  command.option("--and", flags->second, "begins the second, where both are PyTorch profiles");
  place_of(command, "trace")
      .option("--trace", flags->trace,
              "price both programs with this trace; default: equal stages");
  place_of(command, "cluster")
      .option("--cluster", flags->cluster, "a cluster file or a bundled cluster");
  place_of(command, "link")
      .option("--link", flags->link,
              "equal devices with one full-duplex port each: 12GB/s,5us; default: free");
  place_of(command, "partition")
      .option("--partition", flags->partition, "how to cut the trace; default: balanced");
  place_of(command, "profile_batch")
      .option("--batch", flags->profile_batch,
              "samples in a minibatch of a PipeDream profile, which does not say")
      .positive();
  place_of(command, "microbatch_size")
      .option("--microbatch-size", flags->microbatch_size, "samples in a micro-batch")
      .range(1, 1 << 26);
  const Flags output = command.in(SettingGroup::output);
  output.option("--json", flags->json, "write the result as JSON to a file, or - for stdout")
      .writes_file();
  output.flag("--quiet", flags->quiet, "no notes");
  command.footer(
      "Example:\n  stageline program uniform:layers=4 --schedule 1f1b --devices 4 --out a.slp\n"
      "  stageline program uniform:layers=4 --schedule gpipe --devices 4 --out b.slp\n"
      "  stageline diff a.slp b.slp --link 1GB/s\n"
      "Exit code 0: equal. 1: different.");
  command.runs([flags] { return run(*flags); });
}

}  // namespace

extern const Command diff_command;
const Command diff_command = {
    "diff", "Where two programs, or the orders of two timelines, differ, and at what cost",
    add_diff, ""};

}  // namespace stageline::cli
