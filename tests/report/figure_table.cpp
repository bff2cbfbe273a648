// Do text, JSON and a sweep say the same of a figure?
#include "tools/report/figure_table.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/report/json/outcome.hpp"
#include "tools/report/text/comparison.hpp"
#include "tools/sweep/rows.hpp"
#include "tools/sweep/table.hpp"

namespace stageline::figure_table_tests {
namespace {

using Json = nlohmann::json;

// The rows of one scenario in each output.
struct Outputs {
  Json json;
  report::Sheet sheet;
  std::vector<SweepColumn> sweep;
};

Outputs outputs_of(const SweepSpec& spec, std::int64_t number, const TrainingBudget& budget) {
  const SweepQuestion question = question_of(words_of(spec, axis_values(spec, number)));
  const SettingRequest& request = question.request.setting;
  const Setting setting = read_setting(request);
  const std::vector<Row> rows = compare(request, setting, question.request.setting.schedules, 1, {},
                                        Keep::facts, nullptr, budget);
  REQUIRE(rows.front().outcome);
  report::ComparisonView view;
  view.by = {RankBy::Measure::energy, std::nullopt};
  const SweepRow row = run_scenarios(spec, number, 1).front();
  return {Json::parse(report::rows_json(setting, rows)).front(),
          report::comparison_sheet(rows, {0}, view),
          read_table(spec, csv_header(spec) + csv_line(spec, row), "the row")};
}

// Null where the row has none: a time as its picoseconds.
Json json_value(const report::FigureRow& figure, const Json& row) {
  const std::string key =
      std::string(figure.key) + (figure.kind == report::FigureKind::time ? "_ps" : "");
  return row.contains(key) ? row.at(key) : Json();
}

const report::SheetCell* cell_in(const Outputs& outputs, const report::FigureRow& figure) {
  const std::vector<report::SheetColumn>& columns = outputs.sheet.columns;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].title != figure.column.title) continue;
    CHECK(columns[i].definition == figure.definition);
    return &outputs.sheet.rows.front()[i];
  }
  return nullptr;
}

// Null where it is empty.
Json sweep_value(const Outputs& outputs, const report::FigureRow& figure) {
  for (const SweepColumn& column : outputs.sweep) {
    if (column.name != figure.sweep) continue;
    if (column.there.front() == 0) return nullptr;
    return column.form == CellForm::whole  ? Json(column.whole.front())
           : column.form == CellForm::real ? Json(column.real.front())
                                           : Json(column.text.front());
  }
  FAIL("the sweep has no column ", figure.sweep);
  return nullptr;
}

void check_cell(const report::FigureRow& figure, const report::SheetCell& cell, const Json& json) {
  CAPTURE(cell.text);
  if (json.is_string()) {
    const std::string text = figure.key == std::string("fits") && json == "no" ? "NO" : json;
    CHECK(cell.text == text);
    return;
  }
  REQUIRE(cell.figure.value);
  CHECK(*cell.figure.value == json.get<double>());
  if (figure.kind == report::FigureKind::share) {
    CHECK(std::abs(std::stod(cell.text) - 100 * json.get<double>()) <= 0.0501);
  }
}

// How many pairs of outputs were compared.
int check_outputs(const Outputs& outputs) {
  int compared = 0;
  for (const report::FigureRow& figure : report::all_figures()) {
    const bool keyed = *figure.key != '\0';
    const bool swept = *figure.sweep != '\0';
    CAPTURE(figure.key);
    CAPTURE(figure.column.title);
    const Json json = keyed ? json_value(figure, outputs.json) : Json();
    const report::SheetCell* const cell = cell_in(outputs, figure);
    if (keyed && cell != nullptr && !json.is_null()) {
      check_cell(figure, *cell, json);
      ++compared;
    }
    if (keyed && swept) {
      CHECK(sweep_value(outputs, figure) == json);
      ++compared;
    }
  }
  return compared;
}

double most_of(const Json& list, const Json::json_pointer& key) {
  double most = 0;
  for (const Json& one : list) most = std::max(most, one.at(key).get<double>());
  return most;
}

