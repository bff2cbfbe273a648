// Are clocks of ranks that disagree shifted by what their messages allow?
#include <cstdlib>

#include "tests/traces/kineto_runs.hpp"

namespace stageline::kineto_clocks_tests {
namespace {

using profiles::check_compute_lanes;
using profiles::cpu_profiles;
using profiles::cpu_ranges;
using profiles::each_rank;
using profiles::error_of;
using profiles::Form;
using profiles::millisecond;
using profiles::noted;
using profiles::profile_text;
using profiles::Range;
using profiles::small_run;

TEST_CASE("clocks that disagree are shifted until every message arrives after it was sent") {
  constexpr std::int64_t apart = 20'000'000;
  for (const std::int64_t by : {apart, -apart}) {
    // Rank 1 is on another host.
    const std::vector<NamedText> files = each_rank([&](int rank, Form& form) {
      form.host = rank == 1 ? "b" : "a";
      return cpu_ranges(small_run(), as_size(rank), 30'000'000 + (rank == 1 ? by : 0));
    });
    const KinetoRun run = read_kineto(files);
    REQUIRE(run.shifts.size() == 3);
    CHECK(run.shifts[0].shift == Time{});
    CHECK(run.shifts[2].shift == Time{});
    // What the messages allow is less than a step, and the truth is in it.
    const Time truth = std::chrono::nanoseconds(-by);
    const Time off = run.shifts[1].shift - truth;
    CHECK(std::abs(off.count()) <= run.shifts[1].either_way.count() + 1000);
    CHECK(run.shifts[1].either_way < 4 * millisecond);
    CHECK(noted(run, "the clocks disagree"));
    CHECK(noted(run, by > 0 ? "rank 1 by -" : "rank 1 by +"));
    // And now they do.
    const auto spans = profiles::spans_of(run.timeline);
    int messages = 0;
    for (const auto& [op, span] : spans) {
      if (op.kind != OpKind::receive_forward) continue;
      Op send = op;
      send.kind = OpKind::send_forward;
      --send.stage;
      CHECK(span.end >= spans.at(send).start);
      ++messages;
    }
    CHECK(messages == 8);
  }
}

TEST_CASE("clocks of hosts that disagree by less than a message takes are brought together too") {
  // A message takes 1/8 ms; by these clocks it takes 0.225 ms one way and 0.025 ms the other.
  std::vector<NamedText> files = each_rank([](int rank, Form& form) {
    form.host = rank == 1 ? "b" : "a";
    return cpu_ranges(small_run(), as_size(rank), rank == 1 ? 1'100'000 : 1'000'000);
  });
  const KinetoRun run = read_kineto(files);
  REQUIRE(run.shifts.size() == 3);
  CHECK(run.shifts[1].shift == -millisecond / 10);
  CHECK(noted(run, "since the fastest messages take much longer one way than the other"));
  check_compute_lanes(run.timeline, small_run().timeline);
  // On one host the clock is one, and messages just take longer one way.
  for (NamedText& file : files) {
    file.text = replaced(file.text, "\"host_name\": ", "\"other_name\": ");
  }
  CHECK(read_kineto(files).shifts.empty());
}

TEST_CASE("ranks of one host whose clocks disagree all the same are shifted one by one") {
  Form form;
  form.host = "one";
  const KinetoRun run = read_kineto(cpu_profiles(small_run(), form, {5'000'000, 0, 5'000'000}));
  REQUIRE(run.shifts.size() == 3);
  CHECK(run.shifts[1].shift > 4 * millisecond);
}

TEST_CASE("ranks of one host that never ran together are of two runs") {
  Form form;
  form.host = "one";
  const TraceError error =
      error_of(cpu_profiles(small_run(), form, {1'000'000, 53'071'000'000, 1'000'000}));
  CHECK(error.file == "rank1.json");
  CHECK(contains(error.what(),
                 "it has no moment in common with rank0.json, though both are of the host one, "
                 "so these are not profiles of one run: rank0.json is from 2026-10-01 "
                 "12:17:06.001 to 2026-10-01 12:17:06."));
  CHECK(
      contains(error.what(), "rank1.json is from 2026-10-01 12:17:59.071 to 2026-10-01 12:17:59."));
  // On hosts with clocks of their own it may be one run, and the messages say by how much.
  const std::vector<NamedText> files = each_rank([](int rank, Form& other) {
    other.host = rank == 1 ? "b" : "a";
    return cpu_ranges(small_run(), as_size(rank), rank == 1 ? 3'600'000'000'000 : 0);
  });
  CHECK(read_kineto(files).shifts.at(1).shift == -3600 * 1000 * millisecond);
}

TEST_CASE("profiles of runs of different sizes are refused") {
  Form form;
  form.rank = 0;
  std::vector<NamedText> files = cpu_profiles(small_run());
  for (NamedText& file : files) {
    file.text =
        replaced(file.text, "\"backend\": \"gloo\"", "\"backend\": \"gloo\", \"world_size\": 3");
  }
  CHECK(read_kineto(files).ranks.size() == 3);
  files[2].text = replaced(files[2].text, "\"world_size\": 3", "\"world_size\": 4");
  const TraceError error = error_of(files);
  CHECK(error.where == "/distributedInfo/world_size");
  CHECK(contains(error.what(), "it is of a run of 4 ranks, and rank0.json of one of 3"));
}

TEST_CASE("profiles of different runs are refused where no shift helps") {
  // 1F0 is over before 0F0 begins, and 1B0 ends long after 0B0 has.
  const std::vector<Range> first{{"PP:0F0", 5'000'000, 6'000'000},
                                 {"PP:0B0", 6'500'000, 7'000'000}};
  const std::vector<Range> second{{"PP:1F0", 1'000'000, 2'000'000},
                                  {"PP:1B0", 8'000'000, 9'000'000}};
  Form a;
  a.rank = 0;
  Form b;
  b.rank = 1;
  const TraceError error =
      error_of({NamedText{"a.json", profile_text(first, a)}, {"b.json", profile_text(second, b)}});
  CHECK(contains(error.what(),
                 "b.json: no shift of the clocks lets every message arrive after it was sent: "
                 "for 1F0 (step 0) its clock must be at least 4.000 ms later, for 0B0 (step 0) "
                 "of a.json at least 2.000 ms earlier, so these are not profiles of one run; "
                 "a.json is from 2026-10-01 12:17:06.005 to 2026-10-01 12:17:06.007, "
                 "b.json is from 2026-10-01 12:17:06.001 to 2026-10-01 12:17:06.009"));
}

TEST_CASE("profiles that lie days apart are refused") {
  std::vector<NamedText> files = cpu_profiles(small_run());
  Form form;
  form.rank = 0;
  const std::vector<Range> late{{"PP:0F0", 0, 10},
                                {"PP:0B0", 200'000'000'000'000, 200'000'000'000'010}};
  CHECK(contains(error_of({NamedText{"a.json", profile_text(late, form)}}).what(),
                 "the ranges of the profiles lie 200000 s apart; they are not of one run"));
}

}  // namespace
}  // namespace stageline::kineto_clocks_tests
