#include "cost_models/transformers/priced_language.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

constexpr std::string_view calibrated_words = "calibrated on ";
constexpr double most_high = 1e3;  // of a range

// What is before `end`, which is passed over with it; empty: there is no such end.
std::string_view take_until(std::string_view& rest, std::string_view end) {
  const std::size_t at = rest.find(end);
  if (at == std::string_view::npos) return {};
  std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at + end.size());
  return taken;
}

// As calibrated_note() has it; empty: it is another note.
std::optional<CalibratedRuns> noted_runs(std::string_view note) {
  if (!note.starts_with(calibrated_words)) return std::nullopt;
  note.remove_prefix(calibrated_words.size());
  CalibratedRuns runs;
  runs.rows = parse_number<int>(take_until(note, " ")).value_or(0);
  take_until(note, "(");
  runs.software = take_until(note, ", ");
  runs.kind = take_until(note, ", products ");
  runs.products = take_until(note, ")");
  if (runs.rows < 1 || runs.products.empty()) return std::nullopt;
  take_until(note, " within ");
  const double low = parse_number<double>(take_until(note, " to ")).value_or(0);
  const double high = parse_number<double>(take_until(note, " ")).value_or(0);
  if (low > 0 && low <= 1 && high >= 1 && high < most_high) {
    runs.low = low;
    runs.high = high;
  }
  return runs;
}

}  // namespace

std::string calibrated_note(const CalibratedRuns& runs) {
  return fmt::format(
      "{}{} run{} ({}, {}, products {}): {}", calibrated_words, runs.rows,
      runs.rows == 1 ? "" : "s", runs.software, runs.kind, runs.products,
      runs.high > 0 ? fmt::format("80 % of others lie within {:.3f} to {:.3f} of the prediction",
                                  runs.low, runs.high)
                    : "the range of their class stays");
}

std::optional<PricedLanguage> priced_language(const Model& model) {
  const std::string& method = model.provenance.method;
  if (!method.starts_with(language_method)) return std::nullopt;
  PricedLanguage priced;
  const std::size_t format = language_method.size() + 2;  // behind ", "
  if (format < method.size()) {
    priced.format = method.substr(format, method.find(',', format) - format);
  }
  for (const std::string& note : model.provenance.notes) {
    if (std::optional<CalibratedRuns> runs = noted_runs(note)) {
      priced.calibrated.push_back(*std::move(runs));
      continue;
    }
    const std::size_t colon = note.find(':');
    if (!note.starts_with(software_note) || colon == std::string::npos) continue;
    priced.software = note.substr(software_note.size(), colon - software_note.size());
  }
  return priced;
}

}  // namespace stageline
