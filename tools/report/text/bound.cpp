#include "tools/report/text/bound.hpp"

#include <fmt/core.h>

#include <vector>

#include "schedulers/aliases.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/heading.hpp"

namespace stageline::report {
namespace {

std::string above_bound(Time step, Time bound) {
  if (bound == Time{}) return "";
  const double share =
      static_cast<double>((step - bound).count()) / static_cast<double>(bound.count());
  return step == bound ? "reached" : fmt::format("{} above", percent(share));
}

std::string middle_in_words(const RoundPace& pace) {
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

std::string bounds_table(const Bound& bound, int width) {
  std::vector<std::vector<std::string>> rows;
  for (const LowerBound& one : bound.bounds) {
    rows.push_back({one.name, print(one.step), above_bound(bound.step, one.step), one.why});
  }
  const std::vector<Column> columns{
      {"bound", true}, {"step"}, {"schedule"}, {"why", true, 0, false, true}};
  return table(columns, rows, width);
}

}  // namespace

std::string no_bound(const Case& asked) {
  return fmt::format("no order of rounds repeats exactly, so nothing can be derived{}",
                     asked.sharing == Sharing::fair ? "; --sharing fifo may have one" : "");
}

std::string bound_text(const answers::BoundAnswer& answered, int width, bool quiet) {
  const std::string schedule = title(answered.asked.spec);
  std::string lines = quiet ? "" : heading(answered.setting, answered.asked) + "\n";
  if (!answered.bound)
    return wrapped(lines + schedule + ": " + no_bound(answered.asked) + "\n", width);
  const Bound& bound = *answered.bound;
  const Period& period = bound.period;
  lines += fmt::format("{}: step {}, exactly {} every {} of {} micro-batch{}\n", schedule,
                       print(bound.step), print(period.time),
                       period.rounds == 1 ? "round" : fmt::format("{} rounds", period.rounds),
                       bound.round, bound.round == 1 ? "" : "es");
  lines += fmt::format("decided by: {}\n\n", bound.cycle);
  const LowerBound& largest = bound.largest();
  std::string end =
      bound.step == largest.step
          ? fmt::format("→ as fast as can be: the {} bound is reached\n", largest.name)
          : fmt::format("→ {} the largest of them, {}\n", above_bound(bound.step, largest.step),
                        largest.name);
  if (bound.middle) end += middle_in_words(*bound.middle) + "\n";
  return wrapped(lines, width) + bounds_table(bound, width) + wrapped(end, width);
}

}  // namespace stageline::report
