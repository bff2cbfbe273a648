// Do the parts of a step add up, and is a cause found that was put in?
#include "tools/answers/explained.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "sim/base/errors.hpp"
#include "tools/answers/simulated.hpp"

namespace stageline::explained_tests {
namespace {

answers::ExplainQuestion dense() {
  answers::ExplainQuestion question;
  question.setting.trace = "model:llama3-8b@h100,seq=4096";
  question.setting.cluster.cluster = "h100x8*2";
  question.setting.degrees.tensor = 4;
  question.setting.degrees.data = 2;
  question.setting.degrees.pipeline = 2;
  question.setting.sequence_parallel = true;
  question.setting.microbatches = 8;
  return question;
}

answers::MeasuredValue step_of(double seconds) {
  return {"", answers::MeasuredUnit::step, seconds};
}

double seconds_of(const SettingRequest& request) {
  answers::SimulationQuestion question;
  question.setting = request;
  return to_seconds(answer(question).outcome.step_time);
}

bool names(const answers::Explanation& found, const std::string& cause) {
  return std::any_of(found.suspects.begin(), found.suspects.end(),
                     [&](const answers::Suspect& one) { return one.name == cause; });
}

}  // namespace

TEST_CASE("the parts of a step add up to the measured one, from the peak on") {
  answers::ExplainQuestion question = dense();
  question.measured = {step_of(3)};
  const answers::Explanation found = answer(question);
  Time sum{};
  for (const answers::StepPart& part : found.parts) sum += part.time;
  CHECK(sum == from_seconds(3));
  REQUIRE(found.rates.mfu);
  CHECK(to_seconds(found.parts.front().time) ==
        doctest::Approx(*found.rates.mfu * to_seconds(found.outcome.step_time)));
  CHECK_FALSE(found.fits_evidence());
  CHECK(found.parts.back().name == "not explained");
  CHECK(found.parts.back().time == from_seconds(3) - found.outcome.step_time);
}

TEST_CASE("a step as predicted has no suspects") {
  answers::ExplainQuestion question = dense();
  question.measured = {step_of(seconds_of(question.setting) * 1.03)};
  const answers::Explanation found = answer(question);
  CHECK(found.suspects.empty());
  REQUIRE(found.interval);
  CHECK(found.fits_evidence());
}

TEST_CASE("a slow network that is put in is the first cause, with its strength") {
  answers::ExplainQuestion question = dense();
  question.setting.degrees = {};
  question.setting.degrees.data = 16;
  question.setting.degrees.pipeline = 1;
  question.setting.degrees.zero = Zero::weights;
  question.setting.sequence_parallel = false;
  question.setting.microbatches = 2;
  SettingRequest slow = question.setting;
  slow.slow = {{"network", 15}};
  question.measured = {step_of(seconds_of(slow))};
  const answers::Explanation found = answer(question);
  REQUIRE_FALSE(found.suspects.empty());
  const answers::Suspect& first = found.suspects.front();
  CHECK(first.name == "slow network");
  CHECK(first.strength == doctest::Approx(15).epsilon(0.15));
  CHECK(to_seconds(first.step) == doctest::Approx(to_seconds(found.measured.step)).epsilon(0.03));
  CHECK(first.flags.find("--slow network:1") == 0);
}

TEST_CASE("an ailment that is put in is found among the first three") {
  const auto explained = [](const SettingRequest& changed) {
    answers::ExplainQuestion question = dense();
    question.measured = {step_of(seconds_of(changed))};
    return answer(question);
  };
  SettingRequest recomputing = dense().setting;
  recomputing.recomputation = parse_recomputation("every:1", "--recompute");
  CHECK(names(explained(recomputing), "recomputation"));
  SettingRequest plain = dense().setting;
  plain.trace += ",attention=plain";
  CHECK(names(explained(plain), "attention is not fused"));
}

// 4,096 devices, 256 replicas.
answers::ExplainQuestion large() {
  answers::ExplainQuestion question = dense();
  question.setting.cluster.cluster = "h100x8*512";
  question.setting.degrees.tensor = 8;
  question.setting.degrees.data = 256;
  question.setting.degrees.zero = Zero::optimizer;
  return question;
}

TEST_CASE("causes of a run of hundreds of replicas are steps of all of them") {
  answers::ExplainQuestion question = large();
  SettingRequest slow = question.setting;
  slow.slow = {{"network", 15}};
  question.measured = {step_of(seconds_of(slow))};
  const answers::Explanation found = answer(question);
  REQUIRE_FALSE(found.suspects.empty());
  const answers::Suspect& first = found.suspects.front();
  CHECK(first.name == "slow network");
  slow.slow = {{"network", first.strength}};
  CHECK(to_seconds(first.step) == doctest::Approx(seconds_of(slow)));
  CHECK(to_seconds(first.step) == doctest::Approx(to_seconds(found.measured.step)).epsilon(0.03));
}

TEST_CASE("one slow device among more replicas than are simulated apart is a cause") {
  answers::ExplainQuestion question = large();
  question.measured = {step_of(seconds_of(question.setting) * 1.08)};
  const answers::Explanation found = answer(question);
  REQUIRE(names(found, "one slow device"));
  for (const answers::Suspect& one : found.suspects) {
    if (one.name == "one slow device") CHECK(one.flags.empty());  // which --slow refuses
  }
}

TEST_CASE("products in 32 bits are found where the run was said to be in 16") {
  answers::ExplainQuestion question = dense();
  SettingRequest wide = question.setting;
  wide.trace += ",dtype=tf32";
  question.measured = {step_of(seconds_of(wide))};
  const answers::Explanation found = answer(question);
  CHECK(names(found, "products in 32 bits"));
}

TEST_CASE("an allocator at its limit is a cause where what it reserves fills the device") {
  answers::ExplainQuestion question = dense();
  question.measured = {step_of(seconds_of(question.setting) * 1.4)};
  CHECK_FALSE(names(answer(question), "the allocator is at its limit"));
  question.memory_measured = parse_bytes("79GB");
  CHECK(names(answer(question), "the allocator is at its limit"));
}

TEST_CASE("samples a second are of all devices, and those of the measured step are the run's") {
  answers::ExplainQuestion question = dense();
  question.measured = {answers::parse_measured("8 samples/s", "--measured")};
  question.samples_measured = 16;
  CHECK(answer(question).measured.step == from_seconds(2));
  question.samples_measured = 32;
  CHECK_THROWS_AS(answer(question), UsageError);
}

TEST_CASE("the parts of a predicted step add up to it, with jitter to the mean one") {
  answers::SimulationQuestion question;
  question.setting = dense().setting;
  question.why = CauseOrder::fixed;
  CHECK(answer(question).from_peak.empty());
  question.from_peak = true;
  const auto sum_of = [](const answers::Simulation& found) {
    Time sum{};
    for (const answers::StepPart& part : found.from_peak) sum += part.time;
    return sum;
  };
  const answers::Simulation found = answer(question);
  CHECK(sum_of(found) == found.outcome.step_time);
  answers::ExplainQuestion explained = dense();
  explained.measured = {step_of(3)};
  const answers::Explanation other = answer(explained);
  REQUIRE(found.from_peak.size() + 1 == other.parts.size());
  for (std::size_t i = 0; i < found.from_peak.size(); ++i) {
    CHECK(found.from_peak[i].name == other.parts[i].name);
    CHECK(found.from_peak[i].time == other.parts[i].time);
  }
  question.setting.replicas_vary = true;
  question.scenarios.perturbation.jitter = parse_jitter("5%", "--jitter");
  question.scenarios.scenarios = 32;
  const answers::Simulation jittered = answer(question);
  CHECK(sum_of(jittered) == jittered.waterfall->step);
}

TEST_CASE("a measured value is read in its unit, and refused where it cannot be") {
  const auto step = [](const std::string& text) {
    answers::ExplainQuestion question = dense();
    question.measured = {answers::parse_measured(text, "--measured")};
    return answer(question).measured;
  };
  answers::ExplainQuestion question = dense();
  question.measured = {step_of(1)};
  const answers::Explanation found = answer(question);
  const double predicted = to_seconds(found.outcome.step_time);
  const double tokens = *found.rates.tokens_per_device_second;
  CHECK(step("1500ms").step == from_seconds(1.5));
  CHECK(to_seconds(step(std::to_string(tokens / 2) + "tok/s").step) ==
        doctest::Approx(2 * predicted));
  CHECK(to_seconds(step(std::to_string(tokens * 16 / 2) + " tok/s").step) ==
        doctest::Approx(2 * predicted));
  CHECK(step(std::to_string(tokens / 2) + "tok/s").notes.size() == 1);
  CHECK(to_seconds(step(std::to_string(tokens / 2) + "tok/s/gpu").step) ==
        doctest::Approx(2 * predicted));
  CHECK(to_seconds(step(std::to_string(50 * *found.rates.mfu) + "%").step) ==
        doctest::Approx(2 * predicted));
  CHECK_THROWS_AS(answers::parse_measured("5", "--measured"), UsageError);
  CHECK_THROWS_AS(answers::parse_measured("-5s", "--measured"), UsageError);
  CHECK_THROWS_AS(answers::parse_measured("5 parsecs", "--measured"), UsageError);
  CHECK_THROWS_AS(step("5000TFLOP/s"), UsageError);
  question.measured = {step_of(1), step_of(2)};
  CHECK_THROWS_AS(answer(question), UsageError);
}

}  // namespace stageline::explained_tests
