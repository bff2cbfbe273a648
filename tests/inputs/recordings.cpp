// Do timelines come back from what was written of them?
#include "tools/inputs/recordings.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/make.hpp"
#include "tests/specs.hpp"
#include "tests/traces/profiles.hpp"
#include "tests/traces/support.hpp"
#include "tools/base/files.hpp"
#include "tools/report/timeline/chrome_trace.hpp"

namespace stageline::recordings_tests {
namespace {

using examples::millisecond;

report::Drawing drawn(const test::Ran& ran) {
  report::Drawing drawing;
  drawing.program = ran.program;
  drawing.timeline = ran.timeline;
  drawing.title = "A run";
  return drawing;
}

TEST_CASE("the Chrome trace of every schedule comes back to the picosecond") {
  std::mt19937 random(20);
  std::size_t tried = 0;
  for (const ScheduleSpec& spec : test::all_specs(3)) {
    for (const bool transfer : {false, true}) {
      test::Ran ran;
      try {
        const Costs costs = test::random_costs(random, test::stages_for(spec, 3), 3, transfer);
        Problem problem = test::problem_for(spec, 3, costs, 5, 2);
        ran = test::run_program(spec.scheduler->schedule(problem), costs);
      } catch (const UsageError&) {
        continue;  // not for three devices
      }
      const std::string text = report::chrome_trace(drawn(ran));
      const ChromeTrace back = read_chrome_trace(text, "a.json");
      CHECK_MESSAGE(back.timeline == ran.timeline, spelled(spec));
      CHECK(back.title == "A run");
      CHECK(back.schedule == ran.program.schedule);
      CHECK(read_chrome_trace(profiles::gzipped(text), "a.json.gz").timeline == ran.timeline);
      ++tried;
    }
  }
  CHECK(tried > 20);
}

TEST_CASE("device names, hosts and odd lanes do not confuse the reader") {
  report::Drawing drawing =
      examples::drawing_of(examples::one_f_one_b(2, 3), millisecond, millisecond / 3);
  drawing.timeline.devices[1] = "a \"quoted\" name";
  drawing.timeline.devices.emplace_back("idle");
  drawing.timeline.lanes.resize(drawing.timeline.lanes.size() + lane_kinds);
  drawing.program.placement.stage[0].replicas = {0};
  drawing.memory.host.resize(1);
  drawing.memory.host[0].curve.push_back({});
  drawing.hosts = {"host"};
  CHECK(read_chrome_trace(report::chrome_trace(drawing), "a.json").timeline == drawing.timeline);
}

TEST_CASE("a Chrome trace that breaks the format is refused with its place") {
  const report::Drawing drawing = examples::drawing_of(examples::one_f_one_b(1, 1), millisecond);
  const std::string text = report::chrome_trace(drawing);
  const auto refused = [&](const std::string& from, const std::string& to) {
    return trace_error_of([&] { read_chrome_trace(replaced(text, from, to), "a.json"); });
  };
  CHECK(contains(refused("\"0F0\"", "\"matmul\"").what(),
                 "\"matmul\" is not an op; an op looks like \"0F3\""));
  CHECK(contains(refused("\"cat\":\"compute\"", "\"cat\":\"computer\"").what(),
                 "\"computer\" is not a lane (did you mean \"compute\"?); the lanes are compute, "
                 "send, receive, copy-out, copy-in"));
  CHECK(contains(refused("\"ts\":0", "\"ts\":-1").what(), "this must be from 0 to"));
  CHECK(contains(refused("\"ts\":0", "\"ts\":4611686018428").what(), "this must be from 0 to"));
  CHECK(contains(refused("\"ts\":0,\"dur\":1000", "\"ts\":4611686018427,\"dur\":1000").what(),
                 "a span must end by 4611686018427 µs"));
  CHECK(contains(refused("\"dur\":1000", "\"duh\":1000").what(), "a span needs \"dur\""));
  CHECK(contains(refused("\"ph\":\"X\",\"pid\":0", "\"ph\":\"X\",\"pid\":\"gpu0\"").what(),
                 "the device of a span must be a number from 0 to 65535 (it is \"gpu0\")"));
  CHECK(contains(
      trace_error_of([&] { read_chrome_trace(text.substr(0, text.size() - 9), "a.json"); }).what(),
      "this is not JSON"));
}

TEST_CASE("pairs of B and E in a Chrome trace are spans, innermost first") {
  const auto trace = [](const std::string& events) {
    return "{\"traceEvents\": [" + events + "]}";
  };
  const auto event = [](const std::string& phase, const std::string& rest) {
    return R"({"ph": ")" + phase + R"(", "cat": "compute", "pid": 0, "tid": 0, )" + rest + "}";
  };
  const std::string forward = R"("name": "0F0", "ts": )";
  const std::string backward = R"("name": "0B0", "ts": )";
  const auto read = [&](const std::string& events) {
    return read_chrome_trace(trace(events), "a.json").timeline;
  };
  const Timeline complete =
      read(event("X", forward + "1, \"dur\": 2") + "," + event("X", backward + "3, \"dur\": 4.5"));
  CHECK(read(event("B", forward + "1") + "," + event("E", forward + "3") + "," +
             event("B", backward + "3") + "," + event("E", "\"ts\": 7.5")) == complete);
  CHECK(read(event("B", forward + "1") + "," + event("B", backward + "3") + "," +
             event("E", "\"ts\": 7.5") + "," + event("E", "\"ts\": 8"))
            .lanes[0][0]
            .end == parse_time("8us"));
  const auto refused = [&](const std::string& events) {
    return trace_error_of([&] { read(events); });
  };
  const TraceError open = refused(event("B", forward + "1"));
  CHECK(open.where == "/traceEvents/0/ph");
  CHECK(contains(open.what(), "\"0F0\" begins here (\"B\"), and no event of its thread ends it"));
  CHECK(contains(refused(event("E", forward + "1")).what(), "none is open there (\"B\")"));
  CHECK(contains(refused(event("B", forward + "1") + "," + event("E", backward + "3")).what(),
                 "which is \"0F0\", not \"0B0\""));
  CHECK(contains(refused(event("B", forward + "3") + "," + event("E", forward + "1")).what(),
                 "\"0F0\" ends at 1 µs, before it begins at 3"));
}

// Files of a test, removed at its end.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / fmt::format("stageline.{}", ::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  Content put(const std::string& name, const std::string& text) const {
    write_file((path_ / name).string(), text);
    return read_content((path_ / name).string());
  }

