// The output of nccl-tests (all_reduce_perf and its like): times of collectives by size.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/model.hpp"

namespace stageline {

/// A line of the table, out of place.
struct NcclTestsRow {
  Bytes bytes{};  // of the full tensor a rank, as the size column has it
  Time time{};
  int line = 0;  // of the log, from 1
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

/// All runs of a log, at least one. Lines of NCCL, mpirun and the shell between them are skipped,
/// as are mpirun's tags ("[1,0]<stdout>:"). Old logs do not say which collective they are of:
/// `kind` is used where neither the log nor the command in it does. Throws TraceError, with the
/// line, for text that is no such log, for a run of another test (sendrecv_perf), that is cut off,
/// names no ranks or has the CPU's time (-C) in place of the collective's, for a row that was
/// checked and has wrong values, where algorithm bandwidth is not size over time within the printed
/// digits, and where bus and algorithm bandwidth do not fit the collective.
std::vector<NcclTestsRun> read_nccl_tests(const std::string& text, const std::string& file,
                                          std::optional<CollectiveKind> kind = std::nullopt);
}  // namespace stageline
