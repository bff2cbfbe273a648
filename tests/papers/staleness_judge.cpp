// Does "agrees" mean what the page says it means? On made-up accuracies.
#include "tools/lab/papers/staleness/judge.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/errors.hpp"
#include "tools/lab/papers/staleness/report.hpp"

namespace stageline::staleness_judge_tests {
namespace {

lab::Accuracy around(double mean, double half) { return {mean, half, 3}; }

// A run of a case, as the study would have kept it.
lab::StudyRun run_of(const lab::StudyNet& net, const lab::StudyCase& one, std::uint64_t seed,
                     double percent) {
  lab::StudyRun run;
  run.net = net.name;
  run.group = one.group;
  run.name = one.name;
  run.copies = 0.5;
  lab::TrainingLog& log = run.log;
  log.settings.model = net.name;
  log.settings.recipe = "rate 0.1, momentum 0.9";
  log.settings.devices = 3;
  const std::int64_t steps = lab::steps_of(net, one);
  log.settings.steps = steps;
  log.settings.pipelined = one.pipelined;
  log.seed = seed;
  log.mode = "delayed";
  log.stages = {{0, 1, 100, 1.5, 2}, {2, 3, 300, 0, 0}};
  log.command = lab::train_command(net, one, seed);
  log.wall_seconds = 1;
  const Time end{steps * (one.pipelined > 0 ? 1'000'000 : 2'000'000)};
  log.evaluations = {{0, Time{}, 2.5, 0.1}, {steps, end, 0.5, percent / 100}};
  return run;
}

// Every case of the first net, with three seeds 0.5 points apart around what `percent` says.
template <class Percent>
lab::StalenessEvidence evidence_of(Percent percent) {
  lab::StalenessEvidence evidence;
  const lab::StudyNet& net = lab::staleness_nets().front();
  for (const lab::StudyCase& one : net.cases) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const double off = 0.5 * (static_cast<double>(seed) - 2);
      lab::keep_run(evidence, run_of(net, one, seed, percent(one) + off));
    }
  }
  return evidence;
}

lab::Holds holds(const lab::StalenessEvidence& evidence, const std::string& begin) {
  for (const lab::StudyFinding& one : lab::findings_of(lab::results_of(evidence))) {
    if (one.what.rfind(begin, 0) == 0) return one.holds;
  }
  FAIL("no such finding: " << begin);
  return lab::Holds::no;
}

}  // namespace

TEST_CASE("mean, and half the range") {
  const lab::Accuracy some = lab::accuracy_over({90, 94, 92.5});
  CHECK(some.mean == doctest::Approx(92.1666667));
  CHECK(some.half == doctest::Approx(2));
  CHECK(some.seeds == 3);
  const lab::Difference fall = lab::difference(around(92, 1), around(90, 0.5));
  CHECK(fall.points == doctest::Approx(2));
  CHECK(fall.spread == doctest::Approx(1.5));
  CHECK(fall.above());
  CHECK_FALSE(
      lab::difference(around(92, 1), around(90, 1)).decided());  // exactly as far as the spread
  CHECK(lab::difference(around(88, 1), around(90, 0.5)).below());
}

TEST_CASE("a shallow pipeline costs little only where no seed leaves a doubt") {
  CHECK(lab::costs_little(around(92, 0.5), around(91.5, 0.5)) == lab::Holds::yes);  // 0.5 + 1.0
  CHECK(lab::costs_little(around(92, 0.5), around(91.4, 0.5)) == lab::Holds::within_spread);
  CHECK(lab::costs_little(around(92, 0.5), around(89.6, 0.5)) == lab::Holds::within_spread);
  CHECK(lab::costs_little(around(92, 0.5), around(89.4, 0.5)) == lab::Holds::no);  // 2.6 - 1.0
  CHECK(lab::costs_little(around(92, 0.5), around(95, 0.5)) == lab::Holds::yes);   // better
}

TEST_CASE("a deep pipeline is worse, no worse, or not known to be") {
  CHECK(lab::costs_much(around(92, 1), around(89.9, 1)) == lab::Holds::yes);
  CHECK(lab::costs_much(around(92, 1), around(90.1, 1)) == lab::Holds::within_spread);
  CHECK(lab::costs_much(around(92, 1), around(94.1, 1)) == lab::Holds::no);
}