 private:
  std::filesystem::path path_;
};

nlohmann::json small_outcome() {
  return {
      {"schedule", "1f1b"},
      {"model", "net"},
      {"microbatches", 2},
      {"steps", 1},
      {"step_time_ps", 9},
      {"makespan_ps", 8},
      {"per_device", {{{"name", "gpu0"}}, {{"name", "gpu1"}}}},
      {"timeline",
       {{{"device", "gpu1"}, {"lane", "compute"}, {"op", "1F0"}, {"start_ps", 3}, {"end_ps", 5}},
        {{"device", "gpu0"}, {"lane", "compute"}, {"op", "0F0"}, {"start_ps", 0}, {"end_ps", 2}},
        {{"device", "gpu0"},
         {"lane", "send"},
         {"op", "0SEND_F0"},
         {"start_ps", 2},
         {"end_ps", 3}}}}};
}

TEST_CASE("an outcome gives its timeline, its step time and its devices") {
  const Recording recording = read_outcome(small_outcome().dump(), "o.json");
  CHECK(recording.name == "1f1b · net");
  CHECK(recording.timeline.devices == std::vector<std::string>{"gpu0", "gpu1"});
  CHECK(recording.timeline.lane(1, LaneKind::compute).at(0).start == Time{3});
  CHECK(recording.timeline.lane(0, LaneKind::send).size() == 1);
  CHECK(recording.step_time == Time{9});
  CHECK(recording.microbatches == 2);
  CHECK(!recording.measured);
  nlohmann::json real = small_outcome();
  real["measured"] = nlohmann::json::object();
  CHECK(read_outcome(real.dump(), "o.json").measured);
}

