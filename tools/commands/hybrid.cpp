// stageline hybrid: the first iterations pipelined with stale weights, the others on one device.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/errors.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/common.hpp"
#include "tools/files.hpp"
#include "tools/hybrid.hpp"
#include "tools/table.hpp"

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

// The paper's real experiment is the default, where it is there: two devices, each with a stage's
// forward and backward.
void default_to_two_devices(CommonFlags& flags) {
  if (!flags.schedules.empty()) return;
  const auto all = schedulers();
  const bool stale = std::any_of(all.begin(), all.end(),
                                 [](const Scheduler* one) { return one->name == "stale_weights"; });
  flags.schedules = {stale ? "stale_weights:mapping=paired" : "pipedream"};
  if (flags.devices.empty() && flags.cluster.empty()) flags.devices = "2";
}

double fraction(PipelinedShare share) {
  return static_cast<double>(share.pipelined) / static_cast<double>(share.all);
}

// Hours and days are what a training takes.
std::string long_time(Time time) {
  const double seconds = to_seconds(time);
  if (seconds < 600) return print(time);
  if (seconds < 2 * 86400) return fmt::format("{:.2f} h", seconds / 3600);
  return fmt::format("{:.2f} days", seconds / 86400);
}

std::string pace(const Period& period) {
  return period.rounds == 1
             ? fmt::format("{} an iteration", print(period.time))
             : fmt::format("{} an iteration ({} every {})", print(period.time / period.rounds),
                           print(period.time), period.rounds);
}

std::string summary(const Case& asked, const HybridStudy& study) {
  const PipelinedShare share = study.asked.share;
  const Time plain_run = study.curve.front().hybrid.total;
  const Time pipelined_run = study.curve.back().hybrid.total;
  std::string text =
      fmt::format("{}: {} of {} iterations pipelined, then {} on one device\n", spelled(asked.spec),
                  share.pipelined, share.all, share.all - share.pipelined);
  text += fmt::format("total {} · {:.3f}× non-pipelined ({}) · {:.3f}× all pipelined ({})\n",
                      long_time(study.asked.hybrid.total), study.asked.hybrid.over_nonpipelined,
                      long_time(plain_run), study.asked.hybrid.over_pipelined,
                      long_time(pipelined_run));
  text += fmt::format("non-pipelined {} an iteration · pipelined {}\n", print(study.nonpipelined),
                      pace(study.period));
  if (share.pipelined > 0) {
    text += fmt::format(
        "fill: first mini-batch done after {} · drain at the switch: {} behind the last one's "
        "entry\nboth together cost {} over the steady pace\n",
        print(study.fill), print(study.drain), print(study.fill_and_drain));
  }
  return text;
}

std::string curve_text(const HybridStudy& study) {
  constexpr double width = 40;
  double most = 0;
  for (const HybridPoint& point : study.curve) {
    most = std::max(most, point.hybrid.over_nonpipelined);
  }
  std::vector<std::vector<std::string>> rows;
  for (const HybridPoint& point : study.curve) {
    const double speedup = point.hybrid.over_nonpipelined;
    std::string bar;
    for (int i = 0; i < static_cast<int>(std::lround(width * speedup / most)); ++i) bar += "█";
    rows.push_back({percent(fraction(point.share)), long_time(point.hybrid.total),
                    fmt::format("{:.3f}×", speedup), bar});
  }
  return table({{"pipelined"}, {"total"}, {"speed-up"}, {"over one device", true}}, rows);
}

using Json = nlohmann::ordered_json;

void put_time(Json& object, const std::string& key, Time time) {
  object[key + "_s"] = to_seconds(time);
  object[key + "_ps"] = time.count();
}

Json point_json(const HybridPoint& point) {
  Json object;
  object["pipelined_iterations"] = point.share.pipelined;
  object["fraction"] = fraction(point.share);
  put_time(object, "total", point.hybrid.total);
  object["speedup_over_nonpipelined"] = point.hybrid.over_nonpipelined;
  object["speedup_over_pipelined"] = point.hybrid.over_pipelined;
  return object;
}

std::string json_text(const Case& asked, const HybridStudy& study) {
  Json object;
  object["model"] = asked.model.name;
  object["costs"] = name(asked.model.provenance.origin);
  object["schedule"] = spelled(asked.spec);
  object["partition"] = asked.partition;
  object["devices"] = asked.cluster.devices.size();
  object["iterations"] = study.asked.share.all;
  put_time(object, "nonpipelined_iteration", study.nonpipelined);
  put_time(object, "period", study.period.time);
  object["period_iterations"] = study.period.rounds;
  put_time(object, "fill", study.fill);
  put_time(object, "drain", study.drain);
  put_time(object, "fill_and_drain", study.fill_and_drain);
  object["hybrid"] = point_json(study.asked);
  for (const HybridPoint& point : study.curve) object["curve"].push_back(point_json(point));
  return object.dump(2) + "\n";
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
  default_to_two_devices(flags.common);
  const Setting setting = read_setting(flags.common);
  if (setting.device_counts.size() > 1) throw UsageError("hybrid takes one number of devices");
  const Case asked =
      make_case(flags.common, setting, one_schedule(flags.common), setting.device_counts.front());
  const std::optional<HybridStudy> study = hybrid_study(asked, share, 10);
  if (!study) {
    fmt::print("{}: no order of rounds repeats exactly, so no long run can be derived\n",
               spelled(asked.spec));
    return 1;
  }
  if (!flags.common.json.empty()) write_file(flags.common.json, json_text(asked, *study));
  if (flags.common.json == "-") return 0;
  if (!flags.common.quiet) fmt::print("{}\n", heading(setting, asked, true));
  fmt::print("{}\n{}", summary(asked, *study), curve_text(*study));
  if (flags.common.quiet) return 0;
  fmt::print(
      "\nnote: weights are stale while pipelined and exact afterwards; what that does to the "
      "accuracy is not simulated\n");
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
      ->description("an asynchronous one, NAME[:knob=value,…]; default the paper's on two devices");
  command->add_option("--pipelined-fraction", flags->fraction,
                      "of the iterations, from 0 to 1; default 0.5");
  command->add_option("--pipelined-iterations", flags->pipelined, "the same as a number");
  command->add_option("--iterations", flags->iterations,
                      "of the whole training, one mini-batch each; default 64000, as for ResNets "
                      "on CIFAR-10");
  command->footer(
      "Example:\n  stageline hybrid resnet56-cpu --pipelined-fraction 0.5 --partition ppv:19\n"
      "Exit code 1: the schedule has no rounds that repeat exactly.");
  command->callback([flags, &exit_code] { exit_code = hybrid_command(*flags); });
}

}  // namespace stageline
