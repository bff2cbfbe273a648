// stageline sensitivity: what the step hangs on, and what it is worth to make it faster.
#include <fmt/core.h>

#include <memory>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/base/table.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/progress_line.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/report/page/study_pages.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/sensitivity.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/study.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_rows = 20;

struct SensitivityFlags {
  CommonFlags common;
  SvgFlags svg;
  std::string html;
  int threads = 0;
  bool full = false;
};

int run_sensitivity(const SensitivityFlags& flags) {
  const CommonFlags& common = flags.common;
  check_pictures(flags.svg);
  const bool silent = to_stdout(common.json, flags.svg, flags.html);
  const SettingRequest request = request_of(common);
  Setting setting = read_setting(request);
  check_one_count(setting, "sensitivity");
  const Case asked =
      searched_case(request, setting, one_schedule(common), setting.device_counts.front());
  const Outcome outcome = study(asked);
  add_notes_on_unread(common, "sensitivity", Shows::time, setting);
  for (std::string& note : setting_notes(asked, outcome)) setting.notes.push_back(std::move(note));
  ProgressLine line(!common.quiet);
  const Sensitivity found = sensitivity_of(asked, outcome, flags.threads,
                                           &catch_signals(SecondSignal::ends), shown_by(line));
  line.clear();
  if (found.effects.empty() && found.partial) {
    throw Interrupted{"no lever was looked at, nothing was written", false};
  }
  const int answer = found.partial ? exit_code_after_signal() : 0;
  if (!common.json.empty()) {
    write_file(common.json, sensitivity_json(setting, asked, outcome, found));
  }
  if (any_picture(flags.svg)) {
    Tornado tornado = sensitivity_tornado(found, most_rows);
    tornado.title = "What the step hangs on · " + outcome.schedule + " · " + setting.model.name;
    tornado.subtitle =
        fmt::format("step {} on {} devices", print(found.step), asked.device_count());
    for (const std::string& note : found.notes) tornado.footnotes.push_back("Note: " + note + ".");
    write_pictures(flags.svg, tornado_svg(tornado, svg_options(flags.svg)));
  }
  std::vector<std::string> said = read_as_notes(common.schedules);
  for (const std::string& note : notes(setting)) said.push_back(note);
  said.insert(said.end(), found.notes.begin(), found.notes.end());
  if (!flags.html.empty()) {
    write_page(flags.html, sensitivity_page(setting.model.name, outcome, found, most_rows,
                                            {heading(setting, asked), {advice_of(found)}, said}));
  }
  if (silent) return answer;
  if (!common.quiet) print_wrapped(heading(setting, asked) + "\n");
  print_wrapped(fmt::format("{}: step {}\n", outcome.schedule, print(found.step)));
  if (!found.cycle.empty()) print_wrapped(fmt::format("decided by: {}\n", found.cycle));
  show("\n{}", sensitivity_table(found, flags.full ? 0 : most_rows, text_width()));
  print_wrapped(fmt::format("→ {}\n", advice_of(found)));
  if (common.quiet && !found.partial) return answer;
  print_notes(said);
  if (!flags.html.empty()) show("wrote {}\n", flags.html);
  return answer;
}

void add_sensitivity(Flags command) {
  const auto flags = std::make_shared<SensitivityFlags>();
  add_case_flags(command, flags->common);
  add_degree_flags(command, flags->common);
  add_setting(command, flags->common, "messages");
  command.in(SettingGroup::output)
      .common()
      .flag("--full", flags->full,
            fmt::format("all rows; default: the first {} that change the step", most_rows));
  command.in(SettingGroup::search)
      .option("--threads", flags->threads, "default: all cores; changes no result")
      .range(1, 1024);
  add_svg_flag(command, flags->svg, "write the tornado as an SVG file, or - for stdout");
  add_svg_style_flags(command, flags->svg);
  add_html_flag(command, flags->html,
                "write an interactive page with the tornado and all levers, or - for stdout");
  command.footer(
      "10 % faster: what is named takes 10 % less time, on every device and in every step; of a "
      "bandwidth, its transfers do. Free: it takes none.\n"
      "Example:\n  stageline sensitivity resnet50-cpu --devices 4 --schedule 1f1b --link "
      "10GB/s,5us\n"
      "Exit code 130, 143: interrupted; what is known so far was printed.");
  command.runs([flags] { return run_sensitivity(*flags); });
}

}  // namespace

extern const Command sensitivity_command;
const Command sensitivity_command = {
    "sensitivity", "What the step hangs on, and what faster ops, devices and links are worth",
    add_sensitivity, ""};

}  // namespace stageline
