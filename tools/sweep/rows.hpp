// The scenarios of a sweep, simulated: a row each.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/base/provided_files.hpp"
#include "tools/study/verdict.hpp"
#include "tools/study/whatif/scenario_runs.hpp"
#include "tools/sweep/spec.hpp"

namespace stageline {

/// One scenario: its values, and its result or the reason why there is none.
struct SweepRow {
  std::int64_t number = 0;
  std::vector<std::string> values;           // by axis
  std::optional<Verdict> verdict;            // as compare and simulate give it
  std::optional<Distribution> distribution;  // of the step, where something is uncertain
  std::optional<Time> drawn;                 // step of the one scenario that `scenario` names
  std::string why_not;
};

/// Simulates scenarios, and keeps what they share: traces, settings, compiled orders. Threads may
/// call it at the same time; a row does not depend on what is kept.
class SweepRunner {
 public:
  /// `files`: what is read in place of the files of this machine.
  explicit SweepRunner(SweepSpec spec, FileContents files = {});
  ~SweepRunner();
  SweepRunner(const SweepRunner&) = delete;
  SweepRunner& operator=(const SweepRunner&) = delete;

  const SweepSpec& spec() const { return spec_; }
  /// Rows from `first` on; fewer than `count` where `stop` ended the run.
  std::vector<SweepRow> rows(std::int64_t first, std::int64_t count,
                             const std::atomic<bool>* stop = nullptr);
  /// How many scenarios one call of rows() best takes, and how many calls at a time suit the memory
  /// of the machine. `workers`: 0 for one a processor core.
  std::int64_t block() const;
  int at_a_time(int workers);
  /// What a reader of the rows must know (notes() of the settings), of up to 32 scenarios evenly
  /// over the sweep; what holds of some alone says so.
  std::vector<std::string> notes();
  /// Throws the error that scenarios from the whole sweep share before any is simulated: a trace
  /// that cannot be opened, a cluster that does not exist.
  void probe();

 private:
  struct Kept;
  std::vector<std::int64_t> probed() const;
  SweepSpec spec_;
  FileContents files_;
  std::unique_ptr<Kept> kept_;
};

/// Rows of `count` scenarios from `first` on, on up to `workers` threads (0: one a processor core).
/// The same with any number.
std::vector<SweepRow> run_scenarios(const SweepSpec& spec, std::int64_t first, std::int64_t count,
                                    int workers = 0);

/// Columns of the table: number, the axes, results, why_not.
std::vector<std::string> sweep_columns(const SweepSpec& spec);
/// As CSV (RFC 4180), with a newline behind each line. Numbers are exact: picoseconds, bytes, and
/// the shortest digits that read back as the same double.
std::string csv_header(const SweepSpec& spec);
std::string csv_line(const SweepSpec& spec, const SweepRow& row);

}  // namespace stageline
