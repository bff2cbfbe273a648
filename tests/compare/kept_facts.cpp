// Does a comparison that keeps no spans say the same?
#include <doctest/doctest.h>
#include <malloc.h>

#include <cmath>

#include "tests/specs.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/study/figures/drop_spans.hpp"
#include "tools/study/figures/notes.hpp"

namespace stageline::kept_facts_tests {
namespace {

// 0 with an allocator that does not say, as those of sanitizers.
std::size_t bytes_in_use() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

// What the rows of a comparison hold when it has ended.
double bytes_of_rows(int microbatches) {
  SettingRequest request;
  request.trace = "uniform:layers=12,forward=1300us,weights=3MB,output=1MB,stash=2MB";
  request.devices = {4, 6};
  request.microbatches = microbatches;
  request.cluster.link = LinkSpec{Bandwidth{3'000'000'000}, Time{1'000'000}};
  const Setting setting = read_setting(request);
  const std::vector<ScheduleSpec> specs = test::all_specs(4);
  const std::size_t before = bytes_in_use();
  const std::vector<Row> rows = compare(request, setting, specs, 1, {}, Keep::facts);
  return static_cast<double>(bytes_in_use() - before);
}

}  // namespace

TEST_CASE("rows that keep facts alone are as large with many micro-batches as with few") {
  if (bytes_in_use() == 0) return;
  bytes_of_rows(64);  // so that buffers which are kept for the next case are there
  const double many = bytes_of_rows(64);
  const double few = bytes_of_rows(16);
  CHECK(few > 0);
  CAPTURE(many);
  CHECK(std::abs(many - few) <= 0.1 * few);
}

TEST_CASE("rows of a sweep share the model, and the cluster of as many devices") {
  SettingRequest request;
  request.trace = "uniform:layers=12";
  request.devices = {2, 3};
  const Setting setting = read_setting(request);
  const std::vector<ScheduleSpec> specs = test::all_specs(2);
  const std::vector<Row> rows = compare(request, setting, specs, 2, {}, Keep::facts);
  for (const Row& row : rows) {
    CHECK(&row.asked.model() == &rows.front().asked.model());
    const Row& first = row.asked.device_count() == 2 ? rows.front() : rows.back();
    CHECK(&row.asked.cluster() == &first.asked.cluster());
    CHECK(Case(row.asked).model == setting.model);
  }
  CHECK(rows.front().asked.device_count() == 2);
  CHECK(rows.back().asked.device_count() == 3);
}

TEST_CASE("rows that keep facts alone hold no spans, and say what those with spans say") {
  SettingRequest request;
  request.trace = "uniform:layers=12,forward=1300us,weights=3MB,output=1MB,stash=2MB";
  request.devices = {4};
  request.microbatches = 8;
  request.cluster.link = LinkSpec{Bandwidth{3'000'000'000}, Time{1'000'000}};
  const Setting setting = read_setting(request);
  const std::vector<ScheduleSpec> specs = test::all_specs(4);
  const std::vector<Row> whole = compare(request, setting, specs, 1, {}, Keep::spans);
  const std::vector<Row> facts = compare(request, setting, specs, 1, {}, Keep::facts);
  REQUIRE(whole.size() == facts.size());
  std::size_t judged = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CAPTURE(whole[i].schedule);
    REQUIRE(whole[i].outcome.has_value() == facts[i].outcome.has_value());
    if (!whole[i].outcome) continue;
    ++judged;
    const Outcome& one = *whole[i].outcome;
    const Outcome& other = *facts[i].outcome;
    CHECK(held_spans(one) > 0);
    CHECK(held_spans(other) == 0);
    CHECK(!other.costs.network.found);
    CHECK(report::outcome_json(setting, whole[i].asked, one, false) ==
          report::outcome_json(setting, facts[i].asked, other, false));
    CHECK(stream_notes(whole[i].asked, one) == stream_notes(facts[i].asked, other));
  }
  CHECK(judged > 30);
}

}  // namespace stageline::kept_facts_tests
