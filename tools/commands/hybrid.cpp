// stageline hybrid: pipelined training with stale weights first, then training on one device.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/answers/hybrid_run.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/deliver.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/text/hybrid.hpp"

namespace stageline::cli {
namespace {

constexpr std::int64_t usual_iterations = 64'000;  // of ResNets on CIFAR-10, arXiv 1512.03385

struct HybridFlags {
  CommonFlags common;
  std::string fraction;    // as typed; empty: not given
  std::string pipelined;   // iterations
  std::string iterations;  //
  SvgFlags svg;
};

std::int64_t count_of(const std::string& text, const std::string& flag) {
  const std::int64_t value = parse_number<std::int64_t>(text).value_or(-1);
  if (value < 0) {
    throw UsageError(fmt::format("{} must be a whole number from 0, not \"{}\"", flag, text));
  }
  return value;
}

double fraction_of(const std::string& text) {
  const double value = parse_number<double>(text).value_or(-1);
  if (!(value >= 0 && value <= 1)) {
    throw UsageError(fmt::format(
        "--pipelined-fraction must be a number from 0 (nothing pipelined) to 1, not \"{}\"", text));
  }
  return value;
}

PipelinedShare share_of(const HybridFlags& flags) {
  PipelinedShare share{0, usual_iterations};
  if (!flags.iterations.empty()) share.all = count_of(flags.iterations, "--iterations");
  if (share.all == 0) throw UsageError("--iterations must be at least 1");
  if (!flags.pipelined.empty() && !flags.fraction.empty()) {
    throw UsageError(
        "--pipelined-fraction and --pipelined-iterations say the same thing; give one of them");
  }
  if (flags.pipelined.empty()) {
    const double fraction = flags.fraction.empty() ? 0.5 : fraction_of(flags.fraction);
    share.pipelined = std::min(
        share.all,
        static_cast<std::int64_t>(std::llround(fraction * static_cast<double>(share.all))));
    return share;
  }
  share.pipelined = count_of(flags.pipelined, "--pipelined-iterations");
  if (share.pipelined > share.all) {
    throw UsageError(
        fmt::format("--pipelined-iterations {} of --iterations {}{}: there are not so many",
                    share.pipelined, share.all, flags.iterations.empty() ? " (the default)" : ""));
  }
  return share;
}

// The default: the paper's experiment on two real devices, each with the forward and backward of
// one stage.
constexpr const char* paper_schedule = "stale_weights:mapping=paired";
constexpr int paper_devices = 2;

answers::HybridQuestion question_of(const HybridFlags& flags) {
  const CommonFlags& common = flags.common;
  answers::HybridQuestion question{{}, share_of(flags)};
  if (common.given("microbatches") || common.given("steps")) {
    throw UsageError(
        "hybrid counts --iterations of one mini-batch each; leave out --microbatches and --steps");
  }
  question.setting = request_of_one(common);
  const bool as_the_paper = common.schedules.empty();
  if (as_the_paper && question.setting.devices.empty() &&
      question.setting.cluster.cluster.empty()) {
    question.setting.devices = {paper_devices};
  }
  if (as_the_paper) question.setting.schedules = parse_schedules(paper_schedule);
  question.check = [](const Setting& setting) { check_one_count(setting, "hybrid"); };
  question.notes = notes_on_unread(common, "hybrid", Shows::time);
  return question;
}

std::vector<std::string> notes_of(const HybridFlags& flags, const answers::HybridAnswer& answered) {
  std::vector<std::string> said{
      "weights are stale while pipelined and exact afterwards; what that does to the accuracy is "
      "not simulated: train it with `stageline-train`, and put the logs side by side with "
      "`stageline time-to-accuracy`"};
  const Scheduler& scheduler = *answered.asked.spec.scheduler;
  if (report::has_rebuilt_rules(scheduler)) {
    said.push_back(
        fmt::format("the rules of {} are rebuilt, not quoted from its paper", scheduler.name));
  }
  for (const std::string& note : read_as_notes(flags.common.schedules)) said.push_back(note);
  for (const std::string& note : notes(answered.setting)) said.push_back(note);
  return said;
}

int run_hybrid(const HybridFlags& flags) {
  const CommonFlags& common = flags.common;
  const Outputs outputs{common.json, flags.svg, {}, common.quiet};
  check_outputs(outputs);
  const answers::HybridAnswer answered = answer(question_of(flags));
  Forms forms;
  if (!answered.found) {
    const std::string reason = "no order of rounds repeats exactly, so no long run can be derived";
    forms.json = [&] { return report::unanswered_json(answered.asked, reason); };
    forms.text = [&] {
      return wrapped(fmt::format("{}: {}\n", spelled(answered.asked.spec), reason), text_width());
    };
    deliver({common.json}, forms);
    return 1;
  }
  forms.json = [&] { return report::hybrid_json(answered.asked, *answered.found); };
  forms.svg = [&](const report::SvgOptions& options) {
    return report::chart_svg(
        report::hybrid_chart(answered.setting, answered.asked, *answered.found), options);
  };
  forms.text = [&] {
    return report::hybrid_text(answered, text_width(), text_width_up_to(76), common.quiet);
  };
  forms.notes = [&] { return notes_of(flags, answered); };
  deliver(outputs, forms);
  return 0;
}

void add_hybrid(Flags command) {
  const auto flags = std::make_shared<HybridFlags>();
  add_case_flags(command, flags->common, Many::no, Many::no, Given::no);
  command.find("--schedule")
      .describe(
          "an asynchronous schedule, NAME[:knob=value,…]; default: stale_weights:mapping=paired");
  command.find("--devices")
      .describe("number of devices; default: all of the cluster, or 2; 4 with --schedule");
  const Flags training = command.in(SettingGroup::training).common();
  training.option("--pipelined-fraction", flags->fraction,
                  "share of the iterations that are pipelined, 0 to 1; default: 0.5");
  training.option("--pipelined-iterations", flags->pipelined, "the same as a number of iterations");
  training.option(
      "--iterations", flags->iterations,
      "iterations of the whole training, one mini-batch each; default: 64000, as for ResNets "
      "on CIFAR-10");
  add_svg_flag(command, flags->svg, "draw the curve as SVG into a file, or - for stdout");
  add_svg_style_flags(command, flags->svg);
  command.footer(
      "Example:\n  stageline hybrid resnet56-cpu --pipelined-fraction 0.5 --partition ppv:19\n"
      "Exit code 1: the schedule has no rounds that repeat exactly.");
  command.runs([flags] { return run_hybrid(*flags); });
}

}  // namespace

extern const Command hybrid_command;
const Command hybrid_command = {
    "hybrid", "Time and speed-up of training that is pipelined first and then runs on one device",
    add_hybrid, ""};

}  // namespace stageline::cli
