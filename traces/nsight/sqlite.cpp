// Reads the tables of Nsight Systems' SQLite export.
//
//   NVTX_EVENTS                    push-pop and start-end ranges, by thread; text or textId
//   CUPTI_ACTIVITY_KIND_RUNTIME    the calls that launch, by correlationId
//   CUPTI_ACTIVITY_KIND_KERNEL     and _MEMCPY, _MEMSET: what the device did
//   CUDA_GPU_MEMORY_USAGE_EVENTS   what processes allocated of a device and freed
//   StringIds                      texts by number
//
// Times are nanoseconds since the session began (TARGET_INFO_SESSION_START_TIME). A globalTid holds
// the process in bits 24 to 47 and the thread in the lower ones; a globalPid likewise. Source:
// NVIDIA Nsight Systems User Guide, "SQLite Schema Reference" (2024.5, read 2026-11-30).
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/base/errors.hpp"
#include "traces/nsight/nsight.hpp"

namespace stageline {
namespace {

constexpr std::string_view magic{"SQLite format 3\0", 16};
constexpr std::int64_t process_bits = 1 << 24;  // of a globalTid
constexpr int push_pop_range = 59;              // ENUM_NSYS_EVENT_TYPE
constexpr int start_end_range = 60;
constexpr std::size_t longest_name = 1000;  // bytes
constexpr std::int64_t most_allocated = std::int64_t{1} << 50;
constexpr std::size_t usual_event_length = 128;  // as text

using Database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;
using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

struct NsightEvent {
  std::int64_t start = 0;  // ns
  std::int64_t end = 0;
  std::string_view category;
  const std::string* name = nullptr;  // in JSON's quotes
  std::int64_t thread = 0;
  std::int64_t correlation = 0;  // 0: none
  std::int64_t held = -1;        // bytes of the device behind it; -1: it is no event of memory
};

struct NsightProcess {
  std::vector<NsightEvent> events;
  std::int64_t device = 0;  // the first that it has work on
  bool ranges = false;
  bool kernels = false;
};

std::string in_json(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// A name that others write in the same process, around calls of theirs: NCCL's are its kernels.
bool of_library(std::string_view name) { return name.starts_with("nccl"); }

class NsightReader {
 public:
  NsightReader(const std::string& bytes, const std::string& file)
      : bytes_(bytes), file_(file), database_(nullptr, &sqlite3_close) {
    open();
  }

  std::map<std::int64_t, NsightProcess> processes() {
    if (!has_table("NVTX_EVENTS")) {
      refuse(
          "it has no table NVTX_EVENTS: Nsight Systems writes it with nsys export --type sqlite where "
          "the program has NVTX ranges (nsys profile --trace cuda,nvtx)");
    }
    read_texts();
    read_ranges();
    read_calls();
    read_device_work("CUPTI_ACTIVITY_KIND_KERNEL", "kernel");
    read_device_work("CUPTI_ACTIVITY_KIND_MEMCPY", "gpu_memcpy");
    read_device_work("CUPTI_ACTIVITY_KIND_MEMSET", "gpu_memset");
    read_memory();
    return std::move(processes_);
  }

  // 0: the file does not say.
  std::int64_t began() const {
    return number_of("TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "");
  }
  std::string device() const { return text_of("TARGET_INFO_GPU", "name", ""); }
  std::string host() const {
    return text_of("TARGET_INFO_SYSTEM_ENV", "value", " WHERE name = 'Hostname'");
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw TraceError(file_, "", message);
  }
  [[noreturn]] void refuse_database() const {
    refuse(fmt::format("this SQLite database cannot be read: {}", sqlite3_errmsg(database_.get())));
  }

  void open() {
    sqlite3* opened = nullptr;
    const int result = sqlite3_open(":memory:", &opened);
    database_.reset(opened);
    if (result != SQLITE_OK) refuse_database();
    // Read alone: SQLite never writes to what it is given so.
    auto* const data =
        reinterpret_cast<unsigned char*>(const_cast<char*>(bytes_.data()));  // NOLINT
    const auto size = static_cast<sqlite3_int64>(bytes_.size());
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);       // NOLINT
    sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);  // NOLINT
    if (sqlite3_deserialize(opened, "main", data, size, size, SQLITE_DESERIALIZE_READONLY) !=
        SQLITE_OK) {
      refuse_database();
    }
  }

  Statement prepared(const std::string& query) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_.get(), query.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      refuse_database();
    }
    return {statement, &sqlite3_finalize};
  }

  // Whether there is one more row.
  bool step(const Statement& statement) const {
    const int result = sqlite3_step(statement.get());
    if (result != SQLITE_ROW && result != SQLITE_DONE) refuse_database();
    return result == SQLITE_ROW;
  }

