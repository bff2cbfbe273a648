// What does training gain that is pipelined at first only?
#include "tools/study/hybrid.hpp"
#include "tools/study/study.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "sim/base/errors.hpp"
#include "traces/traces.hpp"

namespace stageline::hybrid_tests {
namespace {

Case uniform_case(const std::string& schedule, int devices, const std::string& layers = "4") {
  Case asked;
  asked.model =
      uniform_model("layers=" + layers + ",forward=10ms,input_grad=10ms,weight_grad=10ms");
  asked.cluster = uniform_cluster(devices, std::nullopt, std::nullopt);
  asked.spec = parse_schedules(schedule).front();
  asked.microbatches = 4 * devices;
  return asked;
}

HybridStudy study_of(const Case& asked, PipelinedShare share, int curve_steps = 10) {
  const auto study = hybrid_study(asked, share, curve_steps);
  REQUIRE(study.has_value());
  return *study;
}

constexpr Time operator""_ms(unsigned long long milliseconds) {
  return Time{static_cast<std::int64_t>(milliseconds) * 1'000'000'000};
}
constexpr Time operator""_s(unsigned long long seconds) {
  return Time{static_cast<std::int64_t>(seconds) * 1'000'000'000'000};
}

std::string refusal(const Case& asked, PipelinedShare share) {
  try {
    hybrid_study(asked, share, 10);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("half of the paper's times each give the paper's hybrid speed-ups") {
  struct Row {
    Time nonpipelined;
    Time pipelined;
    double speedup;
  };
  for (const Row& row : {Row{6745_s, 4090_s, 1.245}, Row{13150_s, 7570_s, 1.269},
                         Row{27231_s, 14998_s, 1.290}, Row{44814_s, 24640_s, 1.290}}) {
    CAPTURE(row.speedup);
    const Hybrid hybrid = hybrid_of(row.nonpipelined, row.pipelined, {1, 2}, Time{});
    CHECK(std::abs(hybrid.over_nonpipelined - row.speedup) < 0.001);
    CHECK(hybrid.total == (row.nonpipelined + row.pipelined) / 2);
  }
}

TEST_CASE(
    "nothing pipelined is plain training, everything is the pipeline with one fill and drain") {
  CHECK(hybrid_of(100_s, 60_s, {0, 7}, 3_s).total == 100_s);
  CHECK(hybrid_of(100_s, 60_s, {0, 7}, 3_s).over_nonpipelined == 1);
  CHECK(hybrid_of(100_s, 60_s, {7, 7}, 3_s).total == 63_s);
  CHECK(hybrid_of(100_s, 60_s, {7, 7}, 3_s).over_pipelined == 1);
  CHECK(hybrid_of(100_s, 60_s, {1, 4}, 3_s).total == 93_s);
  CHECK(hybrid_of(Time{3}, Time{2}, {1, 2}, Time{}).total == Time{3});  // rounded once
}

TEST_CASE("PipeDream on two equal devices: a period of 60 ms, a fill of two") {
  // 0F 1F 1B 0B 0F … : the first stage waits for the second's backward once.
  const HybridStudy study = study_of(uniform_case("pipedream", 2), {500, 1000});
  CHECK(study.nonpipelined == 120_ms);
  CHECK(study.period.time == 60_ms * study.period.rounds);
  CHECK(study.fill == 120_ms);
  CHECK(study.drain == 100_ms);
  CHECK(study.fill_and_drain == 60_ms);
  CHECK(study.asked.hybrid.total == 60_ms * 500 + 60_ms + 120_ms * 500);
  CHECK(study.curve.front().hybrid.total == 120_ms * 1000);
  CHECK(study.curve.back().hybrid.total == 60_ms * 1000 + 60_ms);
}

TEST_CASE("the more is pipelined the faster, from 1 to the pipeline's own speed-up") {
  const HybridStudy study = study_of(uniform_case("pipedream", 4, "8"), {3, 10}, 20);
  REQUIRE(study.curve.size() == 21);
  const HybridStudy longer = study_of(uniform_case("pipedream", 4, "8"), {300, 1000}, 20);
  CHECK(longer.curve.front().hybrid.over_nonpipelined == 1);
  CHECK(longer.curve.back().hybrid.over_pipelined == 1);
  for (std::size_t i = 1; i < longer.curve.size(); ++i) {
    CHECK(longer.curve[i].hybrid.over_nonpipelined > longer.curve[i - 1].hybrid.over_nonpipelined);
    CHECK(longer.curve[i].share.pipelined == static_cast<std::int64_t>(50 * i));
  }
}

TEST_CASE("long runs are extended exactly: what is simulated whole says the same") {
  for (const char* schedule : {"pipedream", "pipedream:replicas=2-1"}) {
    Case asked = uniform_case(schedule, 3, "6");
    for (std::size_t l = 0; l < asked.model.layers.size(); ++l) {
      asked.model.layers[l].forward += Time{static_cast<std::int64_t>(7 * l + 3)};
    }
    CAPTURE(schedule);
    for (const int pipelined : {1, 2, 40, 611, 612}) {
      CAPTURE(pipelined);
      const HybridStudy study = study_of(asked, {pipelined, 700}, 1);
      Case whole = asked;
      whole.microbatches = pipelined;
      whole.steps = 1;
      const Time simulated = stageline::study(whole).metrics.makespan;
      CHECK(study.asked.hybrid.total == simulated + study.nonpipelined * (700 - pipelined));
      const Hybrid formula = hybrid_of(study.nonpipelined * 700,
                                       Time{study.period.time.count() * 700 / study.period.rounds},
                                       study.asked.share, study.fill_and_drain);
      CHECK(std::abs((formula.total - study.asked.hybrid.total).count()) <= 2);
    }
  }
}

TEST_CASE("a faster device alone makes plain training faster") {
  Case asked = uniform_case("pipedream", 2);
  asked.cluster.devices[1].rate = 2;
  CHECK(study_of(asked, {1, 2}).nonpipelined == 60_ms);
}

TEST_CASE("shares and schedules that cannot be are refused") {
  const Case asked = uniform_case("pipedream", 2);
  CHECK(refusal(asked, {11, 10}) == "11 of 10 iterations cannot be pipelined; give 0 to 10");
  CHECK(refusal(asked, {0, 0}) == "hybrid training needs at least 1 iteration, not 0");
  CHECK(refusal(asked, {1, INT64_MAX}).find("longer than 106 days") != std::string::npos);
  CHECK(refusal(uniform_case("1f1b", 2), {1, 2}).find("1f1b is synchronous and has none") !=
        std::string::npos);
  Case flushed = asked;
  flushed.weights = WeightRule::flush;
  CHECK(refusal(flushed, {1, 2}).find("--weights flush waits after each step") !=
        std::string::npos);
}

}  // namespace stageline::hybrid_tests
