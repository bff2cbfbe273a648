// Reads the output of nccl-tests (NVIDIA/nccl-tests, src/common.cu), from 2.0 to 2.18, and of
// rccl-tests, which prints the same.
#include "traces/nccl/tests_log.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "sim/bus_bandwidth.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

using Test = NcclTest;
constexpr std::array<Test, 12> tests{{
    {"all_reduce_perf", CollectiveKind::all_reduce},
    {"reduce_scatter_perf", CollectiveKind::reduce_scatter},
    {"all_gather_perf", CollectiveKind::all_gather},
    {"alltoall_perf", CollectiveKind::all_to_all},
    {"broadcast_perf", CollectiveKind::broadcast},
    {"reduce_perf", std::nullopt},
    {"gather_perf", std::nullopt},
    {"scatter_perf", std::nullopt},
    {"sendrecv_perf", std::nullopt},
    {"hypercube_perf", std::nullopt},
    {"alltoallv_perf", std::nullopt},
    {"all_reduce_bias_perf", std::nullopt},
}};

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t end = line.find_first_of(" \t\r");
    words.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return words;
    line.remove_prefix(end);
  }
}

std::string_view without_spaces(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

// Behind the label that a launcher puts before each line; the line itself where there is none.
//
//   mpirun --tag-output   [1,0]<stdout>:# nThread 1 …     mpirun --timestamp-output likewise
//   srun --label           0: # nThread 1 …
//   kubectl logs --prefix [pod/x/container] # nThread 1 …
//   docker, kubectl       2026-02-03T04:05:06.7Z # nThread 1 …      name  | # nThread 1 …
std::string_view without_label(std::string_view line) {
  const std::string_view text = without_spaces(line);
  if (text.empty()) return line;
  const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::string_view word = text.substr(0, end);
  if (text.front() == '[') {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return line;
    std::string_view rest = text.substr(close + 1);
    const std::size_t tag = rest.find(">:");
    if (rest.substr(0, 4) == "<std" && tag < 64) return rest.substr(tag + 2);
    if (rest.substr(0, 1) == ":") rest.remove_prefix(1);
    return rest;
  }
  const std::string_view behind = text.substr(end);
  if (word.size() > 1 && word.back() == ':' &&
      parse_number<std::int64_t>(word.substr(0, word.size() - 1))) {
    return behind;
  }
  if (word.size() > 18 && word[4] == '-' && word[10] == 'T' && word[13] == ':') return behind;
  const std::string_view next = without_spaces(behind);
  return next.substr(0, 2) == "| " ? next.substr(2) : line;
}

// A launcher's label may hold another one.
std::string_view without_labels(std::string_view line) {
  constexpr int most = 4;
  for (int i = 0; i < most; ++i) {
    const std::string_view rest = without_label(line);
    if (rest.size() == line.size()) break;
    line = rest;
  }
  return line;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// Behind a '#', which people lose when they paste a log.
std::string_view comment_of(std::string_view line) {
  const std::size_t begin = line.find_first_not_of("# \t");
  return begin == std::string_view::npos ? std::string_view{} : line.substr(begin);
}

// The value of a word that is a number.
double number_of(std::string_view word) { return *parse_number<double>(word); }

// Half a unit of the last digit that is printed: 0.005 of "15.43".
double rounding_of(std::string_view word) {
  const std::size_t point = word.find('.');
  const std::size_t decimals = point == std::string_view::npos ? 0 : word.size() - point - 1;
  return 0.5 * std::pow(10.0, -static_cast<double>(decimals));
}

// The columns of the table, as its header has them.
struct TableColumns {
  std::size_t count = 0;
  std::size_t time = 0;  // out of place, as all here
  std::size_t algorithm_bandwidth = 0;
  std::size_t bus_bandwidth = 0;
  std::vector<std::size_t> wrong;  // numbers of wrong values
};

// Bus over algorithm bandwidth.
struct BandwidthRatio {
  double ratio = 0;
  double rounding = 0;  // by the digits that are printed
  int line = 0;
};

// A run as the log has it.
struct LoggedRun {
  int begun = 0;               // its first line
  const Test* test = nullptr;  // by its title, or the command before it
  NcclTestsRun run;
  std::set<std::string> hosts;
  std::set<int> numbers;  // of the ranks that are listed, of all groups
  int last_device = 0;    // of any machine
  bool other_groups = false;
  TableColumns columns;
  std::vector<BandwidthRatio> ratios;
};

class LogReader {
 public:
  explicit LogReader(const std::string& file) : file_(file) {}

  void read(std::string_view line);
  /// At the end of the text.
  NcclTestsLog runs(std::optional<CollectiveKind> kind);

 private:
  [[noreturn]] void refuse(int line, const std::string& message) const {
    throw TraceError(file_, fmt::format("line {}", line), message);
  }
  [[noreturn]] void refuse_cut() const;

  void read_comment(std::string_view comment);
  void begin();
  void end();
  void add_rank(const std::vector<std::string_view>& words);
  void settle_ranks();
  void read_header(const std::vector<std::string_view>& words);
  void add_row(const std::vector<std::string_view>& words);
  void check_wrong(std::string_view wrong, std::string_view size) const;
  void check_time(std::string_view size, std::string_view time, std::string_view bandwidth) const;
  void check_kind(const LoggedRun& logged) const;

  const std::string& file_;
  int line_ = 0;
  const Test* said_ = nullptr;  // by the last line that names a test
  std::optional<LoggedRun> open_;
  std::vector<LoggedRun> runs_;
};

void LogReader::refuse_cut() const {
  const std::size_t rows = open_->run.rows.size();
  refuse(line_, fmt::format("the run that begins at line {} is cut off {}: \"# Avg bus bandwidth\" "
                            "is missing; give the whole output",
                            open_->begun,
                            rows == 0   ? std::string("before its first row")
                            : rows == 1 ? std::string("behind its first row")
                                        : fmt::format("behind {} rows", rows)));
}

void LogReader::read(std::string_view line) {
  ++line_;
  line = without_labels(line);
  const std::string_view comment = comment_of(line);
  if (const Test* const test = nccl_test_in(line)) {
    const bool title = starts_with(comment, "Collective test starting");
    if (starts_with(comment, "Collective test concluded") && !open_ && !runs_.empty()) {
      runs_.back().test = test;
    } else if (!open_) {
      said_ = test;
    } else if (open_->test == nullptr || title) {
      open_->test = test;
    }
  }
  const std::vector<std::string_view> words = words_of(line);
  const bool row = open_ && open_->columns.count > 0 && !words.empty() &&
                   parse_number<std::int64_t>(words[0]) &&
                   (words.size() == 1 || parse_number<std::int64_t>(words[1]));
  if (row) {
    add_row(words);
  } else {
    read_comment(comment);
  }
}

void LogReader::read_comment(std::string_view comment) {
  const std::vector<std::string_view> words = words_of(comment);
  if (starts_with(comment, "nThread ")) begin();
  if (words.size() > 4 && words[0] == "size" && words[1] == "count") read_header(words);
  if (!open_) return;
  if (words.size() > 4 && words[0] == "Rank") add_rank(words);
  if (starts_with(comment, "NCCL version ") || starts_with(comment, "RCCL version ")) {
    open_->run.version = std::string(comment.substr(0, comment.find_last_not_of(" \r") + 1));
  }
  // "Out of bounds values : 0 OK"
  if (starts_with(comment, "Out of bounds values") && words.back() == "FAILED") {
    refuse(line_, "the run failed its check of results, so its times say nothing");
  }
  if (starts_with(comment, "Avg bus bandwidth")) end();
}

void LogReader::begin() {
  if (open_) refuse_cut();
  open_.emplace();
  open_->begun = line_;
  open_->test = said_;
}

void LogReader::end() {
  if (open_->run.ranks == 0) {
    refuse(line_, fmt::format("the run that begins at line {} lists no devices (\"#  Rank  0 …\"), "
                              "so the number of its ranks is not known; give the whole output",
                              open_->begun));
  }
  if (open_->run.rows.empty()) {
    refuse(line_, fmt::format("the run that begins at line {} has no row with a size and a time",
                              open_->begun));
  }
  open_->run.machines = std::max(1, static_cast<int>(open_->hosts.size()));
  settle_ranks();
  runs_.push_back(std::move(*open_));
  open_.reset();
  said_ = nullptr;
}

// "Rank  0 Group  0 Pid  9228 on  host device  0 [0x07] NVIDIA A100-SXM4-40GB"
void LogReader::add_rank(const std::vector<std::string_view>& words) {
  const auto number = parse_number<int>(words[1]);
  if (!number || *number < 0) return;
  NcclTestsRun& run = open_->run;
  if (!open_->numbers.insert(*number).second) return;  // a line that is there twice
  for (std::size_t i = 2; i + 1 < words.size(); ++i) {
    if (words[i] == "Group" && words[i + 1] != "0") {  // that ran beside it
      open_->other_groups = true;
      return;
    }
    if (words[i] == "on") open_->hosts.emplace(words[i + 1]);
    if (words[i] == "device") {
      open_->last_device =
          std::max(open_->last_device, parse_number<int>(words[i + 1]).value_or(0));
    }
    if (words[i].front() != '[' || run.ranks > 0) continue;
    run.device = fmt::format(
        "{}", fmt::join(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end(), " "));
  }
  ++run.ranks;
}

// People leave lines of a long list out. Ranks count from 0, so their numbers show it; where the
// machines that are listed have room for all ranks and no more, no other machine is missing.
void LogReader::settle_ranks() {
  const int ranks = *open_->numbers.rbegin() + 1;
  const auto listed = static_cast<int>(open_->numbers.size());
  if (ranks == listed) return;
  const std::int64_t room = std::int64_t{open_->run.machines} * (open_->last_device + 1);
  if (open_->other_groups || room != ranks) {
    refuse(
        line_,
        fmt::format(
            "the run that begins at line {} lists {} of its {} ranks (0 to {}), and the machines of the others are not known; give the whole output",
            open_->begun, listed, ranks, ranks - 1));
  }
  open_->run.ranks = ranks;
}

void LogReader::read_header(const std::vector<std::string_view>& words) {
  if (!open_) {
    refuse(line_,
           "the table begins without the line \"# nThread …\" and the list of devices; give "
           "the whole output");
  }
  TableColumns columns;
  columns.count = words.size();
  if (words.back() == "timestamp") ++columns.count;  // -T: a date and a time
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "#wrong") columns.wrong.push_back(i);
    if (columns.bus_bandwidth > 0) continue;  // of the columns in place
    if (words[i] == "cputime") {
      refuse(line_,
             "the table has cputime, the time that the CPU took to launch the collective, and not "
             "the collective's; run the test without -C (--report_cputime)");
    }
    if (words[i] == "time") columns.time = i;
    if (words[i] == "algbw") columns.algorithm_bandwidth = i;
    if (words[i] == "busbw") columns.bus_bandwidth = i;
  }
  if (columns.time == 0 || columns.algorithm_bandwidth == 0 || columns.bus_bandwidth == 0) {
    refuse(line_, "the table's header lacks one of the columns time, algbw and busbw");
  }
  open_->columns = columns;
}

