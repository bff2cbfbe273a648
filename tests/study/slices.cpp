// Is a slice of a sequence priced by its own kernels, do slices divide what they cut, and do the
// parts of a recommendation cost what it says?
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "cost_models/recomputation.hpp"
#include "cost_models/slices.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "sim/analysis/memory.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tests/make.hpp"
#include "tests/thorough.hpp"
#include "tools/compare/comparison.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/inputs/slice_lengths.hpp"
#include "tools/inputs/traces.hpp"
#include "tools/planner/changes.hpp"
#include "tools/planner/planner.hpp"
#include "tools/planner/space.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/pace/bound.hpp"
#include "tools/study/study.hpp"

namespace stageline::slices_tests {
namespace {

SettingRequest request_of(const std::string& trace, int devices) {
  SettingRequest request;
  request.trace = trace;
  request.devices = {devices};
  request.microbatches = 2 * devices;
  return request;
}

Case case_of(const std::string& trace, const std::string& schedule, int devices = 4) {
  const SettingRequest request = request_of(trace, devices);
  return make_case(request, read_setting(request), test::spec(schedule), devices);
}

Model opened(const std::string& trace) {
  TraceRequest request;
  request.text = trace;
  return open_trace(request);
}

double seconds(const Model& model) { return to_seconds(forward_backward(model)); }

// What the lanes compute in a step, without recomputation and updates: F, B, I and W.
double computed(const Outcome& outcome) {
  Time sum{};
  for (std::size_t d = 0; d < outcome.timeline.devices.size(); ++d) {
    for (const Span& span : outcome.timeline.lane(static_cast<int>(d), LaneKind::compute)) {
      const OpKind kind = span.op.kind;
      const bool pass = kind == OpKind::forward || kind == OpKind::backward ||
                        kind == OpKind::input_grad || kind == OpKind::weight_grad;
      // The spans of an overlapped pair are both as long as the pair; its first op says that it is.
      if (pass && !span.op.overlapped) sum += span.end - span.start;
    }
  }
  return to_seconds(sum) / outcome.program.steps;
}

// How far the passes of a case are from so many times the time of its parts.
double off(const Case& asked, double parts) {
  return std::abs(computed(study(asked)) / (asked.microbatches * parts) - 1);
}

constexpr double agreed = 0.02;

struct Sliced {
  const char* model;  // without its sequence
  int seq;
  int slices;
};

constexpr Sliced sliced[] = {
    {"model:gpt3-175b@h100,layers=8", 2048, 2},    {"model:gpt3-175b@h100,layers=8", 2048, 8},
    {"model:llama3-8b@h100,layers=8", 8192, 4},    {"model:llama3-8b@h100,layers=8", 32768, 16},
    {"model:mixtral-8x7b@a100,layers=8", 4096, 4},
};

// Of attention, forward and backward, in one sequence: what all slices do beside the tokens of
// their own, by the FLOPs below the diagonal at the rate of fused attention.
double attention_to_earlier_slices(const Model& whole, const Sliced& one, const std::string& kind,
                                   double heads, double width) {
  const double pairs = 0.5 * one.seq * one.seq * (1 - 1.0 / one.slices);
  const double flops = 3.5 * 4 * pairs * heads * width;
  const double blocks = static_cast<double>(whole.layers.size()) - 2;
  return blocks * flops / (whole.peak_flops * find_chip_rates(kind)->rates.attention_flash);
}

}  // namespace

TEST_CASE(
    "a slice costs what a micro-batch of its tokens does, and its attention to earlier ones") {
  for (const Sliced& one : sliced) {
    CAPTURE(one.model);
    CAPTURE(one.slices);
    const std::string trace = fmt::format("{},seq={}", one.model, one.seq);
    const Model whole = opened(trace);
    const Model tokens = opened(fmt::format("{},seq={}", one.model, one.seq / one.slices));
    const bool gpt = std::string(one.model).find("gpt3") != std::string::npos;
    const std::string kind =
        std::string(one.model).find("a100") != std::string::npos ? "a100" : "h100";
    const double earlier =
        attention_to_earlier_slices(whole, one, kind, gpt ? 96 : 32, 128) * whole.batch;
    const Case asked = case_of(trace, fmt::format("seq1f1b:sequence_chunks={}", one.slices));
    const double parts = one.slices * seconds(tokens) + earlier;
    CHECK(off(asked, parts) < agreed);
    CHECK(computed(study(asked)) >= asked.microbatches * one.slices * seconds(tokens));
    CHECK(computed(study(asked)) > asked.microbatches * seconds(whole));
    CHECK(chunks_note(asked).find("is priced by kernels of as many tokens") != std::string::npos);
  }
}

TEST_CASE("slices of a roofline read the weights once each, and have whole launches") {
  const std::string trace = "model:gpt@a100,layers=4,hidden=1024,batch=1,overhead=5us";
  const Model whole = opened(trace);
  const Case asked = case_of(trace, "seq1f1b:sequence_chunks=8");
  CHECK(computed(study(asked)) > 1.1 * asked.microbatches * seconds(whole));
  // As those of a micro-batch of fewer sequences: what the samples do is in proportion.
  const Model eight = opened("model:gpt@a100,layers=4,hidden=1024,batch=8,overhead=5us");
  const Case of_eight = case_of("model:gpt@a100,layers=4,hidden=1024,batch=8,overhead=5us",
                                "seq1f1b:sequence_chunks=8");
  CHECK(seconds(*of_eight.slice) == doctest::Approx(seconds(whole)));
  CHECK(of_eight.kinds.empty());  // nothing attends to earlier slices
  CHECK(8 * seconds(*of_eight.slice) / seconds(eight) ==
        doctest::Approx(8 * seconds(whole) / seconds(eight)));
}

TEST_CASE("each slice attends to those before it, and all of them to what the whole does") {
  for (const char* const trace :
       {"model:llama3-8b@h100,layers=4,seq=32768", "model:gpt-oss-20b@h100,layers=4,seq=8192"}) {
    CAPTURE(trace);
    const Case asked = case_of(trace, "seq1f1b:sequence_chunks=8", 2);
    REQUIRE(asked.kinds.size() == 8);
    CHECK(asked.kind_of == std::vector<std::uint16_t>{0, 1, 2, 3, 4, 5, 6, 7});
    double all = 0;
    for (std::size_t slice = 0; slice < 8; ++slice) {
      const Model& model = *asked.kinds[slice];
      all += seconds(model);
      if (slice > 0) CHECK(seconds(model) > seconds(*asked.kinds[slice - 1]));
      for (const std::size_t end : {std::size_t{0}, model.layers.size() - 1}) {
        CHECK(model.layers[end].forward == asked.slice->layers[end].forward);
      }
    }
    CHECK(all / 8 == doctest::Approx(seconds(*asked.slice)).epsilon(0.03));
    CHECK(computed(study(asked)) == doctest::Approx(asked.microbatches * all));
  }
}

TEST_CASE("unequal slices wait for each other, as no mean of them does") {
  Case asked = case_of("model:llama3-8b@h100,layers=16,seq=131072", "seq1f1b:sequence_chunks=8", 8);
  const Time unequal = study(asked).step_time;
  asked.kinds.clear();
  asked.kind_of.clear();
  CHECK(to_seconds(unequal) > 1.1 * to_seconds(study(asked).step_time));
}

TEST_CASE("a slice has its share of the bytes, and all of the weights") {
  const Case asked = case_of("model:llama3-8b@h100,layers=8", "seq1f1b:sequence_chunks=4");
  REQUIRE(asked.slice);
  for (std::size_t l = 0; l < asked.model.layers.size(); ++l) {
    const Layer& whole = asked.model.layers[l];
    const Layer& slice = asked.slice->layers[l];
    CHECK(slice.output.count * 4 == whole.output.count);
    CHECK(slice.stash_input_grad.count * 4 == whole.stash_input_grad.count);
    CHECK(slice.stash_weight_grad.count * 4 == whole.stash_weight_grad.count);
    CHECK(slice.weights == whole.weights);
    CHECK(slice.update == whole.update);
    CHECK(slice.parameters == whole.parameters);
  }
}

namespace {

// Bytes of one layer's gradients of keys and values of so many tokens on one rank, in bf16.
std::int64_t pair_bytes(std::int64_t tokens, std::int64_t key_width, std::int64_t value_width) {
  return tokens * (key_width + value_width) * 2;
}

// What a device holds once its op of that kind and micro-batch, of that stage, has ended.
Bytes held_gradients(const Outcome& outcome, OpKind kind, std::uint32_t microbatch, int stage) {
  for (std::size_t d = 0; d < outcome.timeline.devices.size(); ++d) {
    for (const Span& span : outcome.timeline.lane(static_cast<int>(d), LaneKind::compute)) {
      if (span.op.kind != kind || span.op.microbatch != microbatch || span.op.stage != stage) {
        continue;
      }
      const MemoryProfile memory =
          memory_of(outcome.program, outcome.costs, outcome.timeline, Curves::all);
      Bytes held{};
      for (const MemoryPoint& point : memory.device[d].curve) {
        if (point.at > span.end) break;
        held = nth(point.stash, StashPart::gradients);
      }
      return held;
    }
  }
  return Bytes{-1};
}

}  // namespace

TEST_CASE("gradients of keys and values wait for the backward of earlier slices") {
  struct Attention {
    const char* trace;
    std::int64_t key_width;    // of a token, on one rank
    std::int64_t value_width;  // likewise
  };
  // Llama 3 8B has 8 heads of 128 for keys and values. DeepSeek-V2-Lite's 16 heads have keys of
  // 128 + 64 and values of 128.
  const Attention attentions[] = {
      {"model:llama3-8b@h100,layers=4,seq=8192", 8 * 128, 8 * 128},
      {"model:deepseek-v2-lite@h100,layers=4,seq=8192", 16 * 192, 16 * 128}};
  for (const Attention& one : attentions) {
    CAPTURE(one.trace);
    const Case asked = case_of(one.trace, "seq1f1b:sequence_chunks=4", 2);
    const Outcome outcome = study(asked, Curves::all);
    const std::int64_t slice = pair_bytes(2048, one.key_width, one.value_width);
    const Partition& cut = outcome.plan.partition;
    for (int stage = 0; stage < 2; ++stage) {
      std::int64_t blocks = 0;
      for (std::size_t l = 0; l < asked.model.layers.size(); ++l) {
        blocks += cut.stage_of[l] == stage && asked.model.layers[l].kind == "block" ? 1 : 0;
      }
      REQUIRE(blocks > 0);
      for (std::uint32_t number = 0; number < 8; ++number) {
        CAPTURE(number);
        const Bytes held = held_gradients(outcome, OpKind::backward, number, stage);
        CHECK(held == Bytes{(number % 4) * slice * blocks});
      }
    }
    for (const DeviceMemory& device : outcome.memory.device) {
      CHECK(nth(device.at_end, MemoryKind::stash) == Bytes{});
    }
    CHECK(chunks_note(asked).find("not counted") == std::string::npos);
  }
}

TEST_CASE("tensor-parallel ranks hold their share of the gradients of earlier slices") {
  SettingRequest request = request_of("model:llama3-8b@h100,layers=4,seq=8192", 4);
  request.degrees.tensor = 2;
  const Case asked =
      make_case(request, read_setting(request), test::spec("seq1f1b:sequence_chunks=4"), 4);
  REQUIRE(asked.kinds.size() == 4);
  const std::int64_t slice = pair_bytes(2048, 4 * 128, 4 * 128);
  for (std::size_t k = 0; k < 4; ++k) {
    const Layer& block = asked.kinds[k]->layers[1];
    CHECK(block.keys_values == Bytes{k == 3 ? 0 : slice});
    CHECK(block.earlier_gradients == Bytes{k == 3 ? 3 * slice : -slice});
    CHECK(block.stash_input_grad + block.stash_weight_grad > block.keys_values);
  }
}

TEST_CASE("a window leaves only gradients of what it reaches") {
  const Case asked =
      case_of("model:gpt-oss-20b@h100,layers=4,seq=8192", "seq1f1b:sequence_chunks=8", 2);
  REQUIRE(asked.kinds.size() == 8);
  const std::int64_t slice = pair_bytes(1024, 8 * 64, 8 * 64);
  bool windows = false;
  for (std::size_t l = 1; l + 1 < asked.model.layers.size(); ++l) {
    Bytes sum{};
    for (const auto& kind : asked.kinds) sum += kind->layers[l].earlier_gradients;
    CHECK(sum == Bytes{});
    const Bytes left = asked.kinds.back()->layers[l].earlier_gradients;
    if (left == Bytes{7 * slice}) continue;
    windows = true;
    CHECK(left == Bytes{slice / 8});  // 128 tokens
  }
  CHECK(windows);
}

TEST_CASE("what is made again is not what later slices attend to") {
  const std::string trace = "model:llama3-8b@h100,layers=4,seq=8192";
  SettingRequest request = request_of(trace, 2);
  request.recomputation = parse_recomputation("every:1", "--recompute");
  const Case asked =
      make_case(request, read_setting(request), test::spec("seq1f1b:sequence_chunks=4"), 2);
  const Outcome outcome = study(asked);
  const std::int64_t slice = pair_bytes(2048, 8 * 128, 8 * 128);
  std::int64_t blocks = 0;
  for (std::size_t l = 0; l < asked.model.layers.size(); ++l) {
    blocks += outcome.plan.partition.stage_of[l] == 1 && asked.model.layers[l].kind == "block";
  }
  const Bytes last = outcome.costs.kinds[3].stage[1].boundary;
  CHECK(outcome.costs.kinds[0].stage[1].boundary - last == Bytes{blocks * slice});
  request.recomputation = {};
  request.offloading = parse_offloading("all", "--offload");
  const Case copied =
      make_case(request, read_setting(request), test::spec("seq1f1b:sequence_chunks=4"), 2);
  CHECK_THROWS_WITH_AS(study(copied), doctest::Contains("that later chunks attend to"), UsageError);
}

TEST_CASE("balanced slices take equal times, and later ones are shorter") {
  const Case asked = case_of("model:llama3-8b@h100,layers=8,seq=131072",
                             "seq1f1b:sequence_chunks=8,slices=balanced");
  const std::vector<std::int64_t>& lengths = asked.slice_lengths;
  REQUIRE(lengths.size() == 8);
  CHECK(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) == 131072);
  CHECK(std::is_sorted(lengths.rbegin(), lengths.rend()));
  CHECK(lengths.front() > 2 * lengths.back());
  REQUIRE(asked.kinds.size() == 8);
  std::vector<double> times;
  for (std::size_t k = 0; k < 8; ++k) {
    const Model& model = *asked.kinds[k];
    times.push_back(seconds(model));
    CHECK(lengths[k] % balanced_step == 0);
    CHECK(model.layers[1].output.count * 131072 == asked.model.layers[1].output.count * lengths[k]);
  }
  CHECK(*std::max_element(times.begin(), times.end()) <
        1.03 * *std::min_element(times.begin(), times.end()));
  for (std::size_t l = 0; l < asked.model.layers.size(); ++l) {
    Bytes waiting{};
    for (const auto& kind : asked.kinds) waiting += kind->layers[l].earlier_gradients;
    CHECK(waiting == Bytes{});
  }
  CHECK(chunks_note(asked).find(fmt::format(", {} tokens, together take", lengths.back())) !=
        std::string::npos);
  const Outcome outcome = study(asked);
  CHECK(to_seconds(outcome.step_time) * 4 >
        asked.microbatches * 0.99 * std::accumulate(times.begin(), times.end(), 0.0));
}

