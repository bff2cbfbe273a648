// stageline import nccl-tests: fits latencies and bandwidths of collectives to measured times.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
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

namespace stageline {
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

// The law of some runs that are alike, or the lines of one.
struct FittedRuns {
  MeasuredLines fit;
  std::vector<MeasuredCollective> measured;  // a line each
  std::size_t runs = 0;
};

void add_run(ReadRun read, std::vector<AlikeRuns>& all) {
  const NcclTestsRun& run = read.run;
  if (run.ranks < 2) {
    throw TraceError(
        read.file, fmt::format("line {}", run.rows.front().line),
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

std::vector<std::string> files_of(const AlikeRuns& runs) {
  std::vector<std::string> files;
  for (const ReadRun& one : runs) {
    if (files.empty() || files.back() != one.file) files.push_back(one.file);
  }
  return files;
}

// How far the law is off the times that it was fitted to.
std::string residual_text(const MeasuredLines& fit) {
  return fmt::format("fitted within {} on average and {} at {}", percent(fit.mean_error),
                     percent(fit.worst_error), print(fit.worst));
}

FittedRuns fitted(const AlikeRuns& runs) {
  const NcclTestsRun& first = runs.front().run;
  std::vector<TimedSize> times;
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
    result.fit = fit_lines(first.kind, first.ranks, times);
  } catch (const UsageError& error) {
    const int from = first.rows.front().line;
    const int to = runs.back().run.rows.back().line;
    throw TraceError(fmt::format("{}", fmt::join(files, ", ")),
                     files.size() > 1 ? ""
                     : from == to     ? fmt::format("line {}", from)
                                      : fmt::format("lines {} to {}", from, to),
                     error.what());
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
  for (const MeasuredLines::Line& line : result.fit.lines) {
    result.measured.push_back(
        {first.kind, first.ranks, first.machines, line.alpha, line.bandwidth, source});
  }
  return result;
}

std::string group_text(const FittedRuns& one) {
  const MeasuredCollective& first = one.measured.front();
  return fmt::format("{} among {} ranks", name(first.kind), first.ranks);
}

constexpr double large_error = 0.1;

// How far the law is off, and where it is no law of all sizes.
std::string residual_note(const FittedRuns& one) {
  const std::string law = one.measured.size() > 1
                              ? fmt::format(
                                    " by {} lines, since no single latency and bandwidth is "
                                    "near all sizes",
                                    one.measured.size())
                              : "";
  const std::string advice =
      one.fit.worst_error > large_error
          ? "; measure the sizes that your training sends, several times, and no others"
          : "";
  return fmt::format("note: {}: {}{}{}\n", group_text(one), residual_text(one.fit), law, advice);
}

std::string report(const std::vector<FittedRuns>& all) {
  std::vector<std::vector<std::string>> rows;
  const bool lines = std::any_of(all.begin(), all.end(),
                                 [](const FittedRuns& one) { return one.measured.size() > 1; });
  for (const FittedRuns& one : all) {
    for (std::size_t i = 0; i < one.measured.size(); ++i) {
      const MeasuredCollective& line = one.measured[i];
      std::vector<std::string> row{std::string(name(line.kind)), fmt::format("{}", line.ranks),
                                   fmt::format("{}", line.machines)};
      if (lines) row.push_back(i == 0 ? "" : print(one.fit.lines[i].from));
      row.push_back(print(line.alpha));
      row.push_back(print(line.bandwidth));
      const bool first = i == 0;  // errors are those of all lines
      row.push_back(first ? percent(one.fit.mean_error) : "");
      row.push_back(
          first ? fmt::format("{} at {}", percent(one.fit.worst_error), print(one.fit.worst)) : "");
      rows.push_back(std::move(row));
    }
  }
  std::vector<Column> columns{{"collective", true}, {"ranks"}, {"machines"}};
  if (lines) columns.push_back({"from"});
  for (const char* const title : {"latency", "bus bandwidth", "mean error", "worst error"}) {
    columns.push_back({title});
  }
  return table(columns, rows);
}

void import_nccl_tests(const NcclTestsFlags& flags) {
  std::optional<CollectiveKind> kind;
  if (!flags.kind.empty()) kind = one_of(all_collective_kinds, flags.kind, "--kind");
  std::vector<AlikeRuns> runs;
  for (const std::string& file : flags.files) {
    for (NcclTestsRun& run : read_nccl_tests(read_text(file), file, kind)) {
      add_run({std::move(run), file}, runs);
    }
  }
  std::vector<FittedRuns> all;
  std::vector<MeasuredCollective> measured;
  for (const AlikeRuns& alike : runs) {
    all.push_back(fitted(alike));
    measured.insert(measured.end(), all.back().measured.begin(), all.back().measured.end());
  }
  const bool to_stdout = flags.out.empty() || flags.out == "-";
  write_file(to_stdout ? "-" : flags.out, measured_collectives_json(measured));
  if (flags.quiet) return;
  if (to_stdout) {
    for (const FittedRuns& one : all) {
      show(stderr, "{}", wrapped(residual_note(one), text_width()));
    }
    return;
  }
  show("{}", report(all));
  for (const FittedRuns& one : all) {
    if (one.measured.size() > 1 || one.fit.worst_error > large_error) {
      print_wrapped(residual_note(one));
    }
  }
  for (const FittedRuns& one : all) {
    if (one.runs == 1) continue;
    print_wrapped(
        fmt::format("note: {} runs of {} are fitted together\n", one.runs, group_text(one)));
  }
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
      "logarithms of the times out of place; where one law is more than 10 % off, lines from one "
      "size to another. A cluster file that holds them under \"collectives\" "
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

}  // namespace stageline
