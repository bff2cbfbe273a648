// Does the trace say exactly what the timeline says?
#include "tools/report/timeline/chrome_trace.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/report/example.hpp"
#include "tests/text.hpp"
#include "tools/report/timeline/weights.hpp"
#include "traces/timelines.hpp"

namespace stageline::chrome_trace_tests {

using examples::drawing_of;
using examples::millisecond;
using examples::one_f_one_b;
using nlohmann::json;
using test::contains;

namespace {

// The text of a number behind a key in one line of the trace: doubles would hide what was written.
std::string number_in(const std::string& line, const std::string& key) {
  const std::size_t at = line.find("\"" + key + "\":");
  REQUIRE(at != std::string::npos);
  const std::size_t begin = at + key.size() + 3;
  return line.substr(begin, line.find_first_of(",}", begin) - begin);
}

std::string unquoted(const std::string& text) { return text.substr(1, text.size() - 2); }

// Picoseconds from decimal microseconds, without a double.
std::int64_t picoseconds(const std::string& text) {
  const std::size_t point = text.find('.');
  std::string fraction = point == std::string::npos ? "" : text.substr(point + 1);
  REQUIRE(fraction.size() <= 6);
  fraction.resize(6, '0');
  return std::stoll(text.substr(0, point)) * 1'000'000 + std::stoll(fraction);
}

struct Slice {
  std::string name;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

// X events by pid and tid, in the order of the file.
std::map<std::pair<int, int>, std::vector<Slice>> slices_in(const std::string& text) {
  std::map<std::pair<int, int>, std::vector<Slice>> slices;
  std::size_t at = 0;
  while ((at = text.find("{\"ph\":\"X\"", at)) != std::string::npos) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    const std::int64_t start = picoseconds(number_in(line, "ts"));
    slices[{std::stoi(number_in(line, "pid")), std::stoi(number_in(line, "tid"))}].push_back(
        {unquoted(number_in(line, "name")), start, start + picoseconds(number_in(line, "dur"))});
    at += line.size();
  }
  return slices;
}

std::vector<json> events_of(const std::string& text, const std::string& phase) {
  std::vector<json> found;
  const json trace = json::parse(text);
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) found.push_back(event);
  }
  return found;
}

}  // namespace

