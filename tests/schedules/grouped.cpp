// Does grouped interleaving take its authors' order, hold half of interleaved 1F1B's activations
// within a few per cent of its step, and is no search over loops above it at the same memory?
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tests/schedules/sizes.hpp"
#include "tests/specs.hpp"
#include "tests/thorough.hpp"

namespace stageline::grouped_tests {
namespace {

using test::peak;
using test::Ran;
using test::Size;

// Messages have a latency and no bytes.
Costs costs_of(const ScheduleSpec& spec, const Size& size) {
  Costs costs = uniform_costs(test::stages_for(spec, size.p), size.p, Time{size.F}, Time{size.I},
                              Time{size.W}, Time{1});
  for (Route& route : costs.network.routes) {
    if (route.is_free()) continue;
    route = Route{};
    route.latency = Time{size.c};
  }
  return costs;
}

Ran run(const std::string& schedule, const Size& size) {
  return test::run_schedule(schedule, size.p, costs_of(test::spec(schedule), size), size.m);
}

// By device, "0F0 0F1 …".
std::vector<std::string> orders(const std::string& schedule, int p, int m) {
  const ScheduleSpec spec = test::spec(schedule);
  const Costs costs = costs_of(spec, {p, m});
  std::vector<std::string> all;
  for (const auto& list : spec.scheduler->schedule(test::problem_for(spec, p, costs, m)).ops) {
    std::string& text = all.emplace_back();
    for (const Op op : list) text += (text.empty() ? "" : " ") + print(op);
  }
  return all;
}

// As written by the scheduler "group_interleaved_1f1b" of
// github.com/sail-sg/zero-bubble-pipeline-parallelism, B there as I. (2026-11-30: 1925 orders of 2
// to 12 devices, 1 to 5 chunks and all groups up to p are the same.)
TEST_CASE("grouped interleaving takes its ops in the order of its authors' scheduler") {
  CHECK(orders("interleaved_zb:group=1", 2, 3) ==
        std::vector<std::string>{
            "0F0 2F0 0F1 2I0 2W0 2F1 0I0 0W0 0F2 2I1 2W1 2F2 0I1 0W1 2I2 2W2 0I2 0W2",
            "1F0 3F0 3I0 3W0 1F1 1I0 1W0 3F1 3I1 3W1 1F2 1I1 1W1 3F2 3I2 3W2 1I2 1W2"});
  CHECK(orders("interleaved_zb:group=2", 3, 4) ==
        std::vector<std::string>{"0F0 0F1 3F0 3F1 0F2 3I0 3W0 0F3 3I1 3W1 3F2 0I0 0W0 3F3 0I1 0W1 "
                                 "3I2 3W2 3I3 3W3 0I2 0W2 0I3 0W3",
                                 "1F0 1F1 4F0 4F1 4I0 4W0 1F2 4I1 4W1 1F3 1I0 1W0 4F2 1I1 1W1 4F3 "
                                 "4I2 4W2 4I3 4W3 1I2 1W2 1I3 1W3",
                                 "2F0 2F1 5F0 5I0 5W0 5F1 5I1 5W1 2F2 2I0 2W0 2F3 2I1 2W1 5F2 5I2 "
                                 "5W2 5F3 5I3 5W3 2I2 2W2 2I3 2W3"});
}

TEST_CASE("grouped interleaving with whole backwards has B where I and W are") {
  for (const int p : {1, 2, 3, 4, 5, 8}) {
    for (int group = (p + 1) / 2; group < p; ++group) {
      for (const int m : {1, 3, group, 2 * group + 1, 4 * group}) {
        const std::string knobs = ":chunks=3,group=" + std::to_string(group);
        CAPTURE(p);
        CAPTURE(knobs);
        CAPTURE(m);
        std::vector<std::string> apart = orders("interleaved_zb" + knobs, p, m);
        for (std::string& list : apart) {
          std::istringstream words(list);
          std::string whole;
          for (std::string op; words >> op;) {
            if (op.find('W') != std::string::npos) continue;
            std::replace(op.begin(), op.end(), 'I', 'B');
            whole += (whole.empty() ? "" : " ") + op;
          }
          list = whole;
        }
        CHECK(orders("interleaved_1f1b" + knobs, p, m) == apart);
      }
    }
  }
}

TEST_CASE("groups of half as many micro-batches as devices hold p + (v-1)·group chunks") {
  for (int p = 1; p <= 12; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int group = (p + 1) / 2; group <= p; ++group) {
        CAPTURE(p);
        CAPTURE(v);
        CAPTURE(group);
        const std::string knobs = fmt::format(":chunks={},group={}", v, group);
        const Size size{p, 4 * p + 1, 1, 1, 1, 0};
        CHECK(peak(run("interleaved_zb" + knobs, size)) == p + (v - 1) * group);
        if (group < p) CHECK(peak(run("interleaved_1f1b" + knobs, size)) == p + (v - 1) * group);
      }
    }
  }
}

