// The output of nccl-tests (all_reduce_perf and its like): times of collectives by size.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/model.hpp"

namespace stageline {

/// A line of the table, out of place.
struct NcclTestsRow {
  Bytes bytes{};  // of the full tensor a rank, as the size column has it
  Time time{};
  int line = 0;  // of the log, from 1; 0: of a file that -J wrote
};

/// One run of one test.
struct NcclTestsRun {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 0;
  int machines = 0;                // different host names
  std::string device;              // of rank 0: "NVIDIA A100-SXM4-80GB"; empty: not said
  std::string version;             // "NCCL version 2.21.5+cuda12.4"; empty: not said
  std::vector<NcclTestsRow> rows;  // by ascending line; sizes and times above 0
};

/// A run of a test that is of no collective of a cluster: sendrecv_perf, gather_perf, …
struct OtherTestRun {
  std::string test;
  NcclTestsRun run;  // its kind says nothing
};

/// The runs of a log: at least one of both.
struct NcclTestsLog {
  std::vector<NcclTestsRun> runs;
  std::vector<OtherTestRun> others;
};

/// What a program of nccl-tests measures; nothing: no collective of a cluster.
using NcclTest = std::pair<std::string_view, std::optional<CollectiveKind>>;

/// The test that a line names, as a word of a path: "./build/all_reduce_perf -b 8"; or null.
const NcclTest* nccl_test_in(std::string_view line);

/// What nccl-tests or rccl-tests printed, or wrote by -J. Lines of NCCL, mpirun and the shell
/// between the rows are skipped, as are the labels of mpirun, srun, kubectl and docker before
/// lines, and columns of -T and of each iteration. Old logs do not say which collective they are
/// of: `kind` is used where neither the log nor the command in it does. Throws TraceError, with
/// the line, for text that is no such log, for a run that is cut off, names no ranks or has the
/// CPU's time (-C) in place of the collective's, for a row that was checked and has wrong values,
/// where algorithm bandwidth is not size over time within the printed digits, and where bus and
/// algorithm bandwidth do not fit the collective.
NcclTestsLog read_nccl_tests(const std::string& text, const std::string& file,
                             std::optional<CollectiveKind> kind = std::nullopt);

/// The file that -J writes: one run.
NcclTestsLog read_nccl_tests_json(const std::string& text, const std::string& file,
                                  std::optional<CollectiveKind> kind);
}  // namespace stageline
