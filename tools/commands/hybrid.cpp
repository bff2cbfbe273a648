// stageline hybrid: pipelined training with stale weights first, then training on one device.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/svg_flags.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/report/text/hybrid.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/hybrid.hpp"

namespace stageline {
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

// The usual heading with iterations in the place of steps.
std::string iterations_heading(const Setting& setting, const Case& asked, PipelinedShare share) {
  const std::size_t devices = asked.cluster.devices.size();
  return model_line(setting) +
         fmt::format("{} device{}{} · {} iterations{} · cut: {}\n", devices,
                     devices == 1 ? "" : "s", of_cluster(setting, asked), share.all,
                     of_samples(setting.model.batch, setting.model.sample), asked.partition);
}

int run_hybrid(const HybridFlags& flags) {
  check_pictures(flags.svg);
  const bool silent = to_stdout(flags.common.json, flags.svg);
  const PipelinedShare share = share_of(flags);
  if (flags.common.given("microbatches") || flags.common.given("steps")) {
    throw UsageError(
        "hybrid counts --iterations of one mini-batch each; leave out --microbatches and --steps");
  }
  SettingRequest request = request_of(flags.common);
  const bool as_the_paper = flags.common.schedules.empty();
  if (as_the_paper && request.devices.empty() && request.cluster.cluster.empty()) {
    request.devices = {paper_devices};
  }
  Setting setting = read_setting(request);
  check_one_count(setting, "hybrid");
  const ScheduleSpec schedule =
      as_the_paper ? parse_schedules(paper_schedule).front() : one_schedule(flags.common);
  const Case asked = searched_case(request, setting, schedule, setting.device_counts.front());
  add_notes_on_unread(flags.common, "hybrid", Shows::time, setting);
  for (std::string& note : setting_notes(asked)) setting.notes.push_back(std::move(note));
  const std::optional<HybridStudy> study = hybrid_study(asked, share, 20);
  if (!study) {
    const std::string reason = "no order of rounds repeats exactly, so no long run can be derived";
    if (!flags.common.json.empty()) {
      write_file(flags.common.json, unanswered_json(asked, reason));
    }
    if (flags.common.json != "-") {
      print_wrapped(fmt::format("{}: {}\n", spelled(asked.spec), reason));
    }
    return 1;
  }
  if (!flags.common.json.empty()) write_file(flags.common.json, hybrid_json(asked, *study));
  const Chart chart = hybrid_chart(setting, asked, *study);
  if (any_picture(flags.svg)) write_pictures(flags.svg, chart_svg(chart, svg_options(flags.svg)));
  if (silent) return 0;
  if (!flags.common.quiet) {
    print_wrapped(iterations_heading(setting, asked, share) + "\n");
  }
  Chart curve = chart;  // what stands above and below it is said anyway
  curve.title = curve.subtitle = "";
  curve.footnotes.clear();
  print_wrapped(hybrid_summary(asked, *study));
  show("\n{}\n{}", hybrid_table(*study, text_width()), chart_text(curve, text_width_up_to(76), 12));
  if (flags.common.quiet) return 0;
  print_wrapped(
      "\nnote: weights are stale while pipelined and exact afterwards; what that does to the "
      "accuracy is not simulated: train it with `stageline-train`, and put the logs side by side "
      "with `stageline time-to-accuracy`\n");
  if (has_rebuilt_rules(*asked.spec.scheduler)) {
    print_wrapped(fmt::format("note: the rules of {} are rebuilt, not quoted from its paper\n",
                              asked.spec.scheduler->name));
  }
  for (const std::string& note : read_as_notes(flags.common.schedules)) {
    print_wrapped("note: " + note + "\n");
  }
  for (const std::string& note : notes(setting)) print_wrapped("note: " + note + "\n");
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

}  // namespace stageline
