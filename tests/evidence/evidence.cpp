// Does an evidence file hold all of it, and is a broken one refused?
#include "tools/lab/evidence/evidence.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "sim/base/errors.hpp"
#include "tests/evidence/small_evidence.hpp"
#include "tools/base/files.hpp"

namespace stageline::evidence_tests {
namespace {

std::string kept_text() {
  const char* const source = std::getenv("STAGELINE_SOURCE");
  REQUIRE(source != nullptr);
  return read_file(std::string(source) + "/tests/evidence/small.evidence.json");
}

}  // namespace

TEST_CASE("the file beside this test holds the evidence that the tests make") {
  const lab::Evidence evidence = test::small_evidence();
  CHECK(lab::read_evidence(kept_text(), "small") == evidence);
  CHECK(lab::write_evidence(evidence) == kept_text());
}

TEST_CASE("what is written is read back unchanged") {
  lab::Evidence evidence = test::small_evidence();
  evidence.device = "quoted \"name\", 2 lanes\nµ";
  evidence.notes.clear();
  evidence.imitated = true;
  evidence.traces.push_back(evidence.traces[0]);
  evidence.traces[1].batch = 2;
  evidence.traces[1].layers[0].forward = Time{1};
  evidence.cases[0].batch = 2;
  evidence.whole_traces = {evidence.traces[1]};
  evidence.whole_traces[0].layers[1].backward = Time{7};
  evidence.cases[2].whole = true;
  evidence.cases[2].batch = 2;
  evidence.cases[1].makespan[0] = longest_input;
  Timeline overlapped{{"lane0", "lane1"}, std::vector<Spans>(2 * lane_kinds)};
  Op first{OpKind::forward, 0, 1, 0, 3};
  overlapped.lanes[0] = {{first, Time{0}, Time{5}},
                         {{OpKind::backward, 0, 0, 1, 2}, Time{0}, Time{5}}};
  evidence.cases[1].timeline = overlapped;
  evidence.cases[2].counted = overlapped;
  evidence.cases[1].program = "a \"text\"\nof lines\n";
  evidence.cases[1].lengths = {8, 4};
  for (const lab::TokenPart part : lab::parts_of(evidence.cases[1])) {
    evidence.traces.push_back(evidence.traces[0]);
    evidence.traces.back().name = lab::part_name("four", part);
  }
  const lab::Evidence again = lab::read_evidence(lab::write_evidence(evidence), "again");
  CHECK(again == evidence);
  CHECK(lab::write_evidence(again) == lab::write_evidence(evidence));
  evidence.cases.clear();
  evidence.traces.clear();
  evidence.whole_traces.clear();
  CHECK(lab::read_evidence(lab::write_evidence(evidence), "empty") == evidence);
}

TEST_CASE("a hundred cases of nine runs stay below 256 kB") {
  lab::Evidence evidence = test::small_evidence();
  lab::MeasuredCase usual = evidence.cases[0];
  usual.makespan.assign(9, Time{1'234'567'890'123});
  for (lab::MeasuredDevice& device : usual.devices) device.busy = device.transfer = usual.makespan;
  evidence.cases.assign(100, usual);
  CHECK(lab::write_evidence(evidence).size() < 256'000);
}

TEST_CASE("broken evidence is refused with its pointer and the rule") {
  struct Broken {
    std::string from, to, where, text;
  };
  const std::string valid = kept_text();
  for (const Broken& broken : std::vector<Broken>{
           {"stageline-evidence 1", "stageline-trace 1", "/format", "\"stageline-evidence 1\""},
           {"\"software\"", "\"softwear\"", "/softwear", "did you mean \"software\"?"},
           {"\"forward_us\": 1000", "\"forward_us\": -1", "/traces/0/layers/0/forward_us",
            "must not be negative"},
           {"\"name\": \"lane1\"", "\"name\": \"lane0\"", "/cluster/devices/1/name",
            "appears twice"},
           {"\"model\": \"four\"", "\"model\": \"fuor\"", "/cases/0/model",
            "did you mean \"four\"?"},
           {"\"batch\": 1, \"schedule\"", "\"batch\": 2, \"schedule\"", "/cases/0/model",
            "there is no trace of \"four\" at batch 2"},
           {"\"batch\": 1, \"schedule\"", "\"batch\": 1, \"whole\": true, \"schedule\"",
            "/cases/0/model", "there is no whole trace of \"four\" at batch 1"},
           {"\"microbatches\": 4", "\"microbatches\": 0", "/cases/0/microbatches", "from 1 to"},
           {"\"held_out\": true", "\"held_out\": 1", "/cases/0/held_out",
            "must be true or false, not a number"},
           {"[24000000000, 26000000000, 25000000000, 26000000000, 24000000000]", "[]",
            "/cases/0/makespan_ps", "at least once"},
           {"\"makespan_ps\": [24000000000", "\"makespan_ps\": [0", "/cases/0/makespan_ps/0",
            "from 1 to"},
           {"\"busy_ps\": [20000000000, ", "\"busy_ps\": [", "/cases/0/devices/0/busy_ps",
            "each of the 5 runs (this list has 4)"},
           {"\"transfer_ps\": [0", "\"transfer_ps\": [0.5", "/cases/0/devices/0/transfer_ps/0",
            "whole number"},
           {"\"peak_bytes\": 20000000", "\"peak_bytes\": -1", "/cases/0/devices/1/peak_bytes",
            "must not be negative"},
           {"[45000000, ", "[0, ", "/cases/0/devices/0/peak_bytes/0",
            "a counted run held something"},
           {"[45000000, 55000000, 50000000]", "[]", "/cases/0/devices/0/peak_bytes",
            "one of each counted run"},
           {"[8100000, 8000000, 8100000]", "[8100000, 8000000]", "/cases/0/devices/0/stash_bytes",
            "one of each counted run, as the peaks have (peaks 3, stashes 2)"},
           {"[0, \"0F0\", 0, 2500000000]", "[0, \"0F0\", 0]", "/cases/4/timeline/spans/0",
            "has 3 parts"},
           {"[0, \"0F0\", 0, 2500000000]", "[10, \"0F0\", 0, 2500000000]",
            "/cases/4/timeline/spans/0/0", "from 0 to 9"},
           {"[0, \"0F0\", 0, 2500000000]", "[0, \"0X0\", 0, 2500000000]",
            "/cases/4/timeline/spans/0/1", "\"0X0\" is no op"},
           {"[0, \"0F0\", 0, 2500000000]", "[0, \"0F0\", 9, 1]", "/cases/4/timeline/spans/0/3",
            "must not end before it starts"},
           {"[0, \"0F0\", 0, 2500000000]", "[0, \"0F0\", 2500000001, 2500000002]",
            "/cases/4/timeline/spans/1/2", "in order of start"},
           {"{\"devices\": [\"lane0\", \"lane1\"]", "{\"devices\": [\"lane0\"]",
            "/cases/4/timeline/devices", "of the 2 devices of the case"},
       }) {
    CAPTURE(broken.from);
    std::string text = valid;
    const std::size_t at = text.find(broken.from);
    REQUIRE(at != std::string::npos);
    text.replace(at, broken.from.size(), broken.to);
    try {
      lab::read_evidence(text, "e.json");
      FAIL("nothing was thrown");
    } catch (const TraceError& error) {
      CHECK(error.where == broken.where);
      CAPTURE(error.what());
      CHECK(std::string(error.what()).find(broken.text) != std::string::npos);
    }
  }
}

TEST_CASE("a case has no more devices than the cluster") {
  lab::Evidence evidence = test::small_evidence();
  evidence.cluster.devices.pop_back();
  try {
    lab::read_evidence(lab::write_evidence(evidence), "e.json");
    FAIL("nothing was thrown");
  } catch (const TraceError& error) {
    CHECK(error.where == "/cases/0/devices");
  }
}

TEST_CASE(
    "micro-batches that differ have traces of their parts, and as many lengths as divide them") {
  lab::Evidence evidence = test::small_evidence();
  lab::MeasuredCase& measured = evidence.cases[1];
  measured.lengths = {8, 4};
  const auto refused = [&](const std::string& words) {
    CHECK_THROWS_WITH_AS(lab::read_evidence(lab::write_evidence(evidence), "parts"),
                         doctest::Contains(words.c_str()), TraceError);
  };
  refused("no trace of four, tokens 0 to 7 at batch 1");
  measured.lengths = {8, 4, 2};
  refused("divide a step of 4 (these are 3)");
  measured.schedule = "seq1f1b:sequence_chunks=4";
  refused("for each of 4 slices (these are 3)");
  measured.schedule = "seq1f1b:sequence_chunks=3";
  CHECK((lab::parts_of(measured) == std::vector<lab::TokenPart>{{0, 8}, {8, 4}, {12, 2}}));
  refused("no trace of four, tokens 0 to 7 at batch 1");
}

TEST_CASE("each micro-batch is priced by the trace of its length") {
  lab::Evidence evidence = test::small_evidence();
  lab::MeasuredCase measured = evidence.cases[0];  // gpipe, (4 + 1) × 6 = 30 ms
  measured.lengths = {8, 4};
  for (const lab::TokenPart part : lab::parts_of(measured)) {
    Model& trace = evidence.traces.emplace_back(evidence.traces[0]);
    trace.name = lab::part_name("four", part);
    for (Layer& layer : trace.layers) {
      for (Time Layer::*const time :
           {&Layer::forward, &Layer::backward, &Layer::input_grad, &Layer::weight_grad}) {
        if (part.tokens == 4) layer.*time /= 2;
      }
    }
  }
  evidence.cases = {measured};
  const lab::Prediction prediction = lab::predict(evidence, measured);
  // Each device has two micro-batches of 6 ms and two of 3 ms.
  CHECK(prediction.devices.at(0).busy == std::chrono::milliseconds(18));
  CHECK(prediction.makespan < std::chrono::milliseconds(30));
  CHECK(prediction.makespan > std::chrono::milliseconds(18));
}

TEST_CASE("gradients of keys and values wait for the slices before") {
  lab::Evidence evidence = test::small_evidence();
  evidence.traces[0].layers[0].kind = "attention";
  lab::MeasuredCase measured = evidence.cases[0];
  measured.schedule = "seq1f1b:sequence_chunks=2";
  measured.lengths = {4, 4};
  for (const lab::TokenPart part : lab::parts_of(measured)) {
    evidence.traces.push_back(evidence.traces[0]);
    evidence.traces.back().name = lab::part_name("four", part);
  }
  const Case asked = lab::case_of(evidence, measured);
  REQUIRE(asked.kinds.size() == 2);
  const Bytes both = asked.kinds[0]->layers[0].output * 2;
  CHECK(asked.kinds[1]->layers[0].earlier_gradients == both);
  CHECK(asked.kinds[0]->layers[0].earlier_gradients == Bytes{} - both);
  CHECK(asked.kinds[0]->layers[1].earlier_gradients == Bytes{});
}

TEST_CASE("a trace stands once") {
  lab::Evidence evidence = test::small_evidence();
  evidence.traces.push_back(evidence.traces[0]);
  CHECK_THROWS_AS(lab::read_evidence(lab::write_evidence(evidence), "e.json"), TraceError);
}

}  // namespace stageline::evidence_tests
