// Do we give the numbers of what came after the zero bubble: DualPipe's pairs, Seq1F1B's chunks,
// 2BW's stream?
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/analysis/memory.hpp"
#include "sim/analysis/metrics.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/deadlock.hpp"
#include "tests/make.hpp"

namespace stageline::closed_forms_pairs_tests {
namespace {

using test::Ran;

Ran run(const std::string& schedule, int devices, const Costs& costs, int m, int steps = 1) {
  return test::run_schedule(schedule, devices, costs, m, steps);
}

// The idle time of a device between the first start and the last end of the program.
std::vector<Time> idle_of(const Ran& ran) {
  std::vector<Time> idle;
  for (const DeviceMetrics& device : metrics_of(ran.program, ran.graph, ran.times).device) {
    idle.push_back(device.idle);
  }
  return idle;
}

// With pairs that hide nothing, on every device; else the one that idles most: where the two middle
// stages live, the first pair of the main part is run apart, which takes a device longer.
void check_idle(const Ran& ran, Time expected, bool all) {
  const std::vector<Time> idle = idle_of(ran);
  CHECK(*std::max_element(idle.begin(), idle.end()) == expected);
  if (all) CHECK(*std::min_element(idle.begin(), idle.end()) == expected);
}

// F = I = 6.
Costs pair_costs(int stages, int devices, int weight, double overlap) {
  Costs costs = uniform_costs(stages, devices, Time{6}, Time{6}, Time{weight});
  costs.pair_overlap = overlap;
  return costs;
}

int largest_stash(const Ran& ran) {
  const MemoryProfile memory = memory_of(ran.program, ran.costs, ran.timeline);
  return static_cast<int>(
      *std::max_element(memory.device_stash_peak.begin(), memory.device_stash_peak.end()));
}

TEST_CASE("DualPipe idles (p/2-1)(FB+B-3W) for F = I and W up to F, and holds p+1 stashes") {
  for (const int p : {2, 4, 6, 8, 16}) {
    for (const int m : {2 * p, 2 * p + 2, 4 * p}) {
      for (const int weight : {1, 3, 6}) {
        for (const double overlap : {0.0, 0.5, 1.0}) {
          CAPTURE(p);
          CAPTURE(m);
          CAPTURE(weight);
          CAPTURE(overlap);
          const Time backward{6 + weight};
          const Time pair = pair_time(Time{6}, backward, overlap);
          const Ran ran = run("dualpipe", p, pair_costs(p, p, weight, overlap), m);
          check_idle(ran, (p / 2 - 1) * (pair + backward - Time{3 * weight}), overlap == 0);
          CHECK(largest_stash(ran) == p + 1);
        }
      }
    }
  }
}

TEST_CASE("DualPipeV idles (p-1)(FB+B-3W) in its stages' times, and holds 2p+1 of their stashes") {
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const int m : {2 * p, 2 * p + 1, 4 * p}) {
      for (const int weight : {1, 3, 6}) {
        for (const double overlap : {0.0, 0.5, 1.0}) {
          CAPTURE(p);
          CAPTURE(m);
          CAPTURE(weight);
          CAPTURE(overlap);
          const Time backward{6 + weight};
          const Time pair = pair_time(Time{6}, backward, overlap);
          const Ran ran = run("dualpipe_v", p, pair_costs(2 * p, p, weight, overlap), m);
          check_idle(ran, (p - 1) * (pair + backward - Time{3 * weight}), overlap == 0);
          CHECK(largest_stash(ran) == 2 * p + 1);
        }
      }
    }
  }
}

TEST_CASE("DualPipe and DualPipeV say which number is wrong, and the nearest that works") {
  const Costs three = uniform_costs(3, 3, Time{1}, Time{1}, Time{1});
  CHECK_THROWS_WITH_AS(run("dualpipe", 3, three, 8), doctest::Contains("(it is 3); take 2 or 4"),
                       UsageError);
  const Costs four = uniform_costs(4, 4, Time{1}, Time{1}, Time{1});
  CHECK_THROWS_WITH_AS(run("dualpipe", 4, four, 6), doctest::Contains("take 8"), UsageError);
  CHECK_THROWS_WITH_AS(run("dualpipe", 4, four, 9), doctest::Contains("take 10"), UsageError);
  CHECK_THROWS_WITH_AS(run("dualpipe_v", 2, four, 3), doctest::Contains("take 4"), UsageError);
}

TEST_CASE("Seq1F1B is 1F1B in chunks: (p-1)(F+B) of a chunk idle, c-1 more chunks held") {
  for (const int p : {1, 2, 4, 7}) {
    for (const int chunks : {1, 2, 3, 5}) {
      for (const int m : {1, 2, p, 3 * p}) {
        for (const auto& [F, I, W] :
             {std::tuple(1, 1, 1), std::tuple(4, 3, 2), std::tuple(2, 5, 9)}) {
          CAPTURE(p);
          CAPTURE(chunks);
          CAPTURE(m);
          const Costs costs = uniform_costs(p, p, Time{F}, Time{I}, Time{W});
          const Ran ran = run("seq1f1b:sequence_chunks=" + std::to_string(chunks), p, costs, m);
          for (const Time idle : idle_of(ran)) CHECK(idle == Time{(p - 1) * (F + I + W)});
          const MemoryProfile memory = memory_of(ran.program, costs, ran.timeline);
          for (int r = 0; r < p; ++r) {
            CHECK(nth(memory.device_stash_peak, r) == std::min(m * chunks, p - r + chunks - 1));
          }
        }
      }
    }
  }
}