void LogReader::add_row(const std::vector<std::string_view>& words) {
  const TableColumns& columns = open_->columns;
  if (words.size() != columns.count) {
    refuse(line_, fmt::format("the row has {} columns, but the table {}; the log is cut off, or "
                              "mixed with other output",
                              words.size(), columns.count));
  }
  for (const std::size_t column : columns.wrong) check_wrong(words[column], words[0]);
  const std::optional<ScaledDecimal> bytes = scale_decimal(words[0], 0);
  const std::optional<ScaledDecimal> time = scale_decimal(words[columns.time], 6);
  const auto algorithm = parse_number<double>(words[columns.algorithm_bandwidth]);
  const auto bus = parse_number<double>(words[columns.bus_bandwidth]);
  if (!bytes || bytes->value < 0 || !time || time->value < 0 ||
      time->value > longest_input.count() || !algorithm || !bus) {
    refuse(line_, fmt::format("a row has a size, a time in us and two bandwidths as numbers, not "
                              "{}, {}, {} and {}",
                              in_quotes(words[0]), in_quotes(words[columns.time]),
                              in_quotes(words[columns.algorithm_bandwidth]),
                              in_quotes(words[columns.bus_bandwidth])));
  }
  // Bandwidths have two decimals: the ratio of small ones says little.
  if (*algorithm >= 1 && *bus >= 1) {
    const double ratio = *bus / *algorithm;
    const double rounding = ratio * (rounding_of(words[columns.bus_bandwidth]) / *bus +
                                     rounding_of(words[columns.algorithm_bandwidth]) / *algorithm);
    open_->ratios.push_back({ratio, rounding, line_});
  }
  if (bytes->value == 0 || time->value == 0) return;
  check_time(words[0], words[columns.time], words[columns.algorithm_bandwidth]);
  open_->run.rows.push_back({Bytes{bytes->value}, Time{time->value}, line_});
}