TEST_CASE("where attention decides, balanced slices are never slower than equal ones") {
  for (const char* const model : {"llama3-8b@h100,layers=8", "mixtral-8x7b@a100,layers=8"}) {
    for (const int devices : {2, 4, 8}) {
      for (const int slices : {2, 4, 8}) {
        CAPTURE(model);
        CAPTURE(devices);
        CAPTURE(slices);
        const std::string trace = fmt::format("model:{},seq=131072", model);
        const std::string even = fmt::format("seq1f1b:sequence_chunks={}", slices);
        const Time equal = study(case_of(trace, even, devices)).step_time;
        const Time balanced = study(case_of(trace, even + ",slices=balanced", devices)).step_time;
        CHECK(balanced <= equal);
      }
    }
  }
}

TEST_CASE("given equal slices are equal ones to the byte, whether listed or in a file") {
  const std::string trace = "model:llama3-8b@h100,layers=8,seq=32768";
  const Outcome even = study(case_of(trace, "seq1f1b:sequence_chunks=4"));
  const std::string file =
      (std::filesystem::temp_directory_path() / "stageline-test-slices.txt").string();
  std::ofstream(file) << "8192 8192\n8192, 8192\n";
  for (const std::string& how : {std::string("8192-8192-8192-8192"), file}) {
    const Outcome given = study(case_of(trace, "seq1f1b:sequence_chunks=4,slices=" + how));
    CHECK(given.costs.kinds == even.costs.kinds);
    CHECK(given.costs.stage == even.costs.stage);
    CHECK(given.step_time == even.step_time);
    for (std::size_t d = 0; d < even.memory.device.size(); ++d) {
      CHECK(given.memory.device[d].peak == even.memory.device[d].peak);
    }
  }
}

