// Which version of its weights does each op read, how old is it, and how many are kept?
#include "sim/analysis/versions.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include "sim/analysis/memory.hpp"
#include "tests/text.hpp"

namespace stageline::versions_tests {
namespace {

using test::straight_text;

std::string words(const StageVersions& versions) {
  const auto number = [](double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  };
  return std::to_string(versions.held_peak) + " held, stale " + number(versions.staleness_min) +
         " to " + number(versions.staleness_max) + ", " + number(versions.staleness_mean) +
         " in the mean" + (versions.consistent ? "" : ", mixed");
}

// F=1, B=2, U=0 on stages of one device each.
std::vector<StageVersions> versions(const std::string& text) {
  const Program program = parse_program(text);
  const auto devices = static_cast<int>(program.devices.size());
  const Costs costs = uniform_costs(program.stages(), devices, Time{1}, Time{1}, Time{1});
  const test::Simulated ran = test::simulated(add_reductions(add_updates(program)), costs);
  return versions_of(ran.program, ran.timeline);
}
std::string stage(const std::string& text, int which = 0) {
  return words(versions(text).at(as_size(which)));
}
// By stage, a line each: "0:1 1:3" is one micro-batch fresh and three stale by one update.
std::string histograms(const std::string& text) {
  std::string lines;
  for (const StageVersions& stage : versions(text)) {
    for (const StalenessCount& count : stage.staleness) {
      if (&count != &stage.staleness.front()) lines += " ";
      lines += std::to_string(count.updates) + ":" + std::to_string(count.microbatches);
    }
    if (stage.read_other > 0) {
      lines += ", " + std::to_string(stage.read_other) + " read another, by " +
               std::to_string(stage.read_other_by);
    }
    lines += "\n";
  }
  return lines;
}
std::string one_stage(const std::string& rule, int microbatches, const std::string& ops,
                      const std::string& header = "") {
  return stage(
      straight_text(1, microbatches, "gpu0: " + ops + "\n", "weights: " + rule + "\n" + header));
}

TEST_CASE("with a flush there is one version and nothing is stale") {
  CHECK(one_stage("flush", 2, "0F0 0F1 0B0 0B1 0F2 0F3 0B2 0B3", "steps: 2\n") ==
        "1 held, stale 0 to 0, 0 in the mean");
}

TEST_CASE("a forward of the next step before the update is stale, and its backward reads another") {
  CHECK(one_stage("flush", 1, "0F0 0F1 0B0 0B1", "steps: 2\n") ==
        "1 held, stale 0 to 1, 0.5 in the mean, mixed");
}

TEST_CASE("a stashed backward reads what its forward read") {
  // F1 reads version 0 and its own update is the second.
  CHECK(one_stage("stash", 4, "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3") ==
        "2 held, stale 0 to 1, 0.75 in the mean");
  CHECK(one_stage("stash", 4, "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3") ==
        "2 held, stale 0 to 3, 1.5 in the mean");
}

TEST_CASE("without a stash the backward reads what is there") {
  CHECK(one_stage("latest", 4, "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3") ==
        "1 held, stale 0 to 1, 0.75 in the mean, mixed");
  CHECK(one_stage("latest", 2, "0F0 0B0 0F1 0B1") == "1 held, stale 0 to 0, 0 in the mean");
}

TEST_CASE("an old version is kept from its successor's coming to its last reading") {
  const Program program = add_updates(
      parse_program(straight_text(1, 3, "gpu0: 0F0 0F1 0B0 0F2 0B1 0B2\n", "weights: stash\n")));
  Costs costs = uniform_costs(1, 1, Time{1}, Time{1}, Time{1});
  costs.stage[0].weights = Bytes{5};
  const test::Simulated ran = test::simulated(program, costs);
  CHECK(test::lanes(ran.timeline) ==
        "gpu0 compute: 0F0 0-1, 0F1 1-2, 0B0 2-4, 0U0 4-4, 0F2 4-5, 0B1 5-7, 0U1 7-7, 0B2 7-9, "
        "0U2 9-9\n");
  std::string events;
  const std::vector<StageVersions> versions = versions_of(program, ran.timeline);
  for (const VersionEvent& event : versions[0].events) {
    events += std::to_string(event.at.count()) + (event.change > 0 ? "+ " : "- ");
  }
  // Version 0 is read until B1 ends; version 1 (read by F2) is old from U1 on until B2 ends.
  CHECK(events == "4+ 7- 7+ 9- ");
  const MemoryProfile profile = memory_of(program, costs, ran.timeline, Curves::all);
  std::string bytes;
  for (const MemoryPoint& point : profile.device[0].curve) {
    bytes += std::to_string(point.at.count()) + ":" +
             std::to_string(nth(point.use, MemoryKind::versions).count) + " ";
  }
  CHECK(bytes == "0:0 1:0 2:0 4:5 5:5 7:5 9:0 ");
}

TEST_CASE("an update that puts new weights beside old ones holds both while it runs") {
  const Program program = add_updates(
      parse_program(straight_text(1, 3, "gpu0: 0F0 0F1 0B0 0F2 0B1 0B2\n", "weights: stash\n")));
  Costs costs = uniform_costs(1, 1, Time{1}, Time{1}, Time{1});
  costs.stage[0].update = Time{2};
  const test::Simulated ran = test::simulated(program, costs);
  CHECK(test::lanes(ran.timeline) ==
        "gpu0 compute: 0F0 0-1, 0F1 1-2, 0B0 2-4, 0U0 4-6, 0F2 6-7, 0B1 7-9, 0U1 9-11, 0B2 11-13, "
        "0U2 13-15\n");
  const StageVersions versions = versions_of(program, ran.timeline)[0];
  std::string events;
  for (const VersionEvent& event : versions.events) {
    events += std::to_string(event.at.count()) + (event.change > 0 ? "+ " : "- ");
  }
  CHECK(events == "4+ 9- 9+ 13- ");  // U2 makes version 3 in the place of 2
  CHECK(versions.held_peak == 2);
}

TEST_CASE("a version that nobody reads any more when its successor comes is not kept") {
  const Program program = add_updates(
      parse_program(straight_text(1, 2, "gpu0: 0F0 0B0 0F1 0B1\n", "weights: stash\n")));
  const test::Simulated ran =
      test::simulated(program, uniform_costs(1, 1, Time{1}, Time{1}, Time{1}));
  CHECK(versions_of(program, ran.timeline)[0].events.empty());
}

TEST_CASE("under flush and latest no old version costs memory") {
  for (const char* const rule : {"flush", "latest"}) {
    const Program program = add_updates(parse_program(straight_text(
        1, 1, "gpu0: 0F0 0F1 0B0 0B1\n", std::string("steps: 2\nweights: ") + rule + "\n")));
    Costs costs = uniform_costs(1, 1, Time{1}, Time{1}, Time{1});
    const test::Simulated ran = test::simulated(program, costs);
    const MemoryProfile profile = memory_of(program, costs, ran.timeline, Curves::all);
    for (const MemoryPoint& point : profile.device[0].curve) {
      CHECK(nth(point.use, MemoryKind::versions) == Bytes{});
    }
  }
}

// Warm-up 1 and 0, as PipeDream has it with two stages.
const std::string two_stages =
    "gpu0: 0F0 0F1 0B0 0F2 0B1 0F3 0B2 0F4 0B3 0B4\n"
    "gpu1: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4\n";

TEST_CASE("vertical sync gives every stage the version that the first one had") {
  const std::string stashed = straight_text(2, 5, two_stages, "weights: stash\n");
  CHECK(stage(stashed, 0) == "2 held, stale 0 to 1, 0.8 in the mean");
  CHECK(stage(stashed, 1) == "1 held, stale 0 to 0, 0 in the mean");
  const std::string synced = straight_text(2, 5, two_stages, "weights: vertical_sync\n");
  CHECK(stage(synced, 0) == "2 held, stale 0 to 1, 0.8 in the mean");
  CHECK(stage(synced, 1) == "2 held, stale 0 to 1, 0.8 in the mean");
}

TEST_CASE("with two buffers a step reads what the step but one before left, and nothing newer") {
  // Two micro-batches a step; 0F3 comes behind the update of step 0, and does not read it.
  CHECK(one_stage("double_buffer", 2, "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0F4 0B3 0F5 0B4 0B5",
                  "steps: 3\n") == "2 held, stale 0 to 1, 0.666667 in the mean");
}

TEST_CASE("replicas count their own updates, one a round") {
  const std::string text =
      "stageline-program 1\nmicrobatches: 8\nweights: stash\nstage 0: a+b\nstage 1: c\n"
      "a: 0F0 0F2 0B0 0F4 0B2 0F6 0B4 0B6\n"
      "b: 0F1 0F3 0B1 0F5 0B3 0F7 0B5 0B7\n"
      "c: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4 1F5 1B5 1F6 1B6 1F7 1B7\n";
  CHECK(stage(text, 0) == "2 held, stale 0 to 1, 0.75 in the mean");
  CHECK(stage(text, 1) == "1 held, stale 0 to 0, 0 in the mean");
}

TEST_CASE("a recomputation and an input gradient read weights, a weight gradient does not") {
  // The W comes after the update of the other micro-batch; the I and the R do not.
  CHECK(one_stage("latest", 2, "0F0 0F1 0I0 0I1 0W0 0W1") ==
        "1 held, stale 0 to 1, 0.5 in the mean");
  CHECK(one_stage("latest", 2, "0F0 0F1 0I0 0W0 0I1 0W1") ==
        "1 held, stale 0 to 1, 0.5 in the mean, mixed");
  CHECK(one_stage("latest", 2, "0F0 0F1 0I0 0W0 0R1 0W1") ==
        "1 held, stale 0 to 1, 0.5 in the mean, mixed");
}

// 1F1B's order of eight micro-batches on four stages: a flush at the end, or an update after
// each backward (PipeDream).
const std::string four_stages =
    "gpu0: 0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7\n"
    "gpu1: 1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1F6 1B4 1F7 1B5 1B6 1B7\n"
    "gpu2: 2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2F6 2B5 2F7 2B6 2B7\n"
    "gpu3: 3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7\n";

TEST_CASE("every micro-batch of 1F1B is fresh") {
  CHECK(histograms(straight_text(4, 8, four_stages, "weights: flush\n")) == "0:8\n0:8\n0:8\n0:8\n");
}

TEST_CASE("PipeDream's stage s of four is 3-s updates stale, but for its warm-up") {
  CHECK(histograms(straight_text(4, 8, four_stages, "weights: stash\n")) ==
        "0:1 1:1 2:1 3:5\n0:1 1:1 2:6\n0:1 1:7\n0:8\n");
}

TEST_CASE("with vertical sync the first stage's staleness is everybody's") {
  CHECK(histograms(straight_text(4, 8, four_stages, "weights: vertical_sync\n")) ==
        "0:1 1:1 2:1 3:5\n0:1 1:1 2:1 3:5\n0:1 1:1 2:1 3:5\n0:1 1:1 2:1 3:5\n");
}

TEST_CASE("with the latest weights each backward is as far from its forward as that is stale") {
  // Micro-batch m waits behind min(m, 3 - s) updates, all between its forward and its backward.
  CHECK(histograms(straight_text(4, 8, four_stages, "weights: latest\n")) ==
        "0:1 1:1 2:1 3:5, 7 read another, by 3\n0:1 1:1 2:6, 7 read another, by 2\n"
        "0:1 1:7, 7 read another, by 1\n0:8\n");
}

TEST_CASE("a micro-batch whose backward comes in pieces is counted once") {
  // I1 reads one update later than F1; R2 and I2 read one and two updates later than F2.
  CHECK(histograms(straight_text(1, 3, "gpu0: 0F0 0F1 0F2 0B0 0R2 0I1 0W1 0I2 0W2\n",
                                 "weights: latest\n")) == "0:1 1:1 2:1, 2 read another, by 2\n");
}

TEST_CASE("a replica's histogram is part of its stage's") {
  const std::string text =
      "stageline-program 1\nmicrobatches: 8\nweights: stash\nstage 0: a+b\nstage 1: c\n"
      "a: 0F0 0F2 0B0 0F4 0B2 0F6 0B4 0B6\n"
      "b: 0F1 0F3 0B1 0F5 0B3 0F7 0B5 0B7\n"
      "c: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4 1F5 1B5 1F6 1B6 1F7 1B7\n";
  CHECK(histograms(text) == "0:2 1:6\n0:8\n");
}

}  // namespace
}  // namespace stageline::versions_tests