// Figures without a key follow from the lists of devices and stages.
void check_figures_of_lists(const Outputs& outputs) {
  const Json& devices = outputs.json.at("per_device");
  const Json& stages = outputs.json.at("per_stage");
  const auto column = [&](const std::string& title) {
    for (const report::FigureRow* const one : report::figures_of_columns()) {
      if (one->column.title == title) return *cell_in(outputs, *one);
    }
    FAIL("there is no column ", title);
    return report::SheetCell{};
  };
  const double peak = most_of(devices, Json::json_pointer("/peak_bytes"));
  CHECK(*column("peak memory").figure.value == peak);
  for (const report::FigureRow& figure : report::all_figures()) {
    if (figure.sweep == std::string("peak_bytes")) CHECK(sweep_value(outputs, figure) == peak);
  }
  const auto on = std::find_if(devices.begin(), devices.end(),
                               [&](const Json& one) { return one.at("peak_bytes") == peak; });
  CHECK(column("on").text == on->at("name").get<std::string>());
  CHECK(*column("versions").figure.value ==
        most_of(stages, Json::json_pointer("/weight_versions")));
  CHECK(*column("staleness").figure.value ==
        most_of(stages, Json::json_pointer("/staleness_updates/max")));
}

int check_sweep(const std::string& json, const TrainingBudget& budget = {}) {
  const SweepSpec spec = read_sweep(json);
  int compared = 0;
  for (std::int64_t number = 0; number < spec.scenarios(); ++number) {
    CAPTURE(number);
    const Outputs outputs = outputs_of(spec, number, budget);
    compared += check_outputs(outputs);
    check_figures_of_lists(outputs);
  }
  return compared;
}

}  // namespace

TEST_CASE("figures: every output says the same of a row") {
  const int compared = check_sweep(R"({"format": "stageline-sweep 1",
    "fixed": {"trace": "uniform:layers=8,forward=1ms,weights=1MB,output=1MB,stash=2MB,batch=4",
              "devices": 4, "microbatches": 8, "link": "2GB/s,20us", "memory": "60MB"},
    "axes": {"schedule": ["1f1b", "zb_h1", "gpipe:recompute=always", "pipedream", "list"]}})");
  CHECK(compared >= 5 * 10);
}

TEST_CASE("figures: every output says the same of a language model with degrees") {
  const int compared = check_sweep(R"({"format": "stageline-sweep 1",
    "fixed": {"trace": "model:llama3-8b@h100", "cluster": "h100x8", "tp": 2, "pp": 4,
              "microbatches": 8, "precision": "bf16"},
    "axes": {"schedule": ["1f1b", "interleaved_1f1b", "zb_h1"]}})",
                                   {1e12, 2.5});
  CHECK(compared >= 3 * 16);
}

TEST_CASE("figures: a number of devices counts those of all degrees") {
  const SweepSpec spec = read_sweep(R"({"format": "stageline-sweep 1",
    "fixed": {"trace": "model:llama3-8b@h100", "cluster": "h100x8", "tp": 2, "pp": 4,
              "microbatches": 8, "schedule": "1f1b"}, "axes": {"precision": ["bf16"]}})");
  const Outputs outputs = outputs_of(spec, 0, {});
  CHECK(outputs.json.at("devices") == 8);
  CHECK(outputs.json.at("per_device").size() == 4);
}

TEST_CASE("figures: a name stands for one figure in each output") {
  std::set<std::string> keys;
  std::set<std::string> titles;
  std::set<std::string> properties;
  std::set<int> places;
  for (const report::FigureRow& figure : report::all_figures()) {
    CAPTURE(figure.definition);
    CHECK(*figure.definition != '\0');
    const bool has_value = figure.value != nullptr;
    CHECK(has_value);
    CHECK((*figure.sweep != '\0') == (figure.of_verdict != nullptr));
    CHECK((figure.kind == report::FigureKind::number || *figure.unit == '\0'));
    CHECK((*figure.key == '\0' || keys.insert(figure.key).second));
    CHECK((*figure.property == '\0' || properties.insert(figure.property).second));
    if (*figure.column.title == '\0') continue;
    CHECK(titles.insert(figure.column.title).second);
    CHECK(places.insert(figure.column.place).second);
  }
  CHECK(&report::figure_of_property("speedup") != &report::figure_of_property("bubble"));
}

}  // namespace stageline::figure_table_tests
