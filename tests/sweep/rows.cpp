// A row of a sweep is what compare and whatif say of the same settings; folders, shards, threads.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <stdlib.h>

#include <filesystem>
#include <random>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/base/provided_files.hpp"
#include "tools/compare/uncertainty.hpp"
#include "tools/sweep/run.hpp"
#include "tools/sweep/table.hpp"
#include "traces/gzip.hpp"
#include "traces/traces.hpp"

namespace stageline::rows_tests {
namespace {

namespace fs = std::filesystem;

// A folder of its own, removed at the end.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::temp_directory_path() / "stageline-sweep-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Scratch() { fs::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

// Degrees, traces, links and memories that suit, and some that do not.
SweepSpec wide() {
  return read_sweep(R"({"format": "stageline-sweep 1",
    "fixed": {"trace": "uniform:layers={layers},forward=1ms,weights=1MB,output=1MB,stash=2MB"},
    "axes": {"layers": [6, 16], "devices": [2, 4, 8],
             "schedule": ["1f1b", "zb_h1", "gpipe:recompute=always", "interleaved_1f1b", "pipedream",
                          "chimera", "list"],
             "microbatches": [4, 6, 16], "link": "100MB/s..400GB/s:log4",
             "memory": ["20MB", "1GB"], "slow": ["gpu0:1.5", "gpu1:0.5"]}})");
}

Row compared(const SweepSpec& spec, std::int64_t number) {
  const SweepQuestion question = question_of(words_of(spec, axis_values(spec, number)));
  const Setting setting = read_setting(question.request.setting);
  return compare(question.request.setting, setting, question.request.setting.schedules).front();
}

void check_row(const SweepSpec& spec, const SweepRow& row) {
  CAPTURE(flags_of(words_of(spec, row.values)));
  try {
    const Row other = compared(spec, row.number);
    REQUIRE(row.verdict.has_value());
    const Outcome& outcome = *other.outcome;
    CHECK(row.verdict->step == outcome.step_time);
    CHECK(row.verdict->throughput == outcome.throughput);
    CHECK(row.verdict->bubble == outcome.bubble_fraction);
    CHECK(row.verdict->fit == outcome.fit);
    Bytes fullest{};
    for (const DeviceMemory& one : outcome.memory.device) fullest = std::max(fullest, one.peak);
    CHECK(row.verdict->fullest() == fullest);
    CHECK(row.why_not.empty());
  } catch (const UsageError& error) {
    CHECK_FALSE(row.verdict.has_value());
    CHECK(row.why_not == error.what());
  }
}

std::string table_of(const SweepSpec& spec, const std::vector<SweepRow>& rows) {
  std::string text = csv_header(spec);
  for (const SweepRow& row : rows) text += csv_line(spec, row);
  return text;
}

// Made of calls of another size.
std::string in_pieces(const SweepSpec& spec, std::int64_t piece) {
  SweepRunner runner(spec);
  std::string text = csv_header(spec);
  for (std::int64_t first = 0; first < spec.scenarios(); first += piece) {
    for (const SweepRow& row : runner.rows(first, std::min(piece, spec.scenarios() - first))) {
      text += csv_line(spec, row);
    }
  }
  return text;
}

SweepSpec small(std::int64_t chunk = 7) {
  SweepSpec spec = read_sweep(R"({"format": "stageline-sweep 1",
    "fixed": {"trace": "uniform:layers=8,forward=1ms,weights=1MB,output=1MB,stash=2MB"},
    "axes": {"schedule": "1f1b,zb_h1,gpipe", "devices": "2..5", "microbatches": "2..9"}})");
  spec.chunk = chunk;
  return spec;
}

}  // namespace

TEST_CASE("sweeps: a row is what compare says of the same settings") {
  const SweepSpec spec = wide();
  std::mt19937 random(22);
  SweepRunner runner(spec);
  int possible = 0;
  int refused = 0;
  for (int i = 0; i < 80; ++i) {
    const auto number =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(spec.scenarios()));
    const std::vector<SweepRow> rows = runner.rows(number, 1);
    REQUIRE(rows.size() == 1);
    check_row(spec, rows.front());
    (rows.front().verdict ? possible : refused) += 1;
  }
  CHECK(possible > 30);
  CHECK(refused > 5);
}

