#include "tools/report/text/optimal.hpp"

#include <fmt/core.h>

#include "tools/report/text/heading.hpp"

namespace stageline::report {
namespace {

std::string order_lines(const Optimal& found) {
  std::string text =
      fmt::format("{}: {}\n", found.for_span ? "longest device span" : "makespan without updates",
                  in_words(found));
  text += fmt::format("order: by {}\n", found.found_by);
  text += fmt::format("bound: {}, {}\n", print(found.bound), found.bound_by);
  if (found.states > 0) text += fmt::format("branch and bound: {} states\n", found.states);
  if (found.is_stopped) text += "stopped before it was proved; --time gives it longer\n";
  text += fmt::format("step: {}\n", print(found.outcome.step_time));
  return text;
}

}  // namespace

std::string optimal_text(const answers::OptimalAnswer& answered, bool quiet) {
  const std::string head = quiet ? "" : heading(answered.setting, answered.found.asked) + "\n";
  return head + order_lines(answered.found);
}

}  // namespace stageline::report
