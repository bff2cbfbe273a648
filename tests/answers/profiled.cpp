// Is the time of ranks told apart by what their profiles show?
#include "tools/answers/profiled.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/traces/kineto_runs.hpp"

namespace stageline::profiled_tests {
namespace {

using profiles::cpu_profiles;
using profiles::Form;
using profiles::Range;
using profiles::small_run;

constexpr std::int64_t us = 1000;  // nanoseconds

Time microseconds(std::int64_t count) { return std::chrono::microseconds(count); }

answers::ProfiledRun explained(const std::vector<Range>& ranges) {
  Form form;
  form.rank = 0;
  return answer(answers::ProfileQuestion{{{"rank0.json", profiles::profile_text(ranges, form)}}});
}

Time of_rank(const answers::ProfiledRun& found, const std::string& part, std::size_t rank = 0) {
  for (std::size_t i = 0; i < found.parts.size(); ++i) {
    if (found.parts[i].name == part) return found.ranks[rank].parts[i];
  }
  return Time{};
}

void check_sums(const answers::ProfiledRun& found) {
  for (const answers::ProfiledRank& rank : found.ranks) {
    Time sum{};
    for (const Time time : rank.parts) sum += time;
    CHECK(sum == rank.whole);
  }
}

// Two steps of one stage, with 3.5 ms between them.
std::vector<Range> two_steps() {
  return {{"ProfilerStep#0", 0, 5000 * us},
          {"PP:0F0", 1000 * us, 2000 * us},
          {"PP:0B0", 2000 * us, 4000 * us},
          {"Optimizer.step#SGD.step", 4000 * us, 4500 * us},
          {"ProfilerStep#1", 5000 * us, 12000 * us},
          {"PP:0F0", 8000 * us, 9000 * us},
          {"PP:0B0", 9000 * us, 11000 * us},
          {"Optimizer.step#SGD.step", 11000 * us, 11500 * us}};
}

// One step on a GPU: F from 1 to 2 ms, B from 2 to 4 ms, and their kernels.
std::vector<Range> on_gpu(const std::vector<Range>& more) {
  std::vector<Range> ranges{{"ProfilerStep#0", 0, 5000 * us},
                            {"PP:0F0", 100 * us, 200 * us, "user_annotation", 1, 1},
                            {"PP:0B0", 300 * us, 400 * us, "user_annotation", 1, 2},
                            {"PP:0F0", 1000 * us, 2000 * us, "gpu_user_annotation", 20, 1},
                            {"PP:0B0", 2000 * us, 4000 * us, "gpu_user_annotation", 20, 2}};
  ranges.insert(ranges.end(), more.begin(), more.end());
  return ranges;
}

Range kernel(const std::string& name, std::int64_t from, std::int64_t to) {
  return {name, from * us, to * us, "kernel", 20, 3, -1, 7};
}

}  // namespace

TEST_CASE("the time of every rank adds up, with the causes of a pipeline's idle time") {
  const answers::ProfiledRun found = answer(answers::ProfileQuestion{cpu_profiles(small_run())});
  REQUIRE(found.ranks.size() == 3);
  check_sums(found);
  const MeasuredIdle idle = answers::idle_of(found.run);
  for (std::size_t d = 0; d < 3; ++d) {
    CHECK(of_rank(found, "fill", d) == nth(idle.metrics.device[d].idle_by, IdleKind::fill));
    CHECK(of_rank(found, "link", d) == nth(idle.metrics.device[d].idle_by, IdleKind::link));
  }
  CHECK(of_rank(found, "forward", 0) > Time{});
  CHECK(of_rank(found, "backward", 0) > of_rank(found, "forward", 0));
}

TEST_CASE("loading between steps is told from what no operator does") {
  std::vector<Range> ranges = two_steps();
  ranges.push_back(
      {"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 5000 * us, 7000 * us});
  ranges.push_back({"aten::item", 5500 * us, 5600 * us, "cpu_op"});  // of the loader
  ranges.push_back({"aten::zero_", 7200 * us, 7300 * us, "cpu_op"});
  const answers::ProfiledRun found = explained(ranges);
  check_sums(found);
  CHECK(found.ranks[0].whole == microseconds(10500));
  CHECK(found.ranks[0].late == microseconds(3500));
  CHECK(of_rank(found, "data loading") == microseconds(2000));
  CHECK(of_rank(found, "other work") == microseconds(100));
  CHECK(of_rank(found, "no operator") == microseconds(1400));
  CHECK(of_rank(found, "optimizer step") == microseconds(1000));
  CHECK(found.steps == std::vector<Time>{microseconds(3500), microseconds(7000)});
  CHECK(found.longest ==
        "step 1 took 100.0 % longer than the median one: none of its ops took "
        "longer: ranks waited");
}

TEST_CASE("collectives between steps are told apart") {
  std::vector<Range> ranges = two_steps();
  ranges.push_back({"gloo:all_reduce", 4600 * us, 6600 * us});
  CHECK(of_rank(explained(ranges), "collectives") == microseconds(2000));
}

TEST_CASE("gaps between the kernels of an op are synchronizations, collectives or launches") {
  const answers::ProfiledRun found = explained(on_gpu({
      kernel("gemm", 1000, 1400),
      {"cudaStreamSynchronize", 1300 * us, 1450 * us, "cuda_runtime"},
      kernel("gemm", 1700, 2000),
      kernel("gemm", 2000, 3000),
      kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 2900, 3150),
      {"cudaMalloc", 3160 * us, 3180 * us, "cuda_runtime"},
      kernel("gemm", 3200, 4000),
  }));
  check_sums(found);
  CHECK(of_rank(found, "forward") == microseconds(700));
  CHECK(of_rank(found, "host synchronizations") == microseconds(300));
  CHECK(of_rank(found, "backward") == microseconds(1800));
  CHECK(of_rank(found, "collectives") == microseconds(150));
  CHECK(of_rank(found, "memory allocation") == microseconds(20));
  CHECK(of_rank(found, "launch gaps") == microseconds(30));
}

TEST_CASE("a clock that starts elsewhere changes nothing") {
  std::vector<Range> ranges = two_steps();
  ranges.push_back({"gloo:all_reduce", 4600 * us, 6600 * us});
  Form form;
  form.rank = 0;
  const Time there = of_rank(explained(ranges), "collectives");
  for (const bool relative : {true, false}) {
    form.relative = relative;
    form.base = 1'800'000'000'000'000'000;
    const answers::ProfiledRun found =
        answer(answers::ProfileQuestion{{{"rank0.json", profiles::profile_text(ranges, form)}}});
    CHECK(of_rank(found, "collectives") == there);
  }
}

TEST_CASE("links are timed by their messages, of recorded profiles too") {
  const answers::ProfiledRun found = answer(answers::ProfileQuestion{
      {{"rank0.json.gz", source_text("tests/traces/kineto/rank0.json.gz")},
       {"rank1.json.gz", source_text("tests/traces/kineto/rank1.json.gz")}}});
  check_sums(found);
  REQUIRE(found.links.size() == 2);
  for (const answers::MeasuredLink& link : found.links) {
    CHECK(link.messages == 36);
    CHECK(link.median > Time{});
    CHECK(link.most >= link.median);
    CHECK(link.bytes_per_second() == 0);
  }
  CHECK(found.links[0].from == "rank0");
  CHECK(found.links[0].to == "rank1");
  CHECK(found.steps.size() == 3);
}

TEST_CASE("profiles of launches alone are refused") {
  Form form;
  form.rank = 0;
  std::vector<Range> ranges = two_steps();
  ranges.push_back({"cudaLaunchKernel", 1100 * us, 1110 * us, "cuda_runtime"});
  const std::vector<NamedText> profile{{"rank0.json", profiles::profile_text(ranges, form)}};
  CHECK_THROWS_AS(answer(answers::ProfileQuestion{profile}), UsageError);
}

}  // namespace stageline::profiled_tests