TEST_CASE("sweeps: language models and degrees of parallelism, too") {
  const SweepSpec spec = read_sweep(R"({"format": "stageline-sweep 1",
    "fixed": {"trace": "model:gpt@h100,layers=8,hidden=1024,heads=16,vocab=51200",
              "cluster": "h100x8", "microbatches": 8},
    "axes": {"tp": [1, 2, 3], "pp": [1, 2, 4], "zero": [0, 1], "microbatch_size": [1, 2],
             "recompute": ["none", "full"], "sequence_parallel": [false, true]}})");
  SweepRunner runner(spec);
  std::mt19937 random(7);
  for (int i = 0; i < 24; ++i) {
    const auto number =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(spec.scenarios()));
    check_row(spec, runner.rows(number, 1).front());
  }
}

TEST_CASE("sweeps: what is uncertain is what whatif says") {
  const std::string fixed =
      R"({"format": "stageline-sweep 1", "fixed": {"trace": "uniform:layers=8,forward=1ms",)"
      R"("devices": 4, "microbatches": 8, "jitter": "5%")";
  const SweepSpec drawn =
      read_sweep(fixed + R"(}, "axes": {"schedule": ["1f1b", "zb_h1"], "scenario": "3..60"}})");
  const SweepSpec spread = read_sweep(fixed + R"(, "scenarios": 100}, "axes": {"seed": [1, 2]}})");
  const std::vector<SweepRow> rows = run_scenarios(drawn, 0, drawn.scenarios(), 1);
  for (int s = 0; s < 2; ++s) {
    const SweepQuestion question = question_of(words_of(drawn, axis_values(drawn, s * 58)));
    ScenarioRequest request;
    request.perturbation = open_perturbation(question.perturbation);
    request.scenarios = 61;
    const std::vector<UncertainRow> known =
        under_uncertainty(question.request.setting, read_setting(question.request.setting),
                          question.request.setting.schedules, request);
    for (int k = 3; k <= 60; ++k) {
      const SweepRow& row = rows[static_cast<std::size_t>(s * 58 + k - 3)];
      CHECK(row.drawn == known.front().steps->step[static_cast<std::size_t>(k)]);
    }
  }
  CHECK(rows[0].drawn != rows[1].drawn);
  CHECK(in_pieces(drawn, 13) == table_of(drawn, rows));

  const std::vector<SweepRow> seeds = run_scenarios(spread, 0, 2, 1);
  for (const SweepRow& row : seeds) {
    const SweepQuestion question = question_of(words_of(spread, row.values));
    ScenarioRequest request;
    request.perturbation = open_perturbation(question.perturbation);
    request.scenarios = 100;
    const UncertainRow known =
        under_uncertainty(question.request.setting, read_setting(question.request.setting),
                          question.request.setting.schedules, request)
            .front();
    CHECK(row.distribution->mean == known.distribution.mean);
    CHECK(row.distribution->p95 == known.distribution.p95);
  }
  CHECK(seeds[0].distribution->mean != seeds[1].distribution->mean);
}

TEST_CASE("sweeps: an axis of jitter has the undisturbed step as its baseline") {
  const auto text = [](const char* scenarios) {
    return fmt::format(
        R"({{"format": "stageline-sweep 1", "fixed": {{"trace": "uniform:layers=8,forward=1ms",)"
        R"("devices": 4, "microbatches": 8, "scenarios": {}}}, "axes": {{"jitter": ["0%", "5%"]}}}})",
        scenarios);
  };
  const SweepSpec spec = read_sweep(text("50"));
  const std::vector<SweepRow> rows = run_scenarios(spec, 0, 2, 1);
  REQUIRE(rows[0].distribution);
  const Distribution& none = *rows[0].distribution;
  const Time step = rows[0].verdict->step;
  for (const Time time : {none.mean, none.p5, none.p50, none.p95, none.p99}) CHECK(time == step);
  CHECK(none.deviation == Time{});
  REQUIRE(rows[1].distribution);
  CHECK(rows[1].distribution->mean > step);
  CHECK_THROWS_WITH_AS(read_sweep(text("0")),
                       doctest::Contains("scenarios is a whole number from 1, not 0"), UsageError);
}

