// Are peaks those of a run that is long enough, and is what grows without end said to?
#include "tools/study/pace/stillness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "tests/make.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/study.hpp"

namespace stageline::stillness_tests {
namespace {

Case case_of(const char* trace, const char* schedule, int devices, const char* link,
             const char* host = "") {
  SettingRequest request;
  request.trace = trace;
  request.cluster.link = parse_link(link);
  if (*host != '\0') request.cluster.host_link = parse_link(host);
  request.devices = {devices};
  return make_case(request, read_setting(request), test::spec(schedule), devices);
}

Outcome of_steps(Case asked, int steps) {
  asked.steps = steps;
  return study(asked);
}

std::int64_t fullest(const Outcome& outcome) {
  std::int64_t most = 0;
  for (const DeviceMemory& device : outcome.memory.device) most = std::max(most, device.peak.count);
  return most;
}

bool same_peaks(const Outcome& a, const Outcome& b) {
  for (std::size_t d = 0; d < a.memory.device.size(); ++d) {
    if (a.memory.device[d].peak != b.memory.device[d].peak) return false;
  }
  return a.versions_peak() == b.versions_peak() && a.staleness_max() == b.staleness_max();
}

}  // namespace

TEST_CASE("peaks and versions are those of a long run") {
  for (const char* const trace : {"resnet50-h100", "resnet50-cpu", "uniform:layers=16,stash=3MB"}) {
    for (const char* const schedule :
         {"pipedream", "pipedream_2bw", "stale_weights", "stale_weights:mapping=paired",
          "layerpipe", "pipefb", "pipedream:transfer=blocking"}) {
      for (const int devices : {3, 5}) {
        CAPTURE(trace);
        CAPTURE(schedule);
        CAPTURE(devices);
        std::optional<Case> asked;
        std::optional<Outcome> usual;
        try {
          asked = case_of(trace, schedule, devices, "12GB/s,5us", "16GB/s,5us");
          usual = study(*asked);
        } catch (const UsageError&) {
          continue;  // it does not go on so many
        }
        CHECK_FALSE(usual->grows);
        CHECK(same_peaks(*usual, of_steps(*asked, 48)));
      }
    }
  }
}

TEST_CASE("what an overloaded link lets grow has no peak, and does not fit") {
  Case asked = case_of("uniform:layers=8,forward=10ms,weights=100MB,output=1MB,update=1ms",
                       "pipefb", 5, "1GB/s,10us", "16GB/s,5us");
  for (Device& device : asked.cluster.devices) device.memory = parse_bytes("1TB");
  const Outcome outcome = study(asked);
  CHECK(outcome.grows);
  CHECK_FALSE(outcome.settled);
  CHECK(outcome.fit == Fit::no);
  const std::vector<std::string> notes = stream_notes(asked, outcome);
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("grow as long as it runs") != std::string::npos;
  }));
  const std::int64_t twice = fullest(of_steps(asked, 2 * outcome.program.steps));
  CHECK(twice > 3 * fullest(outcome) / 2);
}

TEST_CASE("what grows up to a window has the peak of that") {
  const Case asked = case_of("resnet50-h100", "layerpipe", 5, "1GB/s,10us");
  const Outcome outcome = study(asked);
  CHECK_FALSE(outcome.grows);
  CHECK(static_cast<double>(fullest(of_steps(asked, 96))) ==
        doctest::Approx(static_cast<double>(fullest(outcome))).epsilon(1e-3));
}

TEST_CASE("of two steps in opposite directions both are shown") {
  for (const char* const schedule : {"chimera", "gems"}) {
    Case asked = case_of("uniform:layers=4,stash=10MB,weights=1MB", schedule, 4, "100GB/s");
    for (const int microbatches : {3, 4}) {
      CAPTURE(schedule);
      CAPTURE(microbatches);
      asked.microbatches = microbatches;
      const Outcome outcome = study(asked);
      CHECK(outcome.program.steps == (microbatches == 3 ? 2 : 1));
      CHECK(same_peaks(outcome, of_steps(asked, 4)));
    }
  }
}

// Three rounds in the middle were alike, and every sixth waits.
TEST_CASE("a period that a run falls behind is none") {
  SettingRequest request;
  request.trace = std::string(std::getenv("STAGELINE_SOURCE")) + "/tests/study/falls_behind.json";
  request.cluster.link = parse_link("5GB/s,10us");
  request.cluster.host_link = parse_link("5GB/s,10us");
  request.devices = {4};
  request.microbatches = 4;
  Case asked = make_case(request, read_setting(request), test::spec("pipefb"), 4);
  const Outcome outcome = study(asked);
  CHECK(outcome.settled);
  CHECK(outcome.step_time == parse_time("16ms"));
  const Time many = of_steps(asked, 96).metrics.makespan;
  CHECK((many - of_steps(asked, 48).metrics.makespan) / 48 == outcome.step_time);
}

}  // namespace stageline::stillness_tests
