// Do micro-batches of sequences of unequal lengths cost what each length does?
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/program.hpp"
#include "tests/make.hpp"
#include "tests/text.hpp"
#include "tools/answers/planned.hpp"
#include "tools/inputs/lengths.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/planner/planner.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/figures/training_rates.hpp"
#include "tools/study/study.hpp"

namespace stageline::lengths_tests {
namespace {

using namespace std::string_literals;

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
  CHECK(lengths_of("1, 2,3", 3, 8) == std::vector<Documents>{{1}, {2}, {3}});
  const std::vector<Documents> drawn = lengths_of("lognormal(4096,0.8)", 4000, 8);
  CHECK(drawn == lengths_of("lognormal(4096,0.8)", 4000, 8));
  double sum = 0;
  for (const Documents& documents : drawn) sum += static_cast<double>(tokens_of(documents));
  CHECK(sum / 4000 == doctest::Approx(4096).epsilon(0.03));
  for (const Documents& documents : drawn) CHECK(documents.front() % 8 == 0);
  CHECK(lengths_of("lognormal(4096,0)", 2, 1) == std::vector<Documents>{{4096}, {4096}});
}

TEST_CASE("documents are packed one behind the other") {
  CHECK(lengths_of("100+200,300", 2, 1) == std::vector<Documents>{{100, 200}, {300}});
  CHECK(lengths_of("packed:8:5,3,4,4,1,7", 3, 1) == std::vector<Documents>{{5, 3}, {4, 4}, {1, 7}});
  CHECK(count_of_lengths("packed:8:5,3,4,4,1,7") == 3);
  CHECK(count_of_lengths("lognormal(10,1)") == 0);
  const std::vector<Documents> drawn = lengths_of("packed:8192:lognormal(1024,1)", 16, 8);
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    CHECK(tokens_of(drawn[i]) <= 8192);
    if (i > 0) CHECK(tokens_of(drawn[i - 1]) + drawn[i].front() > 8192);
  }
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
  answers::PlanQuestion question;
  question.request.setting = request_of(llama, "lognormal(4096,1)", 4);
  CHECK_THROWS_AS(answer(question), UsageError);
  CHECK(refused("packed:1024:2048,1,1,1").find("a document of 2048 tokens") != std::string::npos);
  CHECK(refused("packed:none:1").find("packed:N:DOCUMENTS takes") != std::string::npos);
  CHECK(refused("packed:4096:1024,1024,4096").find("packs into 2 lengths") != std::string::npos);
}

TEST_CASE("a sequence of equal documents costs what as many sequences do") {
  for (const std::string& trace : {llama, "model:mixtral-8x7b@h100,layers=4"s}) {
    const Outcome documents = study(case_of(trace + ",batch=1", "2048+2048+2048+2048", 1));
    const Outcome sequences = study(case_of(trace + ",batch=4,seq=2048", "", 1));
    CHECK(documents.step_time == sequences.step_time);
    CHECK(documents.memory.device[1].peak == sequences.memory.device[1].peak);
  }
}

TEST_CASE("attention of packed documents grows with the sum of their squares") {
  const auto busy = [](const std::string& lengths) {
    return to_seconds(study(case_of(llama + ",seq=32768", lengths, 1)).metrics.device[0].busy);
  };
  const double whole = busy("32768");
  const double halves = busy("16384+16384");
  const double quarters = busy("8192+8192+8192+8192");
  CHECK(halves < whole);
  // Pairs of tokens halve each time; the curve's rate falls with shorter documents.
  CHECK(whole - halves == doctest::Approx(2 * (halves - quarters)).epsilon(1e-6));
  const double unequal = busy("24576+8192");
  CHECK(unequal < whole);
  CHECK(unequal > halves);
}

