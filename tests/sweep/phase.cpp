// Maps of winners: what is refined equals what is simulated cell by cell.
#include "tools/sweep/phase.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>

#include "sim/base/errors.hpp"
#include "tools/base/check_point.hpp"
#include "tools/sweep/run.hpp"

namespace stageline::phase_tests {
namespace {

PhaseRequest question(const std::string& x, const std::string& y) {
  PhaseRequest request;
  request.fixed = {{"trace", "uniform:layers=16,forward=1ms,weights=1MB,output=4MB,stash=2MB"},
                   {"devices", "4"}};
  if (x.find("microbatches") == std::string::npos && y.find("microbatches") == std::string::npos) {
    request.fixed.push_back({"microbatches", "8"});
  }
  const auto axis = [](const std::string& text, int points) {
    const std::size_t equals = text.find('=');
    return phase_axis(text.substr(0, equals), text.substr(equals + 1), points);
  };
  request.x = axis(x, 33);
  request.y = axis(y, 17);
  request.schedules = {"1f1b", "zb_h1", "gpipe:recompute=always", "interleaved_1f1b", "zb_h2"};
  return request;
}

// Of all cells, by y, x and schedule.
std::vector<SweepRow> rows_of(const PhaseRequest& request) {
  SweepSpec spec;
  spec.fixed = request.fixed;
  spec.axes = {request.y, request.x, list_axis("schedule", request.schedules)};
  spec = checked(spec);
  return run_scenarios(spec, 0, spec.scenarios(), 1);
}

}  // namespace

TEST_CASE("phase: axes without a form are spread") {
  CHECK(phase_axis("link", "1GB/s..400GB/s", 33).kind == SweepAxis::Kind::log);
  CHECK(phase_axis("memory", "1GB..4GB", 33).kind == SweepAxis::Kind::linear);
  CHECK(phase_axis("microbatches", "4..256", 17).count == 17);
  CHECK(phase_axis("devices", "2..8", 17).count == 7);
  CHECK(phase_axis("devices", "2..8:2", 17).count == 4);
  CHECK(phase_axis("zero", "0,1", 17).kind == SweepAxis::Kind::list);
  CHECK_THROWS_AS(phase_axis("devices", "2..8:random", 17), UsageError);
}

TEST_CASE("phase: refined maps have the winners of exhaustive ones, on any number of threads") {
  for (const std::pair<const char*, const char*>& axes :
       {std::pair<const char*, const char*>{"link=100MB/s..100GB/s", "memory=20MB..120MB"},
        {"link=100MB/s..100GB/s", "microbatches=4..40:4"},
        {"memory=20MB..120MB", "microbatches=4..40:4"}}) {
    CAPTURE(axes.first);
    CAPTURE(axes.second);
    PhaseRequest request = question(axes.first, axes.second);
    const PhaseMap refined = phase_map(request);
    request.threads = 3;
    CHECK(phase_json(phase_map(request)).text() == phase_json(refined).text());
    request.exhaustive = true;
    const PhaseMap whole = phase_map(request);
    CHECK(whole.any);
    CHECK(whole.cells == request.x.count * request.y.count);
    CHECK(refined.cells < whole.cells * 3 / 4);
    int other = 0;
    int winners = 0;
    for (std::size_t j = 0; j < whole.chart.ys.size(); ++j) {
      for (std::size_t i = 0; i < whole.chart.xs.size(); ++i) {
        const report::PhaseCell& a = refined.chart.cells[j][i];
        const report::PhaseCell& b = whole.chart.cells[j][i];
        winners += b.winner ? 1 : 0;
        other += a.winner != b.winner || a.by_memory != b.by_memory ? 1 : 0;
        if (!a.known) continue;
        CHECK(a.winner == b.winner);
        CHECK(a.lead == b.lead);
        CHECK(a.second == b.second);
      }
    }
    CHECK(winners > 20);
    CHECK(other <= whole.cells / 50);  // a phase narrower than the coarse grid may be missed
  }
}

TEST_CASE("phase: a map that is stopped is whole, and keeps what was simulated") {
  PhaseRequest request = question("link=100MB/s..100GB/s", "memory=20MB..120MB");
  request.threads = 1;
  std::int64_t first = 0;  // cells of the coarse grid
  std::int64_t last = 0;
  request.progress = [&](std::int64_t done, std::int64_t wanted) {
    CHECK(done == last + 1);
    if (done == 1) first = wanted;
    last = done;
  };
  const PhaseMap whole = phase_map(request);
  CHECK_FALSE(whole.partial);
  CHECK(last == whole.cells);
  REQUIRE(first < whole.cells - 4);

  std::atomic<bool> stop = false;
  std::int64_t wanted_stop = first + 3;
  request.stop = &stop;
  request.progress = [&](std::int64_t done, std::int64_t) { stop = done >= wanted_stop; };
  const PhaseMap part = phase_map(request);
  CHECK(part.partial);
  CHECK(part.any);
  CHECK(part.cells == wanted_stop);
  std::int64_t known = 0;
  for (std::size_t j = 0; j < whole.chart.ys.size(); ++j) {
    for (std::size_t i = 0; i < whole.chart.xs.size(); ++i) {
      const report::PhaseCell& cell = part.chart.cells[j][i];
      CHECK(cell.possible);
      if (!cell.known) continue;
      ++known;
      CHECK(cell.winner == whole.chart.cells[j][i].winner);
    }
  }
  CHECK(known == wanted_stop);

  stop = false;
  wanted_stop = first - 1;
  CHECK_THROWS_AS(phase_map(request), CalledOff);
}

TEST_CASE("phase: a winner has the highest throughput of the rows that fit") {
  PhaseRequest request = question("link=100MB/s..100GB/s:log4", "memory=20MB..60MB:lin3");
  request.exhaustive = true;
  const PhaseMap map = phase_map(request);
  const std::vector<SweepRow> rows = rows_of(request);
  bool by_memory = false;
  for (std::size_t cell = 0; cell < 12; ++cell) {
    std::optional<std::size_t> best;
    double fastest = 0;
    for (std::size_t s = 0; s < 5; ++s) {
      const SweepRow& row = rows[cell * 5 + s];
      if (!row.verdict) continue;
      fastest = std::max(fastest, row.verdict->throughput);
      if (row.verdict->fit == Fit::no) continue;
      if (!best || row.verdict->throughput > rows[cell * 5 + *best].verdict->throughput) best = s;
    }
    const report::PhaseCell& found = map.chart.cells[cell / 4][cell % 4];
    CHECK(found.winner == best);
    if (best) CHECK(found.by_memory == (rows[cell * 5 + *best].verdict->throughput < fastest));
    by_memory = by_memory || found.by_memory;
  }
  CHECK(by_memory);
}

TEST_CASE(
    "phase: where something is uncertain, the step that 95 % of the scenarios stay below wins") {
  PhaseRequest request = question("microbatches=8,16", "jitter=0%,60%");
  request.fixed.push_back({"scenarios", "64"});
  request.schedules = {"list", "zb_h2", "zb_v", "interleaved_zb", "zb_h1"};  // some equal at first
  request.exhaustive = true;
  const PhaseMap map = phase_map(request);
  const std::vector<SweepRow> rows = rows_of(request);
  bool other = false;
  for (std::size_t cell = 0; cell < 4; ++cell) {
    std::optional<std::size_t> best;
    std::optional<std::size_t> undisturbed;
    const auto row = [&](std::size_t s) -> const SweepRow& { return rows[cell * 5 + s]; };
    for (std::size_t s = 0; s < 5; ++s) {
      if (!row(s).verdict || row(s).verdict->fit == Fit::no) continue;
      REQUIRE(row(s).distribution);
      CHECK((row(s).distribution->deviation == Time{}) == (cell < 2));
      if (!best || row(s).distribution->p95 < row(*best).distribution->p95) best = s;
      if (!undisturbed || row(s).verdict->step < row(*undisturbed).verdict->step) undisturbed = s;
    }
    CHECK(map.chart.cells[cell / 2][cell % 2].winner == best);
    other = other || best != undisturbed;
  }
  CHECK(other);
  CHECK(std::count(map.notes.begin(), map.notes.end(),
                   "schedules are ranked by the step that 95 % of the scenarios stay below") == 1);
}

TEST_CASE("phase: ticks of a range are round, with the unit's prefix") {
  PhaseRequest request = question("link=500MB/s..100GB/s:log9", "microbatches=4,8");
  request.schedules = {"1f1b"};
  const report::PhaseChart chart = phase_map(request).chart;
  CHECK(chart.x == "link");
  CHECK(chart.x_words == "link bandwidth");
  CHECK(chart.y_words == "micro-batches");
  CHECK(chart.y_ticks.empty());
  std::vector<std::string> labels;
  for (const report::PhaseTick& tick : chart.x_ticks) labels.push_back(tick.label);
  CHECK(labels == std::vector<std::string>{"500 MB/s", "1 GB/s", "2 GB/s", "5 GB/s", "10 GB/s",
                                           "20 GB/s", "50 GB/s", "100 GB/s"});
  CHECK(chart.x_ticks.front().at == doctest::Approx(0.5));
  CHECK(chart.x_ticks.back().at == doctest::Approx(8.5));
}

TEST_CASE("phase: text, and what is refused") {
  report::PhaseChart chart;
  chart.title = "The fastest";
  chart.x = "link";
  chart.y = "m";
  chart.xs = {"1GB/s", "2GB/s", "4GB/s"};
  chart.ys = {"4", "16"};
  chart.names = {"1f1b", "zb_h1"};
  chart.cells = {{{0, 0.1, true, false, true, ""}, {0, 0.02, true, true, true, ""}, {}},
                 {{1, 0.5, true, false, true, ""}, {std::nullopt, {}, true, true, true, ""}, {}}};
  CHECK("\n" + report::phase_text(chart, 40, 9) == R"(
The fastest
rows: m
16 ┤BBBB····
 4 ┤AAAAaaaa
   └──┬───────┬─
    1GB/s   4GB/s
            link
A 1f1b: 33.3 % of the map, up to 10.0 %
ahead
B zb_h1: 16.7 % of the map, up to 50.0 %
ahead
small letters: a faster one does not fit
into memory
·: none fits   blank: none can run
)");
  chart.x_words = "link bandwidth";
  chart.x_ticks = {{0.5, "1 GB/s"}, {1.5, "2 GB/s"}};
  chart.cells[0][1] = {0, 0.04, true, false, true, ""};
  const std::string svg = report::phase_svg(chart);
  CHECK(svg.find(">link bandwidth</text>") != std::string::npos);
  CHECK(svg.find(">2 GB/s</text>") != std::string::npos);
  CHECK(svg.find(">4GB/s</text>") == std::string::npos);
  CHECK(svg.find(">5 %</text>") != std::string::npos);   // between 10 % and 4 % ahead
  CHECK(svg.find(">20 %</text>") == std::string::npos);  // no line
  chart.names.resize(37);
  CHECK_THROWS_AS(report::phase_svg(chart), UsageError);
  CHECK_THROWS_AS(report::phase_text(chart, 20, 9), UsageError);
}

}  // namespace stageline::phase_tests