// "N/A" and -1: not checked.
void LogReader::check_wrong(std::string_view wrong, std::string_view size) const {
  const auto number = parse_number<double>(wrong);
  if (number ? *number <= 0 : wrong == "N/A") return;
  refuse(line_, fmt::format("#wrong is {} at size {}: the results of the collective were wrong, so "
                            "its times say nothing",
                            wrong, size));
}

// algbw is size over time before both are rounded to the digits that are printed: time to 2, 1 or
// no decimals by its size, algbw to 2 (fewer where it is large, from 2.17 on).
void LogReader::check_time(std::string_view size, std::string_view time,
                           std::string_view bandwidth) const {
  const double kilobytes = number_of(size) / 1e3;  // over us: GB/s
  const double us = number_of(time);
  const double shortest = us - rounding_of(time);
  const double slack = rounding_of(bandwidth) + 1e-9 * number_of(bandwidth);
  const bool above = shortest > 0 && number_of(bandwidth) > kilobytes / shortest + slack;
  const bool below = number_of(bandwidth) < kilobytes / (us + rounding_of(time)) - slack;
  if (!above && !below) return;
  refuse(line_, fmt::format("algbw is {} GB/s, but size over time is {:.2f} GB/s: {} bytes in {} "
                            "us; give the log as the test printed it",
                            bandwidth, kilobytes / us, size, time));
}

