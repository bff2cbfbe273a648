// Is an export of Nsight Systems read as PyTorch's profile of the same events? The databases are
// made here, by SQLite itself, with the tables and columns of the schema reference.
#include "traces/nsight/nsight.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/traces/kineto_runs.hpp"
#include "traces/kineto/names.hpp"

namespace stageline::nsight_tests {
namespace {

using profiles::Form;
using profiles::profile_text;
using profiles::Range;

constexpr std::int64_t base = 1'790'857'026'000'000'000;
constexpr std::int64_t ms = 1'000'000;

struct Export {
  std::map<std::int64_t, std::vector<Range>> processes;  // by number; the first is on device 0
  bool texts = true;                                     // names of ranges by number
};

class ExportWriter {
 public:
  ExportWriter() {
    sqlite3_open(":memory:", &database_);
    run("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);"
        "CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,"
        " rangeId INTEGER, text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,"
        " globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,"
        " deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,"
        " demangledName INTEGER, shortName INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL,"
        " deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,"
        " bytes INTEGER, copyKind INTEGER);"
        "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
        "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);"
        "CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);"
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100');"
        "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', 'node1');");
    run(fmt::format("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES ({});", base));
  }
  ExportWriter(const ExportWriter&) = delete;
  ExportWriter& operator=(const ExportWriter&) = delete;
  ~ExportWriter() { sqlite3_close(database_); }

  void run(const std::string& text) {
    REQUIRE(sqlite3_exec(database_, text.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  }

  void add(std::int64_t process, int device, const Range& range, bool texts) {
    const std::int64_t global = (std::int64_t{3} << 48) + process * (1 << 24);
    const int name = id_of(range.name);
    if (range.category == "user_annotation") {
      run(fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, NULL, {}, {}, {}, 0);",
                      range.start, range.end, texts ? "NULL" : "'" + range.name + "'",
                      global + range.tid, texts ? std::to_string(name) : "NULL"));
    } else if (range.category == "cuda_runtime") {
      run(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, {}, {}, {});",
                      range.start, range.end, global + range.tid, range.correlation, name));
    } else if (range.category == "kernel") {
      run(fmt::format(
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, {}, {}, {}, {}, {}, {});",
          range.start, range.end, device, range.tid, range.correlation, global, name, name));
    } else {
      run(fmt::format(
          "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({}, {}, {}, {}, {}, {}, 8, 1);",
          range.start, range.end, device, range.tid, range.correlation, global));
    }
  }

  std::string bytes() {
    sqlite3_int64 size = 0;
    unsigned char* const data = sqlite3_serialize(database_, "main", &size, 0);
    std::string text(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
    sqlite3_free(data);
    return text;
  }

 private:
  int id_of(const std::string& name) {
    const auto [found, fresh] = ids_.emplace(name, static_cast<int>(ids_.size()) + 1);
    if (fresh) run(fmt::format("INSERT INTO StringIds VALUES ({}, '{}');", found->second, name));
    return found->second;
  }

  sqlite3* database_ = nullptr;
  std::map<std::string, int> ids_;
};

std::string bytes_of(const Export& made) {
  ExportWriter writer;
  int device = 0;
  for (const auto& [process, ranges] : made.processes) {
    for (const Range& range : ranges) writer.add(process, device, range, made.texts);
    ++device;
  }
  return writer.bytes();
}

Range launched(const std::string& name, std::int64_t start, std::int64_t end, int correlation,
               const std::string& category = "kernel") {
  Range range{name, start, end, category, 7};
  range.correlation = correlation;
  return range;
}

