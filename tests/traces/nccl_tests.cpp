// Are logs of nccl-tests read as they are, and refused with the line where they say nothing?
#include "traces/nccl/tests_log.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/bus_bandwidth.hpp"
#include "tests/traces/support.hpp"
#include "traces/json/parts.hpp"
#include "traces/native/measured_collectives.hpp"

namespace stageline::nccl_tests_tests {
namespace {

std::string log_text() { return source_text("tests/traces/nccl/all_reduce_a100x8.log"); }

std::vector<NcclTestsRun> read(const std::string& text,
                               std::optional<CollectiveKind> kind = std::nullopt) {
  return read_nccl_tests(text, "a.log", kind).runs;
}

TraceError refused(const std::string& text) {
  return trace_error_of([&] { read(text); });
}

// An old log, without the name of its test, of any title.
std::string old_log(const std::string& title) {
  return title +
         "# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5\n"
         "#\n# Using devices\n"
         "#   Rank  0 Pid   1 on       box device  0 [0x41] GeForce RTX 2080 Ti\n"
         "#   Rank  1 Pid   1 on       box device  1 [0x81] GeForce RTX 2080 Ti\n"
         "#\n"
         "#                                             out-of-place                    in-place\n"
         "#       size         count    type     time   algbw   busbw  error     time   algbw   "
         "busbw  error\n"
         "#        (B)    (elements)             (us)  (GB/s)  (GB/s)            (us)  (GB/s)  "
         "(GB/s)\n"
         "    67108864       8388608   float   1568.3   42.79   21.40  0e+00   1560.9   42.99   "
         "21.50  0e+00\n"
         "   134217728      16777216   float   3298.6   40.69   20.34  0e+00   3070.3   43.71   "
         "21.86  0e+00\n"
         "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 21.2\n";
}

TEST_CASE("a log gives the collective, its ranks, machines and times") {
  const std::vector<NcclTestsRun> runs = read(log_text());
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].kind == CollectiveKind::all_reduce);
  CHECK(runs[0].ranks == 8);
  CHECK(runs[0].machines == 1);
  CHECK(runs[0].device == "NVIDIA A100-SXM4-80GB");
  CHECK(runs[0].version == "NCCL version 2.27.3+cuda12.9");
  REQUIRE(runs[0].rows.size() == 6);
  CHECK(runs[0].rows[0].bytes == Bytes{1 << 20});
  CHECK(runs[0].rows[0].time == parse_time("92.21us"));
  CHECK(runs[0].rows[0].line == 19);
  CHECK(runs[0].rows[5].time == parse_time("8194.7us"));
}

TEST_CASE("a log of several runs gives each, with the machines of its ranks") {
  const auto runs =
      read(log_text() + source_text("tests/traces/nccl/all_gather_2x8.log") + log_text());
  REQUIRE(runs.size() == 3);
  CHECK(runs[1].kind == CollectiveKind::all_gather);
  CHECK(runs[1].ranks == 16);
  CHECK(runs[1].machines == 2);
  CHECK(runs[2].kind == CollectiveKind::all_reduce);
}

// all_gather_2x8.log without the lines of these ranks.
std::string elided(const std::vector<int>& ranks) {
  std::string text = source_text("tests/traces/nccl/all_gather_2x8.log");
  for (const int rank : ranks) {
    const std::size_t at = text.find(fmt::format("#  Rank {:2} ", rank));
    REQUIRE(at != std::string::npos);
    text.erase(at, text.find('\n', at) + 1 - at);
  }
  return text;
}

