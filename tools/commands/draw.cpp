// stageline draw: the space-time diagram as text, picture or Chrome trace.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "tools/answers/drawn.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/profile_files.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/report/drawing_of.hpp"
#include "tools/report/drawing_view.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/page/outcome_page.hpp"
#include "tools/report/text/drawn.hpp"
#include "tools/report/text/space_time.hpp"
#include "tools/report/timeline/chrome_trace.hpp"
#include "tools/report/timeline/memory_snapshot.hpp"
#include "tools/report/timeline/svg.hpp"

namespace stageline::cli {
namespace {

struct DrawFlags {
  CommonFlags common;
  SvgFlags svg;
  std::vector<std::string> panels;
  std::string from;
  std::string to;
  std::string numbers;
  std::vector<std::string> arrows;
  std::vector<std::string> rows;
  std::string chrome;
  std::string snapshot;
  std::string html;
  std::vector<std::string> profiles;  // behind TRACE, which is one itself
  int columns = 0;                    // 0: of the terminal, or 100
  bool full = false;
};

Time time_of_flag(const char* flag, const std::string& text) {
  try {
    return parse_time(text);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("{}: {}", flag, error.what()));
  }
}

// By default one schedule has all panels (with degrees beside the pipeline its memory by category),
// and several have their timelines.
report::DrawingView view_of(const DrawFlags& flags, const answers::DrawingAnswer& drawn) {
  report::DrawingView view;
  const auto wanted = [&](const char* name) {
    return std::find(flags.panels.begin(), flags.panels.end(), name) != flags.panels.end();
  };
  if (!flags.panels.empty()) {
    view.panels = {wanted("timeline"), wanted("memory"), wanted("weights"), wanted("categories")};
  } else if (drawn.outcomes.size() > 1) {
    view.panels = {true, false, false, false};
  } else if (drawn.asked.front().ranked) {
    view.panels = {true, false, true, true};
  }
  if ((wanted("memory") || wanted("categories")) && !drawn.outcomes.front().bytes_known()) {
    throw UsageError(
        fmt::format("--panels: {} has no sizes in bytes, so there is no memory to draw",
                    drawn.setting.model.name));
  }
  if (!flags.from.empty()) view.from = time_of_flag("--from", flags.from);
  if (!flags.to.empty()) view.to = time_of_flag("--to", flags.to);
  view.numbers = report::op_numbers(flags.numbers, drawn.outcomes);
  view.arrows = report::arrow_choice(flags.arrows);
  return view;
}

void check_flags(const DrawFlags& flags) {
  check_pictures(flags.svg);
  if (any_picture(flags.svg)) return;
  for (const auto& [given, name] :
       {std::pair{!flags.panels.empty(), "--panels"}, std::pair{!flags.from.empty(), "--from"},
        std::pair{!flags.to.empty(), "--to"}, std::pair{!flags.numbers.empty(), "--numbers"},
        std::pair{!flags.arrows.empty(), "--arrows"}, std::pair{!flags.rows.empty(), "--rows"}}) {
    if (given) {
      throw UsageError(fmt::format("{} needs a picture: --svg, --pdf or --png", name));
    }
  }
}

answers::DrawingAnswer drawn_of(const DrawFlags& flags) {
  const CommonFlags& common = flags.common;
  answers::DrawingQuestion question{{request_of(common)}};
  question.check = [&](const Setting& setting) {
    check_one_count(setting, "draw");
    if (question.setting.schedules.size() < 2) return;
    for (const auto& [file, name] :
         {std::pair{&common.json, "--json"}, std::pair{&flags.chrome, "--chrome"},
          std::pair{&flags.snapshot, "--memory-snapshot"}}) {
      if (file->empty()) continue;
      throw UsageError(
          fmt::format("{} takes one schedule, and {} were named; --svg, --pdf, --png, --html "
                      "and the text show several",
                      name, question.setting.schedules.size()));
    }
  };
  answers::DrawingAnswer drawn = answer(question);
  for (const std::string& note : read_as_notes(common.schedules)) {
    if (!common.quiet) show(stderr, "note: {}\n", note);
  }
  return drawn;
}

std::string picture_of(const DrawFlags& flags, const answers::DrawingAnswer& drawn,
                       const report::SvgOptions& options) {
  const report::DrawingView view = view_of(flags, drawn);
  if (drawn.outcomes.size() == 1) {
    return report::svg(
        report::with_rows(report::drawing_of(drawn.setting, drawn.asked[0], drawn.outcomes[0]),
                          flags.rows),
        options, view);
  }
  report::Drawings drawings = report::drawings_of(drawn.setting, drawn.asked, drawn.outcomes);
  for (report::Drawing& run : drawings.runs) run = report::with_rows(std::move(run), flags.rows);
  return report::svg(drawings, options, view);
}

// What a recorded run has no answer for.
void check_recorded(const DrawFlags& flags) {
  check_no_settings(flags.common);
  for (const auto& [flag, given] :
       {std::pair{"--json", !flags.common.json.empty()}, std::pair{"--html", !flags.html.empty()},
        std::pair{"--arrows", !flags.arrows.empty()},
        std::pair{"--memory-snapshot", !flags.snapshot.empty()}}) {
    if (!given) continue;
    throw UsageError(fmt::format(
        "{} is of a simulated run, and {} is a profile: text, --svg, --pdf, --png and --chrome show "
        "it; `stageline overlay --html` lays it over a simulated one",
        flag, flags.common.trace()));
  }
}

report::DrawingView view_of_recorded(const DrawFlags& flags) {
  report::DrawingView view;
  view.panels = {true, false, false, false};
  if (!flags.from.empty()) view.from = time_of_flag("--from", flags.from);
  if (!flags.to.empty()) view.to = time_of_flag("--to", flags.to);
  if (!flags.numbers.empty() && flags.numbers != "from-1") {
    throw UsageError("--numbers of a profile is from-1, or left out");
  }
  if (!flags.numbers.empty()) view.numbers = report::OpNumbers::microbatches_from_one;
  for (const std::string& panel : flags.panels) {
    if (panel == "timeline") continue;
    throw UsageError(fmt::format("--panels: a profile shows a timeline, and no {}", panel));
  }
  return view;
}

// A run that profiles show.
void draw_recorded(const DrawFlags& flags) {
  check_recorded(flags);
  const CommonFlags& common = flags.common;
  std::vector<std::string> files{common.trace()};
  files.insert(files.end(), flags.profiles.begin(), flags.profiles.end());
  const KinetoRun run = read_kineto(profiles_in(files));
  const Outputs outputs{"", flags.svg, "", common.quiet, {{"--chrome", flags.chrome}}};
  const bool silent = is_silent(outputs) || common.quiet;
  const report::DrawingView view = view_of_recorded(flags);
  Forms forms;
  forms.svg = [&](const report::SvgOptions& options) {
    return report::svg(report::with_rows(report::drawing_of(run), flags.rows), options, view);
  };
  if (!any_picture(flags.svg) && flags.chrome.empty()) {
    const int columns = flags.columns > 0 ? flags.columns : figure_columns();
    forms.text = [&, columns] {
      const FigureOptions options{Time{}, columns, colour_wanted()};
      return report::space_time(run.timeline, options, flags.full) +
             (common.quiet ? "" : report::space_time_legend({&run.timeline}) + "\n");
    };
    forms.notes = [&] { return run.notes; };
  }
  forms.wrote = {"--svg", "--pdf", "--png"};
  deliver(outputs, forms);
  if (flags.chrome.empty()) return;
  write_file(flags.chrome, report::chrome_trace(report::drawing_of(run)));
  if (!silent) show("wrote {}\n", flags.chrome);
}

void draw(const DrawFlags& flags) {
  const CommonFlags& common = flags.common;
  check_flags(flags);
  if (is_profile(common.trace())) return draw_recorded(flags);
  if (!flags.profiles.empty()) {
    throw UsageError(
        fmt::format("draw shows one run: {} is no profile of PyTorch's profiler, and {} stands "
                    "behind it; `stageline overlay` lays a measured run over a simulated one",
                    common.trace(), flags.profiles.front()));
  }
  const Outputs outputs{common.json,
                        flags.svg,
                        flags.html,
                        common.quiet,
                        {{"--chrome", flags.chrome}, {"--memory-snapshot", flags.snapshot}}};
  const bool silent = is_silent(outputs) || common.quiet;
  const answers::DrawingAnswer drawn = drawn_of(flags);
  Forms forms;
  forms.json = [&] {
    return report::outcome_json(drawn.setting, drawn.asked[0], drawn.outcomes[0],
                                /*timeline=*/true);
  };
  forms.svg = [&](const report::SvgOptions& options) { return picture_of(flags, drawn, options); };
  forms.page = [&] { return report::page_of(drawn.setting, drawn.asked, drawn.outcomes); };
  if (!any_picture(flags.svg) && flags.chrome.empty() && flags.snapshot.empty() &&
      flags.html.empty()) {
    const int columns = flags.columns > 0 ? flags.columns : figure_columns();
    forms.text = [&, columns] {
      return report::drawn_text(drawn,
                                {text_width(), columns, colour_wanted(), flags.full, common.quiet});
    };
    forms.notes = [&] { return report::drawn_notes(drawn); };
  }
  forms.wrote = {"--svg", "--pdf", "--png", "--html"};
  deliver(outputs, forms);
  if (!flags.snapshot.empty()) {
    write_file(flags.snapshot, report::memory_snapshot(report::drawing_of(
                                   drawn.setting, drawn.asked[0], drawn.outcomes[0])));
    if (!silent) show("wrote {} (open it at https://pytorch.org/memory_viz)\n", flags.snapshot);
  }
  if (flags.chrome.empty()) return;
  write_file(flags.chrome, report::chrome_trace(report::drawing_of(drawn.setting, drawn.asked[0],
                                                                   drawn.outcomes[0])));
  if (!silent) {
    show("wrote {} (open it at https://ui.perfetto.dev or chrome://tracing)\n", flags.chrome);
  }
}

void add_draw(Flags command) {
  const auto flags = std::make_shared<DrawFlags>();
  add_case_flags(command, flags->common);
  add_profile_files(command, flags->profiles,
                    "behind TRACE where that is a profile of a run: those of its other ranks");
  add_degree_flags(command, flags->common);
  command.find("--schedule")
      .describe(
          "NAME[:knob=value,…] or FILE.slp, a comma list of them, or all; repeatable: several are drawn one "
          "below the other on one time axis; default: 1f1b");
  add_setting(command, flags->common, "messages");
  const Flag svg = add_svg_flag(command, flags->svg, "write an SVG file, or - for stdout");
  add_svg_style_flags(command, flags->svg);
  const Flags output = command.in(SettingGroup::output);
  output
      .option("--panels", flags->panels,
              "panels of the picture, a comma list of timeline, memory, categories (memory by "
              "category, with the reserve and the op at the peak) and weights; default: timeline, "
              "memory and weights, and of several schedules the timelines")
      .repeatable()
      .comma_list()
      .one_of({"timeline", "memory", "categories", "weights"});
  output.option("--from", flags->from,
                "begin the picture at this time, such as 20ms; idle shares and peaks of memory "
                "are those of the part that is drawn");
  output.option("--to", flags->to, "end the picture at this time");
  output
      .option(
          "--numbers", flags->numbers,
          "what numbers on ops count: from-1 (micro-batches and stages from 1), by-direction "
          "(micro-batches of each direction of a schedule of two by itself, as in DeepSeek's figure "
          "of DualPipe) or versions (updates that the weights which the op reads have seen); "
          "default: micro-batches and stages from 0")
      .one_of({"from-1", "by-direction", "versions"});
  output
      .option(
          "--arrows", flags->arrows,
          "arrows of the timeline, a comma list of messages (from the op that makes what is sent "
          "to the one that takes it), messages:N (those of micro-batch N, from 0) and weights "
          "(from an update to the first op that reads its version); at most 250 a run; "
          "default: none")
      .repeatable()
      .comma_list();
  output
      .option("--rows", flags->rows,
              "the rows of the picture from the top, a comma list of DEVICE or DEVICE=NAME "
              "(gpu3=last,gpu0); default: all devices")
      .repeatable()
      .comma_list();
  const Flag chrome = output.common()
                          .option("--chrome", flags->chrome,
                                  "write a Chrome trace (JSON, opens in Perfetto), or - for stdout")
                          .writes_file();
  const Flag snapshot =
      output
          .option(
              "--memory-snapshot", flags->snapshot,
              "write the devices' memory over time as PyTorch's memory snapshot (pickle, opens at "
              "https://pytorch.org/memory_viz), or - for stdout")
          .writes_file();
  const Flag html = add_html_flag(
      command, flags->html,
      "write an HTML page, to zoom and to ask, or - for stdout; several schedules on one time axis");
  output.common()
      .option("--columns", flags->columns,
              "columns of the text figure; default: as many as the terminal has, or 100")
      .range(20, 10000)
      .excludes(svg)
      .excludes(command.find("--pdf"))
      .excludes(command.find("--png"))
      .excludes(chrome)
      .excludes(snapshot)
      .excludes(html);
  output.common()
      .flag("--full", flags->full,
            "all devices of the text figure; default: of more than 24 the first and last eight")
      .excludes(svg)
      .excludes(command.find("--pdf"))
      .excludes(command.find("--png"))
      .excludes(chrome)
      .excludes(snapshot)
      .excludes(html);
  command.footer(
      "Example:\n  stageline draw model:resnet50@h100,batch=32 --schedule 1f1b --devices 4 \\\n"
      "    --microbatches 8 --svg 1f1b.svg\n"
      "  stageline draw uniform:layers=8 --schedule gpipe,1f1b,zb_h1 --devices 4 \\\n"
      "    --panels timeline,memory --from 0 --to 60ms --svg three.svg\n"
      "  stageline draw rank0.json.gz rank1.json.gz --svg run.svg\n"
      "Without a picture, --html, --chrome and --memory-snapshot the diagram is printed as text.");
  command.runs([flags] {
    draw(*flags);
    return 0;
  });
}

}  // namespace

extern const Command draw_command;
const Command draw_command = {
    "draw", "Draw the space-time diagram of schedules as text, SVG, PDF, PNG, HTML or Chrome trace",
    add_draw, ""};

}  // namespace stageline::cli
