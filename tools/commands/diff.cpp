// stageline diff: where two programs differ, and the cost of the difference.
#include <fmt/core.h>

#include <memory>

#include "sim/analysis/kind_times.hpp"
#include "sim/base/errors.hpp"
#include "sim/deadlock.hpp"
#include "tools/base/files.hpp"
#include "tools/base/provenance.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/compare/overlay.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/planner/cuts/cut_search.hpp"
#include "tools/report/text/diff.hpp"
#include "tools/study/study.hpp"
#include "traces/traces.hpp"

namespace stageline {
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

// A program or a run.
struct Side {
  DiffSide compared;
  std::optional<Recording> run;
  bool program_file = false;
};

Side read_side(const std::vector<Content>& files, bool quiet) {
  Side side;
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

std::vector<Side> read_sides(const DiffFlags& flags) {
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

SideTimes times_of(const Recording& run) {
  return {makespan(run.timeline), steady_step(run), run.timeline.devices, busy_of(run.timeline)};
}

class Pricer {
 public:
  explicit Pricer(const DiffFlags& flags) : flags_(flags) {
    ClusterRequest request;
    request.cluster = flags.cluster;
    if (!flags.link.empty()) request.link = parse_link(flags.link);
    request.priced_for = priced_device(flags.trace);
    choice_ = choose_cluster(request);
    if (flags.trace.empty()) return;
    TraceRequest trace{flags.trace, flags.microbatch_size, flags.profile_batch, {}};
    if (choice_.fixed) trace.more_kinds = choice_.fixed->kinds;
    model_ = cut_by_layout(open_trace(trace), flags.partition);
  }

  std::string costs() const {
    return model_ ? fmt::format("{} ({})", model_->name, origin_of(model_->provenance))
                  : "every stage alike, F = I = W = 1 ms";
  }

  // Empty for a program that cannot be simulated; `why` then gets the reason.
  std::optional<SideTimes> price(const Side& side, std::vector<std::string>& why) const {
    const Program& program = *side.compared.program;
    Case asked;
    asked.model = model_ ? *model_ : uniform_model(fmt::format("layers={}", program.stages()));
    asked.cluster = cluster_of(choice_, static_cast<int>(program.devices.size()));
    asked.program = program;
    asked.partition = partition_text(flags_.partition);
    asked.microbatches = program.microbatches;
    try {
      const Outcome outcome = study(with_searched_cut(asked));
      return SideTimes{outcome.metrics.makespan, outcome.step_time, program.devices,
                       busy_of(outcome.timeline)};
    } catch (const Deadlock& deadlock) {
      why.push_back(fmt::format("{}: {}", side.compared.name, deadlock.what()));
    } catch (const ProgramError& error) {
      why.push_back(fmt::format("{} is not simulated: {}", side.compared.name, error.what()));
    } catch (const UsageError& error) {
      why.push_back(fmt::format("{} is not simulated: {}", side.compared.name, error.what()));
    }
    return {};
  }

 private:
  const DiffFlags& flags_;
  ClusterChoice choice_;
  std::optional<Model> model_;
};

void price(const DiffFlags& flags, const std::vector<Side>& sides, DiffReport& report) {
  const bool priced = !flags.trace.empty() || (sides[0].program_file && sides[1].program_file);
  const bool can = sides[0].compared.program && sides[1].compared.program;
  if (priced && can) {
    const Pricer pricer(flags);
    report.costs = pricer.costs();
    report.first = pricer.price(sides[0], report.untimed);
    report.second = pricer.price(sides[1], report.untimed);
    return;
  }
  if (priced) {
    throw UsageError(
        fmt::format("--trace prices programs, and {} is a timeline with times of its "
                    "own; leave --trace out",
                    sides[sides[0].compared.program ? 1 : 0].compared.name));
  }
  report.costs = "each timeline's own";
  if (sides[0].run) report.first = times_of(*sides[0].run);
  if (sides[1].run) report.second = times_of(*sides[1].run);
  if (report.first && report.second) return;
  report.untimed.emplace_back("a program has no times of its own; --trace prices it");
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
  const std::vector<Side> sides = read_sides(flags);
  DiffReport report;
  report.first_name = sides[0].compared.name;
  report.second_name = sides[1].compared.name;
  report.diff = diff_of(sides[0].compared, sides[1].compared);
  report.notes = report.diff.notes;
  price(flags, sides, report);
  for (const Side& side : sides) {
    if (!side.run) continue;
    for (const std::string& note : side.run->notes) {
      report.notes.push_back(fmt::format("{}: {}", side.compared.name, note));
    }
  }
  if (!flags.json.empty()) write_file(flags.json, diff_json(report));
  if (flags.json != "-") {
    print_wrapped(diff_text(report, text_width()));
    if (!flags.quiet) {
      for (const std::string& note : report.notes) print_wrapped("note: " + note + "\n");
    }
  }
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

}  // namespace stageline