TEST_CASE("ranks are those that the list of devices numbers, whatever lines of it are left out") {
  for (const std::vector<int>& ranks :
       {std::vector{6, 7, 8}, {0}, {1, 2, 3, 4, 5}, {9, 10, 11, 12, 13, 14}}) {
    const NcclTestsRun run = read(elided(ranks))[0];
    CHECK(run.ranks == 16);
    CHECK(run.machines == 2);
  }
  // Of a machine without any line nothing is known.
  CHECK(
      contains(refused(elided({0, 1, 2, 3, 4, 5, 6, 7})).what(),
               "the run that begins at line 3 lists 8 of its 16 ranks (0 to 15), and the machines "
               "of the others are not known"));
  // The last ranks leave no gap, but another ratio of the bandwidths.
  for (const std::vector<int>& ranks : {std::vector{15}, {13, 14, 15}}) {
    CHECK(contains(refused(elided(ranks)).what(), "give the whole list of devices"));
  }
  // A line that is there twice is one rank.
  std::string twice = elided({});
  const std::size_t at = twice.find("#  Rank  3 ");
  twice.insert(at, twice.substr(at, twice.find('\n', at) + 1 - at));
  CHECK(read(twice)[0].ranks == 16);
}

TEST_CASE("lines of mpirun and NCCL between the rows are skipped, and mpirun's tags") {
  std::string tagged;
  std::string line;
  std::istringstream lines(log_text());
  while (std::getline(lines, line)) {
    tagged += "[1,0]<stdout>:" + line + "\r\n[1,3]<stderr>:node0:41:88 [3] NCCL INFO comm\n";
  }
  CHECK(read(tagged)[0].rows.size() == 6);
  CHECK(read(tagged)[0].ranks == 8);
  CHECK(read(tagged)[0].version == "NCCL version 2.27.3+cuda12.9");
}

TEST_CASE("an old log is of the collective in its command, or of --kind") {
  const auto runs = read(old_log("$ ./build/all_gather_perf -b 8 -e 128M -f 2 -g 2\n"));
  CHECK(runs[0].kind == CollectiveKind::all_gather);
  CHECK(runs[0].rows[1].time == parse_time("3298.6us"));
  CHECK(read(old_log(""), CollectiveKind::all_to_all)[0].kind == CollectiveKind::all_to_all);
  const TraceError nameless = refused(old_log(""));
  CHECK(nameless.where == "line 1");
  CHECK(contains(nameless.what(), "does not say which collective it is of; name it by --kind"));
  // 20.4 of 40.7 GB/s are half: no all-reduce of two ranks, and no broadcast.
  const TraceError other = refused(old_log("all_reduce_perf -g 2\n"));
  CHECK(other.where == "line 11");
  CHECK(contains(other.what(),
                 "busbw is 0.500 times algbw, but 1.000 times for all_reduce among "
                 "2 ranks"));
}

std::string with_test(std::string text, const std::string& test) {
  for (std::size_t at = text.find("all_reduce_perf"); at != std::string::npos;
       at = text.find("all_reduce_perf", at + test.size())) {
    text.replace(at, 15, test);
  }
  return text;
}

TEST_CASE("a run of another test is no collective, whatever stands before it") {
  const std::string text = with_test(log_text(), "gather_perf");
  for (const char* const before :
       {"", "Linking build/all_gather_perf.o > build/all_gather_perf\n"}) {
    const NcclTestsLog log = read_nccl_tests(before + text, "a.log");
    CHECK(log.runs.empty());
    REQUIRE(log.others.size() == 1);
    CHECK(log.others[0].test == "gather_perf");
    CHECK(log.others[0].run.ranks == 8);
  }
  const NcclTestsLog suite =
      read_nccl_tests(log_text() + with_test(log_text(), "sendrecv_perf"), "a.log");
  CHECK(suite.runs.size() == 1);
  REQUIRE(suite.others.size() == 1);
  CHECK(suite.others[0].test == "sendrecv_perf");
  CHECK(suite.others[0].run.rows.size() == 6);
  // A title is the log's own word.
  CHECK(read("make all_gather_perf\n" + log_text())[0].kind == CollectiveKind::all_reduce);
}

// Each line behind a label.
std::string labelled(const std::string& label, const std::string& text) {
  std::string result;
  std::string line;
  std::istringstream lines(text);
  while (std::getline(lines, line)) result += label + line + "\n";
  return result;
}