  static std::string text_at(const Statement& statement, int column) {
    const unsigned char* const text = sqlite3_column_text(statement.get(), column);
    const auto length = static_cast<std::size_t>(sqlite3_column_bytes(statement.get(), column));
    return text == nullptr ? ""
                           : std::string(reinterpret_cast<const char*>(text),  // NOLINT
                                         std::min(length, longest_name));
  }
  static std::int64_t number_at(const Statement& statement, int column) {
    return sqlite3_column_int64(statement.get(), column);
  }

  bool has_table(const std::string& table) const {
    return step(prepared(
        fmt::format("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '{}'", table)));
  }
  bool has_column(const std::string& table, const std::string& column) const {
    return step(prepared(
        fmt::format("SELECT 1 FROM pragma_table_info('{}') WHERE name = '{}'", table, column)));
  }
  std::string text_of(const std::string& table, const std::string& column,
                      const std::string& where) const {
    if (!has_table(table) || !has_column(table, column)) return "";
    const Statement statement =
        prepared(fmt::format("SELECT {} FROM {}{} LIMIT 1", column, table, where));
    return step(statement) ? text_at(statement, 0) : "";
  }
  std::int64_t number_of(const std::string& table, const std::string& column,
                         const std::string& where) const {
    if (!has_table(table) || !has_column(table, column)) return 0;
    const Statement statement =
        prepared(fmt::format("SELECT {} FROM {}{} LIMIT 1", column, table, where));
    return step(statement) ? number_at(statement, 0) : 0;
  }

  void read_texts() {
    if (!has_table("StringIds")) return;
    const Statement statement = prepared("SELECT id, value FROM StringIds");
    while (step(statement)) texts_.emplace(number_at(statement, 0), text_at(statement, 1));
  }

  std::string text_called(std::int64_t id) const {
    const auto found = texts_.find(id);
    return found == texts_.end() ? fmt::format("text {}", id) : found->second;
  }

  // Held once, however many events have it.
  const std::string* name_of(const std::string& text) {
    return &*names_.insert(in_json(text)).first;
  }
  const std::string* name_called(std::int64_t id) {
    const auto [found, fresh] = name_of_id_.try_emplace(id, nullptr);
    if (fresh) found->second = name_of(text_called(id));
    return found->second;
  }

  NsightProcess& process_of(std::int64_t global) {
    return processes_[global / process_bits % process_bits];
  }

  void add(NsightProcess& process, const NsightEvent& event) const {
    if (event.start < 0 || event.end < event.start) {
      refuse(fmt::format("{} is from {} to {} ns, which is no stretch of time", *event.name,
                         event.start, event.end));
    }
    process.events.push_back(event);
  }

  // A range without an end was open when the session ended.
  void read_ranges() {
    const std::string text = has_column("NVTX_EVENTS", "textId") ? "textId" : "NULL";
    const Statement statement = prepared(fmt::format(
        "SELECT start, end, text, {}, globalTid FROM NVTX_EVENTS WHERE eventType IN ({}, {}) AND end "
        "IS NOT NULL AND globalTid IS NOT NULL ORDER BY start, end DESC",
        text, push_pop_range, start_end_range));
    while (step(statement)) {
      const bool own = sqlite3_column_type(statement.get(), 2) != SQLITE_NULL;
      const std::string name = own ? text_at(statement, 2) : text_called(number_at(statement, 3));
      if (of_library(name)) continue;
      const std::int64_t thread = number_at(statement, 4);
      NsightProcess& process = process_of(thread);
      process.ranges = true;
      add(process, {number_at(statement, 0), number_at(statement, 1), "user_annotation",
                    name_of(name), thread % process_bits, 0});
    }
  }

  void read_calls() {
    if (!has_table("CUPTI_ACTIVITY_KIND_RUNTIME")) return;
    const Statement statement = prepared(
        "SELECT start, end, nameId, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE "
        "end IS NOT NULL ORDER BY start");
    while (step(statement)) {
      const std::int64_t thread = number_at(statement, 3);
      add(process_of(thread),
          {number_at(statement, 0), number_at(statement, 1), "cuda_runtime",
           name_called(number_at(statement, 2)), thread % process_bits, number_at(statement, 4)});
    }
  }

  void read_device_work(const std::string& table, std::string_view category) {
    if (!has_table(table)) return;
    const bool kernel = category == "kernel";
    const std::string* const copies = name_of(std::string(category));
    if (!has_column(table, "globalPid")) {
      refuse(
          fmt::format("its table {} does not say which process launched what (globalPid); export "
                      "it with Nsight Systems 2020.3 or later",
                      table));
    }
    const Statement statement = prepared(fmt::format(
        "SELECT start, end, {}, globalPid, correlationId, deviceId, streamId FROM {} ORDER BY start",
        kernel ? "shortName" : "NULL", table));
    while (step(statement)) {
      NsightProcess& process = process_of(number_at(statement, 3));
      const std::int64_t device = number_at(statement, 5);
      if (kernel) process.device = process.kernels ? std::min(process.device, device) : device;
      process.kernels = process.kernels || kernel;
      add(process, {number_at(statement, 0), number_at(statement, 1), category,
                    kernel ? name_called(number_at(statement, 2)) : copies, number_at(statement, 6),
                    number_at(statement, 4)});
    }
  }

