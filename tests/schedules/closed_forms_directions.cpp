// Do we give the papers' numbers? GEMS, Chimera and Hanayo, exact to the picosecond.
#include <doctest/doctest.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/schedules/synchronous.hpp"

namespace stageline::closed_forms_directions_tests {
namespace {

using test::Ran;
using test::equal_stages::check_idle;
using test::equal_stages::makespan_of;
using test::equal_stages::over;
using test::equal_stages::peaks;
using test::equal_stages::run;
using test::equal_stages::Size;
using test::equal_stages::weights_held;
using test::equal_stages::with;

// ---- GEMS ---------------------------------------------------------------------------------------

TEST_CASE("GEMS: a micro-batch follows the backward of the one before; one stash, weights twice") {
  over(1, 8, 1, [](Size size) {
    for (size.m = 1; size.m <= 9; ++size.m) {
      CAPTURE(size.m);
      const Ran ran = run("gems", size);
      const Time behind = std::max(size.p * size.B() + size.F, size.B() + size.p * size.F);
      CHECK(makespan(ran.times) == size.p * size.F + (size.m - 1) * behind + size.p * size.B());
      CHECK(peaks(ran) == std::vector<int>(as_size(size.p), 1));
      const std::vector<std::int64_t> copies = weights_held(ran);
      for (int r = 0; r < size.p; ++r) {
        CHECK(nth(copies, r) == (2 * r == size.p - 1 ? 1 : 2));
      }
    }
  });
}

TEST_CASE("GEMS: with B = 2F one more micro-batch adds a bubble of (p-1)/(p+1/2)") {
  for (int p = 1; p <= 8; ++p) {
    const Size some{p, 10, Time{5}, Time{5}, Time{5}, Time{}};
    const Size more{p, 11, Time{5}, Time{5}, Time{5}, Time{}};
    const Time one = makespan_of("gems", more) - makespan_of("gems", some);
    // bubble = 1 - (F+B)/one
    CHECK((one - some.FB()) * (2 * p + 1) == one * (2 * (p - 1)));
  }
}

// ---- Chimera ------------------------------------------------------------------------------------

TEST_CASE("Chimera, p = m = 4, B = 2F, takes 16 slots") {
  CHECK(makespan_of("chimera", {4, 4, Time{1}, Time{1}, Time{1}, Time{}}) == Time{16});
}

TEST_CASE("Chimera with m = p is idle for (p-2)·max(F, B); concatenated, (p-2)|B-F| a unit more") {
  over(2, 8, 2, [](Size size) {
    for (int units = 1; units <= 4; ++units) {
      size.m = units * size.p;
      CAPTURE(units);
      const Ran ran = run("chimera", size);
      const Time gap = size.B() > size.F ? size.B() - size.F : size.F - size.B();
      const Time idle = (size.p - 2) * (std::max(size.F, size.B()) + (units - 1) * gap);
      CHECK(makespan(ran.times) == size.m * size.FB() + idle);
      const std::vector<int> held = peaks(ran);
      CHECK(*std::min_element(held.begin(), held.end()) == size.p / 2 + 1);
      CHECK(*std::max_element(held.begin(), held.end()) == size.p);
      for (int r = 0; r < size.p; ++r) {
        CHECK(nth(held, r) == size.p / 2 + 1 + std::min(r, size.p - 1 - r));
      }
      CHECK(weights_held(ran) == std::vector<std::int64_t>(as_size(size.p), 2));
    }
  });
}

TEST_CASE("Chimera's bubble is (p-2)/(2m+p-2) for B = F and (p-2)/(1.5m+p-2) for B = 2F") {
  for (int p = 2; p <= 8; p += 2) {
    for (const auto& [backward, twice] : {std::pair(1, 4), std::pair(2, 3)}) {
      const Size size{p, p, Time{6}, Time{6 * backward}, Time{0}, Time{}};
      const Time all = makespan_of("chimera", size);
      const Time idle = all - size.m * size.FB();
      CHECK(idle * (twice * size.m + 2 * (p - 2)) == all * (2 * (p - 2)));
    }
  }
}

TEST_CASE("Chimera with doubled forwards, B = 2F: no bubble between units, twice the stashes") {
  for (int p = 2; p <= 8; p += 2) {
    Size size{p, 2 * p, Time{3}, Time{3}, Time{3}, Time{}};
    const Time idle = makespan_of("chimera:concat=doubling", size) - size.m * size.FB();
    for (int units = 1; units <= 4; ++units) {
      size.m = units * 2 * p;
      CAPTURE(p);
      CAPTURE(units);
      const Ran ran = run("chimera:concat=doubling", size);
      check_idle(ran, idle);
      const std::vector<int> held = peaks(ran);
      CHECK(*std::max_element(held.begin(), held.end()) == 2 * p);
      if (p > 2) CHECK(makespan(ran.times) < makespan_of("chimera", size));
    }
  }
}

TEST_CASE("Chimera with 2f pipelines is idle for (p/f-2)·max(F, B), and holds weights 2f times") {
  over(2, 12, 2, [](Size size) {
    for (int f = 1; 2 * f <= size.p; ++f) {
      if (size.p % (2 * f) != 0) continue;
      CAPTURE(f);
      for (int units = 1; units <= 3; ++units) {
        size.m = units * size.p;
        CAPTURE(units);
        const Ran ran = run(with("chimera", "pipelines", 2 * f), size);
        const Time gap = size.B() > size.F ? size.B() - size.F : size.F - size.B();
        const Time idle = (size.p / f - 2) * (std::max(size.F, size.B()) + (units - 1) * gap);
        CHECK(makespan(ran.times) == size.m * size.FB() + idle);
        const std::vector<int> held = peaks(ran);
        CHECK(*std::max_element(held.begin(), held.end()) == size.p);
        CHECK(*std::min_element(held.begin(), held.end()) == size.p - size.p / (2 * f) + 1);
        CHECK(weights_held(ran) == std::vector<std::int64_t>(as_size(size.p), 2 * f));
      }
    }
  });
}

TEST_CASE("Chimera's pipelines take micro-batches in turn, in steps of multiples of f") {
  for (const int m : {2, 6, 8, 14, 20}) {
    CAPTURE(m);
    const Size size{8, m, Time{3}, Time{4}, Time{5}, Time{}};
    const Ran three = run("chimera:pipelines=4", size, 3);
    CHECK(makespan(three.times) == 3 * makespan_of("chimera:pipelines=4", size));
  }
  CHECK_THROWS_WITH_AS(
      run("chimera:pipelines=4", Size{8, 7, Time{3}, Time{4}, Time{5}, Time{}}),
      "chimera: 7 micro-batches a step among 4 pipelines: take a multiple of 2, such as 8",
      UsageError);
}

// ---- Hanayo -------------------------------------------------------------------------------------

TEST_CASE("Hanayo with m = p is idle for 2(p-1)·max(F, B) of a chunk, and holds 2wp-(p-1-r)") {
  over(1, 8, 1, [](Size size) {
    for (const int w : {1, 2, 3}) {
      size.m = size.p;
      CAPTURE(w);
      const Ran ran = run(with("hanayo", "waves", w), size);
      check_idle(ran, 2 * (size.p - 1) * std::max(size.F, size.B()));
      const std::vector<int> held = peaks(ran);
      for (int r = 0; r < size.p; ++r) {
        CHECK(nth(held, r) == 2 * w * size.p - (size.p - 1 - r));
      }
    }
  });
}

TEST_CASE("Hanayo with F = B: rounds of p without a gap, and the last round at most alone") {
  for (int p = 1; p <= 8; ++p) {
    for (const int w : {1, 2, 3}) {
      for (int m = 1; m <= 3 * p + 1; ++m) {
        const Size size{p, m, Time{5}, Time{2}, Time{3}, Time{}};
        CAPTURE(p);
        CAPTURE(w);
        CAPTURE(m);
        const Ran ran = run(with("hanayo", "waves", w), size);
        const int before = (m - 1) / p * p;
        const Time rounds = (2 * w * before + 2 * w * p + m - before - 1) * size.FB();
        CHECK(makespan(ran.times) <= rounds);
        if (m < p || m % p == 0) CHECK(makespan(ran.times) == rounds);
        const std::vector<int> held = peaks(ran);
        CHECK(*std::max_element(held.begin(), held.end()) <= 2 * w * std::min(m, p));
        // bubble (p-1)/(2wm+p-1)
        if (m % p > 0) continue;
        const Time all = makespan(ran.times);
        CHECK((all - 2 * w * m * size.FB()) * (2 * w * m + p - 1) == all * (p - 1));
      }
    }
  }
}

// The paper's (2p-2)/(3wp+p-1) for B = 2F and m = p, as others quote it.
TEST_CASE("Hanayo with B = 2F and m = p has no larger bubble than the paper gives") {
  for (int p = 2; p <= 8; ++p) {
    for (const int w : {1, 2, 3}) {
      CAPTURE(p);
      CAPTURE(w);
      const Size size{p, p, Time{1}, Time{1}, Time{1}, Time{}};
      const Time all = makespan_of(with("hanayo", "waves", w), size);
      CHECK((all - 2 * w * p * size.FB()) * (3 * w * p + p - 1) <= all * (2 * p - 2));
    }
  }
}

TEST_CASE("Hanayo with B = 2F and one wave idles no more as m grows, and less than 1F1B") {
  for (int p = 2; p <= 12; ++p) {
    const auto idle = [&](int m) {
      const Size size{p, m, Time{5}, Time{5}, Time{5}, Time{}};
      return makespan_of("hanayo", size) - 2 * m * size.FB();
    };
    const Time two = idle(2 * p);
    for (const int m : {2 * p, 3 * p, 4 * p, 8 * p, 8 * p + 1}) {
      CAPTURE(p);
      CAPTURE(m);
      CHECK(idle(m) == two);
      CHECK(idle(m) < (p - 1) * Time{30});
      const Ran ran = run("hanayo", {p, m, Time{5}, Time{5}, Time{5}, Time{}});
      const std::vector<int> held = peaks(ran);
      CHECK(*std::max_element(held.begin(), held.end()) <= 2 * p);
    }
  }
}

// (p-1)(B-F) a round and side is what the waves' rule alone would add.
TEST_CASE("Hanayo's order is never longer than the rule of the waves makes it") {
  for (int p = 2; p <= 8; ++p) {
    for (const int w : {1, 2, 3}) {
      for (int rounds = 2; rounds <= 4; ++rounds) {
        CAPTURE(p);
        CAPTURE(w);
        CAPTURE(rounds);
        const Size size{p, rounds * p, Time{5}, Time{5}, Time{5}, Time{}};
        const Time idle =
            makespan_of(with("hanayo", "waves", w), size) - 2 * w * size.m * size.FB();
        CHECK(idle <= 2 * (p - 1) * (size.B() + (rounds - 1) * (size.B() - size.F)));
      }
    }
  }
}

}  // namespace
}  // namespace stageline::closed_forms_directions_tests
