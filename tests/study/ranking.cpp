// The recommendation: the least memory among the fastest, and what the sentence says of it.
#include "tools/study/figures/ranking.hpp"

#include <doctest/doctest.h>

#include "tests/study/ranked.hpp"
#include "tests/study/uniform.hpp"
#include "tests/text.hpp"

namespace stageline::ranking_tests {
namespace {

using test::contains;
using test::uniform_case;

// An outcome of that step time and peak, on one device with `limit`.
Outcome outcome_of(const std::string& schedule, Time step, Bytes peak,
                   std::optional<Bytes> limit = std::nullopt) {
  Outcome outcome;
  outcome.schedule = schedule;
  outcome.devices = 4;
  outcome.microbatches = 8;
  outcome.step_time = step;
  outcome.throughput = 8 / to_seconds(step);
  outcome.throughput_unit = "samples/s";
  outcome.speedup = 3;
  outcome.program.devices = {"gpu0"};
  outcome.memory.device.resize(1);
  outcome.memory.device[0].peak = peak;
  outcome.memory_limit = {limit};
  outcome.fit = !limit ? Fit::unknown : peak > *limit ? Fit::no : Fit::yes;
  outcome.costs.bytes_known = true;
  return outcome;
}

constexpr Time millisecond{1'000'000'000};
constexpr Bytes megabyte{1'000'000};

TEST_CASE("rows that are not of the same work say so") {
  Outcome one = outcome_of("a", 10 * millisecond, megabyte * 100);
  Outcome other = outcome_of("b", 12 * millisecond, megabyte * 90);
  const auto sentence = [&] {
    const std::vector<const Outcome*> both{&one, &other};
    return rank(both).sentence;
  };
  CHECK_FALSE(contains(sentence(), "rows differ"));
  other.microbatches = 4;
  CHECK(
      contains(sentence(), "rows differ in micro-batches a step (4 to 8): throughput ranks them"));
  one.microbatch_size = other.microbatch_size = 2;
  CHECK(contains(sentence(), "rows differ in samples a step (8 to 16)"));
  other.copies = 2;  // as many samples, by replicas
  CHECK_FALSE(contains(sentence(), "rows differ"));
  other.devices = 8;
  CHECK(contains(sentence(), "rows differ in devices (4 to 8): throughput"));
  other.copies = 1;
  CHECK(contains(sentence(), "devices (4 to 8) and samples a step (8 to 16)"));
}

TEST_CASE("of those within 1 % of the fastest, the one with the least memory is recommended") {
  const std::vector<Outcome> outcomes{outcome_of("fast", 1000 * millisecond, megabyte * 50),
                                      outcome_of("lean", 1009 * millisecond, megabyte * 10),
                                      outcome_of("slow", 1011 * millisecond, megabyte * 5)};
  const Ranked ranked = test::ranked(outcomes);
  CHECK(ranked.order == std::vector<std::size_t>{0, 1, 2});
  CHECK(ranked.fastest == 0);
  CHECK(ranked.recommended == 1);
  CHECK(ranked.sentence ==
        "lean: 1.009 s, 10.00 MB, the least memory within 1 % of the fastest; fast is 0.9 % faster "
        "(1.000 s) with 5.0× the memory (50.00 MB)");
}

TEST_CASE("a step that is a lower bound is behind all that are known, and not recommended") {
  std::vector<Outcome> outcomes{outcome_of("bound", 900 * millisecond, megabyte * 5),
                                outcome_of("known", 1000 * millisecond, megabyte * 50),
                                outcome_of("slow", 1300 * millisecond, megabyte * 40)};
  outcomes[0].lower_bound = true;
  const Ranked ranked = test::ranked(outcomes);
  CHECK(ranked.order == std::vector<std::size_t>{1, 2, 0});
  CHECK(ranked.fastest == 1);
  CHECK(ranked.recommended == 1);
  for (Outcome& one : outcomes) one.lower_bound = true;  // nothing else is known
  CHECK(test::ranked(outcomes).fastest == 0);
}

TEST_CASE("the margin is the caller's") {
  const std::vector<Outcome> outcomes{outcome_of("fast", 1000 * millisecond, megabyte * 50),
                                      outcome_of("lean", 1040 * millisecond, megabyte * 40)};
  const std::vector<const Outcome*> pointers{&outcomes[0], &outcomes[1]};
  CHECK(rank(pointers).recommended == 0);
  CHECK(rank(pointers).sentence ==
        "fast: 1.000 s, 50.00 MB; 4.0 % more throughput than lean, 1.2× more memory");
  CHECK(rank(pointers, 0.05).recommended == 1);
  CHECK(contains(rank(pointers, 0.05).sentence, "with 25.0 % more memory (50.00 MB)"));
  CHECK(rank(pointers, 0).recommended == 0);
}

TEST_CASE("what does not fit is not recommended, however small the margin") {
  const Bytes limit = megabyte * 20;
  const std::vector<Outcome> outcomes{outcome_of("large", 1000 * millisecond, megabyte * 50, limit),
                                      outcome_of("fits", 1001 * millisecond, megabyte * 19, limit)};
  const Ranked ranked = test::ranked(outcomes);
  CHECK(ranked.recommended == 1);
  CHECK(ranked.fastest == 1);
}

TEST_CASE("where none fits, the sentence names the one that lacks least") {
  const Bytes limit = megabyte * 20;
  const std::vector<Outcome> outcomes{
      outcome_of("large", 1000 * millisecond, megabyte * 50, limit),
      outcome_of("nearly", 2000 * millisecond, megabyte * 21, limit)};
  const Ranked ranked = test::ranked(outcomes);
  CHECK_FALSE(ranked.recommended);
  CHECK_FALSE(ranked.fastest);
  CHECK(ranked.sentence ==
        "none fits: nearly lacks least, 1.000 MB: it needs 21.00 MB of 20.00 MB on gpu0");
}

TEST_CASE("what grows as long as it runs lacks more than any other, and no number of bytes") {
  std::vector<Outcome> outcomes{
      outcome_of("grows", 1000 * millisecond, megabyte * 2, megabyte * 20),
      outcome_of("large", 2000 * millisecond, megabyte * 50, megabyte * 20)};
  outcomes[0].grows = true;
  outcomes[0].fit = Fit::no;
  CHECK(test::ranked(outcomes).sentence ==
        "none fits: large lacks least, 30.00 MB: it needs 50.00 MB of 20.00 MB on gpu0");
  outcomes[1].fit = Fit::yes;
  CHECK(contains(test::ranked(outcomes).sentence,
                 "; grows would be 2.0× as fast but needs more memory the longer it runs"));
  for (const bool known : {true, false}) {  // the size of the memory
    outcomes.resize(1);
    if (!known) outcomes[0].memory_limit = {std::nullopt};
    CHECK(test::ranked(outcomes).sentence ==
          "none fits: grows needs more memory the longer it runs");
    CHECK(print_missing(tightest(outcomes[0]).value()) == "memory grows as long as it runs");
  }
}

TEST_CASE("a host that is too small is named as the place that lacks memory") {
  Outcome outcome = outcome_of("offload", millisecond, megabyte, megabyte * 2);
  outcome.memory.host.resize(1);
  outcome.memory.host[0].peak = megabyte * 9;
  outcome.host_limit = {megabyte * 8};
  outcome.costs.network.hosts = {"host0"};
  const std::optional<MemoryNeed> need = tightest(outcome);
  REQUIRE(need);
  CHECK(print(*need) == "9.000 MB of 8.000 MB on host0");
  CHECK(need->missing() == megabyte);
}

TEST_CASE("with tensor or context parallelism the speed-up is over a rank, and not one device") {
  std::vector<Outcome> outcomes{outcome_of("1f1b", 1000 * millisecond, megabyte)};
  outcomes[0].speedup = 0.5;
  CHECK(test::ranked(outcomes).sentence.ends_with("; 0.50× one device"));
  outcomes[0].all_devices = outcomes[0].devices * 8;
  CHECK(test::ranked(outcomes).sentence.ends_with("; 0.50× one rank without collectives"));
  outcomes[0].copies = 8;
  CHECK(test::ranked(outcomes).sentence.ends_with("; 0.50× one device"));
}

TEST_CASE("a sweep is ranked and worded by throughput") {
  std::vector<Outcome> outcomes{outcome_of("1f1b", 1000 * millisecond, megabyte * 2),
                                outcome_of("1f1b", 1500 * millisecond, megabyte)};
  outcomes[1].devices = 8;
  outcomes[1].throughput = 16;
  CHECK(test::ranked(outcomes).sentence.starts_with("1f1b on 8 devices: 16 samples/s, 1.000 MB; "));
}

TEST_CASE("recomputing is busy time that the bubble does not count") {
  const Outcome plain = study(uniform_case("gpipe", 4, 16));
  const Outcome again = study(uniform_case("gpipe:recompute=always", 4, 16));
  CHECK(plain.figures.recompute == 0);
  // Forwards are a quarter of what a device then does: F, R, I and W take as long.
  CHECK(again.figures.recompute == doctest::Approx((1 - again.bubble_fraction) / 4));
  const Outcome stream = study(uniform_case("pipedream_2bw:recompute=always", 4, 16));
  CHECK(stream.figures.recompute ==
        doctest::Approx((1 - stream.bubble_fraction) / 4).epsilon(0.05));
}

}  // namespace
}  // namespace stageline::ranking_tests
