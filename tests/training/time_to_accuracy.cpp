// How long does it take to reach an accuracy, and which training gets there first?
#include "tools/lab/training/time_to_accuracy.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/lab/training/accuracy_report.hpp"
#include "tools/lab/training/retime.hpp"
#include "tools/lab/training/times.hpp"
#include "traces/traces.hpp"

namespace stageline::time_to_accuracy_tests {
namespace {

// 4 steps, a second each; looked at after 0, 2 and 4.
lab::NamedLog log_of(std::int64_t pipelined, std::uint64_t seed, std::vector<double> accuracies,
                     std::int64_t step_seconds = 1) {
  lab::NamedLog named;
  lab::TrainingLog& log = named.log;
  named.file = std::to_string(pipelined) + "." + std::to_string(seed) + ".json";
  log.settings.model = "small";
  log.settings.schedule = "pipedream";
  log.settings.partition = "balanced";
  log.settings.weights = "stash";
  log.settings.correction = "none";
  log.settings.recipe = "rate 0.1, momentum 0.9";
  log.settings.devices = 2;
  log.settings.batch = 8;
  log.settings.steps = 4;
  log.settings.pipelined = pipelined;
  log.seed = seed;
  log.stages = {{0, 1, 100, 0.5, 1}, {2, 3, 300, 0, 0}};
  constexpr std::int64_t second = 1'000'000'000'000;
  for (int k = 1; k <= 4; ++k) log.steps.push_back({Time{k * step_seconds * second}, 1.0 / k});
  for (std::size_t i = 0; i < accuracies.size(); ++i) {
    const auto step = static_cast<std::int64_t>(2 * i);
    const Time end = step == 0 ? Time{} : log.steps[2 * i - 1].end;
    log.evaluations.push_back({step, end, 1, accuracies[i]});
  }
  return named;
}

constexpr Time operator""_s(unsigned long long seconds) {
  return Time{static_cast<std::int64_t>(seconds) * 1'000'000'000'000};
}

std::string refusal(std::vector<lab::NamedLog> logs, std::optional<double> target = std::nullopt) {
  try {
    lab::accuracy_study(std::move(logs), target);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::vector<std::string> names(const std::vector<lab::TrainingSettings>& settings) {
  return lab::curve_names(settings);
}

lab::TrainingLog kept(const std::string& file) {
  const char* const source = std::getenv("STAGELINE_SOURCE");
  REQUIRE(source != nullptr);
  return lab::parse_training_log(read_file(std::string(source) + "/tests/training/logs/" + file),
                                 file);
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE(
    "seeds are averaged, the time to target is a mean over the seeds, the speed-up its ratio") {
  const lab::AccuracyStudy study =
      lab::accuracy_study({log_of(0, 1, {0.1, 0.5, 0.9}, 2), log_of(4, 2, {0.1, 0.8, 0.9}),
                           log_of(4, 1, {0.2, 0.6, 0.8}), log_of(0, 2, {0.1, 0.7, 0.9}, 2)},
                          0.7);
  REQUIRE(study.curves.size() == 2);
  const lab::AccuracyCurve& plain = study.curves[0];
  const lab::AccuracyCurve& stale = study.curves[1];
  CHECK(plain.name == "non-pipelined");
  CHECK(stale.name == "pipedream");
  CHECK(stale.runs.front().log.seed == 1);
  REQUIRE(stale.points.size() == 3);
  CHECK(stale.points[1].step == 2);
  CHECK(stale.points[1].end == 2_s);
  CHECK(*stale.points[1].mean == doctest::Approx(0.7));
  CHECK(stale.points[1].least == 0.6);
  CHECK(stale.points[1].most == 0.8);
  CHECK(*stale.best == 0.9);
  CHECK(stale.total == 4_s);
  CHECK(stale.step_time() == 1_s);
  CHECK(stale.staleness == 1);
  CHECK(stale.stale_share == 0.25);
  CHECK(plain.stale_share == 0);
  CHECK(plain.staleness == 0);
  // Plain: after 4 and 2 steps of 2 s; stale: after 2 and 4 of 1 s.
  CHECK(plain.reached.time == 6_s);
  CHECK(plain.reached.steps == 3);
  CHECK(stale.reached.time == 3_s);
  CHECK(stale.reached.latest == 4);
  REQUIRE(stale.base.has_value());
  CHECK(*stale.base == 0);
  CHECK(*stale.speedup == doctest::Approx(2));
  CHECK(*plain.speedup == doctest::Approx(1));
}

TEST_CASE("without a target it is the highest accuracy that the mean of every curve reaches") {
  const lab::AccuracyStudy study = lab::accuracy_study(
      {log_of(0, 1, {0.1, 0.5, 0.9}), log_of(4, 1, {0.1, 0.8, 0.7}), log_of(4, 2, {0.1, 0.7, 0.7})},
      std::nullopt);
  CHECK_FALSE(study.target_given);
  CHECK(study.target == doctest::Approx(0.75));
  // The second seed stays below.
  CHECK(study.curves[1].reached.seeds == 1);
  CHECK(study.curves[1].reached.time == 2_s);
  CHECK_FALSE(study.curves[1].speedup.has_value());
  CHECK(lab::accuracy_table(study).find("2.000 s (1 of 2 seeds)") != std::string::npos);
}

TEST_CASE("of seeds that were looked at differently often only the common looks count") {
  lab::NamedLog often = log_of(4, 1, {0.1, 0.5, 0.9});
  lab::NamedLog seldom = log_of(4, 2, {0.1, 0.5, 0.7});
  seldom.log.evaluations.erase(seldom.log.evaluations.begin() + 1);
  const lab::AccuracyStudy study = lab::accuracy_study({often, seldom}, 0.5);
  REQUIRE(study.curves[0].points.size() == 2);
  CHECK(study.curves[0].points[1].step == 4);
  seldom.log.evaluations = {{3, 3_s, 1, 0.5}};
  CHECK(refusal({often, seldom}).find("have no evaluation after the same step") !=
        std::string::npos);
}

TEST_CASE("a training that diverges or does not improve is said to") {
  lab::NamedLog lost = log_of(4, 1, {0.1, nan, nan});
  lost.log.steps[2].loss = nan;
  const lab::AccuracyStudy study = lab::accuracy_study({lost, log_of(0, 1, {0.2, 0.1, 0.2})}, 0.5);
  CHECK_FALSE(study.curves[0].points[1].mean.has_value());
  CHECK(study.curves[0].reached.seeds == 0);
  CHECK(study.notes ==
        std::vector<std::string>{"4.1.json diverged: its loss is not a number from step 3 on",
                                 "pipedream: its mean accuracy is never above "
                                 "that of its first evaluation, 10.00 %",
                                 "non-pipelined: its mean accuracy is never above "
                                 "that of its first evaluation, 20.00 %"});
  CHECK(lab::accuracy_table(study).find("diverged") != std::string::npos);
  CHECK(lab::accuracy_study({log_of(4, 1, {0.1, nan, 0.3})}, 0.5).notes ==
        std::vector<std::string>{"4.1.json diverged: its accuracy is not a number after step 2"});
  CHECK(refusal({log_of(4, 1, {nan, nan})}) == "no log has an accuracy that is a number");
}

TEST_CASE("what cannot be compared is refused") {
  CHECK(refusal({}) == "there is no training log");
  CHECK(refusal({log_of(4, 1, {})}).find("4.1.json holds no evaluation") == 0);
  CHECK(refusal({log_of(4, 1, {0.1}), log_of(4, 1, {0.2})}).find("are the same run") !=
        std::string::npos);
  CHECK(refusal({log_of(4, 1, {0.1})}, 1.5).find("(it is 150 %)") != std::string::npos);
}

TEST_CASE("curves are named by what differs between them, and no two alike") {
  lab::TrainingSettings one = log_of(4, 1, {0.1}).log.settings;
  CHECK(names({one}) == std::vector<std::string>{"pipedream"});
  lab::TrainingSettings other = one;
  other.schedule = "stale_weights";
  other.weights = "latest";  // follows from the schedule
  other.recipe = "rate 0.05, momentum 0.9";
  CHECK(names({one, other}) ==
        std::vector<std::string>{"pipedream, rate 0.1", "stale_weights, rate 0.05"});
  other = one;
  other.weights = "latest";
  CHECK(names({one, other}) == std::vector<std::string>{"weights stash", "weights latest"});
  other = one;
  other.pipelined = 2;
  lab::TrainingSettings plain = one;
  plain.pipelined = 0;
  lab::TrainingSettings alone = plain;
  alone.schedule = "gpipe";
  CHECK(names({one, other, plain}) ==
        std::vector<std::string>{"all pipelined", "switch at 2", "non-pipelined"});
  CHECK(names({one, plain, alone}) ==
        std::vector<std::string>{"pipedream", "non-pipelined, pipedream", "non-pipelined, gpipe"});
  other = one;
  other.correction = "moving_average";
  CHECK(names({one, other}) == std::vector<std::string>{"no correction", "moving_average"});
}

TEST_CASE("the best switch, those beside it, and where it did not matter") {
  const lab::AccuracyStudy study =
      lab::accuracy_study({log_of(0, 1, {0.1, 0.5, 0.9}, 3), log_of(4, 1, {0.1, 0.4, 0.6}),
                           log_of(2, 1, {0.1, 0.4, 0.9}, 2), log_of(3, 1, {0.1, 0.4, 0.7}, 1)},
                          0.65);
  const std::vector<lab::SwitchFamily> families = lab::switch_families(study);
  REQUIRE(families.size() == 1);
  const lab::SwitchFamily& family = families[0];
  CHECK(family.curves == std::vector<std::size_t>{0, 2, 3, 1});
  CHECK(family.best == std::optional<std::size_t>{2});
  CHECK(lab::switch_words(study, family) ==
        std::vector<std::string>{
            "fastest of those trained: 3 of 4 steps pipelined, 4.000 s",
            "trained beside it: 2 and all 4 pipelined; if there is one optimum, it lies between 2 "
            "and 4, and nothing else there was trained"});
  const lab::AccuracyStudy early = lab::accuracy_study(
      {log_of(0, 1, {0.1, 0.5, 0.9}, 3), log_of(2, 1, {0.1, 0.5, 0.9}, 2)}, 0.45);
  REQUIRE(lab::switch_families(early).size() == 1);
  const std::vector<std::string> words = lab::switch_words(early, lab::switch_families(early)[0]);
  REQUIRE(words.size() == 4);
  CHECK(words[0] == "fastest of those trained: 2 of 4 steps pipelined, 4.000 s");
  CHECK(words[3] ==
        "with 2 steps pipelined the target was reached by step 2, before the switch: "
        "there the switch did not matter");
  // Without a switch on the way there is nothing to choose.
  CHECK(lab::switch_families(
            lab::accuracy_study({log_of(0, 1, {0.1, 0.5}), log_of(4, 1, {0.1, 0.5})}, std::nullopt))
            .empty());
  const lab::AccuracyStudy never =
      lab::accuracy_study({log_of(0, 1, {0.1, 0.5}), log_of(2, 1, {0.1, 0.5})}, 0.9);
  CHECK(lab::switch_words(never, lab::switch_families(never)[0]) ==
        std::vector<std::string>{"no switch point reaches the target"});
}

TEST_CASE("a log is timed again with its own schedule and the cut that it was trained with") {
  lab::TrainingLog log = kept("hybrid.1.json");
  const Model model =
      uniform_model("layers=4,forward=10ms,input_grad=10ms,weight_grad=10ms,batch=32");
  const Cluster cluster = uniform_cluster(2, std::nullopt, std::nullopt);
  const Case asked = lab::case_of(log, model, cluster);
  CHECK(asked.partition == "0-1,2-");
  // The kept logs have the times of this very trace.
  const std::vector<Time> ends = ends_of(asked, log);
  REQUIRE(ends.size() == log.steps.size());
  for (std::size_t i = 0; i < ends.size(); ++i) CHECK(log.steps[i].end == ends[i]);
  CHECK(lab::staleness_note(asked, log).empty());
  // Another cut, uneven layers: the stages stay what they were.
  log.stages = {{0, 0, 100, 0.5, 1}, {1, 3, 300, 0, 0}};
  const std::vector<Time> uneven = ends_of(lab::case_of(log, model, cluster), log);
  CHECK(uneven[3] - uneven[2] == Time{90'000'000'000});
  lab::set_times(log, uneven);
  CHECK(log.steps[5].end == uneven[5]);
  CHECK(log.evaluations[0].end == Time{});
  CHECK(log.evaluations[2].end == uneven[3]);
  log.stages[0].staleness_max = 3;
  CHECK(lab::staleness_note(lab::case_of(log, model, cluster), log) ==
        "on these devices stage 0 would be stale by 1 update(s), but was trained with 3: "
        "its accuracy there is not known");
  CHECK_THROWS_AS(lab::case_of(log, uniform_model("layers=5"), cluster), UsageError);
  log.settings.weights = "old";
  CHECK_THROWS_AS(lab::case_of(log, model, cluster), UsageError);
}

TEST_CASE("the kept logs are what the writer writes") {
  for (const char* const file : {"plain.1.json", "stale.2.json", "hybrid.1.json"}) {
    const lab::TrainingLog log = kept(file);
    CHECK(lab::parse_training_log(lab::to_json(log), file) == log);
  }
}

}  // namespace stageline::time_to_accuracy_tests
