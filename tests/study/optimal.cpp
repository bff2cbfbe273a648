// Is the answer of `optimal` a program like any other, within its limit, and its bound true of all
// schedules that hold no more?
#include "tools/study/optimal.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/lower/passes.hpp"
#include "tests/make.hpp"
#include "tools/study/pace/stash_gap.hpp"
#include "tools/study/study.hpp"
#include "traces/traces.hpp"

namespace stageline::optimal_tests {
namespace {

Case case_of(const std::string& knobs, std::optional<Bytes> memory = std::nullopt) {
  Case asked;
  asked.model = uniform_model("layers=6,forward=2ms,input_grad=3ms,weight_grad=1ms,update=1ms");
  asked.cluster =
      uniform_cluster(3, LinkSpec{parse_bandwidth("10GB/s"), parse_time("100us")}, memory);
  asked.spec = test::spec("zb_auto:" + knobs);
  asked.microbatches = 6;
  return asked;
}

bool never(const BranchKnown&) { return false; }

TEST_CASE("the shortest order runs as any program does, and keeps its limit") {
  for (const char* const knobs :
       {"limit=1", "limit=2", "limit=p,goal=makespan", "limit=3,placement=v", "limit=none"}) {
    CAPTURE(knobs);
    const Case asked = case_of(knobs);
    const Optimal found = optimal(asked, never);
    validate(found.outcome.program);
    CHECK(found.is_proved());
    CHECK(found.gap() == 0);
    CHECK(found.bound <= found.value);
    const std::string text = print(found.outcome.program);
    CHECK(print(parse_program(text)) == text);
    const std::vector<int>& peaks = found.outcome.memory.device_stash_peak;
    const std::string limit = asked.spec.knobs.at("limit");
    const int most = limit == "none" ? 100 : limit == "p" ? 3 : std::stoi(limit);
    CHECK(*std::max_element(peaks.begin(), peaks.end()) <= most);
    // Nobody who holds as little is faster.
    for (const char* const schedule : {"1f1b", "zb_h1", "zb_auto", "list:limit=2", "gpipe"}) {
      CAPTURE(schedule);
      Case other = asked;
      other.spec = test::spec(schedule);
      const Outcome outcome = study(other);
      const std::vector<int>& held = outcome.memory.device_stash_peak;
      if (*std::max_element(held.begin(), held.end()) > most) continue;
      if (asked.spec.knobs.at("placement") != "straight") continue;
      CHECK(outcome.metrics.makespan >= found.value);
    }
  }
}

TEST_CASE("a limit in bytes holds, and more memory is never slower") {
  Time before = Time::max();
  for (const char* const memory : {"20MB", "24MB", "32MB", "60MB"}) {
    CAPTURE(memory);
    const Optimal found = optimal(case_of("limit=memory", parse_bytes(memory)), never);
    CHECK(found.outcome.fit == Fit::yes);
    CHECK(found.value >= found.bound);
    CHECK(found.value <= before);
    before = found.value;
  }
  CHECK_THROWS_AS(optimal(case_of("limit=memory", parse_bytes("1MB")), never), UsageError);
}

TEST_CASE("a stash bound is never above the span of the order that it is about") {
  for (const char* const schedule :
       {"gpipe", "1f1b", "zb_h1", "zb_h2", "zb_auto", "zb_auto:placement=v", "zb_v", "v_half",
        "v_min", "interleaved_1f1b", "interleaved_zb", "looped_bfs", "hanayo", "1f1b_v", "list",
        "eager_1f1b", "naive"}) {
    CAPTURE(schedule);
    Case asked = case_of("limit=p");
    asked.spec = test::spec(schedule);
    const Outcome outcome = study(asked);
    const std::optional<StashGap> gap = stash_gap(asked, outcome);
    REQUIRE(gap.has_value());
    CHECK(gap->bound <= gap->span);
    CHECK(gap->bound > Time{});
  }
  // Of asynchronous orders and of two directions nothing is known.
  for (const char* const schedule : {"pipedream", "chimera", "dualpipe"}) {
    Case asked = case_of("limit=p");
    asked.cluster = uniform_cluster(2, std::nullopt, std::nullopt);
    asked.spec = test::spec(schedule);
    CHECK(!stash_gap(asked, study(asked)).has_value());
  }
}

TEST_CASE(
    "of an order that leaves out input gradients of the first stage no stash bound is known") {
  Case asked = case_of("limit=p");
  asked.cluster = uniform_cluster(1, std::nullopt, std::nullopt);
  asked.microbatches = 2;
  const std::string head = "stageline-program 1\nmicrobatches: 2\nstage 0: gpu0\n";
  asked.program = parse_program(head + "gpu0: 0F0 0I0 0W0 0F1 0I1 0W1 0U0\n");
  CHECK(stash_gap(asked, study(asked)).has_value());
  for (const char* const list :
       {"gpu0: 0F0 0W0 0F1 0I1 0W1 0U0\n", "gpu0: 0F0 0W0 0F1 0W1 0U0\n"}) {
    asked.program = parse_program(head + list);
    CHECK(!stash_gap(asked, study(asked)).has_value());
  }
}

TEST_CASE("what changes the ops of a step is refused") {
  Case asked = case_of("limit=p");
  asked.recomputation = parse_recomputation("full", "--recompute");
  CHECK_THROWS_AS(optimal(asked, never), UsageError);
  asked = case_of("limit=p");
  asked.offloading = parse_offloading("all", "--offload");
  CHECK_THROWS_AS(optimal(asked, never), UsageError);
}

}  // namespace
}  // namespace stageline::optimal_tests