TEST_CASE("micro-batches are taken in the order that is asked for") {
  const auto cost = [](const Documents& documents) {
    return static_cast<double>(tokens_of(documents));
  };
  const std::vector<Documents> given{{4}, {1}, {3}, {5}, {2}};
  const auto in = [&](LengthsOrder order) { return ordered(given, order, cost); };
  CHECK(in(LengthsOrder::given) == given);
  CHECK(in(LengthsOrder::ascending) == std::vector<Documents>{{1}, {2}, {3}, {4}, {5}});
  CHECK(in(LengthsOrder::descending) == std::vector<Documents>{{5}, {4}, {3}, {2}, {1}});
  CHECK(in(LengthsOrder::snake) == std::vector<Documents>{{1}, {3}, {5}, {4}, {2}});
  CHECK(in(LengthsOrder::balanced) == in(LengthsOrder::snake));
  const std::vector<Documents> dealt = ordered({{8, 1}, {4, 4}, {7}}, LengthsOrder::balanced, cost);
  std::vector<std::int64_t> tokens;
  for (const Documents& documents : dealt) tokens.push_back(tokens_of(documents));
  CHECK(tokens == std::vector<std::int64_t>{8, 8, 8});
  const Case asked = [] {
    SettingRequest request = request_of(llama, "2048,8192,1024", 3);
    request.lengths_order = LengthsOrder::descending;
    return make_case(request, read_setting(request), test::spec("1f1b"), 2);
  }();
  CHECK(asked.lengths == std::vector<Documents>{{8192}, {2048}, {1024}});
  const Outcome plain = study(case_of(llama, "8192,2048,1024", 3));
  CHECK(study(asked).step_time == plain.step_time);
}

TEST_CASE("no order of few micro-batches is much faster than the best that has a name") {
  std::mt19937 random(7);
  double most = 0;
  for (int trial = 0; trial < 12; ++trial) {
    std::vector<std::string> words;
    for (int n = 0; n < 5; ++n) {
      words.push_back(std::to_string(512 * std::uniform_int_distribution<int>(1, 16)(random)));
    }
    const auto step = [&](const std::string& lengths, LengthsOrder order) {
      SettingRequest request = request_of(llama + ",seq=4096", lengths, 5);
      request.devices = {3};
      request.lengths_order = order;
      return study(make_case(request, read_setting(request), test::spec("1f1b"), 3)).step_time;
    };
    const std::string given = fmt::format("{}", fmt::join(words, ","));
    Time best = Time::max();
    for (const LengthsOrder order : all_lengths_orders) best = std::min(best, step(given, order));
    std::sort(words.begin(), words.end());
    Time least = best;
    do {
      least = std::min(least, step(fmt::format("{}", fmt::join(words, ",")), LengthsOrder::given));
    } while (std::next_permutation(words.begin(), words.end()));
    most = std::max(most, to_seconds(best) / to_seconds(least));
  }
  MESSAGE("the best named order takes up to ", most, " times the best of all");
  CHECK(most < 1.03);
}

TEST_CASE("a program keeps the lengths of its micro-batches and slices") {
  for (const std::string& schedule :
       {"1f1b"s, "zb_h1"s, "seq1f1b:sequence_chunks=2,slices=3072-1024"s}) {
    const bool sliced = schedule.starts_with("seq");
    const std::string lengths = sliced ? "" : "2048,4096+1024,8192";
    const Outcome first = study(case_of(llama + ",seq=4096", lengths, 3, schedule));
    const Program again = parse_program(print(first.program));
    CHECK(again == first.program);
    CHECK((sliced ? again.settings.slices.size() : again.settings.lengths.size()) ==
          (sliced ? 2U : 3U));
    SettingRequest request = request_of(llama + ",seq=4096", "", 0);
    request.schedules = {given_schedule(again)};
    request.devices.clear();
    const Case asked = make_case(request, read_setting(request), request.schedules.front(), 2);
    const Outcome second = study(asked);
    CHECK(second.step_time == first.step_time);
    CHECK(second.memory.device[0].peak == first.memory.device[0].peak);
    CHECK(second.program == first.program);
    // A trace without kernels has no slices of given lengths.
    request.trace = "uniform:layers=4";
    const auto on_other = [&] {
      study(make_case(request, read_setting(request), request.schedules.front(), 2));
    };
    if (sliced) {
      CHECK_THROWS_AS(on_other(), UsageError);
    } else {
      CHECK_NOTHROW(on_other());
    }
  }
}

