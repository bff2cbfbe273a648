// stageline import nccl-tests: fits latencies and bandwidths of collectives to measured times.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost_models/network/calibration.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/names.hpp"
#include "sim/measured_collective.hpp"
#include "tools/base/files.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/terminal.hpp"
#include "traces/native/measured_collectives.hpp"
#include "traces/nccl/tests_log.hpp"

namespace stageline::cli {
namespace {

struct NcclTestsFlags {
  std::vector<std::string> files;
  std::string kind;
  std::string out;
  bool quiet = false;
};

struct ReadRun {
  NcclTestsRun run;
  std::string file;
};

// One collective among as many ranks on as many machines, for which a cluster has one law.
using AlikeRuns = std::vector<ReadRun>;

// The law of some runs that are alike, and what each size took.
struct FittedRuns {
  AlphaBeta fit;
  MeasuredCollective measured;
  std::size_t runs = 0;
};

// Empty for a file without lines of its own (-J).
std::string lines_text(int from, int to) {
  if (from == 0) return "";
  return from == to ? fmt::format("line {}", from) : fmt::format("lines {} to {}", from, to);
}

void add_run(ReadRun read, std::vector<AlikeRuns>& all) {
  const NcclTestsRun& run = read.run;
  if (run.ranks < 2) {
    throw TraceError(
        read.file, lines_text(run.rows.front().line, run.rows.front().line),
        fmt::format("{} among {} rank moves nothing between devices; measure 2 or more",
                    name(run.kind), run.ranks));
  }
  const auto alike = std::find_if(all.begin(), all.end(), [&](const AlikeRuns& runs) {
    const NcclTestsRun& other = runs.front().run;
    return other.kind == run.kind && other.ranks == run.ranks && other.machines == run.machines;
  });
  if (alike != all.end()) {
    alike->push_back(std::move(read));
  } else {
    all.push_back({std::move(read)});
  }
}

std::vector<TimedSize> timed_sizes(const NcclTestsRun& run) {
  std::vector<TimedSize> times;
  for (const NcclTestsRow& row : run.rows) times.push_back({row.bytes, row.time});
  return times;
}

// Each size once, by size, with the geometric mean of its times.
std::vector<MeasuredTime> times_of(const std::vector<TimedSize>& times) {
  std::map<Bytes, std::pair<double, int>> logarithms;  // their sum and number
  for (const TimedSize& one : times) {
    auto& [sum, count] = logarithms[one.bytes];
    sum += std::log(to_seconds(one.time));
    ++count;
  }
  std::vector<MeasuredTime> means;
  for (const auto& [bytes, logs] : logarithms) {
    means.push_back({bytes, from_seconds(std::exp(logs.first / logs.second))});
  }
  return means;
}

// "1.5us" of "1.500 µs", as a file has it.
std::string compact(std::string text) {
  std::erase(text, ' ');
  const std::size_t micro = text.find("µ");
  if (micro != std::string::npos) text.replace(micro, std::string_view("µ").size(), "u");
  return text;
}

std::vector<std::string> files_of(const AlikeRuns& runs) {
  std::vector<std::string> files;
  for (const ReadRun& one : runs) {
    if (files.empty() || files.back() != one.file) files.push_back(one.file);
  }
  return files;
}

// How far the law is off the times that it was fitted to.
std::string residual_text(const AlphaBeta& fit) {
  return fmt::format("fitted within {} on average and {} at {}", percent(fit.mean_error),
                     percent(fit.worst_error), print(fit.worst));
}

FittedRuns fitted(const AlikeRuns& runs) {
  const NcclTestsRun& first = runs.front().run;
  std::vector<TimedSize> times;  // of all runs
  Bytes least = most_bytes_held;
  Bytes most{};
  for (const ReadRun& one : runs) {
    for (const NcclTestsRow& row : one.run.rows) {
      times.push_back({row.bytes, row.time});
      least = std::min(least, row.bytes);
      most = std::max(most, row.bytes);
    }
  }
  FittedRuns result;
  result.runs = runs.size();
  const std::vector<std::string> files = files_of(runs);
  try {
    result.fit = fit_alpha_beta(first.kind, first.ranks, times);
  } catch (const UsageError& error) {
    const int from = first.rows.front().line;
    const int to = runs.back().run.rows.back().line;
    throw TraceError(fmt::format("{}", fmt::join(files, ", ")),
                     files.size() > 1 ? "" : lines_text(from, to), error.what());
  }
  std::string where;
  for (const std::string& file : files) {
    where += (where.empty() ? "" : ", ") + std::filesystem::path(file).filename().string();
  }
  const std::string in = runs.size() > 1 ? fmt::format(" in {} runs", runs.size()) : "";
  const std::string on = first.device.empty() ? "" : ", " + first.device;
  const std::string by = first.version.empty() ? "" : ", " + first.version;
  const std::string source =
      fmt::format("nccl-tests, {}: {} sizes{} from {} to {}, {}{}{}", where, times.size(), in,
                  print(least), print(most), residual_text(result.fit), on, by);
  result.measured = {first.kind,           first.ranks, first.machines, result.fit.alpha,
                     result.fit.bandwidth, source,      times_of(times)};
  return result;
}

std::string group_text(const FittedRuns& one) {
  return fmt::format("{} among {} ranks", name(one.measured.kind), one.measured.ranks);
}

constexpr double large_error = 0.1;

// Where the law is far off, and what is taken instead.
std::string residual_note(const FittedRuns& one) {
  return fmt::format(
      "{}: the law is {}: no single latency and bandwidth is near all sizes; a cluster takes "
      "the time of each size from \"times\"",
      group_text(one), residual_text(one.fit));
}

std::string report(const std::vector<FittedRuns>& all) {
  std::vector<std::vector<std::string>> rows;
  for (const FittedRuns& one : all) {
    const MeasuredCollective& measured = one.measured;
    rows.push_back({std::string(name(measured.kind)), fmt::format("{}", measured.ranks),
                    fmt::format("{}", measured.machines), fmt::format("{}", measured.times.size()),
                    print(measured.alpha), print(measured.bandwidth), percent(one.fit.mean_error),
                    fmt::format("{} at {}", percent(one.fit.worst_error), print(one.fit.worst))});
  }
  return table({{"collective", true},
                {"ranks"},
                {"machines"},
                {"sizes"},
                {"latency"},
                {"bus bandwidth"},
                {"mean error"},
                {"worst error"}},
               rows);
}

// A test of no collective. That of messages between two ranks tells a link.
std::string other_text(const std::string& file, const OtherTestRun& other) {
  const NcclTestsRun& run = other.run;
  const int line = run.rows.front().line;
  std::string text = fmt::format(
      "{}{}: the run is of {} among {} ranks on {} machine{}, which is not a collective of a "
      "cluster file (all_reduce, reduce_scatter, all_gather, all_to_all, broadcast)",
      file, line > 0 ? fmt::format(" at line {}", line) : "", other.test, run.ranks, run.machines,
      run.machines == 1 ? "" : "s");
  if (other.test != "sendrecv_perf" || run.ranks != 2) return text;
  try {
    // As a broadcast's, its bus bandwidth is that of the algorithm.
    const AlphaBeta link = fit_alpha_beta(CollectiveKind::broadcast, run.ranks, timed_sizes(run));
    text += fmt::format(
        "; it tells a link, as \"bandwidth\": \"{}\", \"latency\": \"{}\" in {} of the cluster file "
        "({})",
        compact(print(link.bandwidth)), compact(print(link.alpha)),
        run.machines > 1 ? "\"network\"" : "\"links\"", residual_text(link));
  } catch (const UsageError&) {  // of a single size
    return text;
  }
  return text;
}

std::vector<std::string> notes_of(const std::vector<FittedRuns>& all,
                                  const std::vector<std::string>& others) {
  std::vector<std::string> notes;
  for (const FittedRuns& one : all) {
    if (one.fit.worst_error > large_error) notes.push_back(residual_note(one));
  }
  for (const FittedRuns& one : all) {
    if (one.runs == 1) continue;
    notes.push_back(fmt::format("{} runs of {} are taken together, a size at the mean of its times",
                                one.runs, group_text(one)));
  }
  for (const std::string& other : others) notes.push_back("left out: " + other);
  return notes;
}

void import_nccl_tests(const NcclTestsFlags& flags) {
  std::optional<CollectiveKind> kind;
  if (!flags.kind.empty()) kind = one_of(all_collective_kinds, flags.kind, "--kind");
  std::vector<AlikeRuns> runs;
  std::vector<std::string> others;
  for (const std::string& file : flags.files) {
    NcclTestsLog log = read_nccl_tests(read_text(file), file, kind);
    for (NcclTestsRun& run : log.runs) add_run({std::move(run), file}, runs);
    for (const OtherTestRun& other : log.others) others.push_back(other_text(file, other));
  }
  if (runs.empty()) throw UsageError(others.front());
  std::vector<FittedRuns> all;
  std::vector<MeasuredCollective> measured;
  for (const AlikeRuns& alike : runs) {
    all.push_back(fitted(alike));
    measured.push_back(all.back().measured);
  }
  const bool to_stdout = flags.out.empty() || flags.out == "-";
  write_file(to_stdout ? "-" : flags.out, measured_collectives_json(measured));
  if (flags.quiet) return;
  if (!to_stdout) show("{}", report(all));
  for (const std::string& note : notes_of(all, others)) {
    show(to_stdout ? stderr : stdout, "{}", wrapped("note: " + note + "\n", text_width()));
  }
  if (to_stdout) return;
  print_wrapped(
      fmt::format("wrote {}: put its \"collectives\" into your cluster file\n", flags.out));
}

void add_import_nccl_tests(Flags command) {
  const auto flags = std::make_shared<NcclTestsFlags>();
  command.option("LOG", flags->files, "what all_reduce_perf, all_gather_perf, … printed")
      .required();
  command.option("--kind", flags->kind,
                 "the collective, where the log does not name it: all_reduce, reduce_scatter, "
                 "all_gather, all_to_all, broadcast");
  command.option("--out,-o", flags->out, "file to write; default: stdout").writes_file();
  command.flag("--quiet", flags->quiet, "print no report");
  command.footer(
      "Example:\n  all_reduce_perf -b 1M -e 1G -f 2 -g 8 | tee reduce.log\n  stageline import "
      "nccl-tests reduce.log --out collectives.json\n"
      "The latency and bandwidth of each collective and number of ranks, by least squares on the "
      "logarithms of the times out of place, and the time of each size, which goes before them. A "
      "cluster file that holds them under \"collectives\" "
      "uses them instead of built-in constants.");
  command.runs([flags] {
    import_nccl_tests(*flags);
    return 0;
  });
}

}  // namespace

extern const Command import_nccl_tests_command;
const Command import_nccl_tests_command = {
    "nccl-tests", "Fit latencies and bandwidths of collectives to the output of nccl-tests",
    add_import_nccl_tests, "import"};

}  // namespace stageline::cli
