// stageline explain: why a run takes as long as it does.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/answers/explained.hpp"
#include "tools/answers/profiled.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/explained_run.hpp"
#include "tools/commands/profile_files.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/report/text/explanation.hpp"
#include "tools/report/text/profiled.hpp"

namespace stageline::cli {
namespace {

struct ExplainFlags {
  CommonFlags common;
  ExplainedRunFlags run;
  std::vector<std::string> measured;
  std::string memory_measured;
  std::vector<std::string> profiles;
};

// The step that profiles show, of a run that is said as TRACE.
void add_profiles(const std::vector<std::string>& files, answers::ExplainQuestion& question) {
  if (files.empty()) return;
  const answers::ProfiledRun found = answer(answers::ProfileQuestion{profiles_in(files)});
  std::vector<Time> steps = found.steps;
  std::sort(steps.begin(), steps.end());
  const Time step = steps[(steps.size() - 1) / 2];
  const std::string words =
      fmt::format("{} of {} profile{}", print(step), files.size(), files.size() == 1 ? "" : "s");
  question.measured.push_back({words, answers::MeasuredUnit::step, to_seconds(step)});
  question.notes.push_back(
      fmt::format("the profiles show {} step{}, and the measured one is {}; `stageline explain {}` "
                  "says what their ranks did",
                  steps.size(), steps.size() == 1 ? "" : "s",
                  steps.size() == 1 ? "that" : "the median", fmt::join(files, " ")));
}

answers::ExplainQuestion question_of(const ExplainFlags& flags) {
  const ExplainedRun run = explained_run(flags.run, flags.common);
  answers::ExplainQuestion question{case_question(run.common, "explain"), run.measured.values,
                                    run.measured.memory, run.measured.samples};
  question.notes = notes_on_unread(run.common, "explain", Shows::time);
  question.notes.insert(question.notes.end(), run.notes.begin(), run.notes.end());
  add_profiles(flags.profiles, question);
  for (const std::string& text : flags.measured) {
    question.measured.push_back(answers::parse_measured(text, "--measured"));
  }
  if (question.measured.empty()) {
    throw UsageError(
        "explain holds a run against its prediction, and needs what was measured of it: --measured "
        "5.83s, 296TFLOP/s, 851tok/s/gpu or 41%, or --log FILE, or profiles; `stageline simulate` "
        "predicts it alone");
  }
  if (!flags.memory_measured.empty()) {
    try {
      question.memory_measured = parse_bytes(flags.memory_measured);
    } catch (const std::invalid_argument& error) {
      throw UsageError(fmt::format("--memory-measured: {}", error.what()));
    }
  }
  return question;
}

// Profiles alone: what their ranks did.
int explain_profiles(const ExplainFlags& flags, const Outputs& outputs) {
  check_no_settings(flags.common);
  for (const auto& [flag, given] :
       {std::pair{"--measured", !flags.measured.empty()},
        std::pair{"--memory-measured", !flags.memory_measured.empty()},
        std::pair{"--log", !flags.run.log.empty()}, std::pair{"--model", !flags.run.model.empty()},
        std::pair{"--kind", !flags.run.kind.empty()},
        std::pair{"--set", !flags.run.additions.empty()}}) {
    if (!given) continue;
    throw UsageError(fmt::format(
        "{} is of a run that is predicted, and {} is a profile of one; name the run as TRACE before "
        "its profiles, or leave the flag out",
        flag, flags.common.trace()));
  }
  std::vector<std::string> files{flags.common.trace()};
  files.insert(files.end(), flags.profiles.begin(), flags.profiles.end());
  const answers::ProfiledRun found = answer(answers::ProfileQuestion{profiles_in(files)});
  Forms forms;
  forms.json = [&] { return report::profiled_json(found); };
  forms.text = [&] { return report::profiled_text(found, text_width()); };
  forms.notes = [&] { return found.notes; };
  forms.hint = fmt::format("stageline draw {} --svg run.svg: its picture", fmt::join(files, " "));
  deliver(outputs, forms);
  return 0;
}

int run_explain(const ExplainFlags& flags) {
  const Outputs outputs{flags.common.json, {}, {}, flags.common.quiet};
  check_outputs(outputs);
  if (is_profile(flags.common.trace())) return explain_profiles(flags, outputs);
  const answers::Explanation found = answer(question_of(flags));
  Forms forms;
  forms.json = [&] { return report::explanation_json(found); };
  forms.text = [&] { return report::explanation_text(found, {text_width(), flags.common.quiet}); };
  forms.notes = [&] { return report::explanation_notes(found); };
  deliver(outputs, forms);
  return found.fits_evidence() ? 0 : 1;
}

void add_explain(Flags command) {
  const auto flags = std::make_shared<ExplainFlags>();
  const Flags measured = command.in(SettingGroup::search).common();
  measured.option(
      "--measured", flags->measured,
      "what was measured of a step, with its unit: 5.83s, 296TFLOP/s (of a device, the "
      "model's FLOPs), 851tok/s/gpu, 54ktok/s/all, 12.3samples/s, 41% (MFU); repeatable");
  measured.option("--memory-measured", flags->memory_measured,
                  "the peak of memory of the fullest device: 74GB");
  add_explained_run_flags(command, flags->run);
  add_case_flags(command, flags->common);
  add_profile_files(command, flags->profiles,
                    "profiles of the run, one a rank: its step is measured, and without TRACE they "
                    "say what their ranks did");
  const Flag trace = command.find("TRACE").required(false);
  const Flag launch = command.find("--launch");
  launch.excludes(trace).excludes(command.find("--program"));
  add_degree_flags(command, flags->common);
  add_setting(command, flags->common, "messages");
  command.footer(
      "Example:\n  stageline explain model:llama3-70b@h100,seq=8192 --cluster 'h100x8*8' --tp 8 "
      "--pp 4 --dp 2 \\\n    --sequence-parallel --zero 1 --microbatches 256 --measured "
      "851tok/s/gpu\n  stageline explain --log train.log --kind h100\n"
      "  stageline explain rank*.json.gz\nFrom the devices' peak to the measured step, part by part; what is not "
      "explained, and its likeliest causes. Exit code 1: the measured step is outside of the range "
      "in which 80 % of published runs of its class lie.");
  command.runs([flags] { return run_explain(*flags); });
}

}  // namespace

extern const Command explain_command;
const Command explain_command = {"explain", "Why a measured run takes as long as it does",
                                 add_explain, ""};

}  // namespace stageline::cli