TEST_CASE("SVPP idles (p-1)(F+I-W) of a chunk's slice, and holds p+s-1+(v-1)group of them") {
  for (const int p : {1, 2, 4}) {
    for (const int slices : {1, 2, 3, 5}) {
      for (const int chunks : {1, 2, 3}) {
        const int least = (p + slices - 1) / slices;  // sequences of a group
        for (const int groups : {1, 2, 3}) {
          for (const auto& [F, I, W] :
               {std::tuple(1, 1, 1), std::tuple(7, 9, 7), std::tuple(10, 12, 6)}) {
            CAPTURE(p);
            CAPTURE(slices);
            CAPTURE(chunks);
            CAPTURE(groups);
            const Costs costs = uniform_costs(p * chunks, p, Time{F}, Time{I}, Time{W});
            const Ran ran = run("svpp:sequence_chunks=" + std::to_string(slices) +
                                    ",chunks=" + std::to_string(chunks),
                                p, costs, groups * least);
            const int group = least * slices;
            // Behind fewer slices the first device has no forward left beside its first backward.
            const bool steady = p == 1 || p + slices - 2 < groups * group;
            for (const Time idle : idle_of(ran)) {
              CHECK(idle >= Time{(p - 1) * (F + I - W)});
              CHECK(idle <= Time{(p - 1) * (F + I - (steady ? W : 0))});
            }
            const MemoryProfile memory = memory_of(ran.program, costs, ran.timeline);
            const int most =
                std::min(groups * group * chunks, p + slices - 1 + (chunks - 1) * group);
            for (int r = 0; r < p; ++r) CHECK(nth(memory.device_stash_peak, r) == most);
          }
        }
      }
    }
  }
}

TEST_CASE("SVPP with one slice is interleaved zero-bubble, and refuses groups of unequal size") {
  const Costs costs = uniform_costs(8, 4, Time{2}, Time{3}, Time{1});
  CHECK(run("svpp:sequence_chunks=1", 4, costs, 8).program.ops ==
        run("interleaved_zb", 4, costs, 8).program.ops);
  CHECK_THROWS_WITH_AS(run("svpp", 4, costs, 5),
                       doctest::Contains("5 micro-batches of 2 slices on 4 devices go in 2 groups, "
                                         "which cannot have the same size; take 4 or 6"),
                       UsageError);
}

TEST_CASE("a chunk of a sequence never passes the one before, nor its backward the one behind") {
  const Costs costs = uniform_costs(1, 1, Time{1}, Time{1}, Time{1});
  const std::string head =
      "stageline-program 1\nmicrobatches: 2\nsequence_chunks: 2\nstage 0: a\na: ";
  CHECK_THROWS_AS(compile(parse_program(head + "0F1 0F0 0B1 0B0\n"), costs), Deadlock);
  CHECK_THROWS_AS(compile(parse_program(head + "0F0 0F1 0B0 0B1\n"), costs), Deadlock);
  CHECK_THROWS_AS(compile(parse_program(head + "0F0 0F1 0W0 0W1\n"), costs), Deadlock);
  CHECK(makespan(simulate(compile(parse_program(head + "0F0 0F1 0W1 0W0\n"), costs))) == Time{4});
}

TEST_CASE("chunks of a sequence stay together") {
  const std::string odd =
      "stageline-program 1\nmicrobatches: 3\nsequence_chunks: 2\nstage 0: a\na: 0F0 0F1 0F2 0B1 "
      "0B0 0B2\n";
  CHECK_THROWS_WITH_AS(validate(parse_program(odd)),
                       doctest::Contains("3 are no multiple of sequence_chunks, 2"), ProgramError);
  const std::string apart =
      "stageline-program 1\nmicrobatches: 2\nsequence_chunks: 2\nstage 0: a+b\na: 0F0 0B0\nb: 0F1 "
      "0B1\n";
  CHECK_THROWS_WITH_AS(validate(parse_program(apart)), doctest::Contains("lives on one device"),
                       ProgramError);
  const std::string stale =
      "stageline-program 1\nmicrobatches: 2\nsequence_chunks: 2\nweights: stash\nstage 0: a\na: "
      "0F0 0F1 0B1 0B0\n";
  CHECK_THROWS_WITH_AS(validate(parse_program(stale)), doctest::Contains("flush or double_buffer"),
                       ProgramError);
}

TEST_CASE("2BW takes m(F+B) a step, holds two versions, and is one step stale") {
  for (const int p : {1, 2, 4, 6}) {
    for (const int m : {p, p + 1, 3 * p}) {
      constexpr int steps = 5;
      CAPTURE(p);
      CAPTURE(m);
      const Ran ran =
          run("pipedream_2bw", p, uniform_costs(p, p, Time{2}, Time{3}, Time{4}), m, steps);
      CHECK(makespan(ran.times) == Time{(p - 1) * 9 + steps * m * 9});
      for (const StageVersions& versions : versions_of(ran.program, ran.timeline)) {
        CHECK(versions.held_peak == 2);
        CHECK(versions.staleness_min == 0);  // of the first step, which no update precedes
        CHECK(versions.staleness_max == 1);
        CHECK(versions.staleness_mean == doctest::Approx((steps - 1.0) / steps));
        CHECK(versions.consistent);
      }
      const MemoryProfile memory = memory_of(ran.program, ran.costs, ran.timeline);
      for (int s = 0; s < p; ++s) {
        CHECK(nth(memory.device_stash_peak, s) == std::min(p - s, m * steps));
      }
    }
  }
  CHECK_THROWS_WITH_AS(run("pipedream_2bw", 4, uniform_costs(4, 4, Time{1}, Time{1}, Time{1}), 3),
                       doctest::Contains("(micro-batches: 3, stages: 4)"), UsageError);
}

}  // namespace
}  // namespace stageline::closed_forms_pairs_tests
