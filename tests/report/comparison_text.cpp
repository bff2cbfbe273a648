// Does the table of a comparison fit the terminal, and show what was asked for?
#include "tools/report/text/comparison.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "sim/base/errors.hpp"
#include "tests/text.hpp"
#include "tools/base/text.hpp"

namespace stageline::comparison_text_tests {
namespace {

using test::contains;

struct Compared {
  std::vector<Row> rows;
  RankedRows order;
};

Compared compared(const std::string& schedules, std::vector<int> devices,
                  std::optional<Bytes> memory = std::nullopt) {
  SettingRequest request;
  request.trace = "uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms";
  request.devices = std::move(devices);
  request.microbatches = 8;
  request.cluster.memory = memory;
  const Setting setting = read_setting(request);
  Compared all{compare(request, setting, parse_schedules(schedules)), {}};
  all.order = ranked(all.rows, Synchrony::synchronous);
  return all;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The titles of a table, which are two blanks apart.
std::vector<std::string> titles_of(const std::string& text) {
  std::vector<std::string> titles;
  std::string line = lines_of(text).at(0);
  while (!line.empty()) {
    const std::size_t end = std::min(line.find("  "), line.size());
    titles.push_back(line.substr(0, end));
    line.erase(0, std::min(line.find_first_not_of(' ', end), line.size()));
  }
  return titles;
}

bool has(const std::vector<std::string>& titles, const std::string& title) {
  return std::find(titles.begin(), titles.end(), title) != titles.end();
}

std::string shown(const Compared& all, const report::ComparisonView& view) {
  return report::comparison_table(all.rows, all.order, view);
}

// Those that a model without tokens has no values for.
// Of scenarios, of what ranks the rows, or of degrees.
bool is_asked_for(const std::string& title) {
  for (const char* const one : {"p95", "best", "cost", "energy", "blocking"}) {
    if (title == one) return true;
  }
  return false;
}

bool is_of_language_models(const std::string& title) {
  return has({"range", "tokens/s", "tokens/s/GPU", "TFLOP/s/GPU", "MFU", "HFU", "GPU-hours",
              "activations"},
             title);
}

const std::string many = "1f1b,gpipe,gpipe:recompute=always,naive,interleaved_1f1b,zb_h1,list";

TEST_CASE("without a width every column is shown") {
  const std::string text = shown(compared(many, {4}), {});
  for (const std::string& name : report::comparison_columns()) {
    CAPTURE(name);
    CHECK(has(titles_of(text), name) == (name != "devices" && name != "cut" &&
                                         !is_of_language_models(name) && !is_asked_for(name)));
  }
  CHECK_FALSE(contains(text, "…"));
  CHECK(lines_of(text).size() == 2 + 7);
}

TEST_CASE("at any width lines fit, and columns are left out in the documented order") {
  const Compared all = compared(many, {4});
  std::vector<std::string> order = report::comparison_columns_left_out();
  CHECK(order.front() == "on");
  CHECK(order.back() == "MFU");
  order.erase(std::remove_if(order.begin(), order.end(), is_of_language_models), order.end());
  order.erase(std::remove_if(order.begin(), order.end(), is_asked_for), order.end());
  std::size_t fewer = 0;
  for (const int width : {160, 120, 100, 80, 60, 40}) {
    const std::string text = shown(all, {width});
    for (const std::string& line : lines_of(text)) CHECK(columns_of(line) <= width);
    const std::vector<std::string> titles = titles_of(text);
    std::size_t left_out = 0;
    while (left_out < order.size() && !has(titles, order[left_out])) ++left_out;
    for (std::size_t i = left_out; i < order.size(); ++i) CHECK(has(titles, order[i]));
    for (const char* const always : {"schedule", "step", "fits"}) CHECK(contains(text, always));
    CHECK(contains(text, "--columns") == (left_out > 0));
    CHECK(left_out >= fewer);
    fewer = left_out;
    for (const char* const name : {"naive", "gpipe:recompute=always"}) CHECK(contains(text, name));
  }
  CHECK(fewer >= 4);
  CHECK(contains(shown(all, {80}),
                 "… without throughput, bubble, recompute, exposed comm, on, versions:"));
}

TEST_CASE("columns that were asked for are shown at any width") {
  const Compared all = compared(many, {2, 4});
  report::ComparisonView view{0, 0, true, report::parse_comparison_columns("all")};
  for (const int width : {40, 60, 80, 120, 0}) {
    view.width = width;
    const std::string text = shown(all, view);
    for (const std::string& name : report::comparison_columns()) {
      CHECK(has(titles_of(text), "cut") == view.cuts);
      if (name != "cut") CHECK(contains(text, name));
    }
    if (width == 0) continue;
    for (const std::string& line : lines_of(text)) CHECK(columns_of(line) <= width);
  }
  view.width = 0;
  view.cuts = true;
  CHECK(has(titles_of(shown(all, view)), "cut"));
  view = {0, 0, false, report::parse_comparison_columns("FITS,exposed-comm")};
  CHECK(lines_of(shown(all, view)).at(0) == "schedule                fits     exposed comm");
}

TEST_CASE("the best rows come first, and the rest is counted") {
  const Compared all = compared(many, {4}, parse_bytes("30MB"));
  const std::string text = shown(all, {0, 3});
  CHECK(lines_of(text).size() == 2 + 3 + 1);
  CHECK(lines_of(text).back() == "… 4 more, 1 of which does not fit: --full");
  CHECK(lines_of(shown(all, {0, 6})).back() == "… 1 more, which does not fit: --full");
  CHECK_FALSE(contains(shown(all, {0, 7}), "more"));
  CHECK_FALSE(contains(shown(all, {0, 0}), "more"));
  const std::vector<std::string> whole = lines_of(shown(all, {}));
  for (std::size_t i = 2; i < 5; ++i) {
    CHECK(lines_of(text).at(i).substr(0, 8) == whole.at(i).substr(0, 8));
  }
}

TEST_CASE("a list of columns is checked") {
  using Titles = std::vector<std::string>;
  CHECK(report::parse_comparison_columns("step, Peak-Memory,speed_up") ==
        Titles{"schedule", "step", "peak memory", "speed-up"});
  CHECK(report::parse_comparison_columns("fits,schedule,fits") == Titles{"schedule", "fits"});
  CHECK(report::parse_comparison_columns("all").size() + 2 == report::comparison_columns().size());
  const auto error = [](const std::string& list) {
    return test::complaint<UsageError>([&] { (void)report::parse_comparison_columns(list); });
  };
  CHECK(contains(error("step,bubbel"),
                 "--columns: there is no column \"bubbel\" (did you mean \"bubble\"?); they are "
                 "schedule, cut, devices, step"));
  CHECK(contains(error("step,,fits"), "there is no column \"\""));
  CHECK(contains(error(" "), "names no column"));
}

}  // namespace
TEST_CASE(
    "a quantile and the share of the best are shown with scenarios, under the name asked for") {
  Compared all = compared("gpipe,zb_h1", {4});
  ScenarioRequest scenarios;
  scenarios.perturbation.jitter = parse_jitter("5%", "--jitter");
  scenarios.scenarios = 64;
  const std::vector<Uncertainty> uncertain = uncertainty_of(all.rows, scenarios);
  report::ComparisonView view;
  view.uncertain = &uncertain;
  CHECK(has(titles_of(shown(all, view)), "p95"));
  CHECK(has(titles_of(shown(all, view)), "best"));
  view.by = {RankBy::Measure::quantile, 0.99};
  CHECK(has(titles_of(shown(all, view)), "p99"));
  CHECK(!has(titles_of(shown(all, view)), "p95"));
  view.by = {RankBy::Measure::cost, std::nullopt};
  for (Row& row : all.rows) row.figures = budget_figures(row.asked, *row.outcome, {0, 2});
  CHECK(has(titles_of(shown(all, view)), "cost"));
  CHECK(contains(shown(all, view), "$0.000"));
}

}  // namespace stageline::comparison_text_tests
