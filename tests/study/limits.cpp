// What does not fit into 64 bits is refused in a sentence, and what is answered is right; what is
// unknown stays unknown.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "sim/base/errors.hpp"
#include "sim/lower/passes.hpp"
#include "tests/make.hpp"
#include "tests/study/ranked.hpp"
#include "tests/thorough.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/study/study.hpp"
#include "traces/traces.hpp"

namespace stageline::limits_tests {
namespace {

__extension__ using Wide = __int128;

Case case_of(const std::string& trace, const std::string& schedule, int devices, int microbatches,
             std::optional<LinkSpec> link = std::nullopt) {
  Case asked;
  asked.model = uniform_model(trace);
  asked.cluster = uniform_cluster(devices, link, std::nullopt);
  asked.spec = test::spec(schedule);
  asked.microbatches = microbatches;
  return asked;
}

std::string refusal(const Case& asked) {
  try {
    study(asked);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

std::string after(const std::string& text, const std::string& part) {
  return text.find(part) == std::string::npos ? "\"" + part + "\" is not in: " + text : "";
}

TEST_CASE("a message longer than the longest run is refused with its edge, bytes and bandwidth") {
  for (const char* const schedule : {"naive", "pipedream", "gpipe", "zb_v", "list", "layerpipe"}) {
    CAPTURE(schedule);
    const std::string said = refusal(case_of("layers=8,output=1000TB,stash=1MB", schedule, 4, 8,
                                             LinkSpec{Bandwidth{1'000'000}, Time{}}));
    CHECK(after(said, "the activations between stages ") == "");
    CHECK(after(said, ": 1000.0 TB at 1.000 MB/s take 1e+09 s, and at most 4.61e+06 s (53 days)") ==
          "");
  }
}

TEST_CASE("collectives that leave 64 bits are refused, of a layer, of gathers and of a step") {
  SettingRequest request;
  const auto said = [&](const std::string& trace, const Degrees& degrees, const char* link,
                        int microbatches, int steps) -> std::string {
    request.trace = trace;
    request.degrees = degrees;
    request.cluster.link = parse_link(link);
    request.microbatches = microbatches;
    request.steps = steps;
    try {
      const Setting setting = read_setting(request);
      study(make_case(request, setting, test::spec("1f1b"), setting.device_counts.front()));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  Degrees degrees;
  degrees.pipeline = 1;
  degrees.tensor = 8;
  const std::string gpt =
      "model:gpt@h100,layers=8,hidden=1024,heads=16,seq=1024,batch=1,vocab=51200";
  const std::string too_long = "longer than 106 days";
  CHECK(after(said(gpt, degrees, "10GB/s,100000s", 1, 1), too_long) == "");
  degrees.tensor = 1;
  degrees.zero = Zero::weights;
  degrees.data = 24;
  CHECK(after(said("uniform:layers=8,weights=40MB", degrees, "10GB/s,100000s", 4, 1), too_long) ==
        "");
  degrees.data = 2;
  CHECK(after(said("uniform:layers=8,weights=40GB", degrees, "10kB/s", 4, 5), too_long) == "");
}

TEST_CASE("sums that may leave 64 bits are refused with their numbers") {
  // 10 000 s a message: two or three hundred of them fit, and 64 × 6 of several steps do not.
  CHECK(after(refusal(
                  case_of("layers=4,output=10kB", "gpipe", 4, 256, LinkSpec{Bandwidth{1}, Time{}})),
              "the run could last 1.54e+07 s, longer than the clock's 4.61e+06 s (53 days): 256 "
              "micro-batches in 1 step, each 0.016 s of compute and 6e+04 s of messages") == "");
  // The longer run that shows the pace does not fit, where the one asked for does.
  CHECK(after(refusal(
                  case_of("layers=4,output=10kB", "gpipe", 4, 64, LinkSpec{Bandwidth{1}, Time{}})),
              "192 micro-batches in 3 steps") == "");
  // Latencies and what an op costs to start count too.
  CHECK(after(refusal(case_of("layers=4", "pipedream", 4, 64,
                              LinkSpec{Bandwidth::unlimited(), parse_time("90000s")})),
              "s of messages;") == "");
  Case asked = case_of("layers=4", "1f1b", 4, 64);
  for (Device& device : asked.cluster.devices) device.op_overhead = parse_time("99999s");
  CHECK(after(refusal(asked), "s of compute and") == "");
  // Steps count.
  asked = case_of("layers=4,forward=1000s", "1f1b", 4, 16);
  CHECK(refusal(asked) == "");
  asked.steps = 1000;
  CHECK(after(refusal(asked), "longer than the clock's 4.61e+06 s (53 days)") == "");
  // Bytes.
  CHECK(after(refusal(case_of("layers=4,stash=1000000TB", "gpipe", 4, 16)), "bytes") == "");
}

TEST_CASE("counts that cannot be simulated are refused at once") {
  for (const int microbatches : {-1, 0, 1 << 25, 2'000'000'000}) {
    for (const char* const schedule : {"1f1b", "pipedream", "seq1f1b", "zb_auto"}) {
      CAPTURE(microbatches);
      CAPTURE(schedule);
      CHECK(refusal(case_of("layers=4", schedule, 4, microbatches)) != "");
    }
  }
  Case asked = case_of("layers=4", "1f1b", 4, 8);
  for (const int steps : {-1, 1 << 25, 2'000'000'000}) {
    asked.steps = steps;
    CHECK(refusal(asked) != "");
  }
}

TEST_CASE("slower links and longer times by one factor make a step longer by that factor") {
  // A byte is a picosecond, then a nanosecond, then a microsecond: exact in all three.
  for (const Scheduler* const scheduler : schedulers()) {
    if (scheduler->assign != nullptr) continue;  // a finer clock may cut layers elsewhere
    const std::string name(scheduler->name);
    CAPTURE(name);
    Time first{};
    for (const std::int64_t factor : {1, 1'000, 1'000'000}) {
      Case asked =
          case_of("layers=16,forward=3us,input_grad=2us,weight_grad=4us,output=700000B", name, 4, 8,
                  LinkSpec{Bandwidth{1'000'000'000'000 / factor}, Time{2'000'000} * factor});
      for (Layer& layer : asked.model.layers) {
        layer.forward *= factor;
        layer.input_grad *= factor;
        layer.weight_grad *= factor;
        layer.backward *= factor;
      }
      const Outcome outcome = study(asked);
      if (factor == 1) first = outcome.step_time;
      CHECK(std::abs(outcome.step_time.count() - (first * factor).count()) <= factor);
      CHECK(outcome.exposed_communication >= 0);
      CHECK(outcome.bubble_fraction >= 0);
    }
  }
}

// ---- random magnitudes

std::int64_t magnitude(std::mt19937_64& random, double most, std::int64_t limit) {
  if (random() % 8 == 0) return 0;
  const double exponent = std::uniform_real_distribution<double>(0, most)(random);
  const double value = std::pow(10.0, exponent);
  return value >= static_cast<double>(limit) ? limit : static_cast<std::int64_t>(value);
}

Case random_case(std::mt19937_64& random) {
  const auto all = schedulers();
  const int devices = 2 + 2 * static_cast<int>(random() % 2);
  // From small to beyond all limits.
  const double most = std::uniform_real_distribution<double>(3, 20)(random);
  const auto time = [&] { return Time{magnitude(random, most, longest_input.count())}; };
  const auto bytes = [&] { return Bytes{magnitude(random, most, most_bytes_held.count)}; };
  Case asked = case_of("layers=8", std::string(all[random() % all.size()]->name), devices,
                       4 + 4 * static_cast<int>(random() % 3));
  for (Layer& layer : asked.model.layers) {
    layer.forward = time();
    layer.input_grad = time();
    layer.weight_grad = time();
    layer.backward = random() % 2 == 0 ? layer.input_grad + layer.weight_grad : time();
    if (layer.backward > longest_input) layer.backward = longest_input;
    layer.update = time();
    layer.weights = bytes();
    layer.gradients = layer.weights;
    layer.output = bytes();
    layer.stash_input_grad = bytes();
    layer.stash_weight_grad = bytes();
    if (random() % 2 == 0) break;  // the others as they were
  }
  std::optional<LinkSpec> link;
  const auto some_link = [&] {
    return LinkSpec{Bandwidth{std::max<std::int64_t>(
                        1, magnitude(random, 20, std::numeric_limits<std::int64_t>::max()))},
                    time()};
  };
  if (random() % 4 != 0) link = some_link();
  std::optional<LinkSpec> host;
  if (random() % 4 == 0) host = some_link();
  asked.cluster = uniform_cluster(devices, link, std::nullopt, host);
  const Time overhead = random() % 3 == 0 ? time() : Time{};
  const double rate =
      random() % 4 == 0 ? std::pow(10.0, std::uniform_real_distribution<double>(-9, 9)(random)) : 1;
  for (Device& device : asked.cluster.devices) {
    device.op_overhead = overhead;
    device.rate = rate;
    if (random() % 4 == 0) device.memory = bytes();
  }
  if (random() % 8 == 0) asked.microbatches = static_cast<int>(random() % (1U << 31U));
  if (random() % 8 == 0)
    asked.steps = static_cast<int>(random() % (random() % 2 == 0 ? 4 : 1U << 31U));
  // What is possible but long says nothing more.
  const std::int64_t forwards = std::int64_t{asked.microbatches} * std::max(asked.steps, 1);
  if (forwards > 64 && forwards <= most_forwards) asked.microbatches = 8, asked.steps = 1;
  return asked;
}

// Every task again in 128 bits: behind what it needs and its lane, as long as its tables say, and
// all of them as late as the engine has them.
void check_times(const Outcome& outcome) {
  const TaskGraph& graph = outcome.graph;
  std::vector<Wide> available(graph.tasks());
  std::vector<Wide> lane_free(graph.lanes.size());
  std::vector<Wide> busy(graph.lanes.size());
  Wide last = 0;
  bool same = true;
  bool in_order = true;
  const bool shares = shares_resources(graph);
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    Wide start = lane_free[graph.lane[task]];
    for (std::uint32_t i = graph.need_begin[task]; i != graph.need_begin[task + 1]; ++i) {
      start = std::max(start, available[graph.need[i]]);
    }
    const Wide lag = graph.paths[graph.path_of[task]].lag.count();
    const Wide duration = graph.duration[task].count();
    if (duration < 0 || lag < 0) in_order = false;
    // On a shared link it may have waited for its turn.
    const Wide there = outcome.times.available[task].count();
    if (start + duration + lag > there) in_order = false;
    if (!shares && start + duration + lag != there) same = false;
    available[task] = there;
    lane_free[graph.lane[task]] = there - lag;
    busy[graph.lane[task]] += duration;
    last = std::max(last, available[task]);
  }
  CHECK(same);
  CHECK(in_order);
  CHECK(last == outcome.metrics.makespan.count());
  for (const Wide lane : busy) REQUIRE(lane <= outcome.metrics.makespan.count());
}

void check_outcome(const Outcome& outcome) {
  check_times(outcome);
  CHECK(outcome.step_time >= Time{});
  CHECK(std::isfinite(outcome.throughput));
  CHECK(outcome.throughput >= 0);
  CHECK(std::isfinite(outcome.speedup));
  CHECK(outcome.speedup >= 0);
  CHECK(outcome.bubble_fraction >= -1e-9);
  CHECK(outcome.bubble_fraction <= 1 + 1e-9);
  CHECK(outcome.exposed_communication <= 1);
  for (const DeviceMetrics& device : outcome.metrics.device) {
    CHECK(device.busy >= Time{});
    CHECK(device.idle >= Time{});
    CHECK(device.span_idle >= Time{});
    for (const Time idle : device.idle_by) CHECK(idle >= Time{});
  }
  for (const DeviceMemory& device : outcome.memory.device) {
    CHECK(device.peak >= Bytes{});
    Wide sum = 0;
    for (const Bytes bytes : device.at_peak) {
      CHECK(bytes >= Bytes{});
      sum += bytes.count;
    }
    CHECK(sum == device.peak.count);
  }
  for (const DeviceMemory& host : outcome.memory.host) CHECK(host.peak >= Bytes{});
  CHECK(test::ranked({outcome}).sentence.find("inf") == std::string::npos);
  CHECK(test::ranked({outcome}).sentence.find("nan") == std::string::npos);
}

TEST_CASE("whatever the magnitudes, an answer is right or a sentence") {
  std::mt19937_64 random(9);
  int answered = 0;
  constexpr int questions = test::thorough ? 3'000 : 600;
  for (int i = 0; i < questions; ++i) {
    const Case asked = random_case(random);
    CAPTURE(i);
    CAPTURE(asked.spec.scheduler->name);
    try {
      const Outcome outcome = study(asked);
      check_outcome(outcome);
      ++answered;
    } catch (const UsageError& error) {
      REQUIRE(std::string(error.what()).size() > 20);
    }
  }
  CHECK(answered > questions / 6);
  CHECK(answered < questions * 5 / 6);
}

// ---- unknown bytes

Setting setting_of(const Case& asked) {
  Setting setting;
  setting.model = asked.model;
  setting.device_counts = {static_cast<int>(asked.cluster.devices.size())};
  return setting;
}

TEST_CASE("of bytes that are none or unknown, the ranking gives no ratio") {
  for (const bool known : {true, false}) {
    std::vector<Outcome> outcomes;
    for (const char* const schedule : {"gpipe", "1f1b"}) {
      Case asked = case_of("layers=4,weights=0B,output=0B", schedule, 4, 16);
      asked.model.input = Bytes{};
      asked.model.bytes_known = known;
      outcomes.push_back(study(asked));
    }
    const std::string sentence = test::ranked(outcomes).sentence;
    CHECK(sentence.starts_with("gpipe: "));
    CHECK(sentence.ends_with(known ? " 0 B; same time as 1f1b" : " ms; same time as 1f1b"));
  }
}

TEST_CASE("what takes no time has no throughput, and ranks first") {
  std::vector<Outcome> outcomes{
      study(case_of("layers=4", "gpipe", 4, 8)),
      study(case_of("layers=4,forward=0,input_grad=0,weight_grad=0", "1f1b", 4, 8))};
  CHECK(outcomes[1].step_time == Time{});
  CHECK(test::ranked(outcomes).sentence == "1f1b: takes no time, unlike gpipe, 2.1× less memory");
  CHECK(test::ranked({outcomes[1]}).sentence == "1f1b: takes no time");
}

TEST_CASE("unknown bytes are unknown in the fit and null in JSON, for every schedule") {
  for (const Scheduler* const scheduler : schedulers()) {
    Case asked = case_of("layers=8,weights=0B,output=0B,stash=0B", std::string(scheduler->name), 4,
                         8, LinkSpec{Bandwidth{1'000'000'000}, Time{2'000}});
    CAPTURE(scheduler->name);
    asked.model.bytes_known = false;
    for (Device& device : asked.cluster.devices) device.memory = Bytes{1};
    const Outcome outcome = study(asked);
    CHECK(outcome.fit == Fit::unknown);
    const auto json =
        nlohmann::json::parse(report::outcome_json(setting_of(asked), asked, outcome, false));
    CHECK(json["fits"] == "unknown");
    for (const auto& device : json["per_device"]) {
      CHECK(device["peak_bytes"].is_null());
      CHECK(device["at_peak_bytes"].is_null());
      CHECK(device["peak_op"].is_null());
      CHECK(device["peak_by_category"].is_null());
    }
    for (const auto& stage : json["per_stage"]) CHECK(stage["weights_bytes"].is_null());
    CHECK(json["notes"].dump().find("does not say bytes") != std::string::npos);
  }
}

TEST_CASE("a trace keeps unknown bytes apart from none") {
  Model model = uniform_model("layers=3,weights=0B,output=0B,stash=0B");
  const std::string none = write_trace({model});
  model.bytes_known = false;
  const std::string unknown = write_trace({model});
  CHECK(none.find("\"input_bytes\": 0") != std::string::npos);
  CHECK(unknown.find("_bytes") == std::string::npos);
  CHECK(read_trace(none, "none").at(0).bytes_known);
  CHECK(read_trace(unknown, "unknown").at(0) == model);
  // Some bytes, and no word of the input's: neither known nor unknown.
  std::string some = none;
  some.erase(some.find("  \"input_bytes\": 0,\n"), std::string("  \"input_bytes\": 0,\n").size());
  CHECK_THROWS_WITH_AS(read_trace(some, "some"),
                       "some at /layers/0/weights_bytes: the trace has no input_bytes, "
                       "so its bytes are unknown, but this layer gives some; add input_bytes, "
                       "or leave out all bytes",
                       TraceError);
}

}  // namespace
}  // namespace stageline::limits_tests