TEST_CASE("hybrid recovers half of a loss that there is") {
  const lab::Accuracy plain = around(92, 1);
  const lab::Accuracy deep = around(82, 1);
  CHECK(lab::recovered(plain, deep, around(88, 1)).value() == doctest::Approx(0.6));
  CHECK(lab::recovered(plain, deep, around(94, 1)).value() == doctest::Approx(1.2));
  CHECK(lab::recovers_half(plain, deep, around(89.1, 1)) == lab::Holds::yes);  // 2.1 above 87
  CHECK(lab::recovers_half(plain, deep, around(88.9, 1)) == lab::Holds::within_spread);
  CHECK(lab::recovers_half(plain, deep, around(85.1, 1)) == lab::Holds::within_spread);
  CHECK(lab::recovers_half(plain, deep, around(84.9, 1)) == lab::Holds::no);
  CHECK_FALSE(lab::recovered(plain, around(90.5, 1), around(92, 1)));
  CHECK(lab::recovers_half(plain, around(90.5, 1), around(92, 1)) == lab::Holds::within_spread);
}

TEST_CASE("an order holds where all pairs beyond the spread fall") {
  const std::vector<lab::Caused> falling = {
      {0, around(92, 0.5)}, {5, around(91.5, 0.5)}, {20, around(88, 0.5)}, {99, around(80, 0.5)}};
  const lab::PairsInOrder all = order_of(falling);
  CHECK(all.decided == 5);  // but for the first two
  CHECK(all.falling == 5);
  CHECK(lab::falls(all) == lab::Holds::yes);
  std::vector<lab::Caused> mixed = falling;
  mixed.push_back({30, around(90, 0.5)});  // better than at 20
  const lab::PairsInOrder most = order_of(mixed);
  CHECK(most.decided - most.falling == 1);
  CHECK(lab::falls(most) == lab::Holds::no);
  CHECK(lab::falls(lab::order_of({{0, around(92, 1)}, {5, around(91, 1)}})) ==
        lab::Holds::within_spread);
  CHECK(lab::order_of({{5, around(92, 0)}, {5, around(80, 0)}}).decided == 0);  // the same cause
}

TEST_CASE("findings follow from the runs") {
  const lab::StalenessEvidence good = evidence_of([](const lab::StudyCase& one) {
    if (one.group == lab::StudyGroup::hybrid) return 88.0;
    if (one.pipelined == 0) return 92.0;
    return 94.0 - 0.2 * stages_of(one) * stages_of(one) / 2;  // 92.4 … 84
  });
  CHECK(holds(good, "4-stage within") == lab::Holds::yes);
  CHECK(holds(good, "10-stage measurably") == lab::Holds::yes);
  CHECK(holds(good, "the deeper") == lab::Holds::yes);
  CHECK(holds(good, "hybrid") == lab::Holds::within_spread);  // at the middle
  const lab::StalenessEvidence bad = evidence_of([](const lab::StudyCase& one) {
    if (one.group == lab::StudyGroup::hybrid) return 80.0;
    return one.pipelined == 0 ? 92.0 : 80.0 + stages_of(one);
  });
  CHECK(holds(bad, "4-stage within") == lab::Holds::no);
  CHECK(holds(bad, "the deeper") == lab::Holds::no);
  CHECK(holds(bad, "hybrid") == lab::Holds::no);
  const lab::StalenessEvidence same = evidence_of([](const lab::StudyCase&) { return 90.0; });
  CHECK(holds(same, "4-stage within") == lab::Holds::yes);
  CHECK(holds(same, "10-stage measurably") == lab::Holds::within_spread);
  CHECK(holds(same, "the deeper") == lab::Holds::within_spread);
  CHECK(holds(same, "hybrid") == lab::Holds::within_spread);
}

