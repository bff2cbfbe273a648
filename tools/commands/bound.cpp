// stageline bound: what decides a schedule's pace, and how far it is from what nothing can beat.
#include <fmt/format.h>

#include <memory>

#include "sim/errors.hpp"
#include "tools/bound.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/common.hpp"
#include "tools/table.hpp"

namespace stageline {
namespace {

// "0F → 1F → 1B → 0B → 0F of 2 rounds later"; of several micro-batches a round, which in brackets.
// The middle of a long one is left out.
std::string in_words(const Period& period, int round) {
  constexpr std::size_t at_each_end = 12;
  const std::size_t length = period.cycle.size();
  const auto name = [&](Op op) {
    const bool counts_updates = op.kind == OpKind::update || op.kind == OpKind::reduce_grad;
    const std::string which =
        round == 1 || counts_updates
            ? ""
            : fmt::format("({})", op.microbatch % static_cast<std::uint32_t>(round));
    return fmt::format("{}{}{}", op.stage, symbol(op.kind), which);
  };
  std::string text;
  for (std::size_t i = 0; i < length; ++i) {
    if (length > 2 * at_each_end + 1 && i >= at_each_end && i + at_each_end < length) {
      if (i == at_each_end) text += fmt::format("… {} more … → ", length - 2 * at_each_end);
      continue;
    }
    text += name(period.cycle[i]) + " → ";
  }
  if (length == 0) return "nothing: no op waits for an earlier round";
  return text + name(period.cycle[0]) +
         (period.rounds == 1 ? " of the next round"
                             : fmt::format(" of {} rounds later", period.rounds));
}

std::string above(Time step, Time bound) {
  if (bound == Time{}) return "";
  const double share =
      static_cast<double>((step - bound).count()) / static_cast<double>(bound.count());
  return step == bound ? "reached" : fmt::format("{} above", percent(share));
}

int bound_command(const CommonFlags& flags) {
  const Setting setting = read_setting(flags);
  if (setting.device_counts.size() > 1) throw UsageError("bound takes one number of devices");
  const Case asked = make_case(flags, setting, one_schedule(flags), setting.device_counts.front());
  const std::optional<Bound> bound = bound_of(asked);
  fmt::print("{}\n", heading(setting, asked, false));
  if (!bound) {
    fmt::print("{}: no order of rounds repeats exactly, so nothing can be derived\n",
               spelled(asked.spec));
    return 1;
  }
  fmt::print("{}: step {}, exactly {} every {} of {} micro-batch{}\n", spelled(asked.spec),
             print(bound->step), print(bound->period.time),
             bound->period.rounds == 1 ? "round" : fmt::format("{} rounds", bound->period.rounds),
             bound->round, bound->round == 1 ? "" : "es");
  fmt::print("decided by: {}\n\n", in_words(bound->period, bound->round));
  std::vector<std::vector<std::string>> rows = {
      {"load", print(bound->load), above(bound->step, bound->load),
       fmt::format("{} computes so long in a step", bound->busiest)}};
  if (bound->path) {
    rows.push_back({"path", print(*bound->path), above(bound->step, *bound->path),
                    "one micro-batch forward, back, and the updates"});
  }
  fmt::print("{}", table({{"bound", true}, {"step"}, {"schedule"}, {"why", true}}, rows));
  return 0;
}

}  // namespace

void add_bound(CLI::App& app, int& exit_code) {
  CLI::App* const command = app.add_subcommand(
      "bound", "What decides a schedule's steady pace, derived, beside what nothing can beat");
  const auto flags = std::make_shared<CommonFlags>();
  add_problem_flags(*command, *flags);
  command->footer(
      "Example:\n  stageline bound resnet50-cpu --schedule pipedream --devices 4\n"
      "Exit code 1: the schedule has no rounds that repeat exactly.");
  command->callback([flags, &exit_code] { exit_code = bound_command(*flags); });
}

}  // namespace stageline
