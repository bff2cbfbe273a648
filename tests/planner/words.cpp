// Does the sentence on a plan say of each member what sets it apart?
#include "tools/planner/words.hpp"

#include <doctest/doctest.h>

#include "tests/make.hpp"

namespace stageline::words_tests {
namespace {

planner::PlanPoint point_of(const std::string& schedule, Time step, Bytes peak,
                            const std::string& cut) {
  planner::PlanPoint point;
  point.candidate.spec = test::spec(schedule);
  point.candidate.shape.degrees.pipeline = 4;
  point.candidate.shape.microbatches = 8;
  point.candidate.partition = cut;
  point.verdict.step = step;
  point.verdict.peak = {peak};
  return point;
}

bool says(const std::string& sentence, const std::string& part) {
  CAPTURE(sentence);
  return sentence.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the fastest is the fastest, and what is as good is as fast as any") {
  const Time step = parse_time("100ms");
  const std::vector<planner::PlanPoint> front{
      point_of("zb_h1", step, Bytes{1000}, "balanced"),
      point_of("1f1b", step + parse_time("10us"), Bytes{900}, "balanced")};
  const planner::Recommendation found = planner::recommend(front, planner::Objective::time, 0.01);
  CHECK(found.index == 1);
  CHECK(says(found.sentence, "as fast as any"));
  CHECK_FALSE(says(found.sentence, "the fastest"));
  const planner::Recommendation alone =
      planner::recommend({front[0]}, planner::Objective::time, 0.01);
  CHECK(says(alone.sentence, "the fastest"));
}

TEST_CASE("two plans that differ in the cut alone are told apart by it") {
  const std::vector<planner::PlanPoint> front{
      point_of("1f1b", parse_time("100ms"), Bytes{1000}, "0-3,4-7,8-11,12-"),
      point_of("1f1b", parse_time("100.9ms"), Bytes{900}, "balanced")};
  const planner::Recommendation found = planner::recommend(front, planner::Objective::time, 0.01);
  CHECK(found.index == 1);
  CHECK(says(found.sentence, "cut 0-3,4-7,8-11,12-"));
}

TEST_CASE("plain 1F1B of one pipeline rank is called what it is") {
  planner::PlanPoint point = point_of("1f1b", parse_time("100ms"), Bytes{1000}, "balanced");
  CHECK(planner::named(point).starts_with("1f1b, "));
  point.candidate.shape.degrees.pipeline = 1;
  CHECK(planner::named(point).starts_with("no pipeline, "));
  point.candidate.spec = test::spec("gpipe");
  CHECK(planner::named(point).starts_with("gpipe, "));
}

TEST_CASE("a point that ties with the fastest is taken, and the fastest is named beside it") {
  const std::vector<planner::PlanPoint> front{
      point_of("zb_h1", parse_time("100ms"), Bytes{1000}, "balanced"),
      point_of("1f1b", parse_time("101.5ms"), Bytes{950}, "balanced"),
      point_of("gpipe", parse_time("102ms"), Bytes{500}, "balanced")};
  const planner::Recommendation found =
      planner::recommend(front, planner::Objective::time, 0.01, Tie{2, 3});
  CHECK(found.index == 2);
  CHECK(says(found.sentence, "gpipe"));
  CHECK(says(found.sentence,
             "500 B, the least time × memory of 3 that tie; the fastest, by less "
             "than can be told, 2.0 % faster: zb_h1"));
  const planner::Recommendation fastest =
      planner::recommend(front, planner::Objective::time, 0.01, Tie{0, 3});
  CHECK(says(fastest.sentence, "1.000 kB, the fastest; "));
}

TEST_CASE("less memory is said of less memory alone") {
  std::vector<planner::PlanPoint> front{
      point_of("1f1b", parse_time("100ms"), Bytes{1000}, "balanced"),
      point_of("1f1b", parse_time("110ms"), Bytes{1100}, "balanced")};
  front[1].candidate.shape.degrees.pipeline = 2;  // on the front by its devices
  CHECK_FALSE(
      says(planner::recommend(front, planner::Objective::time, 0.01).sentence, "less memory"));
  front.push_back(point_of("gpipe", parse_time("120ms"), Bytes{900}, "balanced"));
  const planner::Recommendation found = planner::recommend(front, planner::Objective::time, 0.01);
  CHECK(found.index == 0);
  CHECK(says(found.sentence, "with less memory, 20.0 % slower: gpipe"));
}

TEST_CASE("what is near the least of the objective is not called the least") {
  const std::vector<planner::PlanPoint> front{
      point_of("zb_h1", parse_time("100ms"), Bytes{100'500}, "balanced"),
      point_of("1f1b", parse_time("100.5ms"), Bytes{100'000}, "balanced")};
  const std::string memory = planner::recommend(front, planner::Objective::memory, 0.01).sentence;
  CHECK(says(memory, "zb_h1"));
  CHECK(says(memory, "the fastest within 1 % of the least memory"));
  CHECK(says(planner::recommend(front, planner::Objective::memory, 0).sentence,
             "100.0 kB, the least memory"));
  const std::string cost = planner::recommend(front, planner::Objective::cost, 0.01).sentence;
  CHECK(says(cost, "1f1b"));
  CHECK(says(cost, "the least memory within 1 % of the cheapest"));
  CHECK(says(planner::recommend(front, planner::Objective::cost, 0).sentence,
             "100.5 kB, the cheapest"));
  CHECK(says(planner::recommend(front, planner::Objective::devices, 0.01).sentence,
             "the fewest devices"));
}

}  // namespace stageline::words_tests