namespace {

// Five micro-batches of a step, planned on as many devices.
answers::PlanQuestion planned(const std::string& lengths, int samples) {
  answers::PlanQuestion question;
  planner::PlanRequest& request = question.request;
  request.setting.trace = llama + ",seq=4096";
  request.setting.lengths = lengths;
  request.setting.cluster.cluster = "h100x8";
  request.setting.devices = {4};
  request.samples = samples;
  planner::fix(request.space, "tp=1");
  planner::fix(request.space, "dp=1");
  planner::fix(request.space, "cp=1");
  planner::fix(request.space, "schedule=1f1b|zb_h1");
  planner::fix(request.space, "recompute=none");
  request.threads = 1;
  return question;
}

}  // namespace

TEST_CASE("an order of no lengths has no effect, and says so where degrees are searched, too") {
  for (const bool searched : {false, true}) {
    SettingRequest request;
    request.trace = llama;
    request.cluster.cluster = "h100x8";
    request.lengths_order = LengthsOrder::snake;
    request.degrees_are_searched = searched;
    const std::vector<std::string> notes = read_setting(request).notes;
    CHECK(std::count(notes.begin(), notes.end(),
                     "--lengths-order has no effect without --lengths") == 1);
  }
}

TEST_CASE("a plan of equal lengths is the plan without them") {
  const planner::Plan plain = answer([&] {
                                answers::PlanQuestion question = planned("", 6);
                                planner::fix(question.request.space, "microbatch-size=1");
                                return question;
                              }())
                                  .plan;
  const planner::Plan same = answer(planned("4096,4096,4096,4096,4096,4096", 6)).plan;
  REQUIRE_FALSE(plain.front.empty());
  REQUIRE(same.front.size() == plain.front.size());
  for (std::size_t i = 0; i < plain.front.size(); ++i) {
    CHECK(same.front[i].verdict.step == plain.front[i].verdict.step);
    CHECK(same.front[i].verdict.peak == plain.front[i].verdict.peak);
    CHECK(same.front[i].flags == plain.front[i].flags);
  }
  CHECK(same.bound == plain.bound);
}

TEST_CASE("a recommended order takes the step that is printed, and none of the others less") {
  const std::string lengths = "8192,512,4096+1024,1024,6144,2048";
  const answers::PlanAnswer found = answer(planned(lengths, 6));
  REQUIRE(found.plan.recommended);
  CHECK_FALSE(found.plan.exhausted);  // not every cut in every order
  CHECK(found.plan.front.front().candidate.lengths_order);
  CHECK(found.plan.front.front().flags.find("--lengths-order") != std::string::npos);
  for (const planner::PlanPoint& point : found.plan.front) {
    SettingRequest request = request_of(found.request.setting, point.candidate);
    CHECK(request.microbatches == 6);
    const auto step = [&] {
      const Setting setting = read_setting(request);
      return study(make_case(request, setting, point.candidate.spec, setting.device_counts.front()))
          .step_time;
    };
    CHECK(step() == point.verdict.step);
    CHECK(point.verdict.step >= found.plan.bound);
  }
  const planner::PlanPoint& first = found.plan.front.front();
  SettingRequest request = request_of(found.request.setting, first.candidate);
  for (const LengthsOrder order : all_lengths_orders) {
    request.lengths_order = order;
    const Setting setting = read_setting(request);
    const Case asked =
        make_case(request, setting, first.candidate.spec, setting.device_counts.front());
    CHECK(study(asked).step_time >= first.verdict.step);
  }
  const auto refused = [](const answers::PlanQuestion& question) {
    return test::complaint<UsageError>([&] { answer(question); });
  };
  CHECK(refused(planned(lengths, 7)).find("--samples 6") != std::string::npos);
}

}  // namespace stageline::lengths_tests
