// Can long work be called off, on all its threads, and does it go on as before otherwise?
#include "tools/base/check_point.hpp"

#include <doctest/doctest.h>

#include <atomic>

#include "tools/base/parallel.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/study/study.hpp"

namespace stageline::check_point_tests {
namespace {

TEST_CASE("a thread looks at the point it was given last, and at none before and after") {
  int outer = 0;
  int inner = 0;
  look_at_check_point();
  {
    const CheckPoint one = [&] { ++outer; };
    const LooksAt looks(&one);
    look_at_check_point();
    {
      const CheckPoint other = [&] { ++inner; };
      const LooksAt looks_there(&other);
      look_at_check_point();
    }
    look_at_check_point();
  }
  look_at_check_point();
  CHECK(outer == 2);
  CHECK(inner == 1);
  CHECK(check_point() == nullptr);
}

TEST_CASE("calls in parallel look before each call, on every thread, and end when called off") {
  for (const int workers : {1, 4}) {
    CAPTURE(workers);
    std::atomic<int> looks_made{0};
    std::atomic<int> calls{0};
    const CheckPoint point = [&] {
      if (++looks_made > 10) throw CalledOff();
    };
    const LooksAt looks(&point);
    CHECK_THROWS_AS(in_parallel(1000, workers, [&](std::size_t) { ++calls; }), CalledOff);
    CHECK(calls <= 10);
    CHECK(looks_made >= 11);
  }
}

TEST_CASE(
    "a comparison that is stopped has the rows that are done, and is called off without any") {
  SettingRequest request;
  request.trace = "uniform8";
  request.devices = {4};
  const Setting setting = read_setting(request);
  const auto schedules = parse_schedules("gpipe,1f1b,zb_h1,pipedream,chimera");
  const std::vector<Row> all = compare(request, setting, schedules, 1);
  std::atomic<bool> stop{false};
  const auto after_three = [&](std::size_t done, std::size_t) { stop = done == 3; };
  const std::vector<Row> some =
      compare(request, setting, schedules, 1, after_three, Keep::spans, &stop);
  REQUIRE(some.size() == 3);
  for (std::size_t i = 0; i < some.size(); ++i) {
    CHECK(some[i].outcome->schedule == all[i].outcome->schedule);
    CHECK(some[i].outcome->step_time == all[i].outcome->step_time);
  }
  stop = true;
  CHECK_THROWS_AS(compare(request, setting, schedules, 1, {}, Keep::spans, &stop), CalledOff);
}

TEST_CASE("a comparison is called off, and is no row that cannot run") {
  SettingRequest request;
  request.trace = "uniform8";
  request.devices = {4};
  const Setting setting = read_setting(request);
  const auto schedules = parse_schedules("all");
  int looks_made = 0;
  {
    const CheckPoint point = [&] { ++looks_made; };
    const LooksAt looks(&point);
    CHECK(compare(request, setting, schedules, 1).size() == schedules.size());
  }
  CHECK(looks_made > 2 * static_cast<int>(schedules.size()));  // each row, and each of its runs
  int left = looks_made / 2;
  const CheckPoint point = [&] {
    if (--left < 0) throw CalledOff();
  };
  const LooksAt looks(&point);
  CHECK_THROWS_AS(compare(request, setting, schedules, 1), CalledOff);
}

}  // namespace
}  // namespace stageline::check_point_tests
