// stageline import nccl-tests: fits latencies and bandwidths of collectives to measured times.
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/network/calibration.hpp"
#include "sim/errors.hpp"
#include "sim/measured_collective.hpp"
#include "sim/names.hpp"
#include "tools/base/files.hpp"
#include "tools/base/table.hpp"
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

// A run, its law, and where it was read.
struct FittedRun {
  NcclTestsRun run;
  AlphaBeta fit;
  MeasuredCollective measured;
};

FittedRun fitted(NcclTestsRun run, const std::string& file) {
  if (run.ranks < 2) {
    throw TraceError(
        file, fmt::format("line {}", run.rows.front().line),
        fmt::format("{} among {} rank moves nothing between devices; measure 2 or more",
                    name(run.kind), run.ranks));
  }
  std::vector<TimedSize> times;
  for (const NcclTestsRow& row : run.rows) times.push_back({row.bytes, row.time});
  FittedRun result;
  try {
    result.fit = fit_alpha_beta(run.kind, run.ranks, times);
  } catch (const UsageError& error) {
    const int first = run.rows.front().line;
    const int last = run.rows.back().line;
    throw TraceError(
        file,
        first == last ? fmt::format("line {}", first) : fmt::format("lines {} to {}", first, last),
        error.what());
  }
  const std::string where = std::filesystem::path(file).filename().string();
  const std::string on = run.device.empty() ? "" : ", " + run.device;
  const std::string by = run.version.empty() ? "" : ", " + run.version;
  result.measured = {
      run.kind,
      run.ranks,
      run.machines,
      result.fit.alpha,
      result.fit.bandwidth,
      fmt::format("nccl-tests, {}: {} sizes from {} to {}{}{}", where, run.rows.size(),
                  print(run.rows.front().bytes), print(run.rows.back().bytes), on, by)};
  result.run = std::move(run);
  return result;
}

std::string report(const std::vector<FittedRun>& runs) {
  std::vector<std::vector<std::string>> rows;
  for (const FittedRun& one : runs) {
    rows.push_back({std::string(name(one.run.kind)), fmt::format("{}", one.run.ranks),
                    fmt::format("{}", one.run.machines), print(one.fit.alpha),
                    print(one.fit.bandwidth), percent(one.fit.mean_error),
                    fmt::format("{} at {}", percent(one.fit.worst_error), print(one.fit.worst))});
  }
  return table({{"collective", true},
                {"ranks"},
                {"machines"},
                {"latency"},
                {"bus bandwidth"},
                {"mean error"},
                {"worst error"}},
               rows);
}

void import_nccl_tests(const NcclTestsFlags& flags) {
  std::optional<CollectiveKind> kind;
  if (!flags.kind.empty()) kind = one_of(all_collective_kinds, flags.kind, "--kind");
  std::vector<FittedRun> runs;
  std::vector<MeasuredCollective> measured;
  for (const std::string& file : flags.files) {
    for (NcclTestsRun& run : read_nccl_tests(read_text(file), file, kind)) {
      runs.push_back(fitted(std::move(run), file));
      measured.push_back(runs.back().measured);
    }
  }
  const bool to_stdout = flags.out.empty() || flags.out == "-";
  write_file(to_stdout ? "-" : flags.out, measured_collectives_json(measured));
  if (to_stdout || flags.quiet) return;
  show("{}", report(runs));
  print_wrapped(
      fmt::format("wrote {}: put its \"collectives\" into your cluster file\n", flags.out));
}

void add(Flags command) {
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
      "logarithms of the times out of place. A cluster file that holds them under \"collectives\" "
      "uses them instead of built-in constants.");
  command.runs([flags] {
    import_nccl_tests(*flags);
    return 0;
  });
}

}  // namespace

extern const Command import_nccl_tests_command;
const Command import_nccl_tests_command = {
    "nccl-tests", "Fit latencies and bandwidths of collectives to the output of nccl-tests", add,
    "import"};

}  // namespace stageline
