#include "tools/report/text/step_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/waterfall.hpp"

namespace stageline::report {
namespace {

constexpr int most_part_columns = 40;
constexpr int fewest_part_columns = 10;
constexpr int beside_parts = 66;

Time sum_of(const std::vector<answers::StepPart>& parts) {
  Time sum{};
  for (const answers::StepPart& part : parts) sum += part.time;
  return sum;
}

bool is_of_measured(const std::vector<answers::StepPart>& parts) {
  return !parts.empty() && parts.back().name == answers::unexplained_part;
}

std::string share_of_step(Time part, Time step) {
  return step > Time{} ? percent(to_seconds(part) / to_seconds(step)) : "";
}

}  // namespace

std::string step_parts_table(const std::vector<answers::StepPart>& parts, Time predicted,
                             int width) {
  const bool measured = is_of_measured(parts);
  const Time step = sum_of(parts);
  const Time whole = std::max(step, predicted);
  const int columns =
      width == 0 ? most_part_columns : std::min(most_part_columns, width - beside_parts);
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, Time from, Time to, bool sum) {
    rows.push_back(
        {name, sum ? print(to - from) : signed_time(to - from), share_of_step(to - from, step)});
    if (columns >= fewest_part_columns) {
      rows.back().push_back(bar_between(from, to, whole, columns));
    }
  };
  Time until{};
  for (const answers::StepPart& part : parts) {
    if (part.name == answers::unexplained_part) add("predicted", Time{}, until, true);
    add(part.name, until, until + part.time, until == Time{});
    until += part.time;
  }
  add(measured ? "measured" : "step", Time{}, until, true);
  std::vector<Column> titles{
      {"part of the step", true}, {"time"}, {measured ? "of the measured" : "of the step"}};
  if (columns >= fewest_part_columns) titles.push_back({"", true});
  return table(titles, rows, width);
}

std::string first_changes(const std::vector<answers::StepPart>& parts) {
  const Time step = sum_of(parts);
  std::vector<const answers::StepPart*> largest;
  for (const answers::StepPart& part : parts) {
    if (!part.remedy.empty() && part.time > Time{}) largest.push_back(&part);
  }
  std::stable_sort(
      largest.begin(), largest.end(),
      [](const answers::StepPart* a, const answers::StepPart* b) { return a->time > b->time; });
  if (largest.size() > 3) largest.resize(3);
  std::string text;
  for (const answers::StepPart* part : largest) {
    text += fmt::format("→ {} {} of the {}step: {}\n", part->name, share_of_step(part->time, step),
                        is_of_measured(parts) ? "measured " : "", part->remedy);
  }
  return text;
}

Json step_parts_json(const std::vector<answers::StepPart>& parts) {
  Json all = Json::array();
  for (const answers::StepPart& part : parts) {
    Json row{{"part", part.name}};
    put_time(row, "time", part.time);
    row["remedy"] = part.remedy.empty() ? Json(nullptr) : Json(part.remedy);
    all.push_back(row);
  }
  return all;
}

}  // namespace stageline::report
