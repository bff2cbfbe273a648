// stageline explain: why a run takes as long as it does.
#include <fmt/core.h>

#include <memory>
#include <stdexcept>

#include "sim/base/errors.hpp"
#include "tools/answers/explained.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/explained_run.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/report/text/explanation.hpp"

namespace stageline {
namespace {

struct ExplainFlags {
  CommonFlags common;
  ExplainedRunFlags run;
  std::vector<std::string> measured;
  std::string memory_measured;
};

ExplainQuestion question_of(const ExplainFlags& flags) {
  const ExplainedRun run = explained_run(flags.run, flags.common);
  ExplainQuestion question{case_question(run.common, "explain"), run.measured.values,
                           run.measured.memory, run.measured.samples};
  question.notes = notes_on_unread(run.common, "explain", Shows::time);
  question.notes.insert(question.notes.end(), run.notes.begin(), run.notes.end());
  for (const std::string& text : flags.measured) {
    question.measured.push_back(parse_measured(text, "--measured"));
  }
  if (question.measured.empty()) {
    throw UsageError(
        "explain holds a run against its prediction, and needs what was measured of it: --measured "
        "5.83s, 296TFLOP/s, 851tok/s/gpu or 41%, or --log FILE; `stageline simulate` predicts it "
        "alone");
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

int run_explain(const ExplainFlags& flags) {
  const Outputs outputs{flags.common.json, {}, {}, flags.common.quiet};
  check_outputs(outputs);
  const Explanation found = answer(question_of(flags));
  Forms forms;
  forms.json = [&] { return explanation_json(found); };
  forms.text = [&] { return explanation_text(found, {text_width(), flags.common.quiet}); };
  forms.notes = [&] { return explanation_notes(found); };
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
  const Flag trace = command.find("TRACE").required(false);
  const Flag launch = command.find("--launch");
  launch.excludes(trace).excludes(command.find("--program"));
  add_degree_flags(command, flags->common);
  add_setting(command, flags->common, "messages");
  command.footer(
      "Example:\n  stageline explain model:llama3-70b@h100,seq=8192 --cluster 'h100x8*8' --tp 8 "
      "--pp 4 --dp 2 \\\n    --sequence-parallel --zero 1 --microbatches 256 --measured "
      "851tok/s/gpu\n  stageline explain --log train.log --kind h100\nFrom the devices' peak to the measured step, part by part; what is not "
      "explained, and its likeliest causes. Exit code 1: the measured step is outside of the range "
      "in which 80 % of published runs of its class lie.");
  command.runs([flags] { return run_explain(*flags); });
}

}  // namespace

extern const Command explain_command;
const Command explain_command = {"explain", "Why a measured run takes as long as it does",
                                 add_explain, ""};

}  // namespace stageline