TEST_CASE("labels of launchers before each line are no part of it") {
  const std::vector<NcclTestsRun> plain = read(log_text());
  for (const char* const label :
       {"0: ", " 0: ", "12: ", "[pod/all-reduce-0] ", "[pod/job-0-0-x7k2p/nccl] ",
        "[1,0]<stdout>:", "[prterun-node0-4100@1,0]<stdout>: ", "[1,0][node0:4100]<stdout>:",
        "2026-02-03T04:05:06.789Z ", "worker-1  | ", "[pod/a/b] 2026-02-03T04:05:06Z "}) {
    CAPTURE(label);
    const std::vector<NcclTestsRun> runs = read(labelled(label, log_text()));
    REQUIRE(runs.size() == 1);
    CHECK(runs[0].ranks == 8);
    CHECK(runs[0].version == plain[0].version);
    REQUIRE(runs[0].rows.size() == plain[0].rows.size());
    CHECK(runs[0].rows[5].time == plain[0].rows[5].time);
  }
}

TEST_CASE("columns of -T and of each iteration stand behind the times, and RCCL says its version") {
  std::string stamped;
  std::string each;
  std::string line;
  std::istringstream lines(log_text());
  while (std::getline(lines, line)) {
    const bool header = line.starts_with("#       size");
    const bool row = line.starts_with("  ");
    stamped += line + (header ? "   timestamp" : row ? "  2026-02-03 04:05:06" : "") + "\n";
    const std::string columns = header ? " i_min i_max i_p99 i_cv%" : row ? " 1.0 9.0 8.0 0.5" : "";
    const std::size_t half = header ? line.rfind("     time")
                             : row  ? line.size() - 30
                                    : line.size();
    each += line.substr(0, half) + columns + line.substr(half) + columns + "\n";
  }
  for (const std::string& text : {stamped, each}) {
    const std::vector<NcclTestsRun> runs = read(text);
    REQUIRE(runs[0].rows.size() == 6);
    CHECK(runs[0].rows[5].time == parse_time("8194.7us"));
  }
  const std::string rccl =
      replaced(log_text(), "NCCL version 2.27.3+cuda12.9", "RCCL version : 2.22.3-HEAD:51f5c30");
  CHECK(read(rccl)[0].version == "RCCL version : 2.22.3-HEAD:51f5c30");
}

// What -J writes, of 2 processes with 4 ranks each.
std::string json_text_of(const std::string& test, const std::string& device) {
  return R"({"version": 2, "args": ["./build/)" + test + R"(", "-J", "o.json"], "env": ["A=b"],
    "nccl_version": 22703, "config": {"nthreads": 1, "ngpus": 4, "devices": [
      {"rank": 0, "group": 0, "pid": 1, "hostname": "a", "device": 0, "device_info": "NVIDIA H100"},
      {"rank": 4, "group": 0, "pid": 2, "hostname": "b", "device": 0, "device_info": "NVIDIA H100"}]},
    "results": [
      {"size": 1000000, "count": 250000, "out_of_place": {)" +
         device + R"(": 50.0, "alg_bw": 20.0, "bus_bw": 35.0, "nwrong": null},
       "in_place": {"time": 49.0, "alg_bw": 20.4, "bus_bw": 35.7, "nwrong": null}}],
    "out_of_bounds": {"count": 0, "okay": "true"}})";
}

TEST_CASE("what -J writes is a run, its ranks those of all processes") {
  const std::string text = json_text_of("all_reduce_perf", "\"time");
  const std::vector<NcclTestsRun> runs = read(text);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].kind == CollectiveKind::all_reduce);
  CHECK(runs[0].ranks == 8);
  CHECK(runs[0].machines == 2);
  CHECK(runs[0].device == "NVIDIA H100");
  CHECK(runs[0].version == "NCCL version 2.27.3");
  REQUIRE(runs[0].rows.size() == 1);
  CHECK(runs[0].rows[0].time == parse_time("50us"));
  CHECK(read_nccl_tests(json_text_of("sendrecv_perf", "\"time"), "a.json").others.size() == 1);
  CHECK(contains(refused(replaced(text, "null", "3")).what(), "were wrong"));
  CHECK(contains(refused(replaced(text, "\"ngpus\": 4", "\"ngpus\": 8")).what(),
                 "which all_reduce among 16 ranks (2 processes of 8) has not"));
  CHECK(contains(refused(json_text_of("all_reduce_perf", "\"cpu_time")).what(), "without -C"));
  CHECK(contains(refused(replaced(text, "20.0, ", "21.0, ")).what(), "size over time is 20.000"));
  CHECK(contains(refused("{\"collectives\": []}").what(), "it is no output of nccl-tests"));
}

