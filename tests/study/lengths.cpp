// Do micro-batches of sequences of unequal lengths cost what each length does?
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tests/text.hpp"
#include "tools/answers/planned.hpp"
#include "tools/inputs/lengths.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/figures/training_rates.hpp"
#include "tools/study/study.hpp"

namespace stageline::lengths_tests {
namespace {

const std::string llama = "model:llama3-8b@h100,layers=6";

SettingRequest request_of(const std::string& trace, const std::string& lengths, int count) {
  SettingRequest request;
  request.trace = trace;
  request.devices = {2};
  request.microbatches = count;
  request.lengths = lengths;
  return request;
}

Case case_of(const std::string& trace, const std::string& lengths, int count,
             const std::string& schedule = "1f1b") {
  const SettingRequest request = request_of(trace, lengths, count);
  return make_case(request, read_setting(request), test::spec(schedule), 2);
}

Outcome alike(int tokens, int count) {
  return study(case_of(fmt::format("{},seq={}", llama, tokens), "", count));
}

}  // namespace

TEST_CASE("sequences that are as long as the trace says change nothing") {
  const Outcome plain = alike(4096, 4);
  const Outcome same = study(case_of(llama + ",seq=4096", "4096,4096,4096,4096", 4));
  CHECK(same.step_time == plain.step_time);
  CHECK(same.memory.device[0].peak == plain.memory.device[0].peak);
  CHECK(same.speedup == plain.speedup);
}

TEST_CASE("a device computes what each length takes, and rates count their tokens") {
  const Case asked = case_of(llama + ",seq=4096", "2048,8192,2048,8192", 4, "gpipe");
  const Outcome outcome = study(asked);
  const auto busy = [](const Outcome& one) { return to_seconds(one.metrics.device[0].busy); };
  const Time update = outcome.costs.stage[0].update;
  const double apart = busy(alike(2048, 2)) + busy(alike(8192, 2)) - to_seconds(update);
  CHECK(busy(outcome) == doctest::Approx(apart).epsilon(1e-9));
  const TrainingRates rates = training_rates(asked, outcome, {});
  CHECK(*rates.tokens_per_second == doctest::Approx(4 * 5120 / to_seconds(outcome.step_time)));
  const Case mean = case_of(llama + ",seq=5120", "", 4, "gpipe");
  CHECK(*rates.model_flops > *training_rates(mean, study(mean), {}).model_flops);
}

TEST_CASE("a note says which lengths the micro-batches have") {
  const auto said = [](const Case& asked) {
    const std::vector<std::string> notes = stream_notes(asked, study(asked));
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.find("micro-batches differ") != std::string::npos;
    });
  };
  CHECK(said(case_of(llama + ",seq=4096", "2048,8192", 2)));
  CHECK(said(case_of("uniform:layers=4", "1,2", 2)));
  CHECK_FALSE(said(case_of("uniform:layers=4", "", 2)));
}

TEST_CASE("the longest sequence decides the stash of one in flight") {
  const auto peak = [](const Outcome& one) {
    return nth(one.memory.device[1].at_peak, MemoryKind::stash);
  };
  const Outcome mixed = study(case_of(llama + ",seq=4096", "2048,8192,2048", 3));
  CHECK(peak(mixed) == peak(alike(8192, 3)));
}

TEST_CASE("what a trace without kernels takes is in proportion to tokens") {
  const Case asked = case_of("uniform:layers=4", "100,300,200", 3);
  CHECK(asked.kinds.empty());
  CHECK(asked.factors == std::vector<double>{0.5, 1.5, 1});
  const Outcome outcome = study(asked);
  CHECK(outcome.program.settings.costs == asked.factors);
  CHECK(outcome.metrics.device[0].busy ==
        study(case_of("uniform:layers=4", "", 3)).metrics.device[0].busy);
}

TEST_CASE("a given program takes the lengths that its trace has no kernels for") {
  SettingRequest request = request_of("uniform:layers=4", "100,300,200", 0);
  request.schedules = {given_schedule(study(case_of("uniform:layers=4", "", 3)).program)};
  request.devices.clear();
  const Case asked = make_case(request, read_setting(request), request.schedules.front(), 2);
  const Outcome drawn = study(case_of("uniform:layers=4", "100,300,200", 3));
  CHECK(study(asked).step_time == drawn.step_time);
  CHECK(drawn.step_time != study(case_of("uniform:layers=4", "", 3)).step_time);
}

TEST_CASE("lengths are read, or drawn the same every time") {
  CHECK(lengths_of("1, 2,3", 3, 8) == std::vector<std::int64_t>{1, 2, 3});
  const std::vector<std::int64_t> drawn = lengths_of("lognormal(4096,0.8)", 4000, 8);
  CHECK(drawn == lengths_of("lognormal(4096,0.8)", 4000, 8));
  const double sum =
      static_cast<double>(std::accumulate(drawn.begin(), drawn.end(), std::int64_t{0}));
  CHECK(sum / 4000 == doctest::Approx(4096).epsilon(0.03));
  for (const std::int64_t tokens : drawn) CHECK(tokens % 8 == 0);
  CHECK(lengths_of("lognormal(4096,0)", 2, 1) == std::vector<std::int64_t>{4096, 4096});
}

TEST_CASE("lengths that cannot be are refused in a sentence") {
  const auto refused = [](const std::string& lengths) {
    return test::complaint<UsageError>([&] { case_of(llama, lengths, 4); });
  };
  CHECK(refused("1024,2048") ==
        "--lengths: the list has 2 lengths, and a step has 4 micro-batches; give one for each, or "
        "--microbatches 2");
  CHECK(refused("1,2,0,4").find("number 3 of the list") != std::string::npos);
  CHECK(refused("lognormal(4096)").find("lognormal(MEAN,SIGMA) takes") != std::string::npos);
  CHECK(refused("lognormal(4096,0.8").find("lognormal(MEAN,SIGMA) takes") != std::string::npos);
  CHECK(refused("no-such-file").find("no-such-file") != std::string::npos);
  CHECK_THROWS_AS(case_of("model:resnet50@h100", "1,2,3,4", 4), UsageError);
  CHECK_THROWS_AS(case_of(llama, "1,2,3,4", 4, "seq1f1b:sequence_chunks=2"), UsageError);
  PlanQuestion question;
  question.request.setting = request_of(llama, "lognormal(4096,1)", 4);
  CHECK_THROWS_AS(answer(question), UsageError);
}

}  // namespace stageline::lengths_tests