TEST_CASE("the trace is JSON, and its times are the timeline's to the picosecond") {
  const report::Drawing drawing =
      drawing_of(one_f_one_b(3, 5), Time{1'234'567'891}, Time{98'765'433});
  const std::string text = report::chrome_trace(drawing);
  CHECK(json::parse(text).at("displayTimeUnit") == "ns");
  const auto slices = slices_in(text);
  std::size_t count = 0;
  for (int device = 0; device < 3; ++device) {
    for (int lane = 0; lane < lane_kinds; ++lane) {
      if (lane == static_cast<int>(LaneKind::receive)) continue;  // may lie on several tids
      const auto& spans = drawing.timeline.lane(device, static_cast<LaneKind>(lane));
      if (spans.empty()) continue;
      const auto& found = slices.at({device, lane});
      REQUIRE(found.size() == spans.size());
      for (std::size_t i = 0; i < spans.size(); ++i) {
        CHECK(found[i].name == print(spans[i].op));
        CHECK(found[i].start == spans[i].start.count());
        CHECK(found[i].end == spans[i].end.count());
      }
      count += spans.size();
    }
  }
  CHECK(count > 0);
}

TEST_CASE("times far from zero keep their last picosecond") {
  report::Drawing drawing;
  drawing.timeline.devices = {"gpu0"};
  drawing.timeline.lanes.resize(lane_kinds);
  const Time late{9'000'000'000'000'000'001};
  drawing.timeline.lanes[0].push_back({Op{}, late, late + Time{7}});
  const std::string text = report::chrome_trace(drawing);
  CHECK(text.find("\"ts\":9000000000000.000001,\"dur\":0.000007") != std::string::npos);
}

TEST_CASE("events say stage, number and kind, and processes have the devices' names") {
  report::Drawing drawing = drawing_of(one_f_one_b(2, 2), millisecond, millisecond);
  drawing.timeline.devices[1] = "a \"quoted\" name";
  const std::string text = report::chrome_trace(drawing);
  bool forward = false, update = false;
  for (const json& event : events_of(text, "X")) {
    if (event.at("name") == "1F1") {
      forward = true;
      CHECK(event.at("pid") == 1);
      CHECK(event.at("tid") == 0);
      CHECK(event.at("args") == json({{"stage", 1}, {"microbatch", 1}, {"kind", "F"}}));
      CHECK(event.at("cname") == "rail_response");
    }
    if (event.at("name") == "0U0") {
      update = true;
      CHECK(event.at("args") == json({{"stage", 0}, {"update", 0}, {"kind", "U"}}));
      CHECK(event.at("cname") == "detailed_memory_dump");
    }
  }
  CHECK(forward);
  CHECK(update);
  std::map<int, std::string> names, threads;
  for (const json& event : events_of(text, "M")) {
    if (event.at("name") == "process_name") names[event.at("pid")] = event.at("args").at("name");
    if (event.at("name") == "thread_name") threads[event.at("tid")] = event.at("args").at("name");
    if (event.at("name") == "process_sort_index") {
      CHECK(event.at("args").at("sort_index") == event.at("pid"));
    }
  }
  CHECK(names[0] == "gpu0");
  CHECK(names[1] == "a \"quoted\" name");
  CHECK(threads[0] == "compute");
  CHECK(threads[1] == "send");
  CHECK(threads[2] == "receive");
}

TEST_CASE("every message is one arrow from the send to the receive of the same micro-batch") {
  const report::Drawing drawing = drawing_of(one_f_one_b(4, 6), millisecond, millisecond / 2);
  const std::string text = report::chrome_trace(drawing);
  std::map<int, json> starts, finishes;
  for (const json& event : events_of(text, "s"))
    CHECK(starts.emplace(event.at("id"), event).second);
  for (const json& event : events_of(text, "f")) {
    CHECK(finishes.emplace(event.at("id"), event).second);
    CHECK(event.at("bp") == "e");
  }
  CHECK(starts.size() == 2 * 3 * 6);  // both ways over three borders
  CHECK(starts.size() == finishes.size());
  // The slice that an arrow's end lies on.
  const std::vector<json> slices = events_of(text, "X");
  const auto slice_at = [&](const json& end) {
    for (const json& slice : slices) {
      const double start = slice.at("ts"), length = slice.at("dur"), at = end.at("ts");
      if (slice.at("pid") == end.at("pid") && slice.at("tid") == end.at("tid") && start <= at &&
          at <= start + length) {
        return slice;
      }
    }
    return json();
  };
  for (const auto& [id, start] : starts) {
    REQUIRE(finishes.count(id) == 1);
    const json& finish = finishes[id];
    CHECK(start.at("ts") <= finish.at("ts"));
    const json send = slice_at(start), receive = slice_at(finish);
    REQUIRE(!send.is_null());
    REQUIRE(!receive.is_null());
    const std::string sent = send.at("args").at("kind"), got = receive.at("args").at("kind");
    CHECK(((sent == "SEND_F" && got == "RECV_F") || (sent == "SEND_B" && got == "RECV_B")));
    CHECK(send.at("args").at("microbatch") == receive.at("args").at("microbatch"));
    const int from = send.at("args").at("stage"), to = receive.at("args").at("stage");
    CHECK(to - from == (sent == "SEND_F" ? 1 : -1));
  }
}

TEST_CASE("slices of one tid do not overlap, not even receives") {
  report::Drawing drawing = drawing_of(one_f_one_b(4, 6), millisecond, millisecond / 2);
  // A device that receives three messages at once.
  auto& receives = nth(drawing.timeline.lanes, LaneKind::receive);
  receives.clear();
  for (std::uint32_t m = 0; m < 3; ++m) {
    Op op;
    op.kind = OpKind::receive_backward;
    op.microbatch = m;
    receives.push_back({op, Time{m * 10}, Time{m * 10 + 25}});
  }
  const auto slices = slices_in(report::chrome_trace(drawing));
  std::size_t received = 0;
  for (const auto& [where, lane] : slices) {
    for (std::size_t i = 1; i < lane.size(); ++i) CHECK(lane[i].start >= lane[i - 1].end);
    for (const Slice& slice : lane) {
      received += where.first == 0 && contains(slice.name, "RECV") ? 1 : 0;
    }
  }
  CHECK(received == 3);
  CHECK(slices.count({0, lane_kinds}) == 1);
}

TEST_CASE("slices of one tid do not overlap, not even sends of one batch") {
  report::Drawing drawing = drawing_of(one_f_one_b(4, 6), millisecond, millisecond / 2);
  auto& sends = nth(drawing.timeline.lanes, LaneKind::send);
  sends.clear();
  for (std::uint32_t m = 0; m < 3; ++m) {
    Op op;
    op.kind = OpKind::send_forward;
    op.microbatch = m;
    sends.push_back({op, Time{5}, Time{25 + m * 10}});
  }
  const std::string trace = report::chrome_trace(drawing);
  std::size_t sent = 0;
  for (const auto& [where, lane] : slices_in(trace)) {
    for (std::size_t i = 1; i < lane.size(); ++i) CHECK(lane[i].start >= lane[i - 1].end);
    if (where.first != 0) continue;
    for (const Slice& slice : lane) sent += slice.name.find("SEND_F") == std::string::npos ? 0 : 1;
  }
  CHECK(sent == 3);
  CHECK(trace.find("\"send 3\"") != std::string::npos);
}

TEST_CASE("memory counters follow the curve to its last point, in bytes") {
  const report::Drawing drawing = drawing_of(one_f_one_b(3, 4), millisecond);
  std::map<int, std::vector<json>> counters;
  for (const json& event : events_of(report::chrome_trace(drawing), "C")) {
    if (event.at("name") == "memory") counters[event.at("pid")].push_back(event);
  }
  REQUIRE(counters.size() == 3);
  for (const auto& [device, points] : counters) {
    const auto& curve = nth(drawing.memory.device, device).curve;
    REQUIRE(points.size() == curve.size());
    std::int64_t highest = 0;
    for (const json& point : points) {
      std::int64_t sum = 0;
      for (const auto& amount : point.at("args")) sum += amount.get<std::int64_t>();
      highest = std::max(highest, sum);
    }
    CHECK(highest == nth(drawing.memory.device, device).peak.count);
    CHECK(points.back().at("ts").get<double>() * 1e6 ==
          doctest::Approx(static_cast<double>(curve.back().at.count())));
    CHECK(!points.back().at("args").contains("communication"));  // this run has none
    for (int kind = 0; kind < static_cast<int>(MemoryKind::communication); ++kind) {
      CHECK(points.back().at("args").at(std::string(name(static_cast<MemoryKind>(kind)))) ==
            nth(curve.back().use, kind).count);
    }
  }
}

TEST_CASE("the reserve and communication buffers are in the stack where there are any") {
  report::Drawing drawing = drawing_of(one_f_one_b(2, 4), millisecond);
  drawing.memory.device[0].reserve = Bytes{50};
  for (MemoryPoint& point : drawing.memory.device[0].curve) {
    nth(point.use, MemoryKind::communication) = Bytes{3};
  }
  int found = 0;
  for (const json& event : events_of(report::chrome_trace(drawing), "C")) {
    if (event.at("name") != "memory") continue;
    const bool first = event.at("pid") == 0;
    CHECK(event.at("args").contains("reserve") == first);
    CHECK(event.at("args").contains("communication") == first);
    if (!first) continue;
    ++found;
    CHECK(event.at("args").at("reserve") == 50);
    CHECK(event.at("args").at("communication") == 3);
  }
  CHECK(found == static_cast<int>(drawing.memory.device[0].curve.size()));
}

TEST_CASE("the stash has a counter of its parts, a point where these change") {
  const report::Drawing drawing = drawing_of(
      "stageline-program 1\nschedule: x\nmicrobatches: 2\nsteps: 1\nweights: flush\n"
      "stage 0: gpu0\nstage 1: gpu1\n"
      "gpu0: 0F0 0R0 0B0 0F1 0B1\ngpu1: 1F0 1I0 1W0 1F1 1B1\n",
      millisecond);
  std::map<int, std::size_t> next;  // by device: the point of its curve that comes
  for (const json& event : events_of(report::chrome_trace(drawing), "C")) {
    if (event.at("name") != "stash") continue;
    const int device = event.at("pid");
    const auto& curve = nth(drawing.memory.device, device).curve;
    std::size_t& at = next[device];
    while (at > 0 && at < curve.size() && curve[at].stash == curve[at - 1].stash) ++at;
    REQUIRE(at < curve.size());
    CHECK(event.at("ts").get<double>() * 1e6 ==
          doctest::Approx(static_cast<double>(curve[at].at.count())));
    for (int part = 0; part < stash_parts; ++part) {
      CHECK(event.at("args").at(std::string(name(static_cast<StashPart>(part)))) ==
            nth(curve[at].stash, part).count);
    }
    ++at;
  }
  CHECK(next.size() == 2);
}

TEST_CASE("weight versions are counted from one and end at one") {
  const report::Drawing drawing = drawing_of(one_f_one_b(3, 8, "stash"), millisecond);
  int highest = 0, last = 0;
  for (const json& event : events_of(report::chrome_trace(drawing), "C")) {
    if (event.at("name") != "weight versions of stage 0") continue;
    last = event.at("args").at("versions");
    highest = std::max(highest, last);
    CHECK(last >= 1);
  }
  CHECK(highest == drawing.versions[0].held_peak);
  CHECK(last == 1);
}

TEST_CASE("a stage that holds old versions has a counter on each of its replicas, a point a time") {
  const report::Drawing drawing = drawing_of(
      "stageline-program 1\nschedule: x\nmicrobatches: 6\nsteps: 1\nweights: stash\n"
      "stage 0: gpu0+gpu1\nstage 1: gpu2\n"
      "gpu0: 0F0 0F2 0B0 0F4 0B2 0B4\ngpu1: 0F1 0B1 0F3 0B3 0F5 0B5\n"
      "gpu2: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4 1F5 1B5\n",
      millisecond);
  std::map<int, std::vector<int>> held;  // by device
  std::set<std::pair<int, double>> moments;
  for (const json& event : events_of(report::chrome_trace(drawing), "C")) {
    if (event.at("name") == "weight versions of stage 1") FAIL("stage 1 holds one version");
    if (event.at("name") != "weight versions of stage 0") continue;
    held[event.at("pid")].push_back(event.at("args").at("versions"));
    CHECK(moments.emplace(event.at("pid").get<int>(), event.at("ts").get<double>()).second);
  }
  CHECK(held.size() == 2);
  for (const report::HeldCurve& curve : report::versions_held(drawing.program, drawing.versions)) {
    if (curve.stage != 0) continue;
    std::vector<int> expected;
    for (const report::HeldPoint& point : curve.points) expected.push_back(point.versions);
    CHECK((held[curve.device] == expected));
  }
  CHECK(*std::max_element(held[0].begin(), held[0].end()) == 2);
  CHECK((held[1] == std::vector<int>{1}));  // though it never holds more itself
}

TEST_CASE("the ops of an overlapped pair are on two tids, the first one marked") {
  report::Drawing drawing;
  drawing.timeline.devices = {"gpu0"};
  drawing.timeline.lanes.resize(lane_kinds);
  Op first, second;
  first.overlapped = 1;
  second.kind = OpKind::backward;
  const Op third = op_of(OpKind::forward, 0, 1);
  drawing.timeline.lanes[0] = {
      {first, Time{0}, Time{10}}, {second, Time{0}, Time{10}}, {third, Time{10}, Time{20}}};
  const std::string text = report::chrome_trace(drawing);
  const auto events = events_of(text, "X");
  REQUIRE(events.size() == 3);
  CHECK(events[0].at("args").at("overlapped") == true);
  CHECK(!events[1].at("args").contains("overlapped"));
  CHECK(events[0].at("tid") == 0);
  CHECK(events[1].at("tid") != 0);
  CHECK(events[2].at("tid") == 0);
  CHECK(contains(text, R"("compute 2")"));
  // The reader takes the lane from the category.
  CHECK((read_chrome_trace(text, "t.json").timeline == drawing.timeline));
}

TEST_CASE("idle intervals have slices of their own, with their cause") {
  const report::Drawing drawing = drawing_of(one_f_one_b(3, 4), millisecond, millisecond / 4);
  const std::string text = report::chrome_trace(drawing);
  std::size_t found = 0;
  for (const json& event : events_of(text, "X")) {
    if (event.at("cat") != "idle") continue;
    const IdleInterval& idle = drawing.idle.at(found++);
    CHECK(event.at("pid") == idle.device);
    CHECK(event.at("args").at("cause") == std::string(name(idle.kind)));
    CHECK(event.at("ts").get<double>() * 1e6 ==
          doctest::Approx(static_cast<double>(idle.start.count())));
    const auto& compute = drawing.timeline.lane(idle.device, LaneKind::compute);
    const bool followed = compute.back().start >= idle.end;
    CHECK(event.at("args").contains("before") == followed);
    if (followed) CHECK(event.at("args").at("before") == print(idle.before));
  }
  CHECK(found == drawing.idle.size());
  CHECK(found > 0);
  CHECK((read_chrome_trace(text, "t.json").timeline == drawing.timeline));
}

TEST_CASE("total memory and its limit have counters of their own") {
  report::Drawing drawing = drawing_of(one_f_one_b(2, 4), millisecond);
  drawing.memory_limit = {Bytes{7}, std::nullopt};
  std::map<int, std::int64_t> highest;
  std::vector<json> limits;
  for (const json& event : events_of(report::chrome_trace(drawing), "C")) {
    const std::string kind = event.at("name");
    if (kind == "total memory") {
      std::int64_t& most = highest[event.at("pid")];
      most = std::max(most, event.at("args").at("bytes").get<std::int64_t>());
    }
    if (kind == "memory limit") limits.push_back(event);
  }
  for (int device = 0; device < 2; ++device) {
    CHECK(highest[device] == nth(drawing.memory.device, device).peak.count);
  }
  REQUIRE(limits.size() == 2);  // at the beginning and at the end
  for (const json& limit : limits) {
    CHECK(limit.at("pid") == 0);
    CHECK(limit.at("args").at("bytes") == 7);
  }
}

TEST_CASE("an empty timeline gives an empty but valid trace") {
  const json trace = json::parse(report::chrome_trace(report::Drawing{}));
  CHECK(trace.at("traceEvents").empty());
}

}  // namespace stageline::chrome_trace_tests