void LogReader::check_kind(const LoggedRun& logged) const {
  const NcclTestsRun& run = logged.run;
  const double factor = run.ranks > 1 ? bus_factor(run.kind, run.ranks) : 0;
  // A few more or less ranks change the ratio little: 16 to 15 by 0.4 %.
  for (const auto& [ratio, rounding, line] : logged.ratios) {
    if (std::abs(ratio - factor) <= 1.1 * rounding + 1e-4) continue;
    refuse(line, fmt::format("busbw is {:.3f} times algbw, but {:.3f} times for {} among {} ranks; "
                             "give the whole list of devices, and name the collective that ran by "
                             "--kind",
                             ratio, factor, name(run.kind), run.ranks));
  }
}

NcclTestsLog LogReader::runs(std::optional<CollectiveKind> kind) {
  if (open_) refuse_cut();
  if (runs_.empty()) {
    throw TraceError(file_, "",
                     "it is no output of nccl-tests: there is no line \"# nThread …\"; give what "
                     "all_reduce_perf or its like printed");
  }
  NcclTestsLog log;
  for (LoggedRun& logged : runs_) {
    if (logged.test != nullptr && !logged.test->second) {
      log.others.push_back({std::string(logged.test->first), std::move(logged.run)});
      continue;
    }
    if (logged.test == nullptr && !kind) {
      refuse(logged.begun,
             "the run does not say which collective it is of; name it by --kind all_reduce, "
             "reduce_scatter, all_gather, all_to_all or broadcast");
    }
    logged.run.kind = logged.test != nullptr ? *logged.test->second : *kind;
    check_kind(logged);
    log.runs.push_back(std::move(logged.run));
  }
  return log;
}

}  // namespace

const NcclTest* nccl_test_in(std::string_view line) {
  constexpr std::string_view end = "_perf";
  for (std::size_t at = line.find(end); at != std::string_view::npos; at = line.find(end, at + 1)) {
    std::size_t begin = at;
    while (begin > 0 &&
           (line[begin - 1] == '_' || (line[begin - 1] >= 'a' && line[begin - 1] <= 'z'))) {
      --begin;
    }
    const std::string_view word = line.substr(begin, at + end.size() - begin);
    for (const Test& test : tests) {
      if (word == test.first) return &test;
    }
  }
  return nullptr;
}

NcclTestsLog read_nccl_tests(const std::string& text, const std::string& file,
                             std::optional<CollectiveKind> kind) {
  if (without_spaces(text).substr(0, 1) == "{") return read_nccl_tests_json(text, file, kind);
  LogReader reader(file);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    reader.read(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return reader.runs(kind);
}

}  // namespace stageline