// Two micro-batches of one stage: forwards of 2 ms, backwards of 4 ms, and messages of NCCL.
std::vector<Range> ranges_of(int stage) {
  std::vector<Range> ranges;
  std::int64_t now = 10 * ms;
  int correlation = 1;
  for (const char kind : {'F', 'B'}) {
    for (int microbatch = 0; microbatch < 2; ++microbatch) {
      const std::int64_t work = kind == 'F' ? 2 * ms : 4 * ms;
      ranges.push_back(
          {fmt::format("{} {}.{}", kind == 'F' ? "fw" : "bw", stage, microbatch), now, now + ms});
      ranges.push_back(
          launched("cudaLaunchKernel", now + 1000, now + 3000, correlation, "cuda_runtime"));
      ranges.back().tid = 1;
      ranges.push_back(
          launched("sm90_xmma_gemm_bf16", now + 4000, now + 4000 + work, correlation++));
      ranges.push_back(
          launched("cudaMemcpyAsync", now + 5000, now + 6000, correlation, "cuda_runtime"));
      ranges.back().tid = 1;
      ranges.push_back(launched("gpu_memcpy", now + 7000, now + 8000, correlation++, "gpu_memcpy"));
      now += 5 * ms;
    }
  }
  return ranges;
}

RangeNames own_names() {
  return read_range_names(R"({"format": "stageline-names 1", "rules": [
  {"pattern": "^fw (?<stage>\\d+)\\.(?<microbatch>\\d+)$", "is": "forward"},
  {"pattern": "^bw (?<stage>\\d+)\\.(?<microbatch>\\d+)$", "is": "backward"}]})",
                          "names.json");
}

void check_same(const KinetoRun& a, const KinetoRun& b) {
  CHECK(a.source == RangeSource::gpu);
  CHECK(a.source == b.source);
  CHECK(a.program.ops == b.program.ops);
  REQUIRE(a.timeline.lanes.size() == b.timeline.lanes.size());
  for (std::size_t device = 0; device < a.timeline.lanes.size(); ++device) {
    for (std::size_t lane = 0; lane < a.timeline.lanes[device].size(); ++lane) {
      CHECK(a.timeline.lanes[device][lane] == b.timeline.lanes[device][lane]);
    }
  }
}

TEST_CASE("an export of Nsight Systems is read as the profile of the same events") {
  const std::map<std::int64_t, std::vector<Range>> processes{{100, ranges_of(0)},
                                                             {200, ranges_of(1)}};
  Form form;
  form.device = "NVIDIA H100";
  form.host = "node1";
  const RangeNames names = own_names();
  const std::vector<NamedText> two{{"0.json", profile_text(ranges_of(0), form)},
                                   {"1.json", profile_text(ranges_of(1), form)}};
  const KinetoRun as_profile = read_kineto(two, &names);
  for (const bool texts : {false, true}) {
    const std::string bytes = bytes_of({processes, texts});
    REQUIRE(is_sqlite(bytes));
    const std::vector<NamedText> found = nsight_profiles(bytes, "a.sqlite");
    REQUIRE(found.size() == 2);
    CHECK(found[0].file == "a.sqlite, process 100");
    const KinetoRun run = read_kineto(found, &names);
    CHECK(run.ranks.size() == 2);
    const std::map<Op, Span> spans = profiles::spans_of(run.timeline);
    const auto length = [&](const char* op) {
      const Span& span = spans.at(*parse_op(op));
      return profiles::nanoseconds(span.end - span.start);
    };
    CHECK(length("0F0") == 2 * ms);
    CHECK(length("1B1") == 4 * ms);
    check_same(run, as_profile);
  }
}

TEST_CASE("one process keeps the file's name, and processes without ranges are left out") {
  std::vector<Range> other{launched("cudaLaunchKernel", 10, 20, 1, "cuda_runtime"),
                           launched("a_kernel", 30, 40, 1)};
  const std::vector<NamedText> profiles =
      nsight_profiles(bytes_of({{{7, other}, {9, ranges_of(0)}}}), "a.sqlite");
  REQUIRE(profiles.size() == 1);
  CHECK(profiles[0].file == "a.sqlite");
  CHECK(profiles[0].text.find("a_kernel") == std::string::npos);
}