// Logs as people bring them, with what is right for each: cases/files/README.md.
std::optional<std::string> case_text(const std::string& name) {
  const char* const data = std::getenv("STAGELINE_DATA");
  if (data == nullptr) return {};
  return file_text(std::filesystem::path(data) / "cases/files" / name);
}

TEST_CASE("logs as people bring them are read as they are meant") {
  struct Case {
    const char* file;
    int ranks;
    int machines;
    std::size_t rows;
  };
  for (const Case& one : {Case{"nccl_elided_ranks.log", 16, 2, 11},
                          {"nccl_labels.log", 16, 2, 11},
                          {"nccl_timestamps.log", 16, 2, 11},
                          {"nccl_out.json", 8, 1, 5},
                          {"nccl_suite.log", 16, 2, 11},
                          {"nccl_knee.log", 8, 1, 30}}) {
    const std::optional<std::string> text = case_text(one.file);
    if (!text) {
      MESSAGE("skipped: STAGELINE_DATA holds no cases/files/", one.file);
      continue;
    }
    CAPTURE(one.file);
    const NcclTestsLog log = read_nccl_tests(*text, one.file);
    REQUIRE(log.runs.size() == 1);
    CHECK(log.runs[0].kind == CollectiveKind::all_reduce);
    CHECK(log.runs[0].ranks == one.ranks);
    CHECK(log.runs[0].machines == one.machines);
    CHECK(log.runs[0].rows.size() == one.rows);
  }
  if (const std::optional<std::string> knee = case_text("nccl_knee.log")) {
    const NcclTestsRun run = read_nccl_tests(*knee, "nccl_knee.log").runs.at(0);
    MeasuredCollective measured;
    measured.alpha = parse_time("33us");
    for (const NcclTestsRow& row : run.rows) measured.times.push_back({row.bytes, row.time});
    for (const auto& [bytes, seconds] :
         {std::pair(std::int64_t{16} << 20, 217e-6), std::pair(std::int64_t{1} << 30, 6.87e-3),
          std::pair(std::int64_t{1} << 32, 26.93e-3)}) {
      const MeasuredPace pace = measured_pace(measured, Bytes{bytes});
      CHECK(pace.setup + static_cast<double>(bytes) / pace.rate ==
            doctest::Approx(seconds).epsilon(1e-9));
    }
  }
  for (const char* const file : {"nccl_sendrecv.log", "nccl_suite.log"}) {
    const std::optional<std::string> text = case_text(file);
    if (!text) continue;
    const NcclTestsLog log = read_nccl_tests(*text, file);
    REQUIRE(log.others.size() == 1);
    CHECK(log.others[0].test == "sendrecv_perf");
    CHECK(log.others[0].run.rows.back().time == parse_time("1550us"));
  }
}

TEST_CASE("a log that is cut off is refused wherever it ends") {
  const std::string text = log_text();
  const std::size_t end = text.find("# Avg bus");
  for (std::size_t length = text.find("# Collective test starting"); length < end; length += 7) {
    const TraceError error = refused(text.substr(0, length));
    CHECK_MESSAGE(error.where != "nothing was thrown", length);
  }
  const TraceError cut = refused(text.substr(0, text.find("   268435456")));
  CHECK(cut.where == "line 22");
  CHECK(contains(cut.what(),
                 "the run that begins at line 3 is cut off behind 4 rows: \"# Avg bus "
                 "bandwidth\" is missing"));
  const TraceError in_row = refused(text.substr(0, text.find("124.40")));
  CHECK(in_row.where == "line 23");
  CHECK(contains(in_row.what(), "the row has 6 columns, but the table 13; the log is cut off"));
  const TraceError next = refused(text.substr(0, end) + text);
  CHECK(contains(next.what(), "the run that begins at line 3 is cut off behind 6 rows"));
}