TEST_CASE("given slices make up the sequence, as many as the schedule cuts, on every rank") {
  const std::string trace = "model:llama3-8b@h100,layers=8,seq=8192";
  const auto refused = [&](const std::string& schedule, const std::string& why) {
    CAPTURE(schedule);
    const Case asked = case_of(trace, schedule);
    CHECK_THROWS_WITH_AS(study(asked), doctest::Contains(why.c_str()), UsageError);
  };
  refused("seq1f1b:sequence_chunks=3,slices=4096-4096", "take sequence_chunks=2");
  refused("seq1f1b:sequence_chunks=2,slices=4096-2048",
          "makes up 6144 tokens, and a sequence has 8192");
  refused("seq1f1b:sequence_chunks=2,slices=8192-0", "a slice has 1 token or more, not \"0\"");
  CHECK_NOTHROW(study(case_of(trace, "seq1f1b:sequence_chunks=3,slices=4096-3072-1024")));
  CHECK_THROWS_WITH_AS(study(case_of("uniform:layers=4", "seq1f1b:slices=balanced")),
                       doctest::Contains("needs a language model"), UsageError);
  CutSequence ranks{8192, 2, 8};
  CHECK_THROWS_WITH_AS(given_slices("4100-4092", ranks),
                       doctest::Contains("4100 tokens do not divide among 8 ranks"), UsageError);
  // Three equal slices do not divide 8,192 tokens; balanced ones need not be equal.
  const Case three = case_of(trace, "seq1f1b:sequence_chunks=3,slices=balanced");
  CHECK(three.slice_lengths.size() == 3);
  CHECK_NOTHROW(study(three));
}

