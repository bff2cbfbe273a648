// Does a plan say what it found, how to reproduce it, and how far it is from the best?
#include "tools/report/text/plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/errors.hpp"
#include "tests/text.hpp"
#include "tools/base/text.hpp"
#include "tools/report/json/plan.hpp"

namespace stageline::plan_tests {
namespace {

using test::contains;

using std::chrono::milliseconds;
constexpr std::int64_t gigabyte = 1'000'000'000;

Setting setting() {
  SettingRequest request;
  request.trace = "uniform:layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms";
  request.devices = {4};
  return read_setting(request);
}

planner::PlanPoint point(const std::string& schedule, int devices, Time step, std::int64_t peak) {
  planner::PlanPoint one;
  one.candidate.spec = parse_schedules(schedule).front();
  one.candidate.shape.degrees.pipeline = devices;
  one.candidate.shape.microbatches = 16;
  one.verdict.step = step;
  one.verdict.throughput = 16 / to_seconds(step);
  one.verdict.fit = Fit::yes;
  one.verdict.peak = {Bytes{peak}, Bytes{peak / 2}};
  one.verdict.need = MemoryNeed{Bytes{peak}, Bytes{80 * gigabyte}, "gpu0"};
  one.flags = "--schedule " + schedule + " --devices " + std::to_string(devices);
  return one;
}

// 3 points on 8 devices and one on 4; the second is recommended.
planner::Plan small_plan() {
  planner::Plan plan;
  plan.front = {point("zb_h2", 8, milliseconds(100), 60 * gigabyte),
                point("zb_h1", 8, milliseconds(101), 40 * gigabyte),
                point("1f1b", 8, milliseconds(120), 30 * gigabyte),
                point("1f1b", 4, milliseconds(200), 50 * gigabyte)};
  plan.recommended = 1;
  plan.sentence = "zb_h1: 101.0 ms, 40.00 GB";
  plan.counts.judged = 578;
  plan.counts.pruned = 11902;
  plan.bound = milliseconds(95);
  return plan;
}

planner::PlanRequest request_of_plan() {
  planner::PlanRequest request;
  request.samples = 16;
  return request;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

nlohmann::json parsed(const planner::Plan& plan,
                      const planner::PlanRequest& request = request_of_plan()) {
  return nlohmann::json::parse(report::plan_json(setting(), request, plan, {}, {"a note"}));
}

TEST_CASE("the table numbers the front and marks the recommended row") {
  const std::vector<std::string> lines =
      lines_of(report::plan_table(setting().model, small_plan(), {}));
  REQUIRE(lines.size() == 2 + 4);
  CHECK(lines[2].starts_with("  1  zb_h2"));
  CHECK(lines[3].starts_with("→ 2  zb_h1"));
  CHECK(contains(lines[3], "101.0 ms"));
  CHECK(contains(lines[3], "+1.0 %"));
  CHECK(contains(lines[0], "peak of 80.00 GB"));
  CHECK(lines[3].ends_with("40.00 GB"));
}

TEST_CASE("where the memory differs from point to point each has its own") {
  planner::Plan plan = small_plan();
  plan.front[0].verdict.need->limit = Bytes{40 * gigabyte};
  const std::vector<std::string> lines = lines_of(report::plan_table(setting().model, plan, {}));
  CHECK(contains(lines[0], "peak memory"));
  CHECK(contains(lines[3], "40.00 GB of 80.00 GB"));
}

TEST_CASE("in 80 columns a language model keeps ZeRO, tokens and MFU") {
  planner::Plan plan = small_plan();
  plan.front.pop_back();  // all on 8 devices
  for (planner::PlanPoint& one : plan.front) {
    one.candidate.shape.degrees.zero = Zero::weights;
    one.candidate.shape.degrees.context = 2;
    one.candidate.shape.cp_comm_type = "p2p";
    one.candidate.shape.sequence_parallel = true;
    one.rates.tokens_per_second = 80'000;
    one.rates.tokens_per_device_second = 10'000;
    one.rates.mfu = 0.45;
    one.dollars_step = 0.25;
  }
  report::PlanView view;
  view.width = 80;
  const std::string text = report::plan_table(setting().model, plan, view);
  const std::vector<std::string> lines = lines_of(text);
  CHECK(contains(lines[0], "tokens/"));
  CHECK(contains(lines[1], "s/GPU"));
  CHECK(contains(lines[1], "ZeRO"));
  CHECK(contains(lines[1], "MFU"));
  CHECK(contains(lines[1], "80.00 GB"));
  CHECK(contains(text, "45.0 %"));
  CHECK(contains(text, "… without"));
  for (const std::string& line : lines) CHECK(columns_of(line) <= 80);
}

TEST_CASE("a column that says nothing is left out") {
  planner::Plan plan = small_plan();
  const auto title = [&] { return lines_of(report::plan_table(setting().model, plan, {})).at(0); };
  CHECK(contains(title(), "devices"));
  for (const char* const absent : {"recompute", "offload", "ZeRO", "sequence", "MFU", "cost"}) {
    CAPTURE(absent);
    CHECK_FALSE(contains(title(), absent));
  }
  plan.front.resize(3);  // all on 8
  CHECK_FALSE(contains(title(), "devices"));
  plan.front[0].candidate.recomputation = parse_recomputation("full", "--recompute");
  plan.front[0].candidate.shape.degrees.zero = Zero::optimizer;
  plan.front[0].candidate.shape.degrees.context = 2;
  plan.front[0].candidate.offloading.all = true;
  plan.front[0].rates.mfu = 0.4;
  plan.front[0].dollars_step = 0.25;
  for (const char* const there :
       {"recompute", "offload", "ZeRO", "MFU", "cost a step", "tp·pp·dp·cp"}) {
    CAPTURE(there);
    CHECK(contains(title(), there));
  }
}

TEST_CASE("a step under half the network is a column where it is longer") {
  planner::Plan plan = small_plan();
  const auto title = [&] { return lines_of(report::plan_table(setting().model, plan, {})).at(0); };
  for (planner::PlanPoint& point : plan.front) point.half_network = point.verdict.step;
  CHECK_FALSE(contains(title(), "half network"));
  plan.front[0].half_network = milliseconds(131);
  CHECK(contains(title(), "half network"));
  CHECK(contains(report::plan_table(setting().model, plan, {}), "+31.0 %"));
  CHECK(parsed(plan)["front"][0]["half_network_step_ps"] == 131'000'000'000);
  plan.front[0].half_network.reset();
  CHECK_FALSE(parsed(plan)["front"][0].contains("half_network_step"));
}

TEST_CASE("the recommended row is shown whatever the number of rows") {
  planner::Plan plan = small_plan();
  plan.recommended = 3;
  report::PlanView view;
  view.top = 1;
  const std::string text = report::plan_table(setting().model, plan, view);
  CHECK(contains(text, "→ 4  1f1b"));
  CHECK(contains(text, "… 2 more: --top 4"));
  CHECK(lines_of(text).size() == 2 + 2 + 1);
}

TEST_CASE("no line of the table is wider than asked") {
  for (const int width : {40, 60, 80, 100}) {
    CAPTURE(width);
    report::PlanView view;
    view.width = width;
    for (const std::string& line :
         lines_of(report::plan_table(setting().model, small_plan(), view))) {
      CHECK(columns_of(line) <= width);
    }
  }
}

TEST_CASE("a command is one line, however narrow the terminal") {
  report::PlanView view;
  view.width = 40;
  view.command = "stageline simulate resnet50-cpu --link 2.5GB/s,50us --memory 8GB";
  const std::string text = report::plan_answer(small_plan(), view);
  CHECK(contains(text, "\n  " + view.command + " --schedule zb_h1 --devices 8\n"));
  CHECK_FALSE(contains(text, "zb_h2"));
  view.flags = true;
  const std::string all = report::plan_answer(small_plan(), view);
  CHECK(contains(all, "\n1: " + view.command + " --schedule zb_h2 --devices 8\n"));
  CHECK(contains(all, "\n4: " + view.command + " --schedule 1f1b --devices 4\n"));
}

TEST_CASE("what was searched is optimal only where nothing was left") {
  planner::Plan plan = small_plan();
  plan.counts.refused = 3;
  CHECK(contains(report::plan_search(plan),
                 "best found: 12 483 candidates, 578 simulated, 11 902 pruned by "
                 "bound, 3 that cannot run; nothing in it is faster than "
                 "95.00 ms, 5.0 % below the fastest"));
  plan.exhausted = true;
  CHECK(report::plan_search(plan).starts_with("optimal over what was searched: 12 483 candidates"));
  plan.exhausted = false;
  plan.partial = true;
  plan.counts.left = 1000;
  CHECK(report::plan_search(plan).starts_with("best so far: 13 483 candidates"));
  CHECK(contains(report::plan_search(plan), "1 000 not looked at"));
  plan.partial = false;
  plan.behind = true;
  CHECK(report::plan_search(plan).starts_with("best found: 13 483 candidates"));
  CHECK(contains(report::plan_search(plan), "1 000 estimated to be far behind"));
  plan.bound = plan.front[0].verdict.step;
  CHECK(contains(report::plan_search(plan), "faster than 100.0 ms, which the fastest reaches"));
}

TEST_CASE("where nothing fits, what is missing least is the answer") {
  planner::Plan plan;
  plan.missing = {{Bytes{83'200'000'000}, Bytes{80'000'000'000}, "gpu7"},
                  "--schedule 1f1b --devices 8"};
  CHECK(report::plan_table(setting().model, plan, {}).empty());
  CHECK(contains(report::plan_answer(plan, {}),
                 "nothing fits: 3.200 GB are missing on gpu7; the least, with"));
  CHECK(contains(report::plan_answer(plan, {}), "stageline simulate --schedule 1f1b --devices 8"));
  plan.partial = true;  // what was not looked at may fit
  CHECK(contains(report::plan_answer(plan, {}), "nothing that fits was found yet: 3.200 GB"));
  const nlohmann::json json = parsed(plan);
  CHECK(json["missing"]["bytes"] == 3'200'000'000);
  CHECK(json["front"].empty());
  CHECK(json["recommended"].is_null());
  CHECK(json["gap"].is_null());
  plan.missing->need.grows = true;
  CHECK(contains(report::plan_answer(plan, {}),
                 "yet: memory grows as long as it runs; the least, with"));
  CHECK(parsed(plan)["missing"]["bytes"].is_null());
}

TEST_CASE("JSON has all of the front, exactly") {
  const nlohmann::json json = parsed(small_plan());
  REQUIRE(json["front"].size() == 4);
  CHECK(json["recommended"] == 1);
  CHECK(json["front"][1]["schedule"] == "zb_h1");
  CHECK(json["front"][1]["step_time_ps"] == 101'000'000'000);
  CHECK(json["front"][1]["peak_bytes"] == 40 * gigabyte);
  CHECK(json["front"][1]["tightest"]["memory_bytes"] == 80 * gigabyte);
  CHECK(json["front"][1]["command"] == "stageline simulate --schedule zb_h1 --devices 8");
  CHECK(json["front"][3]["degrees"]["pp"] == 4);
  CHECK(json["candidates"]["pruned"] == 11902);
  CHECK(json["gap"].get<double>() == doctest::Approx(100.0 / 95 - 1));
  CHECK(json["notes"] == nlohmann::json::array({"a note"}));
  CHECK_FALSE(json.contains("pruned"));
}

TEST_CASE("what was dropped is listed with its bound or its reason") {
  planner::Plan plan = small_plan();
  plan.dropped = {{"--schedule gpipe --tp 8", "m·load: 130.0 ms", milliseconds(130), 40},
                  {"--schedule chimera", "chimera wants an even number of devices", {}, 3}};
  const std::string text = report::plan_dropped(plan, 0);
  CHECK(contains(text, "130.0 ms          40  --schedule gpipe --tp 8"));
  CHECK(contains(text, "chimera wants an even number of devices"));
  planner::PlanRequest request = request_of_plan();
  request.keep_dropped = true;
  const nlohmann::json json = parsed(plan, request);
  REQUIRE(json["pruned"].size() == 1);
  REQUIRE(json["refused"].size() == 1);
  CHECK(json["pruned"][0]["bound_ps"] == 130'000'000'000);
  CHECK(json["refused"][0]["candidates"] == 3);
}

TEST_CASE("a point with a range has it as a whisker, and says so") {
  planner::Plan plan = small_plan();
  Interval range;
  range.low = 0.9;
  range.high = 1.25;
  plan.front[0].verdict.intervals.step = range;
  const report::Chart chart = report::plan_chart(setting(), request_of_plan(), plan);
  const report::ChartPoint& first = chart.series[1].points[0];
  REQUIRE(first.x_range);
  CHECK(first.x_range->low == doctest::Approx(0.9 * first.x));
  CHECK(first.x_range->high == doctest::Approx(1.25 * first.x));
  CHECK_FALSE(chart.series[1].points[1].x_range);
  CHECK(std::count(chart.footnotes.begin(), chart.footnotes.end(), report::whisker_words) == 1);
}

TEST_CASE("JSON marks the points that tie, and the schedules that were held against runs") {
  CHECK_FALSE(parsed(small_plan())["front"][0].contains("tie"));
  planner::Plan plan = small_plan();
  plan.tied = {0, 1};
  const auto json = parsed(plan);
  CHECK(json["front"][1]["tie"] == true);
  CHECK(json["front"][2]["tie"] == false);
  CHECK(json["front"][1]["schedule_held"] == false);
  CHECK(json["front"][2]["schedule_held"] == true);
}

TEST_CASE("the chart has a stair for each number of devices") {
  const report::Chart chart = report::plan_chart(setting(), request_of_plan(), small_plan());
  REQUIRE(chart.series.size() == 2);
  CHECK(chart.series[0].name == "4 devices");
  CHECK(chart.series[1].name == "8 devices");
  REQUIRE(chart.series[1].points.size() == 3);
  CHECK(chart.series[1].points[1].label == "2 recommended");
  CHECK(*chart.series[1].points[1].y == doctest::Approx(40));
  REQUIRE(chart.horizontal.size() == 1);
  CHECK(chart.horizontal[0].at == doctest::Approx(80));
  REQUIRE(chart.vertical.size() == 1);
  CHECK(chart.vertical[0].at == doctest::Approx(95));
  const std::string svg = report::chart_svg(chart);
  CHECK(contains(svg, ">2 recommended</text>"));
}

TEST_CASE("a limit far above the front would flatten it, and is not drawn") {
  planner::Plan plan = small_plan();
  for (planner::PlanPoint& one : plan.front) one.verdict.need->limit = Bytes{1000 * gigabyte};
  CHECK(report::plan_chart(setting(), request_of_plan(), plan).horizontal.empty());
}

TEST_CASE("counts are grouped by thousands") {
  CHECK(report::grouped(0) == "0");
  CHECK(report::grouped(999) == "999");
  CHECK(report::grouped(12480) == "12 480");
  CHECK(report::grouped(1234567) == "1 234 567");
  CHECK(report::grouped(-1234) == "-1 234");
  planner::PlanProgress progress;
  progress.judged = 1234;
  CHECK(report::progress_words(progress) == "tried 1 234 · pruned 0");
}

}  // namespace
}  // namespace stageline::plan_tests
