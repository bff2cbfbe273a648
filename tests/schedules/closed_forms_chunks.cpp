// Do 1F1B-V and interleaved zero-bubble give their sources' orders and numbers?
// p devices, m micro-batches, v chunks a device; F, I, W of one chunk.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/op.hpp"
#include "tests/schedules/synchronous.hpp"

namespace stageline::closed_forms_chunks_tests {
namespace {

using test::Ran;
using test::equal_stages::check_idle;
using test::equal_stages::makespan_of;
using test::equal_stages::peaks;
using test::equal_stages::run;
using test::equal_stages::Size;
using test::equal_stages::with;

// By device, "0F0 0F1 …".
std::vector<std::string> orders(const std::string& schedule, int p, int m) {
  const ScheduleSpec spec = test::spec(schedule);
  const int stages = test::stages_for(spec, p);
  const Costs costs = uniform_costs(stages, p, Time{1}, Time{1}, Time{1});
  std::vector<std::string> all;
  for (const auto& list : spec.scheduler->schedule(test::problem_for(spec, p, costs, m)).ops) {
    std::string& text = all.emplace_back();
    for (const Op op : list) text += (text.empty() ? "" : " ") + print(op);
  }
  return all;
}

// ---- 1F1B-V -------------------------------------------------------------------------------------

// As written by the scheduler "v1f1b" of github.com/sail-sg/zero-bubble-pipeline-parallelism.
TEST_CASE("1F1B-V takes its ops in the order of its authors' scheduler") {
  CHECK(
      orders("1f1b_v", 2, 4) ==
      std::vector<std::string>{"0F0 0F1 0F2 3F0 3B0 3F1 3B1 0F3 0B0 3F2 3B2 0B1 3F3 3B3 0B2 0B3",
                               "1F0 2F0 1F1 2F1 2B0 1B0 1F2 2F2 2B1 1B1 1F3 2F3 2B2 1B2 2B3 1B3"});
  CHECK(
      orders("1f1b_v", 3, 4) ==
      std::vector<std::string>{"0F0 0F1 0F2 0F3 5F0 5B0 5F1 5B1 5F2 5B2 5F3 0B0 5B3 0B1 0B2 0B3",
                               "1F0 1F1 1F2 4F0 1F3 4F1 4B0 4F2 4B1 1B0 4F3 4B2 1B1 4B3 1B2 1B3",
                               "2F0 3F0 2F1 3F1 2F2 3F2 3B0 2B0 2F3 3F3 3B1 2B1 3B2 2B2 3B3 2B3"});
  CHECK(
      orders("1f1b_v", 4, 4) ==
      std::vector<std::string>{"0F0 0F1 0F2 0F3 7F0 7B0 7F1 7B1 7F2 7B2 7F3 7B3 0B0 0B1 0B2 0B3",
                               "1F0 1F1 1F2 1F3 6F0 6F1 6B0 6F2 6B1 6B2 6F3 1B0 6B3 1B1 1B2 1B3",
                               "2F0 2F1 2F2 5F0 5F1 5F2 5B0 2F3 5B1 2B0 5F3 5B2 2B1 5B3 2B2 2B3",
                               "3F0 4F0 3F1 4F1 3F2 4F2 4B0 3B0 3F3 4F3 4B1 3B1 4B2 3B2 4B3 3B3"});
}

// A chunk of device r lives from F's slot to B's end. Forwards take slots 0 .. 2p-1, backwards two
// slots each and three more after every third, about 3p for p of them. So the two chunks of a
// device live for 8p + 3 slots together, give or take a wait, in a period of six: 4p/3 + 1/2
// chunks, where 1F1B's first device holds 2p of that size.
TEST_CASE("1F1B-V holds 2·ceil((2p+1)/3) chunks on every device, two thirds of 1F1B's first") {
  for (int p = 1; p <= 16; ++p) {
    for (const int m : {2 * p, 2 * p + 1, 5 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const Ran ran = run("1f1b_v", {p, m, Time{1}, Time{1}, Time{1}, Time{}});
      const int most = 2 * ((2 * p + 3) / 3);
      CHECK(peaks(ran) == std::vector<int>(as_size(p), std::min(most, 2 * m)));
    }
  }
}

// Where 3 divides p-1 the block takes 2p slots for forwards, 4p for backwards and 2(p-1) for waits,
// 8p-2 in all, so that without the squeeze a step took 6(m-1) + 8p-2: 8(p-1) of them idle. The
// squeeze at both ends saves 3(p-1) (found by running the authors' scheduler, not derived).
TEST_CASE("1F1B-V is idle for at most 5(p-1)F with B = 2F, where 1F1B is for 6(p-1)F") {
  for (int p = 1; p <= 16; ++p) {
    for (const int m : {p, p + 1, 2 * p, 3 * p + 1, 5 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const Time F{5};
      const Ran ran = run("1f1b_v", {p, m, F, F, F, Time{}});
      const Time idle = makespan(ran.times) - 6 * m * F;
      CHECK(idle <= 5 * (p - 1) * F);
      if (p % 3 == 1) CHECK(idle == 5 * (p - 1) * F);
      if (p > 1) CHECK(makespan(ran.times) < makespan_of("1f1b", {p, m, 2 * F, 2 * F, 2 * F}));
      check_idle(ran, idle);
    }
  }
}

// Measured by others: Ai2's OLMo-core, which trains with it, counts 6 live chunks a rank and a
// bubble of 23.8 % for p = 4, m = 8; 11, 9, 7, 5 chunks and 15.8 % for interleaved 1F1B.
TEST_CASE("1F1B-V and interleaved 1F1B give the chunks and bubbles that OLMo-core reports") {
  const Size size{4, 8, Time{1}, Time{1}, Time{1}, Time{}};
  const Ran v = run("1f1b_v", size);
  CHECK(peaks(v) == std::vector<int>{6, 6, 6, 6});
  CHECK(makespan(v.times) == Time{63});  // 15/63 = 23.8 %
  const Ran loop = run("interleaved_1f1b", size);
  CHECK(peaks(loop) == std::vector<int>{11, 9, 7, 5});
  CHECK(makespan(loop.times) == Time{57});  // 9/57 = 15.8 %
}

// ---- interleaved zero-bubble --------------------------------------------------------------------

// As written by torch.distributed.pipelining 2.13; tests/interop/pytorch.py compares more sizes.
TEST_CASE("interleaved zero-bubble takes its ops in PyTorch's order") {
  CHECK(orders("interleaved_zb", 2, 4) ==
        std::vector<std::string>{"0F0 0F1 2F0 2F1 2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 "
                                 "2I2 2W2 2I3 2W3 0I2 0W2 0I3 0W3",
                                 "1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 "
                                 "3F3 3I3 3W2 1I2 3W3 1I3 1W2 1W3"});
  // A group of more micro-batches than devices, three chunks, fewer micro-batches than devices.
  CHECK(orders("interleaved_zb", 3, 4)[1] ==
        "1F0 1F1 1F2 1F3 4F0 4F1 4I0 4F2 4I1 4W0 4F3 4I2 4W1 4I3 4W2 1I0 4W3 1I1 1W0 1I2 1W1 1I3 "
        "1W2 1W3");
  CHECK(orders("interleaved_zb:chunks=3", 2, 3)[1] ==
        "1F0 1F1 1F2 3F0 3F1 3F2 5F0 5I0 5F1 5I1 5W0 5F2 5I2 5W1 3I0 5W2 3I1 3W0 3I2 3W1 1I0 3W2 "
        "1I1 1W0 1I2 1W1 1W2");
  CHECK(orders("interleaved_zb", 4, 3)[3] ==
        "3F0 3F1 3F2 7F0 7I0 7F1 7I1 7F2 7I2 3I0 7W0 3I1 7W1 3I2 7W2 3W0 3W1 3W2");
}

TEST_CASE("interleaved zero-bubble with one chunk is ZB-H1") {
  for (int p = 1; p <= 6; ++p) {
    for (const int m : {p, 2 * p, 3 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      CHECK(orders("interleaved_zb:chunks=1", p, m) == orders("zb_h1", p, m));
    }
  }
}

// As for ZB-H1 (arXiv 2401.10241), a chunk at a time: the last device starts after p-1 forwards;
// the first one's I of the last micro-batch's first chunk comes p-1 I's after the last device's,
// and the p-1 W's that the last device has put off until then fill as much of that. The warm-up of
// (v-1)·group + p-1-r forwards and the one in turn are held, and r chunks whose W is put off.
TEST_CASE(
    "interleaved zero-bubble is idle for (p-1)(F+I-W) of a chunk, and holds p + (v-1)·group") {
  for (int p = 1; p <= 6; ++p) {
    for (const int v : {1, 2, 3, 4}) {
      for (const int groups : {1, 2, 3}) {
        for (const int group : {p, p + 1}) {
          const int m = groups * group;
          if (m / p != groups && p > 1) continue;  // it would be cut into more groups
          for (const auto& [F, I, W] : {std::tuple(1, 1, 1), std::tuple(7, 9, 7),
                                        std::tuple(10, 12, 6), std::tuple(5, 9, 1)}) {
            CAPTURE(p);
            CAPTURE(v);
            CAPTURE(m);
            const Ran ran =
                run(with("interleaved_zb", "chunks", v), {p, m, Time{F}, Time{I}, Time{W}, Time{}});
            check_idle(ran, Time{(p - 1) * (F + I - W)});
            const int most = std::min(m * v, p + (v - 1) * (p > 1 ? group : 1));
            CHECK(peaks(ran) == std::vector<int>(as_size(p), most));
          }
        }
      }
    }
  }
}

TEST_CASE("interleaved zero-bubble refuses groups of unequal size, with the nearest that suits") {
  const auto refusal = [](int p, int m) -> std::string {
    try {
      orders("interleaved_zb", p, m);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  for (const int m : {1, 3, 4, 7, 8, 10, 12, 15, 16}) CHECK(refusal(4, m).empty());
  CHECK(refusal(4, 9) ==
        "interleaved_zb: 9 micro-batches on 4 devices go in 2 groups, which cannot have the same "
        "size; take 8 or 10");
  CHECK(refusal(4, 14) ==
        "interleaved_zb: 14 micro-batches on 4 devices go in 3 groups, which cannot have the same "
        "size; take 12 or 15");
}

// ---- looped breadth-first, backwards reversed ---------------------------------------------------

// As written by torch.distributed.pipelining 2.13 (ScheduleLoopedBFS), two chunks.
TEST_CASE("looped BFS with reverse=yes takes its ops in PyTorch's order") {
  CHECK(orders("looped_bfs:reverse=yes", 2, 3) ==
        std::vector<std::string>{"0F0 0F1 0F2 2F0 2F1 2F2 2B2 2B1 2B0 0B2 0B1 0B0",
                                 "1F0 1F1 1F2 3F0 3F1 3F2 3B2 3B1 3B0 1B2 1B1 1B0"});
}

}  // namespace
}  // namespace stageline::closed_forms_chunks_tests