struct Ratchet {
  Size size;
  int chunks = 2;
  int group = 1;
  int stashes = 1;
  int makespan = 1;
};

constexpr Ratchet ratchets[] = {
    {{8, 32, 10, 11, 9, 1}, 2, 4, 12, 2145}, {{8, 32, 10, 11, 9, 1}, 3, 4, 16, 3169},
    {{8, 32, 10, 11, 9, 1}, 4, 4, 20, 4193}, {{16, 64, 10, 11, 9, 1}, 2, 8, 24, 4313},
    {{4, 16, 10, 11, 9, 1}, 4, 2, 10, 2085}, {{8, 10, 7, 6, 3, 3}, 3, 5, 18, 805},
};

TEST_CASE("no search over loops is above grouped interleaving at the same memory") {
  for (const Ratchet& one : ratchets) {
    if (!test::thorough && one.size.p * one.size.m * one.chunks > 512) continue;
    const Time most{one.makespan};
    const Ran ran =
        run(fmt::format("interleaved_zb:chunks={},group={}", one.chunks, one.group), one.size);
    CHECK(makespan(ran.times) == most);
    CHECK(peak(ran) == one.stashes);
    for (const char* const schedule : {"zb_auto:", "zb_auto:goal=makespan,", "cyclic:"}) {
      const std::string spec =
          fmt::format("{}placement=looped,chunks={},limit={}", schedule, one.chunks, one.stashes);
      CAPTURE(spec);
      const Ran found = run(spec, one.size);
      CHECK(makespan(found.times) <= most);
      CHECK(peak(found) <= one.stashes);
    }
  }
}

// PipeOffload's claim, of interleaved 1F1B; messages take a tenth of an op.
TEST_CASE(
    "groups of p/2 hold half of interleaved 1F1B's chunks, and take 2.5 per cent longer at most") {
  for (const Ratchet& one : ratchets) {
    if (one.size.c > 1) continue;
    CAPTURE(one.stashes);
    const Ran ran =
        run(fmt::format("interleaved_zb:chunks={},group={}", one.chunks, one.group), one.size);
    const Ran other = run(fmt::format("interleaved_1f1b:chunks={}", one.chunks), one.size);
    CHECK(2 * peak(ran) <= peak(other) + 1);
    CHECK(1000 * makespan(ran.times) <= 1025 * makespan(other.times));
  }
}

TEST_CASE("grouped interleaving is what the programs that others wrote hold") {
  const char* const data = std::getenv("STAGELINE_DATA");
  const auto folder = std::filesystem::path(data == nullptr ? "" : data) / "cases" / "programs";
  for (const auto& [name, schedule, m] :
       {std::tuple("grouped-p8-v4-g4-m32.slp", "interleaved_zb:chunks=4,group=4", 32),
        std::tuple("grouped-p8-v3-g5-m10.slp", "interleaved_zb:chunks=3,group=5", 10)}) {
    std::ifstream in(folder / name);
    if (!in) {
      MESSAGE("skipped: STAGELINE_DATA holds no cases/programs/" << name);
      continue;
    }
    std::ostringstream text;
    text << in.rdbuf();
    const Program given = parse_program(text.str());
    const ScheduleSpec spec = test::spec(schedule);
    const Costs costs = costs_of(spec, {8, m});
    CHECK(spec.scheduler->schedule(test::problem_for(spec, 8, costs, m)).ops == given.ops);
  }
}

}  // namespace
}  // namespace stageline::grouped_tests
