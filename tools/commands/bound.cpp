// stageline bound: the cycle that limits a schedule's pace, and the distance to the lower bounds.
#include <fmt/core.h>

#include <memory>
#include <numeric>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/files.hpp"
#include "tools/base/json.hpp"
#include "tools/base/table.hpp"
#include "tools/commands/case_flags.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/planner/cuts/searched_case.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/text/heading.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/pace/bound.hpp"

namespace stageline {
namespace {

std::string above(Time step, Time bound) {
  if (bound == Time{}) return "";
  const double share =
      static_cast<double>((step - bound).count()) / static_cast<double>(bound.count());
  return step == bound ? "reached" : fmt::format("{} above", percent(share));
}

std::string in_words(const RoundPace& pace) {
  const std::string under =
      fmt::format("under {} stash{}", pace.stashes, pace.stashes == 1 ? "" : "es");
  const std::string of = fmt::format(
      "in the middle of a step {} {}", print(pace.period),
      pace.microbatches == 1 ? "a micro-batch"
                             : fmt::format("every {} micro-batches", pace.microbatches));
  if (pace.period == pace.bound) {
    return fmt::format("{}, optimal: no rounds {} are faster", of, under);
  }
  return fmt::format("{}; no rounds {} take less than {}", of, under, print(pace.bound));
}

// period · microbatches / (rounds · round) in lowest terms.
Json exact_step(const Bound& bound) {
  std::int64_t time = bound.period.time.count();
  std::int64_t times = bound.in_step;
  std::int64_t parts = bound.period.rounds * bound.round;
  const std::int64_t common = std::gcd(times, parts);
  times /= common;
  parts /= common;
  const std::int64_t rest = std::gcd(time, parts);
  if (rest > 0) {
    time /= rest;
    parts /= rest;
  }
  std::int64_t numerator = 0;
  if (__builtin_mul_overflow(time, times, &numerator)) return nullptr;  // not in 64 bits
  return {{"numerator_ps", numerator}, {"denominator", parts}};
}

Json json_of(const Setting& setting, const Case& asked, const Bound& bound) {
  Json result;
  result["schedule"] = spelled(asked.spec);
  result["model"] = setting.model.name;
  result["costs"] = name(setting.model.provenance.origin);
  result["cluster"] = asked.cluster.name;
  result["devices"] = asked.cluster.devices.size();
  result["microbatches"] = bound.microbatches;
  put_time(result, "period", bound.period.time);
  result["rounds"] = bound.period.rounds;
  result["round"] = bound.round;
  put_time(result, "step", bound.step);
  result["step_exact"] = exact_step(bound);
  result["bounds"] = Json::array();
  for (const LowerBound& one : bound.bounds) {
    Json row{{"name", one.name}};
    put_time(row, "step", one.step);
    row["why"] = one.why;
    result["bounds"].push_back(row);
  }
  result["largest_bound"] = bound.largest().name;
  result["above_largest_bound"] = bound.distance();
  if (bound.middle) {
    Json middle{{"stashes", bound.middle->stashes}};
    middle["microbatches"] = bound.middle->microbatches;
    put_time(middle, "period", bound.middle->period);
    put_time(middle, "least_period", bound.middle->bound);
    result["middle_round"] = middle;
  }
  result["cycle"] = Json::array();
  for (const Turn& turn : bound.period.cycle) {
    result["cycle"].push_back(
        {{"op", fmt::format("{}{}", turn.op.stage, symbol(turn.op.kind))},
         {"microbatch_in_round",
          counts_microbatches(turn.op.kind)
              ? Json(turn.op.microbatch % static_cast<std::uint32_t>(bound.round))
              : Json(nullptr)},
         {"device", nth(bound.devices, turn.lane.device)},
         {"lane", name(turn.lane.kind)},
         {"next_waits_for", name(turn.wait)},
         {"next_rounds_later", turn.rounds},
         {"next_after_ps", turn.time.count()}});
  }
  result["decided_by"] = bound.cycle;
  result["notes"] = notes(setting);
  return result;
}

int run_bound(const CommonFlags& flags) {
  const SettingRequest request = request_of(flags);
  Setting setting = read_setting(request);
  check_one_count(setting, "bound");
  const Case asked =
      searched_case(request, setting, one_schedule(flags), setting.device_counts.front());
  add_notes_on_unread(flags, "bound", Shows::time, setting);
  for (std::string& note : setting_notes(asked)) setting.notes.push_back(std::move(note));
  const std::optional<Bound> bound = bound_of(asked);
  const std::string reason = "no order of rounds repeats exactly, so nothing can be derived";
  if (!flags.json.empty()) {
    write_file(flags.json,
               bound ? json_of(setting, asked, *bound).text() : unanswered_json(asked, reason));
    if (flags.json == "-") return bound ? 0 : 1;
  }
  if (!flags.quiet) print_wrapped(heading(setting, asked) + "\n");
  if (!bound) {
    print_wrapped(fmt::format("{}: {}\n", spelled(asked.spec), reason));
    return 1;
  }
  print_wrapped(fmt::format(
      "{}: step {}, exactly {} every {} of {} micro-batch{}\n", spelled(asked.spec),
      print(bound->step), print(bound->period.time),
      bound->period.rounds == 1 ? "round" : fmt::format("{} rounds", bound->period.rounds),
      bound->round, bound->round == 1 ? "" : "es"));
  print_wrapped(fmt::format("decided by: {}\n\n", bound->cycle));
  std::vector<std::vector<std::string>> rows;
  for (const LowerBound& one : bound->bounds) {
    rows.push_back({one.name, print(one.step), above(bound->step, one.step), one.why});
  }
  const std::vector<Column> columns{
      {"bound", true}, {"step"}, {"schedule"}, {"why", true, 0, false, true}};
  show("{}", table(columns, rows, text_width()));
  const LowerBound& largest = bound->largest();
  print_wrapped(fmt::format(
      "→ {}\n", bound->step == largest.step
                    ? fmt::format("as fast as can be: the {} bound is reached", largest.name)
                    : fmt::format("{} the largest of them, {}", above(bound->step, largest.step),
                                  largest.name)));
  if (bound->middle) print_wrapped(in_words(*bound->middle) + "\n");
  std::vector<std::string> said = read_as_notes(flags.schedules);
  if (std::string note = rebuilt_note(asked); !note.empty()) said.push_back(std::move(note));
  for (std::string& note : notes(setting)) said.push_back(std::move(note));
  if (!flags.quiet) print_notes(said);
  return 0;
}

void add_bound(Flags command) {
  const auto flags = std::make_shared<CommonFlags>();
  add_problem_flags(command, *flags, Many::no, Many::no, Given::no);
  add_output_flags(command, *flags);
  command.footer(
      "Example:\n  stageline bound resnet50-cpu --schedule pipedream --devices 4\n"
      "Of pipelines alone: without tensor, context, expert or data parallelism.\n"
      "Exit code 1: the schedule has no rounds that repeat exactly.");
  command.runs([flags] { return run_bound(*flags); });
}

}  // namespace

extern const Command bound_command;
const Command bound_command = {
    "bound", "The exact steady pace of a schedule, the cycle that limits it, and lower bounds",
    add_bound, ""};

}  // namespace stageline
