// Recomputation and offloading by every schedule: what they save, and what they cost.

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/analysis/memory.hpp"
#include "sim/base/errors.hpp"
#include "sim/engine.hpp"
#include "sim/stash_readers.hpp"
#include "sim/text/figure.hpp"
#include "tests/make.hpp"
#include "tests/study/uniform.hpp"
#include "tests/text.hpp"
#include "tools/study/run/layout.hpp"

namespace stageline::recompute_tests {
namespace {

// Attention's scores are the part of a layer's stash that selective recomputation rebuilds.
Model scored_model() {
  Model model = uniform_model("layers=32,forward=2ms,input_grad=3ms,weight_grad=2ms,output=1MB");
  for (Layer& layer : model.layers) {
    layer.stash_input_grad = Bytes{2'000'000};
    layer.stash_weight_grad = Bytes{3'000'000};
    layer.selective_stash = Bytes{1'500'000};
    layer.selective_forward = parse_time("300us");
    layer.modules.push_back({"core_attn", layer.selective_forward, layer.selective_stash, 0, {}});
    layer.modules.push_back({"moe_act", parse_time("500us"), Bytes{1'000'000}, 0, {}});
    layer.forward_workspace = layer.backward_workspace = Bytes{100'000};
  }
  return model;
}

Case case_of(const ScheduleSpec& spec, int devices, int microbatches) {
  Case asked;
  asked.model = scored_model();
  asked.cluster = uniform_cluster(devices, std::nullopt, std::nullopt);
  asked.spec = spec;
  asked.microbatches = microbatches;
  return asked;
}

struct StashRun {
  test::Ran ran;
  Time time{};
  Bytes peak{};  // of the fullest device
};

StashRun measured(const Case& asked) {
  const Layout layout = checked_layout(asked);
  const Costs costs = costs_of(asked, layout);
  StashRun result{test::run_program(program_of(asked, layout, costs, 1), costs), {}, {}};
  result.time = makespan(result.ran.times);
  for (const DeviceMemory& device :
       memory_of(result.ran.program, costs, result.ran.timeline).device) {
    result.peak = std::max(result.peak, device.peak);
  }
  return result;
}

int count(const Program& program, OpKind kind) {
  int ops = 0;
  for (const auto& list : program.ops) {
    ops += static_cast<int>(
        std::count_if(list.begin(), list.end(), [&](Op op) { return op.kind == kind; }));
  }
  return ops;
}

// Whether F, I, W, B and U of each list are where they were.
bool keeps_order(const Program& program, const Program& plain) {
  for (std::size_t d = 0; d < program.ops.size(); ++d) {
    const auto computes = [](const std::vector<Op>& list) {
      std::vector<Op> ops;
      std::copy_if(list.begin(), list.end(), std::back_inserter(ops), [](Op op) {
        return lane_of(op.kind) == LaneKind::compute && op.kind != OpKind::recompute;
      });
      return ops;
    };
    if (computes(program.ops[d]) != computes(plain.ops[d])) return false;
  }
  return true;
}

// The specs to hold the laws for: every scheduler, and orders that are the other way round.
std::vector<ScheduleSpec> specs() {
  std::vector<ScheduleSpec> all = parse_schedules("all");
  for (const char* const more : {"gpipe:reverse=yes", "looped_bfs:reverse=yes",
                                 "pipedream:replicas=2-1-1", "stale_weights:mapping=paired"}) {
    all.push_back(parse_schedules(more).at(0));
  }
  return all;
}

// Devices that the spec takes, and its micro-batches; nothing where it takes neither size.
std::vector<std::pair<int, int>> sizes(const ScheduleSpec& spec) {
  const bool replicated =
      spec.knobs.count("replicas") > 0 && spec.knobs.at("replicas") != "straight";
  if (replicated) return {{4, 8}};
  return {{2, 4}, {4, 8}};
}

// Devices that read a stash in the backward, over all stashes.
int readers(const Program& program) {
  int all = 0;
  for (const StagePlace& place : program.placement.stage) all += stash_readers(place);
  return all * static_cast<int>(program.total_microbatches());
}

TEST_CASE("every schedule recomputes: valid, no faster, and with no more memory") {
  for (const ScheduleSpec& spec : specs()) {
    for (const auto& size : sizes(spec)) {
      const int devices = size.first;
      const int microbatches = size.second;
      const Case plain_case = case_of(spec, devices, microbatches);
      const StashRun plain = measured(plain_case);
      std::vector<StashRun> early;
      for (const std::string how :
           {"none", "selective", "modules:core_attn+moe_act", "every:2", "full"}) {
        for (const std::string start : {"early", "late"}) {
          CAPTURE(spelled(spec));
          CAPTURE(devices);
          CAPTURE(microbatches);
          CAPTURE(how);
          CAPTURE(start);
          Case asked = plain_case;
          asked.recomputation = parse_recomputation(how, "--recompute");
          asked.recomputation.start = parse_recompute_start(start, "--recompute-start");
          const bool none = how == "none";
          const StashRun again = measured(asked);
          const Program& program = again.ran.program;
          CHECK(keeps_order(program, plain.ran.program));
          if (!none) CHECK(count(program, OpKind::recompute) == readers(program));
          CHECK(again.time >= plain.time);
          // While a late R runs, the output gradient waits beside what it rebuilds.
          const Bytes waiting = start == "late" ? Bytes{1'000'000} : Bytes{};
          if (!none) CHECK(again.peak.count <= (plain.peak + waiting).count);
          if (none && start == "early") {
            CHECK(program == plain.ran.program);
            CHECK(again.ran.timeline == plain.ran.timeline);
          }
          CHECK(parse_program(print(program)) == program);
          if (start == "early") {
            early.push_back(again);
          } else {
            CHECK(again.time >= early.back().time);
          }
        }
      }
      // With more rebuilt, it takes longer; and where stashes pile up, less memory.
      for (std::size_t i = 1; i < early.size(); ++i) CHECK(early[i].time >= early[i - 1].time);
    }
  }
}

TEST_CASE("by --recompute full a schedule does what its own knob does, to the last byte") {
  for (const char* const name : {"gpipe", "1f1b", "pipedream_2bw"}) {
    CAPTURE(name);
    Case by_knob = case_of(parse_schedules(name + std::string(":recompute=always")).at(0), 4, 8);
    Case by_flag = case_of(parse_schedules(name).at(0), 4, 8);
    for (Case* const asked : {&by_knob, &by_flag}) {
      asked->cluster =
          uniform_cluster(4, LinkSpec{parse_bandwidth("1GB/s"), parse_time("20us")}, std::nullopt);
    }
    by_flag.recomputation = parse_recomputation("full", "--recompute");
    const Outcome knob = study(by_knob, Curves::all);
    const Outcome flag = study(by_flag, Curves::all);
    CHECK(flag.program == knob.program);
    CHECK(flag.costs.stage == knob.costs.stage);
    CHECK(flag.timeline == knob.timeline);
    CHECK(flag.step_time == knob.step_time);
    CHECK(flag.figures.recompute == knob.figures.recompute);
    for (std::size_t d = 0; d < knob.memory.device.size(); ++d) {
      CHECK(flag.memory.device[d].peak == knob.memory.device[d].peak);
      CHECK(flag.memory.device[d].at_peak == knob.memory.device[d].at_peak);
      CHECK(flag.memory.device[d].curve.size() == knob.memory.device[d].curve.size());
    }
    // Both are one recomputation, not two.
    by_knob.recomputation = by_flag.recomputation;
    CHECK(study(by_knob).timeline == knob.timeline);
  }
}

TEST_CASE("what a stage keeps decides the peak: inputs, blocks' inputs, or all but the scores") {
  const auto peak = [](const std::string& how) {
    Case asked = case_of(parse_schedules("1f1b").at(0), 4, 8);
    if (!how.empty()) asked.recomputation = parse_recomputation(how, "--recompute");
    return measured(asked).ran;
  };
  // Four micro-batches in flight on the first device, with eight layers of 5 MB each.
  const auto stash = [&](const std::string& how) {
    const test::Ran ran = peak(how);
    const MemoryProfile memory = memory_of(ran.program, ran.costs, ran.timeline, Curves::all);
    Bytes most{};
    for (const MemoryPoint& point : memory.device[0].curve) {
      most = std::max(most, point.use[as_size(MemoryKind::stash)]);
    }
    return most.count / 1000;
  };
  CHECK(stash("") == 4 * 40'000);
  CHECK(stash("full") == 3 * 1'000 + 40'000);
  // Four inputs of blocks a micro-batch, and of one block all but its input.
  CHECK(stash("every:2") == 4 * 4'000 + 9'000);
  CHECK(stash("every:1") == 4 * 8'000 + 4'000);
  CHECK(stash("selective") == 4 * 8 * 3'500 + 1'500);
  CHECK(stash("modules:core_attn") == stash("selective"));
  CHECK(stash("modules:core_attn+moe_act") == 4 * 8 * 2'500 + 2'500);
  CHECK(stash("block:2") == stash("layers:0-1,8-9,16-17,24-25"));
  CHECK(stash("block:8") == stash("every:1"));
  CHECK(stash("full@1-") == stash(""));
  CHECK(stash("selective,full@0") == stash("full"));
}

TEST_CASE("a split backward keeps what it rebuilt until W") {
  Case asked = case_of(parse_schedules("zb_h1").at(0), 4, 8);
  asked.recomputation = parse_recomputation("full", "--recompute");
  const StashRun full = measured(asked);
  for (const auto& list : full.ran.program.ops) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].kind != OpKind::input_grad) continue;
      REQUIRE(i > 0);
      CHECK(list[i - 1] == op_of(OpKind::recompute, list[i].stage, list[i].microbatch));
    }
  }
  asked.recomputation = {};
  CHECK(full.peak < measured(asked).peak);
}