TEST_CASE("shares of a trace that was measured are never less than the whole, and a note says so") {
  const Case asked = case_of("uniform:layers=8,forward=1000001ps", "seq1f1b:sequence_chunks=3");
  CHECK_FALSE(asked.slice);
  const double whole = asked.microbatches * seconds(asked.model);
  CHECK(computed(study(asked)) >= whole);
  CHECK(computed(study(asked)) == doctest::Approx(whole));
  CHECK(chunks_note(asked).find("an equal share of a micro-batch's time, a lower bound") !=
        std::string::npos);
}

TEST_CASE("a device takes its time for an op in every slice") {
  Case asked = case_of("uniform:layers=4", "seq1f1b:sequence_chunks=4");
  const double without = computed(study(asked));
  for (Device& device : asked.cluster.devices) device.op_overhead = Time{1'000'000};
  const double ops = asked.microbatches * 4 * 4 * 2;  // slices, stages, F and B
  CHECK(computed(study(asked)) == doctest::Approx(without + ops * 1e-6));
}

TEST_CASE("slices that do not divide the sequence are refused by every command") {
  const char* const why = "12 equal slices do not divide a sequence of 2048 tokens; take 8 or 16";
  const Case asked = case_of("model:gpt3-175b@h100,layers=8", "seq1f1b:sequence_chunks=12");
  CHECK_THROWS_WITH_AS(study(asked), doctest::Contains(why), UsageError);
  CHECK_THROWS_WITH_AS(bound_of(asked), doctest::Contains(why), UsageError);
  // As they stand in a program.
  SettingRequest request = request_of("model:gpt3-175b@h100,layers=8", 4);
  request.schedules = {
      given_schedule(study(case_of("uniform:layers=4", "seq1f1b:sequence_chunks=12")).program)};
  request.microbatches = 0;
  CHECK_THROWS_WITH_AS(
      study(make_case(request, read_setting(request), request.schedules.front(), 4)),
      doctest::Contains(why), UsageError);
  // Nor does a trace with tokens of its own need kernels for that.
  Case measured = case_of("uniform:layers=4", "seq1f1b:sequence_chunks=3");
  measured.model.tokens = 1024;
  CHECK_THROWS_WITH_AS(study(measured), doctest::Contains("take 2 or 4"), UsageError);
  CHECK_THROWS_WITH_AS(study(case_of("model:gpt@a100,layers=4", "seq1f1b:sequence_chunks=3")),
                       doctest::Contains("sequence of 1024 tokens; take 2 or 4"), UsageError);
  // Among context-parallel ranks each has whole tokens of every slice.
  CHECK_THROWS_WITH_AS(check_slices("m", 1000, {1, 8, 1, false}, 8),
                       doctest::Contains("1000 tokens, 125 on each of 8 cp ranks; take 5 or 25"),
                       UsageError);
  CHECK_NOTHROW(check_slices("m", 1024, {4, 8, 1, true}, 32));
  CHECK_THROWS_AS(check_slices("m", 1024, {4, 8, 1, true}, 64), UsageError);
}

