// Is the simulator as near to the stored measurements as when they were last judged, and would it
// be noticed if it were not?
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "sim/base/errors.hpp"
#include "tests/evidence/small_evidence.hpp"
#include "tests/text.hpp"
#include "tools/base/files.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/lab/evidence/kept.hpp"

namespace stageline::replay_tests {
namespace {

std::string lines(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += sentence + "\n";
  return text;
}

// What has become worse when the simulator's input or the measurement changes.
template <class Change>
std::string worse_after(Change change) {
  lab::Evidence evidence = test::small_evidence();
  const std::string kept = lab::kept_json(lab::judge(evidence));
  change(evidence);
  return lines(lab::worse_than_kept(kept, "kept", lab::judge(evidence)));
}

}  // namespace

TEST_CASE("no stored measurement is predicted worse than its kept summary says") {
  const char* const source = std::getenv("STAGELINE_SOURCE");
  REQUIRE(source != nullptr);
  const std::filesystem::path folder =
      std::filesystem::path(source) / "tools" / "executor" / "evidence";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("skipped: no measurements are stored in tools/executor/evidence");
    return;
  }
  const std::string packed = ".json.gz";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(".summary.json") || file.starts_with(".making-")) continue;
    CAPTURE(file);
    REQUIRE(file.ends_with(packed));  // nothing else is stored: pages are made from it
    const std::string name = file.substr(0, file.size() - packed.size());
    const std::filesystem::path summary = folder / (name + ".summary.json");
    const std::string renew = fmt::format(
        "stageline replay tools/executor/evidence/{} --summary tools/executor/evidence/{}", file,
        summary.filename().string());
    CAPTURE(renew);
    REQUIRE(std::filesystem::exists(summary));
    const lab::Evidence evidence =
        lab::read_evidence(read_content(entry.path().string()).named.text, file);
    const std::string worse = lines(
        lab::worse_than_kept(read_file(summary.string()), summary.string(), lab::judge(evidence)));
    CHECK(worse == "");
  }
}

TEST_CASE("what has not changed is not worse") {
  CHECK(worse_after([](lab::Evidence&) {}) == "");
}

TEST_CASE("a simulator that costs more than it should is noticed") {
  // Forwards of one layer take a tenth longer than they were measured to: gpipe and naive, which
  // were predicted to be too slow, are further off.
  const std::string worse = worse_after([](lab::Evidence& evidence) {
    evidence.traces[0].layers[3].forward = std::chrono::microseconds(1100);
  });
  CAPTURE(worse);
  CHECK(
      test::contains(worse, "the worst error of the cases held out grew from 33.33 % to 34.44 %"));
  CHECK_FALSE(test::contains(worse, "calibrated on"));  // was too fast, and is nearer now
}

TEST_CASE("what was too fast and becomes faster is noticed, too") {
  const std::string worse = worse_after([](lab::Evidence& evidence) {
    evidence.traces[0].layers[0].backward = std::chrono::microseconds(1000);
  });
  CAPTURE(worse);
  CHECK(test::contains(worse, "the mean error of the cases calibrated on grew from 10.00 % to"));
  CHECK(test::contains(worse, "the worst error of the cases calibrated on grew from 10.00 % to"));
}

TEST_CASE("growth within the tolerance is not reported, beyond it is") {
  // The case calibrated on is predicted to take 18 ms and measured to take 20; the tolerance is
  // 0.0005 of them.
  const auto measured = [](int microseconds) {
    return worse_after([&](lab::Evidence& evidence) {
      for (Time& run : evidence.cases[5].makespan) run = std::chrono::microseconds(microseconds);
    });
  };
  CHECK(measured(20'010) == "");  // 10.045 %
  CHECK(measured(20'012) ==
        "the mean error of the cases calibrated on grew from 10.00 % to 10.05 %\n"
        "the worst error of the cases calibrated on grew from 10.00 % to 10.05 %\n");
}

TEST_CASE("pairs that fall out of order and a stash that is no longer exact are noticed") {
  CHECK(test::contains(worse_after([](lab::Evidence& evidence) {
                         // Faster than gpipe by more than the noise, though predicted equal.
                         evidence.cases[3].makespan = test::five_times(22);
                       }),
                       "2 pairs of the cases held out are not in order; they were 1"));
  CHECK(test::contains(worse_after([](lab::Evidence& evidence) {
                         evidence.traces[0].layers[0].stash_weight_grad += Bytes{1};
                       }),
                       "the stash of 0 cases held out is exact; it was of 1"));
}

TEST_CASE("a kept summary must be one, and of the same cases") {
  const lab::EvidenceJudgement judgement = lab::judge(test::small_evidence());
  const std::string kept = lab::kept_json(judgement);
  const auto said = [&](const std::string& text) {
    return test::complaint<TraceError>([&] { lab::worse_than_kept(text, "kept", judgement); });
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = kept;
    REQUIRE(text.find(from) != std::string::npos);
    return said(text.replace(text.find(from), from.size(), to));
  };
  CHECK(said("{") == "kept: this is not JSON");
  CHECK(said("[]") == "kept at /format: a kept summary has \"stageline-replay 1\" here");
  CHECK(changed("stageline-replay 1", "stageline-trace 1") ==
        "kept at /format: a kept summary has \"stageline-replay 1\" here");
  CHECK(changed("\"mean_error\"", "\"mean\"") == "kept at /held_out/mean_error: it is missing");
  CHECK(changed("\"discordant\": 1", "\"discordant\": \"1\"") ==
        "kept at /held_out/ranking/discordant: this must be a number");
  CHECK(test::contains(changed("\"cases\": 5", "\"cases\": 4"),
                       "these figures are of 4 cases, and there are 5"));
  // Too small for strtod without a complaint, and too large for it.
  CHECK(test::contains(changed("\"cases\": 5", "\"cases\": 1e-308"),
                       "these figures are of 0 cases, and there are 5"));
  CHECK(changed("\"cases\": 5", "\"cases\": 1e999") == "kept: this is not JSON");
}

}  // namespace stageline::replay_tests