TEST_CASE("an outcome that breaks the format is refused with its place") {
  const auto refused = [](const nlohmann::json& outcome) {
    return trace_error_of([&] { read_outcome(outcome.dump(), "o.json"); });
  };
  nlohmann::json wrong = small_outcome();
  wrong.erase("timeline");
  CHECK(contains(refused(wrong).what(),
                 "\"timeline\" is missing; `stageline simulate --json FILE --timeline` writes it"));
  wrong = small_outcome();
  wrong["timeline"][1]["device"] = "gpu7";
  CHECK(refused(wrong).where == "/timeline/1/device");
  wrong = small_outcome();
  wrong["timeline"][1]["op"] = "F0";
  CHECK(refused(wrong).where == "/timeline/1/op");
  wrong = small_outcome();
  wrong["timeline"][1]["lane"] = "fast";
  CHECK(refused(wrong).where == "/timeline/1/lane");
  wrong = small_outcome();
  wrong["timeline"][0]["end_ps"] = 2;
  CHECK(refused(wrong).where == "/timeline/0/end_ps");
  wrong = small_outcome();
  wrong["per_device"][1]["name"] = "gpu0";
  CHECK(refused(wrong).where == "/per_device/1/name");
}

TEST_CASE("files are told apart by what is in them") {
  const Folder folder;
  const report::Drawing run = examples::drawing_of(examples::one_f_one_b(2, 2), millisecond);
  const std::vector<NamedText> profiles = profiles::cpu_profiles(run);
  const Content chrome = folder.put("x", report::chrome_trace(run));
  const Content outcome = folder.put("y", small_outcome().dump());
  const Content rank0 = folder.put("a", profiles::gzipped(profiles[0].text));
  const Content rank1 = folder.put("b", profiles[1].text);
  const Content program = folder.put("p", print(run.program));
  CHECK(chrome.format->name == "chrome");
  CHECK(outcome.format->name == "outcome");
  CHECK(rank0.format->name == "kineto");
  CHECK(rank0.named.text == profiles[0].text);
  CHECK(rank1.format->name == "kineto");
  CHECK(program.format == nullptr);
  CHECK(folder.put("e", "").format == nullptr);
  CHECK(folder.put("t", R"({"traceEvents": [{"ph": "X", "name": "PP:0F0"}]})").format->name ==
        "kineto");

  const auto sides = sides_of({chrome, rank0, rank1, outcome});
  REQUIRE(sides.size() == 3);
  CHECK(sides[1].size() == 2);
  const Recording measured = recording_of(sides[1]);
  CHECK(measured.measured);
  CHECK(measured.name == "a, b");
  CHECK(measured.program->ops == run.program.ops);
  CHECK(recording_of(sides[0]).timeline == run.timeline);
  CHECK(contains(usage_error_of([&] {
                   recording_of({chrome, rank0});
                 }),
                 "only profiles of PyTorch may be several, one a rank"));
  CHECK(contains(usage_error_of([&] { recording_of({program}); }), "is no timeline: neither"));
}

TEST_CASE("a SQLite database is read as one, not as a text with a zero byte") {
  const Folder folder;
  const std::string bytes = std::string("SQLite format 3") + '\0' + "and no more";
  const TraceError error = trace_error_of([&] { folder.put("d", bytes); });
  CHECK(contains(error.what(), "SQLite database"));
}

TEST_CASE("steps of a Chrome trace show in its updates") {
  const test::Ran ran = test::run_schedule(
      "gpipe", 2, uniform_costs(2, 2, millisecond, millisecond, millisecond), 3, 4);
  const Folder folder;
  const Recording recording = recording_of({folder.put("x", report::chrome_trace(drawn(ran)))});
  CHECK(recording.steps == 4);
  CHECK(recording.microbatches == 3);
  // Updates after every backward do not make steps.
  const test::Ran stream = test::run_schedule(
      "pipedream", 2, uniform_costs(2, 2, millisecond, millisecond, millisecond), 3, 4);
  CHECK(recording_of({folder.put("x", report::chrome_trace(drawn(stream)))}).steps == 1);
}

}  // namespace
}  // namespace stageline::recordings_tests