TEST_CASE("sweeps: the same rows on any number of threads") {
  const SweepSpec spec = wide();
  const std::string one = table_of(spec, run_scenarios(spec, 100, 90, 1));
  for (const int threads : {2, 7}) {
    CHECK(table_of(spec, run_scenarios(spec, 100, 90, threads)) == one);
  }
  CHECK_THROWS_WITH_AS(run_scenarios(spec, 0, spec.scenarios() + 1), doctest::Contains("scenarios"),
                       UsageError);
}

TEST_CASE("sweeps: threads and shards make the same bytes") {
  const Scratch scratch;
  const SweepSpec spec = small();
  const SweepFolder whole(scratch / "whole", spec);
  const SweepCount count = run_sweep(whole, {});
  CHECK(count.rows == spec.scenarios());
  CHECK(count.chunks == spec.chunks());
  whole.merge();
  const std::string table = read_file(whole.table_file());
  CHECK(gunzip(table, "") == table_of(spec, run_scenarios(spec, 0, spec.scenarios())));
  for (const int threads : {1, 2, 7}) {
    const SweepFolder parts(scratch / ("parts" + std::to_string(threads)), spec);
    for (const std::int64_t i : {3, 1, 2}) {
      SweepRun run;
      run.shard = {i, 3};
      run.threads = threads;
      run_sweep(parts, run);
      if (i != 2) {
        CHECK_THROWS_WITH_AS(parts.merge(), doctest::Contains("are missing"), UsageError);
      }
    }
    parts.merge();
    CHECK(read_file(parts.table_file()) == table);
    for (std::int64_t c = 0; c < spec.chunks(); ++c) {
      CHECK(read_file(parts.chunk_file(c)) == read_file(whole.chunk_file(c)));
    }
  }
}

TEST_CASE("sweeps: only what is missing is made again") {
  const Scratch scratch;
  const SweepFolder folder(scratch / "runs", small());
  run_sweep(folder, {});
  const std::string before = read_file(folder.chunk_file(2));
  fs::remove(folder.chunk_file(2));
  write_file(folder.chunk_file(3) + ".77.tmp", "half written");
  CHECK(folder.missing() == std::vector<std::int64_t>{2});
  const SweepCount again = run_sweep(SweepFolder(scratch / "runs", small()), {});
  CHECK(again.chunks == 1);
  CHECK(again.before == small().chunks() - 1);
  CHECK(read_file(folder.chunk_file(2)) == before);
  SweepFolder::open(scratch / "runs").merge();
  CHECK_FALSE(fs::exists(folder.chunk_file(3) + ".77.tmp"));

  write_file(folder.chunk_file(4), read_file(folder.chunk_file(4)).substr(0, 40));
  CHECK_THROWS_WITH_AS(folder.merge(), doctest::Contains("is damaged"), UsageError);
}

TEST_CASE("sweeps: one that is stopped leaves whole chunks alone") {
  const Scratch scratch;
  const SweepFolder folder(scratch / "runs", small(3));
  std::atomic<bool> stop{false};
  SweepRun run;
  run.threads = 2;
  run.stop = &stop;
  run.progress = [&](const SweepProgress& progress) { stop = progress.rows > 20; };
  const SweepCount first = run_sweep(folder, run);
  CHECK(first.stopped);
  CHECK(first.chunks > 0);
  CHECK(first.chunks < small(3).chunks());
  run_sweep(folder, {});
  folder.merge();
  CHECK(gunzip(read_file(folder.table_file()), "") ==
        table_of(small(3), run_scenarios(small(3), 0, small(3).scenarios())));
}

