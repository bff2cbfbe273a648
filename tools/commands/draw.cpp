// stageline draw: the space-time diagram as text, SVG or Chrome trace.
#include <fmt/core.h>

#include <memory>

#include "schedulers/aliases.hpp"
#include "sim/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/report/drawing_of.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/text/space_time.hpp"
#include "tools/report/timeline/chrome_trace.hpp"
#include "tools/report/timeline/svg.hpp"
#include "tools/report/timeline/weights.hpp"

namespace stageline {
namespace {

struct DrawFlags {
  CommonFlags common;
  SvgFlags svg;
  std::string chrome;
  int columns = 0;  // 0: of the terminal, or 100
  bool full = false;
};

void draw(const DrawFlags& flags) {
  const CommonFlags& common = flags.common;
  const SettingRequest request = request_of(common);
  const Setting setting = read_setting(request);
  if (setting.device_counts.size() > 1) {
    throw UsageError("draw takes one number of devices");
  }
  if ((flags.svg.file == "-") + (flags.chrome == "-") + (common.json == "-") > 1) {
    throw UsageError("only one of --json, --svg and --chrome can go to standard output (-)");
  }
  const Case asked =
      make_case(request, setting, one_schedule(common), setting.device_counts.front());
  const Outcome outcome = study(asked, Curves::all);
  for (const std::string& note : read_as_notes(common.schedules)) {
    if (!common.quiet) fmt::print(stderr, "note: {}\n", note);
  }
  if (!common.json.empty()) write_file(common.json, outcome_json(setting, asked, outcome, true));
  if (flags.svg.file.empty() && flags.chrome.empty()) {
    if (common.json == "-") return;
    const int columns = flags.columns > 0 ? flags.columns : figure_columns();
    const FigureOptions options{Time{}, columns, colour_wanted()};
    fmt::print("{}{}", space_time(outcome.timeline, options, flags.full),
               held_figure(outcome.program, outcome.timeline, outcome.versions, options));
    if (!common.quiet) {
      print_wrapped(space_time_legend({&outcome.timeline}) + "\n" + held_legend(outcome.versions));
    }
    return;
  }
  const Drawing drawing = drawing_of(setting, asked, outcome);
  const bool to_stdout = flags.svg.file == "-" || flags.chrome == "-" || common.json == "-";
  if (!flags.svg.file.empty()) {
    write_file(flags.svg.file, svg(drawing, svg_options(flags.svg)));
    if (!common.quiet && !to_stdout) fmt::print("wrote {}\n", flags.svg.file);
  }
  if (!flags.chrome.empty()) {
    write_file(flags.chrome, chrome_trace(drawing));
    if (!common.quiet && !to_stdout) {
      fmt::print("wrote {} (open it at https://ui.perfetto.dev or chrome://tracing)\n",
                 flags.chrome);
    }
  }
}

void add(Flags command) {
  const auto flags = std::make_shared<DrawFlags>();
  add_case_flags(command, flags->common);
  add_messages_flag(command, flags->common);
  const Flag svg = add_svg_flag(command, flags->svg, "write an SVG file, or - for stdout");
  const Flag chrome = command.option(
      "--chrome", flags->chrome, "write a Chrome trace (JSON, opens in Perfetto), or - for stdout");
  add_svg_style_flags(command, flags->svg, svg);
  command
      .option("--columns", flags->columns,
              "columns of the text figure; default: as many as the terminal has, or 100")
      .range(20, 10000)
      .excludes(svg)
      .excludes(chrome);
  command
      .flag("--full", flags->full,
            "all devices of the text figure; default: of more than 24 the first and last eight")
      .excludes(svg)
      .excludes(chrome);
  command.footer(
      "Example:\n  stageline draw model:resnet50@h100,batch=32 --schedule 1f1b --devices 4 \\\n"
      "    --microbatches 8 --svg 1f1b.svg\n"
      "Without --svg and --chrome the diagram is printed as text.");
  command.runs([flags] {
    draw(*flags);
    return 0;
  });
}

}  // namespace

extern const Command draw_command;
const Command draw_command = {"draw", "Draw the space-time diagram as text, SVG or Chrome trace",
                              add, ""};

}  // namespace stageline