TEST_CASE("ranges that NCCL writes itself are none of the program's") {
  std::vector<Range> ranges = ranges_of(0);
  ranges.push_back({"ncclAllReduce", 11 * ms, 12 * ms});
  const std::vector<NamedText> profiles = nsight_profiles(bytes_of({{{9, ranges}}}), "a.sqlite");
  CHECK(profiles[0].text.find("ncclAllReduce") == std::string::npos);
}

std::string nsight_error(const std::string& bytes) {
  try {
    nsight_profiles(bytes, "a.sqlite");
  } catch (const TraceError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("device memory is what processes allocated and did not free, at the most") {
  const std::map<std::int64_t, std::vector<Range>> processes{{100, ranges_of(0)},
                                                             {200, ranges_of(1)}};
  ExportWriter writer;
  int device = 0;
  for (const auto& [process, ranges] : processes) {
    for (const Range& range : ranges) writer.add(process, device, range, false);
    ++device;
  }
  writer.run(
      "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INTEGER,"
      " bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER);");
  const auto allocate = [&](std::int64_t at, std::int64_t process, int on, std::int64_t bytes,
                            int kind, int freed) {
    writer.run(
        fmt::format("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES ({}, {}, {}, {}, {}, {});", at,
                    (std::int64_t{3} << 48) + process * (1 << 24), on, bytes, kind, freed));
  };
  allocate(1, 100, 0, 3'000'000'000, 2, 0);
  allocate(2, 100, 0, 9'000'000'000, 1, 0);  // pinned memory of the host
  allocate(3, 200, 1, 2'000'000'000, 2, 0);
  allocate(4, 200, 1, 1'500'000'000, 2, 0);
  allocate(5, 200, 1, 1'500'000'000, 2, 1);
  allocate(6, 200, 1, 1'000'000'000, 2, 0);
  const RangeNames names = own_names();
  const KinetoRun run = read_kineto(nsight_profiles(writer.bytes(), "a.sqlite"), &names);
  const std::string note = "device memory: 3.500 GB reserved at most, on rank 1";
  CHECK(std::find(run.notes.begin(), run.notes.end(), note) != run.notes.end());
  allocate(7, 100, 0, -1, 2, 0);
  CHECK(nsight_error(writer.bytes()).find("of -1 bytes, which no device has") != std::string::npos);
}

TEST_CASE("device memory of PyTorch's own events is told, the host's is not") {
  std::string text = profile_text(ranges_of(0), {});
  const std::size_t at = text.find("\"traceEvents\"");
  text.insert(text.find('[', at) + 1, R"(
{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1.5, "args":
 {"Total Allocated": 2000000000, "Total Reserved": 3000000000, "Device Type": 1, "Device Id": 0}},
{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2.5, "args":
 {"Total Allocated": 7000000000, "Device Type": 0, "Device Id": -1}},)");
  const RangeNames names = own_names();
  const KinetoRun run = read_kineto({{"0.json", text}}, &names);
  const std::string note = "device memory: 2.000 GB allocated and 3.000 GB reserved at most";
  CHECK(std::find(run.notes.begin(), run.notes.end(), note) != run.notes.end());
}

TEST_CASE("what is no export, or has no ranges, is refused in one sentence") {
  const std::string good = bytes_of({{{9, ranges_of(0)}}});
  CHECK(nsight_error(bytes_of({})).find("no NVTX range") != std::string::npos);
  CHECK(nsight_error(good.substr(0, 100)).starts_with("a.sqlite: "));
  std::string damaged = good;
  for (std::size_t i = 200; i < damaged.size(); i += 7) damaged[i] = static_cast<char>(i);
  CHECK_FALSE(nsight_error(damaged).empty());
  ExportWriter writer;
  writer.run("DROP TABLE NVTX_EVENTS;");
  CHECK(nsight_error(writer.bytes()).find("NVTX_EVENTS") != std::string::npos);
  ExportWriter backwards;
  backwards.add(9, 0, {"PP:0F0", 20, 10}, false);
  CHECK(nsight_error(backwards.bytes()).find("no stretch of time") != std::string::npos);
}

}  // namespace
}  // namespace stageline::nsight_tests
