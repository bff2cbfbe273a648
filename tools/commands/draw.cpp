// stageline draw: the space-time diagram as text, SVG or Chrome trace.
#include <fmt/format.h>

#include <memory>

#include "sim/errors.hpp"
#include "sim/text/figure.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/common.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/timeline/chrome_trace.hpp"
#include "tools/report/timeline/svg.hpp"
#include "tools/report/timeline/weights.hpp"

namespace stageline {
namespace {

struct DrawFlags {
  CommonFlags common;
  std::string svg;
  std::string chrome;
  std::string theme = "auto";
  int width = 1000;
  int columns = 100;
};

void draw(const DrawFlags& flags) {
  const CommonFlags& common = flags.common;
  const Setting setting = read_setting(common);
  if (setting.device_counts.size() > 1) {
    throw UsageError("draw takes one number of devices");
  }
  if ((flags.svg == "-") + (flags.chrome == "-") + (common.json == "-") > 1) {
    throw UsageError("only one of --json, --svg and --chrome can go to standard output (-)");
  }
  const Case asked =
      make_case(common, setting, one_schedule(common), setting.device_counts.front());
  const Outcome outcome = study(asked, Curves::all);
  if (!common.json.empty()) write_file(common.json, outcome_json(setting, asked, outcome, true));
  if (flags.svg.empty() && flags.chrome.empty()) {
    if (common.json == "-") return;
    const FigureOptions options{Time{}, flags.columns, colour_wanted()};
    fmt::print("{}{}", figure(outcome.timeline, options),
               held_figure(outcome.program, outcome.timeline, outcome.versions, options));
    if (!common.quiet) fmt::print("{}\n{}", figure_legend(), held_legend(outcome.versions));
    return;
  }
  const Drawing drawing = drawing_of(setting, asked, outcome);
  const bool to_stdout = flags.svg == "-" || flags.chrome == "-" || common.json == "-";
  if (!flags.svg.empty()) {
    SvgOptions options;
    options.width = flags.width;
    options.theme = flags.theme == "light"  ? Theme::light
                    : flags.theme == "dark" ? Theme::dark
                                            : Theme::automatic;
    write_file(flags.svg, svg(drawing, options));
    if (!common.quiet && !to_stdout) fmt::print("wrote {}\n", flags.svg);
  }
  if (!flags.chrome.empty()) {
    write_file(flags.chrome, chrome_trace(drawing));
    if (!common.quiet && !to_stdout) {
      fmt::print("wrote {} (open it at https://ui.perfetto.dev or chrome://tracing)\n",
                 flags.chrome);
    }
  }
}

}  // namespace

void add_draw(CLI::App& app, int&) {
  CLI::App* const command = app.add_subcommand("draw", "The space-time diagram");
  const auto flags = std::make_shared<DrawFlags>();
  add_case_flags(*command, flags->common);
  add_messages_flag(*command, flags->common);
  CLI::Option* const svg =
      command->add_option("--svg", flags->svg, "write an SVG file, or - for stdout");
  CLI::Option* const chrome = command->add_option(
      "--chrome", flags->chrome, "write a Chrome trace (JSON, opens in Perfetto), or - for stdout");
  command->add_option("--theme", flags->theme, "of the SVG: auto, light or dark; default auto")
      ->check(CLI::IsMember({"auto", "light", "dark"}))
      ->needs(svg);
  command->add_option("--width", flags->width, "of the SVG in pixels; default 1000")
      ->check(CLI::Range(400, 10000))
      ->needs(svg);
  command->add_option("--columns", flags->columns, "of the text figure; default 100")
      ->check(CLI::Range(20, 10000))
      ->excludes(svg)
      ->excludes(chrome);
  command->footer(
      "Example:\n  stageline draw model:resnet50@h100,batch=32 --schedule 1f1b --devices 4 \\\n"
      "    --microbatches 8 --svg 1f1b.svg\n"
      "Without --svg and --chrome the diagram is printed as text.");
  command->callback([flags] { draw(*flags); });
}

}  // namespace stageline
