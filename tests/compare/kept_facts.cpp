// Does a comparison that keeps no spans say the same?
#include <doctest/doctest.h>

#include "tests/specs.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/study/drop_spans.hpp"
#include "tools/study/notes.hpp"

namespace stageline {

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
    CHECK(outcome_json(setting, whole[i].asked, one, false) ==
          outcome_json(setting, facts[i].asked, other, false));
    CHECK(stream_notes(whole[i].asked, one) == stream_notes(facts[i].asked, other));
  }
  CHECK(judged > 30);
}

}  // namespace stageline
