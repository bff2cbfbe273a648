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

std::string note_on_ties(std::span<const AdvisedRow> rows, std::span<const std::size_t> ties,
                         const std::string& advised) {
  const AdvisedRow& first = rows[ties.front()];
  std::vector<std::string> names;
  const AdvisedRow* held = nullptr;
  for (const std::size_t place : ties) {
    const AdvisedRow& row = rows[place];
    if (place != ties.front()) names.push_back(row.name);
    if (held == nullptr && is_held(row)) held = &row;
  }
  std::string note = fmt::format(
      "ties: {} {} at most {:.1f} % more time than {}, which is less than the simulator can tell: of "
      "pairs of published runs that are predicted to differ by less than {:g} %, {:.0f} % came out in "
      "that order",
      some_of(names), names.size() == 1 ? "takes" : "take",
      100 * std::max(0.0, rows[ties.back()].time / first.time - 1), first.name, 100 * tie_width,
      100 * in_order_of_ties);
  const AdvisedRow& best = rows[best_of_ties(rows, ties)];
  if (best.peak > Bytes{}) {
    note += fmt::format(
        "; the least time × memory of them has {}{}", best.name,
        best.name == advised ? ", which is recommended" : " (recommended without --within)");
  }
  if (held != nullptr && !is_held(first)) {
    note += fmt::format("; nearest to what was held against runs is {}", held->name);
  }
  return note;
}

double time_by_memory(const AdvisedRow& row) {
  return row.time * static_cast<double>(row.peak.count);
}

}  // namespace

bool was_held(const std::string& schedule) {
  const std::string family = family_of_schedule(schedule);
  return std::find(held_schedules.begin(), held_schedules.end(), family) != held_schedules.end();
}

std::vector<std::size_t> rows_that_tie(std::span<const AdvisedRow> rows) {
  std::vector<std::size_t> ties;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool same_run = !rows[i].run.empty() && rows[i].run == rows.front().run;
    const double width = same_run ? tie_width_of_run : tie_width;
    if (rows[i].time <= rows.front().time * (1 + width)) ties.push_back(i);
  }
  return ties;
}

std::size_t best_of_ties(std::span<const AdvisedRow> rows, std::span<const std::size_t> ties) {
  std::size_t best = ties.front();
  for (const std::size_t i : ties) {
    if (!(rows[i].peak > Bytes{})) return ties.front();
    const double here = time_by_memory(rows[i]);
    const double least = time_by_memory(rows[best]);
    if (here < least || (here == least && is_held(rows[i]) && !is_held(rows[best]))) best = i;
  }
  return best;
}

std::vector<std::string> notes_on_advice(std::span<const AdvisedRow> rows,
                                         const std::string& advised) {
  std::vector<std::string> notes;
  if (rows.empty() || !(rows.front().time > 0)) return notes;
  const std::vector<std::size_t> ties = rows_that_tie(rows);
  if (ties.size() > 1) notes.push_back(note_on_ties(rows, ties, advised));
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
