// Is every figure of a judgement what one works out by hand?
#include "tools/lab/evidence/judge.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/errors.hpp"
#include "tests/evidence/small_evidence.hpp"
#include "tests/text.hpp"

namespace stageline::judge_tests {
namespace {

using test::milliseconds;

Time ms(int value) { return std::chrono::milliseconds(value); }

}  // namespace

TEST_CASE("a case is predicted as the command would simulate it") {
  const lab::Evidence evidence = test::small_evidence();
  const std::vector<int> makespans{30, 39, 48, 30, 32, 18};
  for (std::size_t i = 0; i < makespans.size(); ++i) {
    CAPTURE(lab::name_of(evidence.cases[i]));
    CHECK(lab::predict(evidence, evidence.cases[i]).makespan == ms(makespans[i]));
  }
  const lab::Prediction linked = lab::predict(evidence, evidence.cases[4]);
  for (const lab::PredictedDevice& device : linked.devices) {
    CHECK(device.busy == ms(24));
    CHECK(device.idle == ms(8));
    CHECK(device.transfer == ms(4));  // four messages each way
  }
  CHECK(linked.timeline.devices == std::vector<std::string>{"lane0", "lane1"});
  // Two layers of 4 MB weights and gradients, and four stashes of two layers of 1 MB.
  const lab::Prediction gpipe = lab::predict(evidence, evidence.cases[0]);
  for (const lab::PredictedDevice& device : gpipe.devices) {
    CHECK(device.transfer == Time{});
    CHECK(device.stash == Bytes{8'000'000});
  }
  // Beside them the first stage holds its output while F makes it, and its gradient while B takes
  // it; the last one, the output of the model.
  for (const lab::PredictedDevice& device : gpipe.devices) CHECK(device.peak == Bytes{25'000'000});
}

TEST_CASE("a case's host link is that of each of its devices") {
  lab::Evidence evidence = test::small_evidence();
  lab::MeasuredCase offloaded = evidence.cases[0];
  offloaded.schedule = "pipefb";
  const Time free = lab::predict(evidence, offloaded).makespan;
  offloaded.host_link = "1GB/s";
  const Cluster cluster = lab::case_of(evidence, offloaded).cluster;
  CHECK(cluster.hosts.size() == 1);
  for (const Device& device : cluster.devices) CHECK(device.host == 0);
  CHECK(lab::predict(evidence, offloaded).makespan > free);
  CHECK(lab::name_of(offloaded).ends_with(", host link 1GB/s"));
  // Messages are still free, and those of a case with both links are not.
  CHECK(lab::predict(evidence, offloaded).devices[1].transfer == Time{});
  offloaded.link = "1GB/s";
  CHECK(lab::predict(evidence, offloaded).devices[1].transfer > Time{});
  evidence.cases.push_back(offloaded);
  evidence.cases.back().host_link = "fast";
  CHECK_THROWS_WITH_AS(lab::judge(evidence), doctest::Contains("--host-link fast: "), UsageError);
  evidence.cases.back().host_link = "1GB/s";
  CHECK(lab::read_evidence(lab::write_evidence(evidence), "again") == evidence);
  evidence.cluster.hosts = {{"host", std::nullopt, false}};
  CHECK_THROWS_WITH_AS(lab::judge(evidence), doctest::Contains("must have no hosts"), UsageError);
}

TEST_CASE("a case is predicted by the program that ran, kept where the schedule makes another") {
  lab::Evidence evidence = test::small_evidence();
  lab::MeasuredCase& gpipe = evidence.cases[0];
  lab::MeasuredCase& other = evidence.cases[3];
  const auto program_of = [&](const lab::MeasuredCase& measured) {
    return print(study(lab::case_of(evidence, measured)).program);
  };
  gpipe.program = program_of(gpipe);
  CHECK(lab::predict(evidence, other).devices[0].stash == Bytes{4'000'000});
  other.program = gpipe.program;
  CHECK(lab::predict(evidence, other).devices[0].stash == Bytes{8'000'000});
  const std::string kept = other.program;
  lab::drop_derived_programs(evidence);
  CHECK(gpipe.program.empty());
  CHECK(other.program == kept);
  evidence.cases[0].program = "no program";
  CHECK_THROWS_AS(lab::judge(evidence), ProgramError);
}

TEST_CASE("each figure of a case is predicted less measured") {
  const lab::Evidence evidence = test::small_evidence();
  const lab::EvidenceJudgement judgement = lab::judge(evidence);
  REQUIRE(judgement.cases.size() == 6);
  const std::vector<double> errors{0.2, -0.25, 1.0 / 3, 2.0 / 13, -0.2, -0.1};
  for (std::size_t i = 0; i < errors.size(); ++i) {
    CAPTURE(i);
    CHECK(judgement.cases[i].error == doctest::Approx(errors[i]));
  }
  const lab::CaseJudgement& gpipe = judgement.cases[0];
  CHECK(gpipe.measured == ms(25));
  CHECK(gpipe.spread == ms(1));
  CHECK(gpipe.noise == ms(2));  // 24, 25, 24 against 26, 26
  // Of 30 ms predicted, 6 idle on both; of 25 measured, 5 on lane0 and 2 on lane1.
  CHECK(gpipe.idle_error == doctest::Approx(0.16));
  CHECK(gpipe.idle_device == 1);
  REQUIRE(gpipe.idle_noise);
  CHECK(*gpipe.idle_noise < gpipe.idle_error);
  CHECK(gpipe.transfer_error == 0);
  CHECK(gpipe.peak_error.value() == doctest::Approx(-0.5));  // 25 of 50 MB
  CHECK(gpipe.peak_device == 0);
  // 25 for 45 to 55 on lane0, of 50; 25 for 20 on lane1.
  CHECK(gpipe.peak_beyond_runs.value() == doctest::Approx(-0.4));
  CHECK(lab::beyond_noise(gpipe) == doctest::Approx(0.2 - 2.0 / 25));
  CHECK(gpipe.stash_error.value() == Bytes{});

  const lab::CaseJudgement& naive = judgement.cases[2];
  CHECK(naive.spread == ms(2));
  // The halves agree, so the spread says it: 3.72 × 2 ms / √5.
  CHECK(to_seconds(naive.noise.value()) == doctest::Approx(3.72 * 0.002 / 2.2360680));
  CHECK_FALSE(naive.peak_error.has_value());

  const lab::CaseJudgement& linked = judgement.cases[4];
  CHECK(linked.noise == Time{});
  CHECK(lab::beyond_noise(linked) == linked.error);
  CHECK(linked.idle_error == doctest::Approx(-0.1));  // 8 ms for 12, of 40
  CHECK(linked.idle_device == 1);
  CHECK(linked.transfer_error == doctest::Approx(-0.05));  // 4 ms for 6
  CHECK(linked.transfer_device == 0);
}

TEST_CASE("a stash is held against the nearest of its counted runs") {
  lab::Evidence evidence = test::small_evidence();
  lab::MeasuredDevice& device = evidence.cases[0].devices[0];  // 8 MB are predicted
  const auto off = [&](const std::vector<std::int64_t>& runs) {
    device.stashes.clear();
    for (const std::int64_t run : runs) device.stashes.push_back(Bytes{run});
    return lab::judge(evidence).cases[0].stash_error.value().count;
  };
  CHECK(off({8'000'000}) == 0);
  CHECK(off({9'000'000, 8'000'000, 7'000'000}) == 0);
  CHECK(off({9'000'000, 7'999'999}) == 1);
  CHECK(off({8'000'003, 7'000'000, 9'000'000}) == -3);
}

TEST_CASE("a counted run is held against its own clock") {
  lab::Evidence evidence = test::small_evidence();
  lab::MeasuredCase& measured = evidence.cases[0];  // gpipe: 4 stashes of 2 MB on each device
  measured.devices[0].stashes = {Bytes{8'000'000}};
  measured.devices[0].peaks = {Bytes{26'000'000}};
  measured.devices[1].stashes = {Bytes{2'000'000}};
  measured.devices[1].peaks = {Bytes{20'000'000}};
  CHECK(lab::judge(evidence).cases[0].counted_stash_error.value() == Bytes{6'000'000});
  CHECK_FALSE(lab::counted_as_predicted(evidence, measured));

  // Here each backward of lane1 ran before the next forward: one stash at a time.
  Timeline counted = lab::predict(evidence, measured).timeline;
  auto& lane = counted.lanes[lane_kinds + as_size(LaneKind::compute)];
  std::stable_sort(lane.begin(), lane.end(), [](const Span& a, const Span& b) {
    return std::pair(a.op.kind == OpKind::update, a.op.microbatch) <
           std::pair(b.op.kind == OpKind::update, b.op.microbatch);
  });
  Time at{};
  for (Span& span : lane) {
    const Time length = span.end - span.start;
    span.start = at;
    span.end = at += length;
  }
  measured.counted = counted;
  const lab::CaseJudgement judged = lab::judge(evidence).cases[0];
  CHECK(judged.stash_error.value() == Bytes{6'000'000});
  CHECK(judged.counted_stash_error.value() == Bytes{});
  CHECK(judged.counted_peak_error.value() == 0);
  CHECK(lab::counted_as_predicted(evidence, measured));
  const lab::Summary summary = lab::judge(evidence).held_out;
  CHECK(summary.stash_exact == 0);
  CHECK(summary.counted_stash_exact == 1);
  CHECK(summary.counted_peaks_within_aim == 1);

  measured.devices[1].peaks = {Bytes{40'000'000}};
  CHECK(lab::judge(evidence).cases[0].counted_peak_error.value() == doctest::Approx(-0.5));
  CHECK_FALSE(lab::counted_as_predicted(evidence, measured));
  measured.counted->lanes[lane_kinds].pop_back();
  CHECK_THROWS_WITH_AS(lab::judge(evidence),
                       "four batch 1, gpipe, 4 micro-batches: its counted timeline has other ops "
                       "than its program",
                       UsageError);
}

TEST_CASE("what the calibration has seen is summed up apart") {
  const lab::EvidenceJudgement judgement = lab::judge(test::small_evidence());
  const lab::Summary& held_out = judgement.held_out;
  CHECK(held_out.cases == std::vector<std::size_t>{0, 1, 2, 3, 4});
  CHECK(held_out.mean_error == doctest::Approx((0.2 + 0.25 + 1.0 / 3 + 2.0 / 13 + 0.2) / 5));
  CHECK(held_out.median_error == doctest::Approx(0.2));
  CHECK(held_out.bias == doctest::Approx((0.2 - 0.25 + 1.0 / 3 + 2.0 / 13 - 0.2) / 5));
  CHECK(held_out.worst_error.value == doctest::Approx(1.0 / 3));
  CHECK(held_out.worst_error.at == 2);
  // 4 of 25; 39 - 36 for 52 - 36, less than 27 for 40, of 52; 24 for 12 of 36; 6 for 6; 4 of 40.
  CHECK(held_out.worst_idle_error.value == doctest::Approx(1.0 / 3));
  CHECK(held_out.worst_idle_error.at == 2);
  CHECK(held_out.mean_idle_error ==
        doctest::Approx((4.0 / 25 + 13.0 / 52 + 12.0 / 36 + 0 + 0.1) / 5));
  CHECK(held_out.worst_transfer_error.value == doctest::Approx(-0.05));
  CHECK(held_out.worst_transfer_error.at == 4);
  CHECK(held_out.memory_cases == 1);
  CHECK(held_out.stash_exact == 1);
  CHECK(held_out.worst_stash_error.value == 0);
  CHECK(held_out.worst_peak_error.value == doctest::Approx(-0.5));
  CHECK(held_out.worst_peak_beyond_runs.value == doctest::Approx(-0.4));
  CHECK(held_out.peaks_within_aim == 0);
  CHECK(held_out.noise_cases == 5);
  const double naive_noise = 3.72 * 2 / 2.2360680 / 36;
  CHECK(held_out.worst_noise.value == doctest::Approx(naive_noise));
  CHECK(held_out.mean_beyond_noise ==
        doctest::Approx((0.12 + 0.25 + (1.0 / 3 - naive_noise) + (2.0 / 13 - 2.0 / 26) + 0.2) / 5));
  CHECK(held_out.worst_beyond_noise.value == doctest::Approx(-0.25));
  CHECK(held_out.worst_beyond_noise.at == 1);
  CHECK(held_out.mean_noise == doctest::Approx((2.0 / 25 + 0 + naive_noise + 2.0 / 26 + 0) / 5));

  CHECK(judgement.calibrated.cases == std::vector<std::size_t>{5});
  CHECK(judgement.calibrated.mean_error == doctest::Approx(0.1));
  CHECK(judgement.calibrated.ranking.pairs == 0);
  CHECK_FALSE(judgement.calibrated.ranking.tau.has_value());
}

TEST_CASE("the ranking counts pairs that the machine decides") {
  // Measured: gpipe 25 ± 2, 1f1b 26 ± 2, naive 36 ± 3.3, uneven 52; predicted 30, 30, 48, 39.
  lab::Evidence evidence = test::small_evidence();
  const lab::Ranking ranking = lab::judge(evidence).held_out.ranking;
  CHECK(ranking.pairs == 6);      // the case with a link stands alone
  CHECK(ranking.decidable == 5);  // all but gpipe and 1f1b
  CHECK(ranking.discordant == 1);
  CHECK(ranking.tau.value() == doctest::Approx(0.6));
  REQUIRE(ranking.worst.has_value());
  CHECK(ranking.worst->faster == 2);
  CHECK(ranking.worst->slower == 1);
  CHECK(ranking.worst_difference == doctest::Approx(16.0 / 36));

  SUBCASE("a tie where the machine decides is not the machine's order") {
    evidence.cases[0].makespan = test::five_times(20);  // 1f1b: 26 ± 2
    const lab::Ranking tied = lab::judge(evidence).held_out.ranking;
    CHECK(tied.decidable == 6);
    CHECK(tied.discordant == 1);
    CHECK(tied.tied == 1);
    CHECK(tied.tau.value() == doctest::Approx(3.0 / 6));
    CHECK(tied.worst->slower == 1);  // still the clearest
  }
  SUBCASE("a difference as large as the noise decides nothing") {
    // Its own noise is none: it counts with the mean one.
    evidence.cases[0].makespan = test::five_times(24);
    const double mean = lab::judge(evidence).held_out.mean_noise;
    CHECK(mean == doctest::Approx((3.3 / 36 + 2.0 / 26) / 5).epsilon(0.01));
    const Time bound{std::llround(24e9 / (1 + mean))};  // ps
    for (Time& run : evidence.cases[0].makespan) run = bound + Time{1000};
    CHECK(lab::judge(evidence).held_out.ranking.decidable == 5);
    for (Time& run : evidence.cases[0].makespan) run = bound - Time{1000};
    CHECK(lab::judge(evidence).held_out.ranking.decidable == 6);
  }
  SUBCASE("without three runs there is no noise to hold a difference against") {
    lab::MeasuredCase& uneven = evidence.cases[1];
    uneven.makespan.resize(2);
    for (lab::MeasuredDevice& device : uneven.devices) {
      device.busy.resize(2);
      device.transfer.resize(2);
    }
    const lab::Summary held_out = lab::judge(evidence).held_out;
    CHECK(held_out.ranking.decidable == 2);
    CHECK(held_out.ranking.tau.value() == 1);
    CHECK(held_out.noise_cases == 4);
  }
}

TEST_CASE("noise comes from the halves or from the spread, whichever says more") {
  CHECK(lab::noise_of({}) == std::nullopt);
  CHECK(lab::noise_of(milliseconds({5, 9})) == std::nullopt);
  CHECK(lab::noise_of(milliseconds({5, 5, 5})) == Time{});
  CHECK(lab::noise_of(milliseconds({10, 14, 10, 14, 10, 14})) == ms(4));
  CHECK(
      lab::noise_of(milliseconds({10, 10, 20, 20, 30, 30, 40, 40, 50})) ==
      Time{12'400'000'000});  // 3.72 / 3 × 10 ms; the quartiles are 20 and 40, both halves 30 or 25
}

TEST_CASE("what cannot be simulated is refused with the name of the case") {
  const auto said = [](auto change) {
    lab::Evidence evidence = test::small_evidence();
    change(evidence);
    return test::complaint<UsageError>([&] { lab::judge(evidence); });
  };
  const auto begins = [](const std::string& text, const std::string& start) {
    CAPTURE(text);
    CHECK(text.substr(0, start.size()) == start);
  };
  begins(said([](lab::Evidence& e) { e.cases[0].schedule = "gpype"; }),
         "four batch 1, gpype, 4 micro-batches: there is no schedule \"gpype\"");
  begins(said([](lab::Evidence& e) { e.cases[0].schedule = "gpipe,1f1b"; }),
         "four batch 1, gpipe,1f1b, 4 micro-batches: a case has one schedule");
  begins(said([](lab::Evidence& e) { e.cases[1].partition = "0-9"; }),
         "four batch 1, 1f1b, 4 micro-batches, cut 0-9: ");
  begins(said([](lab::Evidence& e) { e.cases[4].link = "fast"; }),
         "four batch 1, gpipe, 4 micro-batches, link fast: ");
  begins(said([](lab::Evidence& e) { e.cases[0].model = "five"; }),
         "five batch 1, gpipe, 4 micro-batches: the evidence has no trace of five at batch 1");
  begins(said([](lab::Evidence& e) { e.cases[0].devices[1].busy.pop_back(); }),
         "four batch 1, gpipe, 4 micro-batches: there must be a time for each run (makespans 5, "
         "busy times 4, transfer times 5)");
  begins(said([](lab::Evidence& e) { e.cluster.switches = {"switch"}; }),
         "four batch 1, gpipe, 4 micro-batches, link 1GB/s: the case has a link");
}

}  // namespace stageline::judge_tests
