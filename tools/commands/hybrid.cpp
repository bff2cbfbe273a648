// stageline hybrid: the first iterations pipelined with stale weights, the others on one device.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/common.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/text/hybrid.hpp"
#include "tools/study/hybrid.hpp"

namespace stageline {
namespace {

constexpr std::int64_t usual_iterations = 64'000;  // of ResNets on CIFAR-10, arXiv 1512.03385

struct HybridFlags {
  CommonFlags common;
  std::string fraction;    // as typed; empty: not given
  std::string pipelined;   // iterations
  std::string iterations;  //
  std::string svg;
};

std::int64_t count_of(const std::string& text, const std::string& flag) {
  std::int64_t value = 0;
  std::size_t used = 0;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || value < 0) {
    throw UsageError(fmt::format("{} must be a whole number from 0, not \"{}\"", flag, text));
  }
  return value;
}

double fraction_of(const std::string& text) {
  double value = -1;
  std::size_t used = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || !(value >= 0 && value <= 1)) {
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

// The paper's experiment on real devices: two of them, each with a stage's forward and backward.
void default_to_the_papers(CommonFlags& flags) {
  if (!flags.schedules.empty()) return;
  flags.schedules = {"stale_weights:mapping=paired"};
  if (flags.devices.empty() && flags.cluster.empty()) flags.devices = "2";
}

// As other commands begin, but a step plays no role here.
std::string iterations_heading(const Setting& setting, const Case& asked, PipelinedShare share) {
  const std::string usual = heading(setting, asked, false);
  const std::size_t devices = asked.cluster.devices.size();
  const Model& model = setting.model;
  const std::string size =
      model.batch > 0
          ? fmt::format(" of {} {}{}", model.batch, model.sample.empty() ? "sample" : model.sample,
                        model.batch == 1 ? "" : "s")
          : "";
  return usual.substr(0, usual.find('\n') + 1) +
         fmt::format("{} device{}{} · {} iterations{} · cut: {}\n", devices,
                     devices == 1 ? "" : "s",
                     setting.cluster.fixed && !asked.cluster.name.empty()
                         ? fmt::format(" of {}", asked.cluster.name)
                         : "",
                     share.all, size, asked.partition);
}

int hybrid_command(HybridFlags flags) {
  const PipelinedShare share = share_of(flags);
  if (!flags.common.program.empty()) {
    throw UsageError("hybrid needs runs of any length; take a --schedule instead of a --program");
  }
  if (flags.common.microbatches > 0 || flags.common.steps > 0) {
    throw UsageError(
        "hybrid counts --iterations of one mini-batch each; leave out --microbatches and --steps");
  }
  default_to_the_papers(flags.common);
  const Setting setting = read_setting(flags.common);
  if (setting.device_counts.size() > 1) throw UsageError("hybrid takes one number of devices");
  const Case asked =
      make_case(flags.common, setting, one_schedule(flags.common), setting.device_counts.front());
  const std::optional<HybridStudy> study = hybrid_study(asked, share, 20);
  if (!study) {
    const std::string reason = "no order of rounds repeats exactly, so no long run can be derived";
    if (!flags.common.json.empty()) {
      write_file(flags.common.json, unanswered_json(asked, reason));
    }
    if (flags.common.json != "-") fmt::print("{}: {}\n", spelled(asked.spec), reason);
    return 1;
  }
  if (!flags.common.json.empty()) write_file(flags.common.json, hybrid_json(asked, *study));
  const Chart chart = hybrid_chart(setting, asked, *study);
  if (!flags.svg.empty()) write_file(flags.svg, chart_svg(chart));
  if (flags.common.json == "-" || flags.svg == "-") return 0;
  if (!flags.common.quiet) {
    fmt::print("{}\n", iterations_heading(setting, asked, share));
  }
  Chart curve = chart;  // what stands above and below it is said anyway
  curve.title = curve.subtitle = "";
  curve.footnotes.clear();
  fmt::print("{}\n{}\n{}", hybrid_summary(asked, *study), hybrid_table(*study),
             chart_text(curve, 76, 12));
  if (flags.common.quiet) return 0;
  fmt::print(
      "\nnote: weights are stale while pipelined and exact afterwards; what that does to the "
      "accuracy is not simulated: train it with `stageline-train`, and put the logs side by side "
      "with `stageline time-to-accuracy`\n");
  if (has_rebuilt_rules(*asked.spec.scheduler)) {
    fmt::print("note: the rules of {} are rebuilt, not quoted from its paper\n",
               asked.spec.scheduler->name);
  }
  for (const std::string& note : notes(setting)) fmt::print("note: {}\n", note);
  return 0;
}

}  // namespace

void add_hybrid(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "hybrid", "Training that is pipelined at first and not afterwards: time and speed-up");
  const auto flags = std::make_shared<HybridFlags>();
  add_case_flags(*command, flags->common);
  command->get_option("--schedule")
      ->description(
          "an asynchronous one, NAME[:knob=value,…]; default stale_weights:mapping=paired, on 2 "
          "devices");
  command->add_option("--pipelined-fraction", flags->fraction,
                      "of the iterations, from 0 to 1; default 0.5");
  command->add_option("--pipelined-iterations", flags->pipelined, "the same as a number");
  command->add_option("--iterations", flags->iterations,
                      "of the whole training, one mini-batch each; default 64000, as for ResNets "
                      "on CIFAR-10");
  command->add_option("--svg", flags->svg, "draw the curve into a file, or - for stdout");
  command->footer(
      "Example:\n  stageline hybrid resnet56-cpu --pipelined-fraction 0.5 --partition ppv:19\n"
      "Exit code 1: the schedule has no rounds that repeat exactly.");
  command->callback([flags, &exit_code] { exit_code = hybrid_command(*flags); });
}

}  // namespace stageline