TEST_CASE("sweeps: folders of another question are refused") {
  const Scratch scratch;
  const std::string runs = scratch / "runs";
  run_sweep(SweepFolder(runs, small()), {});
  CHECK_THROWS_WITH_AS(SweepFolder(runs, small(8)), doctest::Contains("another sweep"), UsageError);
  CHECK_THROWS_WITH_AS(SweepFolder::open(scratch / "none"), doctest::Contains("no sweep.json"),
                       UsageError);
  write_file(scratch / "file", "");
  CHECK_THROWS_WITH_AS(SweepFolder(scratch / "file", small()), doctest::Contains("is not a folder"),
                       UsageError);

  std::string manifest = read_file(runs + "/sweep.json");
  const std::size_t hash = manifest.find("\"hash\": \"") + 9;
  manifest[hash] = manifest[hash] == '0' ? '1' : '0';
  std::string older = manifest;
  older.replace(older.find("\"version\": \"") + 12, 1, "9");
  write_file(runs + "/sweep.json", older);
  CHECK_THROWS_WITH_AS(SweepFolder(runs, small()), doctest::Contains("begun by Stageline 9"),
                       UsageError);
  write_file(runs + "/sweep.json", manifest);
  CHECK_THROWS_WITH_AS(SweepFolder(runs, small()), doctest::Contains("has changed since"),
                       UsageError);
  fs::remove(runs + "/sweep.json");
  CHECK_THROWS_WITH_AS(SweepFolder(runs, small()), doctest::Contains("without a sweep.json"),
                       UsageError);
}