TEST_CASE("1F1B and ZB-H1 that recompute, drawn") {
  const auto drawn = [](const char* schedule, RecomputeStart start) {
    Costs costs = uniform_costs(3, 3, Time{1}, Time{1}, Time{1});
    const ScheduleSpec spec = test::spec(schedule);
    Program program = add_recompute(spec.scheduler->schedule(test::problem_for(spec, 3, costs, 4)),
                                    {true, true, true});
    program.settings.recompute = start;
    return figure(test::run_program(std::move(program), costs).timeline, {Time{1}, 0, false});
  };
  CHECK(drawn("1f1b", RecomputeStart::early) ==
        "  0 |012~    aa3~bb~ cc~ dd\n"
        "  1 | 01~  aa2~bb3~cc~ dd\n"
        "  2 |  0~aa1~bb2~cc3~dd\n");
  CHECK(drawn("1f1b", RecomputeStart::late) ==
        "  0 |012      ~aa3~bb ~cc ~dd\n"
        "  1 | 01   ~aa2~bb3~cc ~dd\n"
        "  2 |  0~aa1~bb2~cc3~dd\n");
  CHECK(drawn("zb_h1", RecomputeStart::early) ==
        "  0 |012~  aA3~bB~cC~dD\n"
        "  1 | 01~ a2~bA3~cB~dCD\n"
        "  2 |  0~a1~b2~cA3~dBCD\n");
  CHECK(drawn("zb_h1", RecomputeStart::late) ==
        "  0 |012    ~aA3~bB~cC~dD\n"
        "  1 | 01  ~a2~bA3~cB~dCD\n"
        "  2 |  0~a1~b2~cA3~dBCD\n");
}

