// stageline sensitivity: what the step hangs on, and what it is worth to make it faster.
#include <fmt/core.h>

#include <memory>

#include "schedulers/aliases.hpp"
#include "tools/answers/sensitivities.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/html_flag.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/commands/watched.hpp"
#include "tools/report/page/study_pages.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/sensitivity.hpp"

namespace stageline::cli {
namespace {

constexpr std::size_t most_rows = 20;

struct SensitivityFlags {
  CommonFlags common;
  SvgFlags svg;
  std::string html;
  int threads = 0;
  bool full = false;
};

std::vector<std::string> notes_of(const SensitivityFlags& flags,
                                  const answers::SensitivityAnswer& answered) {
  std::vector<std::string> said = read_as_notes(flags.common.schedules);
  for (const std::string& note : notes(answered.setting)) said.push_back(note);
  said.insert(said.end(), answered.found.notes.begin(), answered.found.notes.end());
  return said;
}

int run_sensitivity(const SensitivityFlags& flags) {
  const CommonFlags& common = flags.common;
  Outputs outputs{common.json, flags.svg, flags.html, common.quiet};
  check_outputs(outputs);
  answers::SensitivityQuestion question{case_question(common, "sensitivity"), flags.threads};
  question.notes = notes_on_unread(common, "sensitivity", Shows::time);
  const answers::SensitivityAnswer answered = answer_watched(question, common.quiet);
  const Sensitivity& found = answered.found;
  const Setting& setting = answered.setting;
  if (found.partial) outputs.quiet = false;  // that it is one is said in any case
  Forms forms;
  forms.json = [&] {
    return report::sensitivity_json(setting, answered.asked, answered.outcome, found);
  };
  forms.svg = [&](const report::SvgOptions& options) {
    return report::sensitivity_svg(answered, most_rows, options);
  };
  forms.notes = [&] { return notes_of(flags, answered); };
  forms.page = [&] {
    return report::sensitivity_page(
        setting.model.name, answered.outcome, found, most_rows,
        {report::heading(setting, answered.asked), {advice_of(found)}, forms.notes()});
  };
  forms.text = [&] {
    return report::sensitivity_text(answered, flags.full ? 0 : most_rows, text_width(),
                                    common.quiet);
  };
  forms.wrote = {"--html"};
  deliver(outputs, forms);
  return found.partial ? exit_code_after_signal() : 0;
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

}  // namespace stageline::cli
