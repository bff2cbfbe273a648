#include "tools/study/evidence/ties.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace stageline {
namespace {

constexpr std::size_t most_named = 4;

// Published runs were held against the simulator under these (tools/published/README.md),
// 2026-11-30.
constexpr std::array<std::string_view, 3> held_schedules{"1f1b", "interleaved_1f1b", "zb_auto"};

std::string family_of_schedule(const std::string& schedule) {
  return schedule.substr(0, schedule.find_first_of(": ("));
}

bool is_held(const AdvisedRow& row) { return was_held(row.schedule); }

// "a, b and 3 more"
std::string some_of(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), most_named);
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

std::string note_on_ties(std::span<const AdvisedRow> ties, const std::string& advised) {
  std::vector<std::string> names;
  const AdvisedRow* least = ties.data();
  const AdvisedRow* held = nullptr;
  for (const AdvisedRow& row : ties) {
    if (row.name != ties.front().name) names.push_back(row.name);
    if (row.peak > Bytes{} && row.peak < least->peak) least = &row;
    if (held == nullptr && is_held(row)) held = &row;
  }
  std::string note = fmt::format(
      "ties: {} {} at most {:.1f} % more time than {}, which is less than the simulator can tell: half "
      "of the pairs of published runs of one model on one machine are off by more than {:.1f} %",
      some_of(names), names.size() == 1 ? "takes" : "take",
      100 * std::max(0.0, ties.back().time / ties.front().time - 1), ties.front().name,
      100 * pair_spread);
  if (least->peak > Bytes{}) {
    note += fmt::format("; the least memory of them has {}, {}{}", least->name, print(least->peak),
                        least->name == advised
                            ? ", which is recommended"
                            : fmt::format(" (--within {:.1f}% recommends it)", 100 * pair_spread));
  }
  if (held != nullptr && !is_held(ties.front())) {
    note += fmt::format("; nearest to what was held against runs is {}", held->name);
  }
  return note;
}

}  // namespace

bool was_held(const std::string& schedule) {
  const std::string family = family_of_schedule(schedule);
  return std::find(held_schedules.begin(), held_schedules.end(), family) != held_schedules.end();
}

std::size_t rows_that_tie(std::span<const AdvisedRow> rows) {
  if (rows.empty()) return 0;
  std::size_t ties = 1;
  while (ties < rows.size() && rows[ties].time <= rows.front().time * (1 + pair_spread)) ++ties;
  return ties;
}

std::vector<std::string> notes_on_advice(std::span<const AdvisedRow> rows,
                                         const std::string& advised) {
  std::vector<std::string> notes;
  if (rows.empty() || !(rows.front().time > 0)) return notes;
  const std::size_t ties = rows_that_tie(rows);
  if (ties > 1) notes.push_back(note_on_ties(rows.first(ties), advised));
  std::vector<std::string> never;
  for (const AdvisedRow& row : rows) {
    const std::string family = family_of_schedule(row.schedule);
    if (is_held(row) || std::find(never.begin(), never.end(), family) != never.end()) continue;
    never.push_back(family);
  }
  if (!never.empty()) {
    notes.push_back(fmt::format(
        "no published run was held against the simulator under {}: the ranges are those of {}",
        some_of(never), fmt::join(held_schedules, ", ")));
  }
  return notes;
}

}  // namespace stageline
