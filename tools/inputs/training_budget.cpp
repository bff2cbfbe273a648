// Reads and checks what a training is asked to be.
#include "tools/inputs/training_budget.hpp"

#include <fmt/core.h>

#include <optional>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

constexpr double most_tokens = 1e18;
constexpr double highest_price = 1e6;  // US dollars an hour

// The factor of a suffix; 0: there is none like it.
double multiplier(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (suffix == "k" || suffix == "K") return 1e3;
  if (suffix == "M") return 1e6;
  if (suffix == "B") return 1e9;
  return suffix == "T" ? 1e12 : 0;
}

}  // namespace

double parse_tokens(std::string_view text, const std::string& what) {
  std::string_view suffix = text;
  const std::optional<double> number = take_number<double>(suffix);
  while (!suffix.empty() && suffix.front() == ' ') suffix.remove_prefix(1);
  const double tokens = number.value_or(0) * multiplier(suffix);
  if (tokens > 0 && tokens <= most_tokens) return tokens;
  throw UsageError(fmt::format(
      "{} is a number of tokens above 0 and up to 1e18, such as 15T, 300B or 1.5e12 (not \"{}\")",
      what, text));
}

double checked_price(double dollars, const std::string& what) {
  if (dollars > 0 && dollars <= highest_price) return dollars;
  throw UsageError(fmt::format(
      "{} is the price of a device in US dollars an hour, above 0 and up to {:.0f} (not {:g})",
      what, highest_price, dollars));
}

void check_budget(const TrainingBudget& budget, const Model& model, const std::string& what) {
  if (!(budget.tokens > 0)) return;
  if (model.tokens == 0) {
    throw UsageError(fmt::format(
        "{}: the trace of {} does not say how many tokens a sample has; take a language model, or "
        "add \"tokens\" to the trace",
        what, model.name));
  }
  if (model.batch == 0) {
    throw UsageError(
        fmt::format("{}: the trace of {} does not say how many samples a micro-batch has; add "
                    "\"batch\" to the trace",
                    what, model.name));
  }
}

}  // namespace stageline