TEST_CASE("an optimizer is judged against itself without delay") {
  const auto with = [](double muon_late, double nesterov_deep) {
    return evidence_of([=](const lab::StudyCase& one) {
      if (one.title == "Muon" && one.schedule == "pipedream_2bw") {
        return one.correction == "none" ? muon_late : 95.0;
      }
      if (one.title == "Adam" && one.schedule == "pipedream_2bw") {
        return one.correction == "none" ? 80.0 : 90.0;
      }
      if (one.title == "Nesterov") return one.pipelined == 0 ? 88.0 : nesterov_deep;
      return one.title == "momentum" && one.pipelined > 0 && one.schedule == "stale_weights" ? 70.0
                                                                                             : 90.0;
    });
  };
  const lab::StalenessEvidence good = with(89.0, 90.0);
  CHECK(holds(good, "one update late: Muon loses less") == lab::Holds::yes);  // 1 against 10
  CHECK(holds(good, "10-stage: Nesterov loses less") == lab::Holds::yes);     // -2 against 20
  CHECK(holds(good, "pipedream: Nesterov above") == lab::Holds::yes);
  CHECK(holds(good, "one update late: error feedback gains with Muon") == lab::Holds::yes);
  CHECK(holds(good, "one update late: error feedback gains with Adam") == lab::Holds::yes);
  const lab::StalenessEvidence bad = with(60.0, 50.0);
  CHECK(holds(bad, "one update late: Muon loses less") == lab::Holds::no);
  CHECK(holds(bad, "10-stage: Nesterov loses less") == lab::Holds::no);  // 38 against 20
  CHECK(holds(bad, "pipedream: Nesterov above") == lab::Holds::no);
  const lab::StalenessEvidence even = with(81.0, 68.5);
  CHECK(holds(even, "one update late: Muon loses less") == lab::Holds::within_spread);
  CHECK(holds(even, "10-stage: Nesterov loses less") == lab::Holds::within_spread);
  const lab::NetResult net = lab::results_of(good).front();
  CHECK(net.row("Muon", "")->asked->name == "Muon: non-pipelined");
  CHECK(net.row("momentum", "stale_weights")->accuracy.mean == doctest::Approx(70));
  CHECK(net.row("Muon", "pipedream_2bw", "error_feedback")->asked->correction == "error_feedback");
  CHECK(net.row("Lion", "") == nullptr);
}

TEST_CASE("what diverged guesses, and the page says so") {
  lab::StalenessEvidence evidence = evidence_of([](const lab::StudyCase&) { return 90.0; });
  const auto deep =
      std::find_if(evidence.runs.begin(), evidence.runs.end(), [](const lab::StudyRun& run) {
        return run.group == lab::StudyGroup::depth && run.name == "10-stage" && run.log.seed == 2;
      });
  REQUIRE(deep != evidence.runs.end());
  lab::Evaluation& last = deep->log.evaluations.back();
  last.loss = std::numeric_limits<double>::quiet_NaN();
  last.accuracy = 0.1;
  const std::vector<lab::NetResult> results = lab::results_of(evidence);
  CHECK(results.front().deepest()->diverged == 1);
  CHECK(results.front().deepest()->accuracy.mean == doctest::Approx((89.5 + 10 + 90.5) / 3));
  CHECK(lab::staleness_markdown(evidence).find("(1 of 3 diverged)") != std::string::npos);
}

TEST_CASE("runs of other settings are not counted") {
  lab::StalenessEvidence evidence = evidence_of([](const lab::StudyCase&) { return 90.0; });
  for (lab::StudyRun& run : evidence.runs) run.log.command += " --rate 7";
  CHECK(lab::results_of(evidence).empty());
  CHECK_THROWS_AS(lab::staleness_markdown(evidence), UsageError);
}

TEST_CASE("evidence is read as it was written, in the order of the cases") {
  const lab::StalenessEvidence evidence = evidence_of([](const lab::StudyCase&) { return 90.0; });
  const std::string text = lab::to_json(evidence);
  lab::StalenessEvidence back = lab::parse_staleness_evidence(text, "runs.json");
  CHECK(lab::to_json(back) == text);
  CHECK(back.runs.front().name == "non-pipelined");
  // A run that is made again takes the place of the old one.
  const lab::StudyNet& net = lab::staleness_nets().front();
  lab::keep_run(back, run_of(net, net.cases[2], 2, 50));
  CHECK(back.runs.size() == evidence.runs.size());
  CHECK(back.runs[7].log.evaluations.back().accuracy == doctest::Approx(0.5));
  CHECK(lab::find_run(back, net, net.cases[2], 2) == &back.runs[7]);
  CHECK(lab::find_run(back, net, net.cases[2], 4) == nullptr);

  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string broken = text;
    const std::size_t at = broken.find(from);
    REQUIRE(at != std::string::npos);
    broken.replace(at, from.size(), to);
    try {
      lab::parse_staleness_evidence(broken, "runs.json");
      return std::string();
    } catch (const TraceError& error) {
      return std::string(error.what());
    }
  };
  CHECK(refusal("\"plain\"", "\"plian\"").find("did you mean \"plain\"") != std::string::npos);
  CHECK(refusal("staleness 1", "staleness 2").find("runs.json at /format") != std::string::npos);
  CHECK(refusal("\"seed\": 2", "\"seed\": 1").find("appears twice") != std::string::npos);
  CHECK(refusal("\"step\": 1500", "\"step\": 1501").find("/step") != std::string::npos);
  CHECK(refusal("\"copies\": 0.5", "\"copies\": -1").find("/copies") != std::string::npos);
}

}  // namespace stageline::staleness_judge_tests