TEST_CASE("every schedule offloads: valid, no faster, and with no more memory") {
  int copied = 0;
  for (const ScheduleSpec& spec : specs()) {
    for (const auto& size : sizes(spec)) {
      const int devices = size.first;
      const int microbatches = size.second;
      Case asked = case_of(spec, devices, microbatches);
      asked.cluster = uniform_cluster(devices, std::nullopt, std::nullopt,
                                      LinkSpec{parse_bandwidth("2GB/s"), Time{}});
      const StashRun plain = measured(asked);
      for (const int ahead : {1, 2, 5}) {
        CAPTURE(spelled(spec));
        CAPTURE(devices);
        CAPTURE(microbatches);
        CAPTURE(ahead);
        asked.offloading = parse_offloading("all", "--offload");
        asked.offloading.ahead = ahead;
        const bool copies = count(plain.ran.program, OpKind::offload) > 0;
        const StashRun away = measured(asked);
        CHECK(keeps_order(away.ran.program, plain.ran.program));
        CHECK(count(away.ran.program, OpKind::offload) <=
              count(away.ran.program, OpKind::prefetch));
        if (!copies) CHECK(away.time >= plain.time);
        // Where compute waits for a copy, the next gradient may have come meanwhile.
        CHECK(away.peak.count <= (plain.peak + Bytes{1'000'000}).count);
        CHECK(parse_program(print(away.ran.program)) == away.ran.program);
        copied += count(away.ran.program, OpKind::offload) > 0 && !copies ? 1 : 0;
      }
      asked.offloading = {};
    }
  }
  CHECK(copied > 60);
}

