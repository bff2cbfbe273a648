// stageline phase: which schedule wins where, over two settings.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "sim/base/errors.hpp"
#include "tools/base/check_point.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/progress_line.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/sweep_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/sweep/phase.hpp"

namespace stageline::cli {
namespace {

constexpr int map_columns = 100;  // of the map as text, at most
constexpr int map_rows = 24;

struct PhaseFlags {
  SettingFlags settings;
  SvgFlags svg;
  std::string x;
  std::string y;
  std::string json;
  int threads = 0;
  bool exhaustive = false;
  bool quiet = false;
};

SweepAxis axis_of(const char* flag, const std::string& text, std::int64_t points) {
  const SweepAxis axis = axis_of_flag(flag, text);
  return phase_axis(axis.name, text.substr(text.find('=') + 1), points);
}

// Empty where none is named.
std::vector<std::string> schedules_of(const PhaseFlags& flags) {
  std::vector<std::string> names;
  for (const std::string& text : flags.settings.common.schedules) {
    for (std::string& one : parse_axis("schedule", text).values) names.push_back(std::move(one));
  }
  return names;
}

// With its progress, until it is done or a signal comes.
PhaseMap drawn_map(PhaseRequest request, bool quiet) {
  request.stop = &catch_signals(SecondSignal::ends);
  ProgressLine line(!quiet);
  request.progress = [&](std::int64_t done, std::int64_t wanted) { line(done, wanted); };
  try {
    return phase_map(std::move(request));
  } catch (const CalledOff&) {
    throw Interrupted{"no map was finished, nothing was written", false};
  }
}

int run_phase(const PhaseFlags& flags) {
  const Outputs outputs{flags.json, flags.svg, {}, flags.quiet};
  check_outputs(outputs);
  PhaseRequest request;
  request.fixed = words_of(flags.settings);
  request.fixed.push_back({"trace", flags.settings.common.trace()});
  request.x = axis_of("--x", flags.x, phase_across);
  request.y = axis_of("--y", flags.y, phase_upwards);
  request.schedules = schedules_of(flags);
  request.threads = flags.threads;
  request.exhaustive = flags.exhaustive;
  const PhaseMap map = drawn_map(std::move(request), flags.quiet);
  Forms forms;
  forms.json = [&] { return phase_json(map).text(); };
  forms.svg = [&](const report::SvgOptions& options) {
    return report::phase_svg(map.chart, options);
  };
  forms.text = [&] {
    report::PhaseChart chart = map.chart;
    if (flags.quiet) {
      chart.title.clear();
      chart.subtitle.clear();
      chart.footnotes.clear();
    }
    return report::phase_text(chart, text_width_up_to(map_columns), map_rows);
  };
  forms.wrote = {"--svg", "--pdf", "--png"};
  deliver(outputs, forms);
  return map.partial ? exit_code_after_signal() : map.any ? 0 : 1;
}

void add_phase(Flags command) {
  const auto flags = std::make_shared<PhaseFlags>();
  add_setting_flags(command, flags->settings, "a trace, as compare takes it");
  command.find("--schedule")
      .describe(
          "the schedules, NAME[:knob=value,…] or FILE.slp, a comma list of them, or all; repeatable; "
          "default: all synchronous ones");
  flags->settings.all.erase(std::remove(flags->settings.all.begin(), flags->settings.all.end(),
                                        command.find("--schedule")),
                            flags->settings.all.end());
  const Flags search = command.in(SettingGroup::search);
  search.common()
      .option("--x", flags->x,
              "NAME=VALUES: the setting of the columns, as --axis of `stageline sweep` takes it; a "
              "range without a form has 33 values, by their logarithm where its ends are eightfold "
              "apart")
      .required();
  search.common().option("--y", flags->y, "the same of the rows, with 17 values").required();
  search.flag("--exhaustive", flags->exhaustive,
              "simulate every cell, and not only around the borders of what a coarse grid finds");
  search.option("--threads", flags->threads, "default: all cores; changes no result")
      .range(1, 1024);
  add_svg_flag(command, flags->svg, "write the map as an SVG file, or - for stdout");
  add_svg_style_flags(command, flags->svg);
  const Flags output = command.in(SettingGroup::output);
  output.common()
      .option("--json", flags->json, "write every cell as JSON to a file, or - for stdout")
      .writes_file();
  output.flag("--quiet", flags->quiet, "no title and no notes");
  command.footer(
      "Example:\n  stageline phase resnet50-cpu --devices 8 --x link=1GB/s..400GB/s --y "
      "microbatches=4..256:log7 --schedule 1f1b,zb_h1,interleaved_1f1b --svg phase.svg\n"
      "The winner is the schedule with the highest throughput of those that fit into memory.\n"
      "Exit code 1: none fits anywhere. 130, 143: interrupted; the map so far was printed.");
  command.runs([flags] { return run_phase(*flags); });
}

}  // namespace

extern const Command phase_command;
const Command phase_command = {
    "phase", "Which schedule wins where: a map over two settings, refined at its borders",
    add_phase, ""};

}  // namespace stageline::cli