  // Allocations of device memory (memKind 2 and 3, where the column is there) by process and
  // device.
  void read_memory() {
    const std::string table = "CUDA_GPU_MEMORY_USAGE_EVENTS";
    if (!has_table(table) || !has_column(table, "globalPid")) return;
    const std::string where = has_column(table, "memKind") ? " WHERE memKind IN (2, 3)" : "";
    const Statement statement = prepared(fmt::format(
        "SELECT start, globalPid, deviceId, bytes, memoryOperationType FROM {}{} ORDER BY "
        "start, memoryOperationType DESC",
        table, where));
    const std::string* const name = name_of("[memory]");
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> held;
    while (step(statement)) {
      const std::int64_t process = number_at(statement, 1);
      const std::int64_t bytes = number_at(statement, 3);
      if (bytes < 0 || bytes > most_allocated) {
        refuse(fmt::format("an event of {} is of {} bytes, which no device has", table, bytes));
      }
      std::int64_t& now = held[{process, number_at(statement, 2)}];
      now = number_at(statement, 4) == 0 ? std::min(now + bytes, most_allocated)
                                         : std::max<std::int64_t>(now - bytes, 0);
      const std::int64_t start = number_at(statement, 0);
      add(process_of(process), {start, start, "cpu_instant_event", name, 0, 0, now});
    }
  }

  const std::string& bytes_;
  const std::string& file_;
  Database database_;
  std::unordered_map<std::int64_t, std::string> texts_;
  std::set<std::string> names_;
  std::unordered_map<std::int64_t, const std::string*> name_of_id_;
  std::map<std::int64_t, NsightProcess> processes_;
};

std::string kineto_text(const NsightReader& reader, std::int64_t number,
                        const NsightProcess& process) {
  std::string text = "{\"schemaVersion\": 1, \"deviceProperties\": [";
  if (process.kernels) {
    text += fmt::format("{{\"id\": {}, \"name\": {}}}", process.device, in_json(reader.device()));
  }
  text += "],\n";
  if (const std::string host = reader.host(); !host.empty()) {
    text += fmt::format("\"host_name\": {},\n", in_json(host));
  }
  if (const std::int64_t began = reader.began(); began > 0) {
    text += fmt::format("\"baseTimeNanoseconds\": {},\n", began);
  }
  text += "\"traceEvents\": [";
  text.reserve(text.size() + process.events.size() * usual_event_length);
  const char* between = "\n";
  for (const NsightEvent& event : process.events) {
    if (event.held >= 0) {
      fmt::format_to(std::back_inserter(text),
                     R"({}{{"ph":"i","cat":"{}","name":{},"pid":{},"tid":{},"ts":{}.{:03},)"
                     R"("args":{{"Device Type":1,"Total Reserved":{}}}}})",
                     between, event.category, *event.name, number, event.thread, event.start / 1000,
                     event.start % 1000, event.held);
      between = ",\n";
      continue;
    }
    const std::int64_t length = event.end - event.start;
    fmt::format_to(std::back_inserter(text),
                   R"({}{{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{}.{:03},)"
                   R"("dur":{}.{:03},"args":{{)",
                   between, event.category, *event.name, number, event.thread, event.start / 1000,
                   event.start % 1000, length / 1000, length % 1000);
    if (event.correlation != 0) {
      fmt::format_to(std::back_inserter(text), R"("correlation":{})", event.correlation);
    }
    text += "}}";
    between = ",\n";
  }
  text += "\n]}\n";
  return text;
}

}  // namespace

bool is_sqlite(std::string_view bytes) { return bytes.starts_with(magic); }

std::vector<NamedText> nsight_profiles(const std::string& bytes, const std::string& file) {
  NsightReader reader(bytes, file);
  std::map<std::int64_t, NsightProcess> processes = reader.processes();
  const bool kernels = std::any_of(processes.begin(), processes.end(), [](const auto& one) {
    return one.second.kernels && one.second.ranges;
  });
  std::erase_if(processes, [&](const auto& one) {
    return !one.second.ranges || (kernels && !one.second.kernels);
  });
  if (processes.empty()) {
    throw TraceError(file, "",
                     "it has no NVTX range with a beginning and an end, by which forwards and "
                     "backwards are known");
  }
  std::vector<std::int64_t> order;
  for (const auto& [number, process] : processes) order.push_back(number);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return std::tuple(processes.at(a).device, a) < std::tuple(processes.at(b).device, b);
  });
  std::vector<NamedText> profiles;
  for (const std::int64_t number : order) {
    const std::string name = order.size() == 1 ? file : fmt::format("{}, process {}", file, number);
    profiles.push_back({name, kineto_text(reader, number, processes.at(number))});
    processes.at(number).events.clear();  // the text has them
    processes.at(number).events.shrink_to_fit();
  }
  return profiles;
}

}  // namespace stageline