TEST_CASE("what is recomputed is offloaded as the stage's input, which takes less time and room") {
  Case asked = case_of(parse_schedules("1f1b").at(0), 4, 8);
  asked.cluster =
      uniform_cluster(4, std::nullopt, std::nullopt, LinkSpec{parse_bandwidth("2GB/s"), Time{}});
  asked.offloading = parse_offloading("all", "--offload");
  const StashRun copied = measured(asked);
  asked.recomputation = parse_recomputation("full", "--recompute");
  const StashRun both = measured(asked);
  asked.offloading = {};
  const StashRun rebuilt = measured(asked);
  CHECK(count(both.ran.program, OpKind::recompute) == 4 * 8);
  CHECK(count(both.ran.program, OpKind::offload) > 0);
  CHECK(both.peak < rebuilt.peak);
  const auto copy_time = [](const StashRun& run) {
    Time sum{};
    for (const Span& span : run.ran.timeline.lane(0, LaneKind::copy_out))
      sum += span.end - span.start;
    return sum / static_cast<int>(run.ran.timeline.lane(0, LaneKind::copy_out).size());
  };
  CHECK(copy_time(copied) == parse_time("20ms"));  // of 8 layers' 5 MB at 2 GB/s
  CHECK(copy_time(both) == parse_time("500us"));   // of one input
  const auto on_host = [](const StashRun& run) {
    return memory_of(run.ran.program, run.ran.costs, run.ran.timeline).host.at(0);
  };
  CHECK(nth(on_host(both).stash_at_peak, StashPart::boundary) == on_host(both).peak);
  CHECK(on_host(both).peak < on_host(copied).peak);
  CHECK(on_host(both).at_end == MemoryUse{});
  Case by_knob = case_of(parse_schedules("gpipe:recompute=except_last").at(0), 4, 8);
  by_knob.offloading = parse_offloading("all", "--offload");
  const Program some = measured(by_knob).ran.program;
  CHECK(count(some, OpKind::recompute) == 4 * 7);
  CHECK(count(some, OpKind::offload) > 0);
}

TEST_CASE("none is refused where the schedule or the given program does so by itself") {
  const auto refusal = [](const Case& asked) {
    return test::complaint<UsageError>([&] { measured(asked); });
  };
  const auto with = [](const std::string& schedule, const std::string& recompute,
                       const std::string& offload) {
    Case asked = case_of(parse_schedules(schedule).at(0), 4, 8);
    if (!recompute.empty()) asked.recomputation = parse_recomputation(recompute, "--recompute");
    if (!offload.empty()) asked.offloading = parse_offloading(offload, "--offload");
    return asked;
  };
  CHECK(refusal(with("gpipe:recompute=always", "none", "")) ==
        "--recompute none: gpipe:recompute=always recomputes by itself; leave out "
        "recompute=always");
  CHECK(refusal(with("1f1b:recompute=always", "full,none@2-", "")) ==
        "--recompute full;none@2-: 1f1b:recompute=always recomputes stage 2 by itself; leave out "
        "recompute=always");
  CHECK(refusal(with("pipedream:transfer=half", "", "none")) ==
        "--offload none: pipedream:transfer=half offloads by itself; leave out transfer=half");
  CHECK(refusal(with("pipefb", "", "none")) ==
        "--offload none: pipefb offloads by itself; leave out --offload");
  CHECK(refusal(with("gpipe:recompute=always", "full", "")).empty());
  CHECK(measured(with("1f1b", "none", "none")).ran.program ==
        measured(with("1f1b", "", "")).ran.program);
  Case given = with("1f1b", "", "");
  given.program = measured(with("1f1b", "full@1", "all")).ran.program;
  CHECK(refusal(given).empty());
  given.recomputation = parse_recomputation("none@0", "--recompute");
  CHECK(refusal(given).empty());
  given.recomputation = parse_recomputation("none", "--recompute");
  CHECK(refusal(given) ==
        "--recompute none: the given program recomputes by itself; leave out --recompute");
  given.recomputation = {};
  given.offloading = parse_offloading("none", "--offload");
  CHECK(refusal(given) ==
        "--offload none: the given program offloads by itself; leave out --offload");
}

TEST_CASE("a given program is recomputed where it is asked, and keeps the R that it has") {
  Case asked = case_of(parse_schedules("zb_h1").at(0), 4, 8);
  asked.recomputation = parse_recomputation("every:2@0-1", "--recompute");
  asked.recomputation.start = RecomputeStart::late;
  const Outcome by_name = study(asked);
  Case given = asked;
  given.program = parse_program(print(by_name.program));
  given.recomputation.start.reset();
  const Outcome by_text = study(given);
  CHECK(by_text.program.settings.recompute == RecomputeStart::late);
  CHECK(by_text.timeline == by_name.timeline);
  CHECK(by_text.step_time == by_name.step_time);
  CHECK(by_text.memory.device[0].peak == by_name.memory.device[0].peak);
}

}  // namespace
}  // namespace stageline::recompute_tests
