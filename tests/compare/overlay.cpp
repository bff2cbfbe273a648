// Is each op set beside the right one, and is the difference what it says?
#include "tools/compare/overlay.hpp"
#include "sim/analysis/kind_times.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/make.hpp"
#include "tests/traces/support.hpp"
#include "tools/report/text/overlay.hpp"
#include "traces/kineto/model.hpp"

namespace stageline::overlay_tests {
namespace {

constexpr Time ms{1'000'000'000};

Recording recording(const std::string& schedule, Time forward, int microbatches, int steps,
                    const std::string& name) {
  const test::Ran ran =
      test::run_schedule(schedule, 2, uniform_costs(2, 2, forward, ms, ms), microbatches, steps);
  Recording recording;
  recording.name = name;
  recording.timeline = ran.timeline;
  recording.microbatches = microbatches;
  recording.steps = steps;
  return recording;
}

Span& span_of(Recording& recording, const std::string& op) {
  for (auto& lane : recording.timeline.lanes) {
    for (Span& span : lane) {
      if (print(span.op) == op) return span;
    }
  }
  FAIL("no ", op);
  return recording.timeline.lanes[0][0];
}

TEST_CASE("ops are paired and stand by how much they differ") {
  const Recording model = recording("1f1b", ms, 4, 1, "a");
  Recording measured = model;
  measured.name = "b";
  measured.measured = true;
  span_of(measured, "1F2").end += ms / 2;
  span_of(measured, "0B1").end -= ms / 4;
  const Overlay overlay = overlay_of(model, measured);
  CHECK(overlay.first.word == "model");
  CHECK(overlay.second.word == "measured");
  REQUIRE(overlay.ops.size() == 2 * (4 + 4 + 1));
  CHECK(print(overlay.ops[0].op) == "1F2");
  CHECK(overlay.ops[0].difference() == ms / 2);
  CHECK(overlay.ops[0].device == "gpu1");
  CHECK(print(overlay.ops[1].op) == "0B1");
  CHECK(overlay.ops[1].difference() == -ms / 4);
  CHECK(overlay.ops[2].difference() == Time{});
  CHECK(overlay.only_first.empty());
  CHECK(overlay.first.length == 15 * ms);
  CHECK(overlay.first.busy == std::vector<Time>{12 * ms, 12 * ms});
  CHECK(overlay.second.busy == std::vector<Time>{12 * ms - ms / 4, 12 * ms});  // 1F2 runs into 1B2
  const KindMedian& first = overlay.medians.at(0);
  CHECK(first.stage == 0);
  CHECK(first.kind == OpKind::forward);
  CHECK(first.first == ms);
  CHECK(first.first_count == 4);

  const std::string text = report::overlay_text(overlay, 2);
  CHECK(contains(text, "the 2 of 18 ops that differ most"));
  CHECK(contains(text, "1F2  gpu1    1.000 ms  1.500 ms   +500.0 µs       +3.3 %"));
  CHECK(contains(text, "0B1  gpu0    2.000 ms  1.750 ms   -250.0 µs       -1.7 %"));
  const auto json = nlohmann::json::parse(report::overlay_json(overlay));
  CHECK(json.at("per_op").size() == 18);
  CHECK(json.at("per_op")[0].at("op") == "1F2");
  CHECK(json.at("per_op")[0].at("difference_ps") == (ms / 2).count());
  CHECK(json.at("first").at("per_device")[0].at("idle_ps") == (3 * ms).count());
  CHECK(json.at("second").at("is") == "measured");
  CHECK(contains(report::overlay_svg(overlay), "gpu0 model"));
  CHECK(contains(report::overlay_svg(overlay), "gpu1 measured"));
}

TEST_CASE("of several steps the one of median length is compared, or the one asked for") {
  Recording measured = recording("gpipe", ms, 2, 4, "b");
  Recording model = recording("gpipe", ms, 2, 1, "a");
  model.step_time = steady_step(model);  // as an outcome says it
  // Step 2 is longer by 1 ms and step 3 by 3: all behind shift.
  for (auto& lane : measured.timeline.lanes) {
    for (Span& span : lane) {
      const bool update = span.op.kind == OpKind::update;
      const std::uint32_t step = update ? span.op.microbatch : span.op.microbatch / 2;
      const Time late = step >= 3 ? 4 * ms : step == 2 ? ms : Time{};
      span.start += late;
      span.end += late;
    }
  }
  Overlay overlay = overlay_of(model, measured);
  CHECK(overlay.second.step == 2);
  CHECK(overlay.second.steps == 4);
  CHECK(overlay.second.step_time == overlay.first.step_time + ms);
  CHECK(overlay.second.timeline == model.timeline);
  CHECK(overlay.ops[0].difference() == Time{});
  overlay = overlay_of(model, measured, 3);
  CHECK(overlay.second.step == 3);
  CHECK(contains(usage_error_of([&] { overlay_of(model, measured, 4); }),
                 "--step 4: b has the steps 0 to 3"));
}

TEST_CASE("one stall among the steps changes no step that is compared, and is said") {
  const Recording model = recording("gpipe", ms, 2, 1, "a");
  for (const int steps : {3, 4, 6}) {
    CAPTURE(steps);
    Recording measured = recording("gpipe", ms, 2, steps, "b");
    measured.measured = true;
    const Time length = steady_step(model);
    for (auto& lane : measured.timeline.lanes) {
      for (Span& span : lane) {
        const bool update = span.op.kind == OpKind::update;
        const auto step = static_cast<int>(update ? span.op.microbatch : span.op.microbatch / 2);
        if (step < steps - 1) continue;
        span.start += 12 * ms;
        span.end += 12 * ms;
      }
    }
    const Time mean = length + 12 * ms / (steps - 1);
    // As stageline-exec says it, whose step time is the mean.
    for (const bool said : {false, true}) {
      if (said) measured.step_time = mean;
      const Overlay overlay = overlay_of(model, measured);
      CHECK(overlay.second.step_time == length);
      CHECK(overlay.second.mean == mean);
      CHECK(steady_step(measured) == length);
      const std::string numbers = fmt::format(
          "the measured steps are unlike: their mean is {}, and step {}, "
          "which is compared, takes {}",
          print(mean), overlay.second.step, print(length));
      REQUIRE(!overlay.notes.empty());
      CHECK(overlay.notes.at(1) == numbers);
      CHECK(contains(report::overlay_text(overlay, 1),
                     fmt::format("measured {}: 0 (0.0 %)", print(length))));
      CHECK(contains(report::overlay_svg(overlay),
                     fmt::format("measured {} (0.0 %)", print(length))));
      CHECK(contains(report::overlay_svg(overlay), "their mean is"));
      const auto json = nlohmann::json::parse(report::overlay_json(overlay));
      CHECK(json.at("difference_ps") == 0);
      CHECK(json.at("second").at("mean_step_time_ps") == mean.count());
      CHECK(json.at("notes").at(1) == numbers);
    }
  }
}

// A damaged profile once gave a step of -1073 s.
TEST_CASE("steps that do not follow each other are refused") {
  Recording damaged = recording("gpipe", ms, 2, 3, "a");
  for (auto& lane : damaged.timeline.lanes) {
    for (Span& span : lane) {
      if (span.op.microbatch / (span.op.kind == OpKind::update ? 1U : 2U) == 1) continue;
      span.start += 50 * ms;
      span.end += 50 * ms;
    }
  }
  for (const std::optional<int> step : {std::optional<int>(), std::optional<int>(1)}) {
    CHECK_THROWS_WITH_AS(overlay_of(damaged, damaged, step),
                         doctest::Contains("a: step 1 ends at "), UsageError);
  }
  CHECK_THROWS_AS(steady_step(damaged), UsageError);
}

// As PipeDream's do: two slow updates at once, and the second is done first.
TEST_CASE("a step that ends before the one before it is done with that") {
  Recording two = recording("gpipe", ms, 2, 3, "a");
  Time last{};
  for (auto& lane : two.timeline.lanes) {
    for (Span& span : lane) {
      last = std::max(last, span.end);
      if (span.op.microbatch != 1 || span.op.kind != OpKind::update) continue;
      span.end += 30 * ms;  // of step 1: later than step 2's
    }
  }
  const StepBounds bounds = step_bounds(two);
  CHECK(bounds.ends[1] > last);
  CHECK(bounds.ends[2] == bounds.ends[1]);
  CHECK(overlay_of(two, two, 2).first.step_time == Time{});
  CHECK(steady_step(two) >= Time{});
}

TEST_CASE("a step alone is compared with another's length, not with its pace") {
  Recording model = recording("1f1b", ms, 4, 1, "a");
  model.step_time = 13 * ms;  // among others
  Recording measured = recording("1f1b", ms, 4, 1, "b");
  measured.measured = true;
  Overlay overlay = overlay_of(model, measured);
  CHECK(overlay.first.step_time == 15 * ms);
  CHECK(overlay.second.step_time == 15 * ms);
  CHECK(overlay.notes.at(0) ==
        "the model side's step takes 13.00 ms among others; it is compared from its first op to "
        "the end of its last, 15.00 ms, since the other side is one step alone");
  // A measured run of one step says its length, a simulated one its pace.
  measured.step_time = 15 * ms;
  CHECK(overlay_of(model, measured).first.step_time == 15 * ms);
  measured.measured = false;
  measured.step_time = 14 * ms;
  overlay = overlay_of(model, measured);
  CHECK(overlay.first.step_time == 13 * ms);
  CHECK(overlay.second.step_time == 14 * ms);
}

TEST_CASE("what only one has is listed, and nothing in common is refused") {
  const Overlay overlay =
      overlay_of(recording("1f1b", ms, 4, 1, "a"), recording("1f1b", 2 * ms, 2, 1, "b"));
  CHECK(overlay.first.word == "first");
  CHECK(overlay.second.word == "second");
  CHECK(overlay.only_first.size() == 8);
  CHECK(overlay.only_second.empty());
  CHECK(contains(report::overlay_text(overlay, 1), "only first: 0F2 0F3 1F2 1F3 0B2 0B3 1B2 1B3"));
  Recording other = recording("1f1b", ms, 1, 1, "c");
  for (auto& lane : other.timeline.lanes) {
    for (Span& span : lane) span.op.stage = static_cast<std::uint16_t>(span.op.stage + 7);
  }
  CHECK(contains(usage_error_of([&] { overlay_of(recording("1f1b", ms, 4, 1, "a"), other); }),
                 "a and c have no op in common"));
  other.timeline.lanes.assign(other.timeline.lanes.size(), {});
  CHECK(contains(usage_error_of([&] { overlay_of(other, other); }), "c has no spans"));
}

TEST_CASE("ops that ran overlapped count where nothing else shows their time") {
  Timeline timeline;
  timeline.devices = {"gpu0"};
  timeline.lanes.resize(lane_kinds);
  const auto put = [&](const char* op, Time start, Time end, bool overlapped) {
    Span span{*parse_op(op), start, end};
    span.op.overlapped = overlapped ? 1 : 0;
    timeline.lanes[0].push_back(span);
  };
  put("0F0", Time{0}, Time{10}, false);
  put("0F1", Time{10}, Time{40}, true);
  put("0B0", Time{10}, Time{40}, false);
  put("0F2", Time{40}, Time{52}, false);
  const std::vector<KindTimes> kinds = kind_times(timeline);
  REQUIRE(kinds.size() == 2);
  CHECK(kinds[0].times == std::vector<Time>{Time{10}, Time{12}});
  CHECK(!kinds[0].shared);
  // The pair less what F takes outside of pairs, 11.
  CHECK(kinds[1].times == std::vector<Time>{Time{19}});
  CHECK(kinds[1].shared);
  // F takes 11 and I and W together 22: more than the pair, of which F has a third.
  put("0I2", Time{52}, Time{62}, false);
  put("0W2", Time{62}, Time{74}, false);
  const std::vector<KindTimes> four = kind_times(timeline);
  REQUIRE(four.size() == 4);
  CHECK(four[3].kind == OpKind::backward);
  CHECK(four[3].times == std::vector<Time>{Time{20}});
  // Nothing is known outside of pairs: a third for F.
  timeline.lanes[0].erase(timeline.lanes[0].begin());
  timeline.lanes[0].resize(2);
  const std::vector<KindTimes> thirds = kind_times(timeline);
  CHECK(thirds[0].times == std::vector<Time>{Time{10}});
  CHECK(thirds[1].times == std::vector<Time>{Time{20}});
  CHECK(thirds[0].shared);
}

// A run of one step on two devices, every op as long as `times` says.
KinetoRun run_of(const std::string& schedule) {
  const test::Ran ran =
      test::run_schedule(schedule, 2, uniform_costs(2, 2, ms, 3 * ms + Time{1}, 2 * ms), 4, 1);
  KinetoRun run;
  run.program = ran.program;
  run.timeline = ran.timeline;
  run.date = "2026-11-21";
  run.notes = {"a note"};
  return run;
}

TEST_CASE("a profile's medians make a trace") {
  const Model model = kineto_model(run_of("1f1b"), "net", 16, "rank0.json");
  REQUIRE(model.layers.size() == 2);
  CHECK(model.name == "net");
  CHECK(model.batch == 16);
  const Layer& layer = model.layers[0];
  CHECK(layer.name == "stage0");
  CHECK(layer.forward == ms);
  CHECK(layer.backward == 5 * ms + Time{1});
  CHECK(layer.input_grad + layer.weight_grad == layer.backward);
  CHECK(layer.input_grad == layer.backward / 2);
  CHECK(layer.forward_spread == Time{});
  CHECK(model.provenance.origin == Origin::measured);
  CHECK(model.provenance.date == "2026-11-21");
  CHECK(model.provenance.source == "PyTorch profiler, rank0.json");
  CHECK(
      contains(model.provenance.method, "over 4 micro-batches and 1 step of a real pipelined run"));
  CHECK(model.provenance.notes.at(0) == "a note");
  CHECK(
      contains(model.provenance.notes.at(1), "all stages ran B alone: half of it is taken for I"));
  CHECK(contains(model.provenance.notes.back(), "a profile does not record bytes"));
}

TEST_CASE("where I and W were measured, nothing is split") {
  KinetoRun run = run_of("1f1b");
  for (auto& lane : run.timeline.lanes) {
    Spans split;
    for (Span span : lane) {
      if (span.op.kind != OpKind::backward || span.op.stage == 0) {
        split.push_back(span);
        continue;
      }
      Span second = span;
      span.op.kind = OpKind::input_grad;
      span.end = second.start = span.start + ms;
      second.op.kind = OpKind::weight_grad;
      split.push_back(span);
      split.push_back(second);
    }
    lane = split;
  }
  const Model model = kineto_model(run, "net", 0, "rank0.json");
  CHECK(model.layers[1].input_grad == ms);
  CHECK(model.layers[1].weight_grad == 4 * ms + Time{1});
  CHECK(model.layers[1].backward == 5 * ms + Time{1});
  CHECK(contains(model.provenance.notes.at(1), "stage 0 ran B alone"));
}

}  // namespace
}  // namespace stageline::overlay_tests