TEST_CASE("a log whose results were wrong is refused with its line") {
  const std::string wrong = replaced(log_text(), " 202.60      0", " 202.60     37");
  CHECK(refused(wrong).where == "line 22");
  CHECK(contains(refused(wrong).what(), "#wrong is 37 at size 67108864"));
  const std::string failed =
      replaced(log_text(), "Out of bounds values : 0 OK", "Out of bounds values : 3 FAILED");
  CHECK(contains(refused(failed).what(), "the run failed its check of results"));
  const std::string unchecked = replaced(log_text(), " 202.60      0", " 202.60    N/A");
  CHECK(read(unchecked)[0].rows.size() == 6);
}

TEST_CASE("a log with the CPU's times is refused, since they are not the collective's") {
  const std::string cpu = replaced(log_text(), "root     time", "root  cputime");
  CHECK(refused(cpu).where == "line 17");
  CHECK(contains(refused(cpu).what(), "run the test without -C"));
}

TEST_CASE("a log whose algbw is not size over time, as far as digits are printed, is refused") {
  // 16777216 bytes in 231.0 +- 0.05 us are 72.63 +- 0.016 GB/s; algbw rounds by 0.005.
  const auto with_time = [](const std::string& time) {
    return replaced(log_text(), "231.0   72.63", time + "   72.63");
  };
  for (const std::string time : {"231.0", "230.99", "231"}) {
    CHECK_MESSAGE(read(with_time(time))[0].rows.size() == 6, time);
  }
  for (const std::string time : {"230.9", "231.05", "232", "4.25", "23100"}) {
    CHECK_MESSAGE(refused(with_time(time)).where == "line 21", time);
  }
  CHECK(contains(refused(with_time("4.25")).what(),
                 "algbw is 72.63 GB/s, but size over time is 3947.58 GB/s: 16777216 bytes in 4.25 "
                 "us; give the log as the test printed it"));
}

TEST_CASE("what is no log is refused") {
  CHECK(contains(refused("").what(), "a.log: it is no output of nccl-tests"));
  CHECK(contains(refused("{\"format\": \"stageline-trace 1\"}\n").what(),
                 "it is no output of nccl-tests"));
  const std::string text = log_text();
  CHECK(contains(refused(text.substr(text.find("#       size"))).what(),
                 "begins without the line \"# nThread"));
  std::string no_ranks = text;
  no_ranks.erase(text.find("#  Rank"), text.find("NCCL version") - text.find("#  Rank"));
  CHECK(contains(refused(no_ranks).what(), "lists no devices"));
  CHECK(contains(refused(replaced(text, "  579.7", "  5x9.7")).what(), "\"5x9.7\""));
}

std::vector<MeasuredCollective> read_entries(const std::vector<std::string>& texts) {
  std::vector<MeasuredCollective> all;
  const std::string file = "a.json";
  for (const std::string& text : texts) {
    const JsonValue tree = parse_json(text, file);
    read_measured_collective(JsonNode(tree, "", file), all);
  }
  return all;
}