TEST_CASE("sweeps: a trace that has changed since is another question") {
  const Scratch scratch;
  const std::string trace = scratch / "trace.json";
  fs::copy(std::string(getenv("STAGELINE_SOURCE")) + "/traces/data/cpu/resnet50-cpu.json", trace);
  SweepSpec spec = read_sweep(R"({"format": "stageline-sweep 1", "axes": {"devices": [2, 3]},
    "fixed": {"trace": ")" + trace +
                              "\"}}");
  run_sweep(SweepFolder(scratch / "runs", spec), {});
  CHECK_NOTHROW(SweepFolder(scratch / "runs", spec));
  write_file(trace, read_file(trace) + "\n");
  CHECK_THROWS_WITH_AS(SweepFolder(scratch / "runs", spec), doctest::Contains("has changed since"),
                       UsageError);
}

TEST_CASE("sweeps: files are found in spellings and behind variables") {
  const Scratch scratch;
  const std::string folder = scratch / "";
  for (const char* const name : {"a.json", "b.json", "config.json", "cluster.json"}) {
    write_file(folder + name, "{}");
  }
  SweepSpec spec;
  spec.fixed = {{"trace", folder + "{name}.json"}, {"cluster", folder + "cluster.json*{times}"}};
  spec.axes = {list_axis("name", {"a", "b", "c"}), parse_axis("times", "1..4")};
  CHECK(named_files(spec) ==
        std::vector<std::string>{folder + "a.json", folder + "b.json", folder + "cluster.json"});
  spec.fixed = {{"trace", "{name}"}, {"cluster", R"({"format": "x"})"}};
  spec.axes = {list_axis("name", {folder + "a.json", "c"})};
  CHECK(named_files(spec) == std::vector<std::string>{folder + "a.json"});
  spec.fixed = {{"devices", "4"}};
  spec.axes = {list_axis("trace", {"model:" + folder + "config.json@h100", "uniform:layers=8"})};
  CHECK(named_files(spec) == std::vector<std::string>{folder + "config.json"});
  spec.fixed = {{"trace", folder + "{i}.json"}};
  spec.axes = {parse_axis("i", "1..10001")};
  CHECK(texts_of(spec, spec.fixed.front().text).empty());
  spec.axes = {parse_axis("i", "1..10000")};
  CHECK(texts_of(spec, spec.fixed.front().text).size() == 10'000);
}

TEST_CASE("sweeps: files that are provided make the rows of those on the disk") {
  const Scratch scratch;
  const std::string trace = scratch / "trace.json";
  fs::copy(std::string(getenv("STAGELINE_SOURCE")) + "/traces/data/cpu/resnet50-cpu.json", trace);
  const SweepSpec spec = read_sweep(R"({"format": "stageline-sweep 1", "axes": {"devices": [2, 3]},
    "fixed": {"trace": ")" + trace + "\"}}");
  const auto hash_now = [&] { return sweep_hash(spec, read_named_files(spec)); };
  const std::string hash = hash_now();
  const auto steps = [&] {
    std::vector<std::int64_t> all;
    for (const SweepRow& row : run_scenarios(spec, 0, 2, 1)) {
      all.push_back(row.verdict ? row.verdict->step.count() : -1);
    }
    return all;
  };
  const std::vector<std::int64_t> expected = steps();
  CHECK(expected.front() > 0);
  const ProvidedFiles provided(ProvidedFiles::Contents{{trace, read_file(trace)}});
  fs::remove(trace);
  CHECK(hash_now() == hash);
  CHECK(steps() == expected);
}

TEST_CASE("sweeps: a file that changes while a sweep runs is read as it was") {
  const Scratch scratch;
  const std::string trace = scratch / "trace.json";
  const auto write_trace_of = [&](int milliseconds) {
    write_file(trace, write_trace({uniform_model(
                          fmt::format("layers=8,forward={}ms,weights=1MB", milliseconds))}));
  };
  write_trace_of(1);
  const SweepSpec spec = read_sweep(R"({"format": "stageline-sweep 1", "chunk": 1,
    "axes": {"devices": [2, 4, 8]}, "fixed": {"trace": ")" +
                                    trace + "\"}}");
  run_sweep(SweepFolder(scratch / "expected", spec), {});
  const SweepFolder folder(scratch / "runs", spec);
  write_trace_of(2);
  run_sweep(folder, {});
  for (std::int64_t chunk = 0; chunk < 3; ++chunk) {
    CHECK(folder.read_chunk(chunk) == SweepFolder::open(scratch / "expected").read_chunk(chunk));
  }
  CHECK_THROWS_WITH_AS(SweepFolder(scratch / "runs", spec), doctest::Contains("has changed since"),
                       UsageError);
}

TEST_CASE("sweeps: of two that begin in one folder at a time, the second is refused") {
  const Scratch scratch;
  const SweepFolder first(scratch / "runs", small());
  const SweepFolder second(scratch / "runs", small(8));
  const SweepFolder like_the_first(scratch / "runs", small());
  first.begin();
  CHECK_THROWS_WITH_AS(second.begin(), doctest::Contains("another sweep"), UsageError);
  CHECK_THROWS_WITH_AS(run_sweep(second, {}), doctest::Contains("another sweep"), UsageError);
  like_the_first.begin();
  CHECK(SweepFolder::open(scratch / "runs").hash() == first.hash());
  CHECK(std::distance(fs::directory_iterator(scratch / "runs"), fs::directory_iterator()) == 1);
}

TEST_CASE(
    "sweeps: an error that all scenarios share is bad input, and leaves the folder as it was") {
  const Scratch scratch;
  SweepSpec spec = read_sweep(R"({"format": "stageline-sweep 1", "axes": {"devices": "2..9"},
    "fixed": {"trace": "no-such-trace"}})");
  const SweepFolder folder(scratch / "runs", spec);
  CHECK_THROWS_WITH_AS(run_sweep(folder, {}), doctest::Contains("no-such-trace"), UsageError);
  CHECK(fs::is_empty(scratch / "runs"));
}

TEST_CASE("sweeps: values with commas and quotes are quoted in CSV") {
  SweepSpec spec = read_sweep(R"({"format": "stageline-sweep 1",
    "fixed": {"trace": "uniform:layers=8"}, "axes": {"link": ["1GB/s,5us"]}})");
  SweepRow row;
  row.number = 3;
  row.values = {"1GB/s,5us"};
  row.why_not = "say \"no\"";
  const std::string line = "3,\"1GB/s,5us\",,,,,,,,,,\"say \"\"no\"\"\"\n";
  CHECK(csv_line(spec, row) == line);
  const auto columns = read_table(spec, csv_header(spec) + line + line, "it");
  CHECK(columns.front().whole == std::vector<std::int64_t>{3, 3});
  CHECK(columns[1].text == std::vector<std::string>{"1GB/s,5us", "1GB/s,5us"});
  CHECK(columns.back().text.back() == "say \"no\"");
  CHECK(columns[2].name == "step_ps");
  CHECK(columns[2].there == std::vector<char>{0, 0});
  for (const std::string& bad :
       {std::string("number\n"), csv_header(spec) + "3,x\n",
        csv_header(spec) + line + line.substr(0, 12), csv_header(spec) + "x" + line}) {
    CHECK_THROWS_WITH_AS(read_table(spec, bad, "it"), "it is no table of this sweep", UsageError);
  }
}

TEST_CASE("sweeps: a spreadsheet computes no cell, and the reader finds the value as it was") {
  SweepSpec spec = read_sweep(R"({"format": "stageline-sweep 1",
    "fixed": {"trace": "uniform:layers=8"}, "axes": {"link": ["1GB/s", "2GB/s"]}})");
  const std::vector<std::pair<std::string, std::string>> cells{{"=1+2", "'=1+2"},
                                                               {"+cmd", "'+cmd"},
                                                               {"--devices 3", "'--devices 3"},
                                                               {"@SUM(A1)", "'@SUM(A1)"},
                                                               {"\t=1", "'\t=1"},
                                                               {"=A1,B1", "\"'=A1,B1\""},
                                                               {"-0.5", "-0.5"},
                                                               {"+3e9", "+3e9"},
                                                               {"-inf", "'-inf"},
                                                               {"'=1", "''=1"},
                                                               {"'a", "'a"},
                                                               {"''", "'''"},
                                                               {"a=1", "a=1"}};
  for (const auto& one : cells) {
    const std::string& text = one.first;
    const std::string& cell = one.second;
    CAPTURE(text);
    SweepRow row;
    row.number = 1;
    row.values = {text};
    row.why_not = text;
    const std::string line = "1," + cell + ",,,,,,,,,," + cell + "\n";
    CHECK(csv_line(spec, row) == line);
    const auto columns = read_table(spec, csv_header(spec) + line, "it");
    CHECK(columns[1].text == std::vector<std::string>{text});
    CHECK(columns.back().text == std::vector<std::string>{text});
  }
}

TEST_CASE("sweeps: the cells of an axis are numbers where all its values are") {
  const SweepSpec spec = read_sweep(R"({"format": "stageline-sweep 1", "draws": 2,
    "fixed": {"trace": "uniform:layers=8"},
    "axes": {"devices": "2..4", "memory": ["1GB", "2GB"], "jitter": [0.05, 0.1, 1],
             "microbatches": [4, 8], "link": "1GB/s..9GB/s:random"}})");
  const std::vector<SweepColumn> columns = typed_columns(spec);
  const CellForm forms[] = {CellForm::whole, CellForm::whole, CellForm::text,  CellForm::real,
                            CellForm::whole, CellForm::text,  CellForm::whole, CellForm::whole,
                            CellForm::whole, CellForm::real};
  for (std::size_t i = 0; i < std::size(forms); ++i) {
    CAPTURE(columns[i].name);
    CHECK(columns[i].form == forms[i]);
  }
}

TEST_CASE("sweeps: shards are I/N") {
  CHECK(parse_shard("2/8", "--shard").index == 2);
  for (const char* const bad : {"0/4", "5/4", "1", "1/", "/4", "a/b", "1/4x", "-1/4"}) {
    CHECK_THROWS_AS(parse_shard(bad, "--shard"), UsageError);
  }
}

}  // namespace stageline::rows_tests
