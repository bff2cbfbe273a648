// stageline sweep: thousands of settings, a row each, on all cores and in shards.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/base/json.hpp"
#include "tools/base/outputs.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/progress_line.hpp"
#include "tools/commands/sweep_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/sweep/run.hpp"

namespace stageline::cli {
namespace {

struct SweepFlags {
  SweepSpecFlags spec;
  std::string out;
  std::string shard;
  std::string json;
  std::string show;
  int threads = 0;
  bool merge = false;
  bool quiet = false;
};

Json summary_json(const SweepFolder& folder, const Shard& shard, const SweepCount& count,
                  bool merged) {
  const SweepSpec& spec = folder.spec();
  return {{"folder", folder.path()},
          {"hash", folder.hash()},
          {"scenarios", spec.scenarios()},
          {"chunk", spec.chunk},
          {"chunks", spec.chunks()},
          {"shard", Json::array({shard.index, shard.count})},
          {"before", count.before},
          {"made", count.chunks},
          {"rows", count.rows},
          {"possible", count.possible},
          {"fit", count.fit},
          {"notes", count.notes},
          {"missing", folder.missing().size()},
          {"table", merged ? Json(folder.table_file()) : Json()}};
}

// Axes that change how many samples a step has; micro-batches are by default four a device.
std::vector<std::string> axes_of_work(const SweepSpec& spec) {
  const std::string count = "microbatches";
  const bool counted = std::any_of(spec.fixed.begin(), spec.fixed.end(),
                                   [&](const SettingWord& word) { return word.key == count; }) ||
                       std::any_of(spec.axes.begin(), spec.axes.end(),
                                   [&](const SweepAxis& axis) { return axis.name == count; });
  std::vector<std::string> names;
  for (const SweepAxis& axis : spec.axes) {
    const std::string& name = axis.name;
    const bool direct = name == count || name == "microbatch_size" || name == "dp";
    const bool by_devices = name == "devices" || name == "pp" || name == "tp" || name == "cp";
    if (direct || (by_devices && !counted)) names.push_back(name);
  }
  return names;
}

void print_summary(const SweepFolder& folder, const Shard& shard, const SweepCount& count) {
  const SweepSpec& spec = folder.spec();
  print_wrapped(
      fmt::format("{} scenarios in {} chunk{} of {}{}: {} made now, {} there before\n",
                  spec.scenarios(), spec.chunks(), spec.chunks() == 1 ? "" : "s", spec.chunk,
                  shard.count > 1 ? fmt::format(", shard {}/{}", shard.index, shard.count) : "",
                  count.chunks, count.before));
  if (count.rows > 0) {
    print_wrapped(
        fmt::format("{} rows: {} with a result, {} of which fit into memory or may; {} "
                    "not possible, with the reason\n",
                    count.rows, count.possible, count.fit, count.rows - count.possible));
    if (count.possible == 0) print_wrapped(fmt::format("why, in the first: {}\n", count.why_not));
  }
}

std::vector<std::string> said_of(const SweepSpec& spec, const SweepCount& count) {
  std::vector<std::string> said = count.notes;
  const std::vector<std::string> work = axes_of_work(spec);
  if (!work.empty() && count.possible > 0) {
    said.push_back(fmt::format(
        "a step has other numbers of samples by {}: compare throughput, and not step_ps",
        fmt::join(work, ", ")));
  }
  return said;
}

// The settings of one scenario, as flags.
int show_row(const SweepSpec& spec, const std::string& text) {
  const auto number = parse_scenario_number(spec, text);
  const std::vector<std::string> values = axis_values(spec, number);
  for (std::size_t i = 0; i < values.size(); ++i) {
    fmt::print("{}={}\n", spec.axes[i].name, values[i]);
  }
  const std::vector<SettingWord> words = words_of(spec, values);
  const bool drawn = std::any_of(words.begin(), words.end(),
                                 [](const SettingWord& word) { return word.key == "scenario"; });
  if (!drawn) fmt::print("stageline compare {}\n", flags_of(words));
  return 0;
}

// Those that a sweep file names stand on no command line.
void check_named_files(const SweepFlags& flags, const SweepSpec& spec) {
  CommandPaths paths;
  if (!flags.json.empty()) paths.files.push_back({"--json", flags.json});
  for (const char* const form : sweep_folder_forms) {
    paths.patterns.push_back({"--out", pattern_of(form, flags.out)});
  }
  for (const std::string& file : named_files(spec)) paths.words.push_back({"the sweep", file});
  check_outputs(paths);
}

int run_command(const SweepFlags& flags) {
  const bool asked = spec_given(flags.spec);
  if (flags.out.empty() && flags.show.empty()) {
    throw UsageError("a sweep is written to a folder: give --out DIR");
  }
  if (!asked && !flags.merge && flags.show.empty()) {
    throw UsageError(
        "a sweep is a file (stageline-sweep 1), or a TRACE with --axis; of neither, --merge alone "
        "joins the chunks of --out DIR");
  }
  if (flags.merge && !flags.shard.empty()) {
    throw UsageError(
        "--merge joins the chunks of all shards, and --shard makes those of one; "
        "merge when all are done");
  }
  const Shard shard = flags.shard.empty() ? Shard{} : parse_shard(flags.shard, "--shard");
  if (!flags.show.empty()) {
    return show_row(asked ? spec_of(flags.spec) : SweepFolder::open(flags.out).spec(), flags.show);
  }
  std::optional<SweepSpec> spec;
  if (asked) {
    spec = spec_of(flags.spec);
    check_named_files(flags, *spec);
  }
  const SweepFolder folder = spec ? SweepFolder(flags.out, *spec) : SweepFolder::open(flags.out);
  SweepCount count;
  if (asked) {
    const std::atomic<bool>& stop = catch_signals(SecondSignal::ends);
    end_soon_after_signal(
        "\nstageline: interrupted; the chunks that are done stay, and the same command goes on\n");
    ProgressLine line(!flags.quiet);
    SweepRun run;
    run.shard = shard;
    run.threads = flags.threads;
    run.stop = &stop;
    run.progress = [&](const SweepProgress& now) { line(now.rows, now.wanted); };
    count = run_sweep(folder, run);
    line.clear();
    if (count.stopped) {
      throw Interrupted{
          fmt::format("{} chunks were made, and the same command goes on", count.chunks), false};
    }
  }
  if (flags.merge) folder.merge();
  if (!flags.json.empty()) {
    write_file(flags.json, summary_json(folder, shard, count, flags.merge).text());
  }
  if (flags.json == "-" || flags.quiet) return 0;
  if (asked) print_summary(folder, shard, count);
  if (flags.merge) {
    fmt::print("wrote {}\n", folder.table_file());
  } else {
    const std::size_t missing = folder.missing().size();
    print_wrapped(
        missing == 0
            ? fmt::format("all chunks are in {}; one table of them: stageline sweep --merge --out "
                          "{}\n",
                          folder.path(), folder.path())
            : fmt::format("{} of {} chunks are still missing in {}\n", missing,
                          folder.spec().chunks(), folder.path()));
  }
  if (asked) print_notes(said_of(folder.spec(), count));
  return 0;
}

void add_sweep(Flags command) {
  const auto flags = std::make_shared<SweepFlags>();
  add_sweep_spec_flags(command, flags->spec);
  const Flags search = command.in(SettingGroup::search);
  const Flags output = command.in(SettingGroup::output);
  command.writes_also(
      output.common()
          .option("--out", flags->out, "the folder of the chunks, made where it is missing")
          .writes_folder(),
      {sweep_folder_forms.begin(), sweep_folder_forms.end()});
  search.common().option(
      "--shard", flags->shard,
      "I/N: make the I-th of N parts, on a machine that shares the folder or has its own");
  search.option("--threads", flags->threads, "default: all cores; changes no byte of the chunks")
      .range(1, 1024);
  output.common().flag(
      "--merge", flags->merge,
      "join all chunks into table.csv.gz in the folder; alone, or behind the sweep");
  output.common().option(
      "--show", flags->show,
      "the settings of the scenario of this number, and the command that asks for it");
  output.common()
      .option("--json", flags->json, "write what was made as JSON to a file, or - for stdout")
      .writes_file();
  output.flag("--quiet", flags->quiet, "no summary and no progress");
  command.footer(
      "Example:\n  stageline sweep resnet50-cpu --axis schedule=1f1b,zb_h1 --axis "
      "microbatches=8..64:8 --axis link=1GB/s..400GB/s:log7 --devices 8 --out runs --merge\n"
      "112 scenarios, a row each. --link '{bandwidth},5us' --axis bandwidth=… varies a part of a "
      "setting.\n"
      "A chunk's file is there when it is done: a sweep that was killed goes on by the same "
      "command.\n"
      "Exit code 2: also where the folder is of another question. 130: interrupted.");
  command.runs([flags] { return run_command(*flags); });
}

}  // namespace

extern const Command sweep_command;
const Command sweep_command = {
    "sweep", "Thousands of settings: a row each, on all cores and many machines, resumable",
    add_sweep, ""};

}  // namespace stageline::cli