TEST_CASE("lines of a group begin where they meet, in the order of their sizes") {
  // Of two ranks an all-reduce moves each byte once: 30 us and 1 us a MB up to 10 MB, 35 us and
  // 0.5 us a MB up to 30 MB, 20 us and 1 us a MB from there on.
  const auto line = [](const char* alpha, const char* bandwidth) {
    return MeasuredCollective{CollectiveKind::all_reduce, 2, 1, parse_time(alpha),
                              parse_bandwidth(bandwidth), ""};
  };
  const std::vector<MeasuredCollective> lines{line("30us", "1000GB/s"), line("35us", "2000GB/s"),
                                              line("20us", "1000GB/s")};
  const std::vector<std::string> texts = measured_collective_texts(lines);
  CHECK(contains(texts[1], "\"from\": \"10000000B\""));
  CHECK(contains(texts[2], "\"from\": \"30000000B\""));
  CHECK(read_entries(texts) == lines);
  // Rounded by hand, or as a number of bytes.
  CHECK(read_entries({texts[0], replaced(texts[1], "10000000B", "10.05MB")}).size() == 2);
  CHECK(read_entries({texts[0], replaced(texts[1], "\"10000000B\"", "10000000")}).size() == 2);
  const auto refused_entries = [](const std::vector<std::string>& entries) {
    return std::string(trace_error_of([&] { read_entries(entries); }).what());
  };
  CHECK(contains(refused_entries({texts[0], texts[0]}),
                 "all_reduce of 2 ranks on 1 machine is there already; keep one of both, or give "
                 "the size \"from\" which this one holds"));
  CHECK(contains(refused_entries({texts[1]}), "at /from: this is the first line of all_reduce"));
  CHECK(contains(refused_entries({texts[0], replaced(texts[1], "10000000B", "12MB")}),
                 "take the same time at 10.00 MB; \"from\" is 12.00 MB"));
  CHECK(contains(
      refused_entries({texts[0], replaced(texts[0], "\"alpha", "\"from\": \"1MB\", \"alpha")}),
      "take the same time at no size"));
  CHECK(contains(refused_entries({texts[0], replaced(texts[2], "30000000B", "1MB")}),
                 "take the same time at no size"));
  // Behind 30 MB the second line has no place any more.
  CHECK(contains(refused_entries({texts[1].substr(0, 1) +
                                      replaced(texts[1], "\"from\": \"10000000B\",", "").substr(1),
                                  texts[2], replaced(texts[1], "10000000B", "30000000B")}),
                 "lines of a group are in the order of their sizes"));
}

TEST_CASE("measured collectives survive being written and read") {
  const MeasuredCollective gather{
      CollectiveKind::all_gather, 16,         2, parse_time("40.000123us"),
      Bandwidth{45'000'000'001},  "a \"log\""};
  MeasuredCollective timed = gather;
  timed.times = {{Bytes{8}, parse_time("40us")}, {Bytes{1 << 20}, parse_time("61.000001us")}};
  for (const MeasuredCollective& measured :
       {gather, timed, MeasuredCollective{CollectiveKind::all_reduce, 8, 1, {}, {}, ""}}) {
    const std::string text = measured_collective_texts({measured}).front();
    CHECK(read_entries({text}) == std::vector<MeasuredCollective>{measured});
  }
  const auto refused_entry = [](const std::string& text) {
    return std::string(trace_error_of([&] { read_entries({text}); }).what());
  };
  CHECK(contains(refused_entry(R"({"kind": "reduce", "ranks": 8, "alpha": "1us",
                                   "bandwidth": "1GB/s"})"),
                 "a collective is one of all_reduce, reduce_scatter, all_gather, all_to_all, "
                 "broadcast, not \"reduce\""));
  const std::string text = measured_collective_texts({timed}).front();
  CHECK(contains(refused_entry(replaced(text, "1048576B", "8B")),
                 "at /times/1/0: sizes are above 0"));
  CHECK(contains(refused_entry(replaced(text, "\"8B\", ", "")), "at /times/0: it is the pair"));
  CHECK(contains(std::string(trace_error_of([&] {
                               read_entries({text, text});
                             }).what()),
                 "single times"));
  CHECK(contains(refused_entry(R"({"kind": "broadcast", "ranks": 8, "machines": 9,
                                   "alpha": "1us", "bandwidth": "1GB/s"})"),
                 "/machines"));
}

}  // namespace
}  // namespace stageline::nccl_tests_tests