TEST_CASE("images have no slices, whoever asks") {
  const Case asked = case_of("model:resnet50@h100", "seq1f1b");
  const char* const why =
      "seq1f1b cuts sequences into chunks, but a sample of resnet50 is an image";
  CHECK_THROWS_WITH_AS(study(asked), doctest::Contains(why), UsageError);
  CHECK_THROWS_WITH_AS(bound_of(asked), doctest::Contains(why), UsageError);
}

TEST_CASE(
    "schedules that cut sequences are planned for language models, and proposed where named") {
  const auto planned = [](const std::string& trace, int pipeline) {
    const Setting setting = read_setting(request_of(trace, 4));
    std::vector<std::string> slices;
    for (const planner::Family& family :
         planner::families_of({}, setting.model, pipeline, has_kernels(trace))) {
      const auto knob = family.spec.knobs.find("sequence_chunks");
      if (knob != family.spec.knobs.end() && family.spec.scheduler->name == "seq1f1b" &&
          family.recomputation.parts.empty()) {
        slices.push_back(knob->second);
      }
    }
    return slices;
  };
  using Slices = std::vector<std::string>;
  CHECK(planned("model:llama3-8b@h100,layers=8,seq=8192", 4) == Slices{"2", "4", "8"});
  CHECK(planned("model:llama3-8b@h100,layers=8,seq=4096", 4) == Slices{"2", "4"});
  CHECK(planned("model:llama3-8b@h100,layers=8,seq=6150", 4) == Slices{"2"});
  CHECK(planned("model:llama3-8b@h100,layers=8,seq=1024", 4).empty());
  CHECK(planned("model:llama3-8b@h100,layers=8,seq=8192", 1).empty());
  CHECK(planned("uniform:layers=8", 4).empty());
  planner::PlanSpace named;
  named.schedules = {test::spec("seq1f1b:sequence_chunks=4")};
  const Setting setting = read_setting(request_of("uniform:layers=8", 4));
  CHECK(planner::cuts_sequences(planner::families_of(named, setting.model, 4).front().spec));

  const auto proposes_slices = [](const std::string& schedule) {
    SettingRequest request = request_of("model:llama3-8b@h100,layers=8", 4);
    request.cluster.memory = Bytes{8'000'000'000};
    const Setting its = read_setting(request);
    const ScheduleSpec spec = test::spec(schedule);
    const Case asked = make_case(request, its, spec, 4);
    Judge judge;
    const Verdict verdict = judge.verdict(asked);
    const auto changes = planner::single_changes(planner::candidate_of(request, its, spec, 4),
                                                 asked, verdict, planner::ChangeLimits{});
    return std::any_of(changes.begin(), changes.end(), [](const planner::Change& change) {
      return planner::cuts_sequences(change.candidate.spec);
    });
  };
  CHECK_FALSE(proposes_slices("1f1b"));
  CHECK(proposes_slices("seq1f1b:sequence_chunks=4"));
}

// Parts as `costs` prices them: the layers of the trace with the plan's micro-batch, or of a
// sequence of a slice's tokens.
TEST_CASE("recommendations cost what their parts do") {
  planner::PlanRequest request;
  request.setting.trace = "model:llama3-8b@h100,layers=8";
  request.setting.cluster.memory = Bytes{80'000'000'000};
  request.setting.cluster.link = parse_link("50GB/s,5us");
  request.space.devices = {4};
  request.space.tensor = {1};
  request.space.context = {1};
  request.space.data = {1};
  request.samples = 16;
  for (const char* const schedules : {"", "seq1f1b:sequence_chunks=2,seq1f1b:sequence_chunks=4"}) {
    if (*schedules != '\0') request.space.schedules = parse_schedules(schedules);
    if (*schedules == '\0' && !test::thorough) request.space.schedules = parse_schedules("1f1b");
    const planner::Plan found = planner::plan(request);
    REQUIRE_FALSE(found.front.empty());
    for (const planner::PlanPoint& point : found.front) {
      CAPTURE(point.flags);
      const ScheduleSpec& spec = point.candidate.spec;
      const auto knob = spec.knobs.find("sequence_chunks");
      const int slices = knob == spec.knobs.end() ? 1 : std::stoi(knob->second);
      if (*schedules != '\0') CHECK(slices > 1);
      const int size = std::max(point.candidate.shape.microbatch_size, 1);
      const std::string trace = request.setting.trace + fmt::format(",batch={}", size);
      const Model tokens = opened(trace + fmt::format(",seq={}", 8192 / slices));
      const double earlier =
          size * attention_to_earlier_slices(tokens, {"", 8192, slices}, "h100", 32, 128);
      planner::Evaluator evaluator(request.setting);
      CHECK(off(evaluator.case_of(point.candidate), slices * seconds(tokens) + earlier) < agreed);
    }
  }
}

TEST_CASE("the rows of a comparison cost what their parts do") {
  for (const Sliced& one : sliced) {
    CAPTURE(one.model);
    const std::string trace = fmt::format("{},seq={}", one.model, one.seq);
    const SettingRequest request = request_of(trace, 4);
    const Setting setting = read_setting(request);
    const auto schedules = parse_schedules(
        fmt::format("gpipe,1f1b,zb_h1,interleaved_1f1b,seq1f1b:sequence_chunks={}", one.slices));
    const RankedRows order =
        ranked(compare(request, setting, schedules, 1), Synchrony::synchronous, 0.01);
    const double whole = seconds(setting.model);
    for (const ScheduleSpec& spec : schedules) {
      const Case asked = make_case(request, setting, spec, 4);
      if (planner::cuts_sequences(spec)) {
        CHECK(computed(study(asked)) > asked.microbatches * whole);
      } else {
        CHECK(off(asked, whole) < agreed);
      }
    }
    CHECK(order.recommended.has_value());
  }
}

}  // namespace stageline::slices_tests
