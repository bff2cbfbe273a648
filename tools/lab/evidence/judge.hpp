// Compares measured cases with today's simulator: its errors, and whether it ranks them as the
// machine does.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/base/progress.hpp"
#include "tools/lab/evidence/evidence.hpp"
#include "tools/lab/evidence/peak_range.hpp"
#include "tools/study/study.hpp"

namespace stageline::lab {

/// The aim of a device's peak memory: the most that it may be off, as a share of the measured one.
inline constexpr double aim_peak_error = 0.03;

/// The case as a request to the simulator: its trace, on the first devices of the evidence's
/// cluster, with one port of the case's link each (as in uniform_cluster), and its program where it
/// has one. Throws UsageError for an impossible schedule or link, ProgramError for a program's text
/// that is none.
Case case_of(const Evidence& evidence, const MeasuredCase& measured);

/// Clears the program of each case whose schedule makes the same one of the evidence's traces and
/// cluster, over the same cut. What is left depends on the times that were known before the run.
void drop_derived_programs(Evidence& evidence);

struct PredictedDevice {
  Time busy{};      // compute lane
  Time idle{};      // makespan - busy
  Time transfer{};  // send lane: sum of its messages' spans
  Bytes peak{};     // peak of all memory
  Bytes stash{};    // peak of the stashes
  // The same on the clock of the first counted run: of what met there. Where the evidence does not
  // keep that, on the predicted one.
  PeakRange counted_peak;
  Bytes counted_stash{};
};

struct Prediction {
  Time makespan{};
  std::vector<PredictedDevice> devices;
  Timeline timeline;
};

/// The simulator's prediction of a case: its trace, on the first devices of the evidence's cluster,
/// with one port of the case's link each (as in uniform_cluster). Throws UsageError, with the
/// case's name, for an impossible schedule, partition or link, and for a counted timeline with
/// other ops than the program's.
Prediction predict(const Evidence& evidence, const MeasuredCase& measured);

/// Whether the memory of its first counted run is that of the counted timeline or, without one, of
/// the predicted one: of each device the peak within aim_peak_error of its range, and the stash to
/// the byte. Also where nothing is counted. Throws as predict() does.
bool counted_as_predicted(const Evidence& evidence, const MeasuredCase& measured);

/// "resnet50 batch 8, 1f1b, 8 micro-batches, link 200MB/s"
std::string name_of(const MeasuredCase& measured);

/// How far the median of all runs may be off, judged by the runs themselves. The larger of
///  * the difference between the medians of the odd and of the even runs (slow drift affects both
///    alike, so it does not hide the variation of the runs), and
///  * 3.72 / √n times the half interquartile range: two standard errors of the median of n runs
///    that vary normally (half the quartiles' distance is 0.674 σ; the median's standard error is
///    √(π/2) σ / √n).
/// Empty for fewer than three runs.
std::optional<Time> noise_of(const std::vector<Time>& runs);

/// The prediction of a case less its measurement. Errors are signed: above 0, the simulator
/// overestimates.
struct CaseJudgement {
  Prediction prediction;
  Time measured{};            // median of the makespans
  Time spread{};              // half their interquartile range
  std::optional<Time> noise;  // of the makespan: noise_of
  double error = 0;           // of the makespan, as a share of the measured one

  // Each of the device with the largest error; times as shares of the measured makespan.
  double idle_error = 0;             // error of the idle time
  std::optional<double> idle_noise;  // noise_of() its measured idle times
  int idle_device = 0;               // its device
  double transfer_error = 0;         // error of the messages' time
  int transfer_device = 0;           // its device
  std::optional<double> peak_error;  // as a share of the measured peak, the median of its runs
  int peak_device = 0;               // its device
  std::optional<double> peak_beyond_runs;  // the same, less than the least run or more than the
                                           // most; 0 within these
  std::optional<Bytes> stash_error;        // in bytes
  int stash_device = 0;                    // its device
  // The first counted run, on its own clock: what is left is not of the times.
  std::optional<double> counted_peak_error;  // as a share of the measured peak; 0 in its range
  std::optional<Bytes> counted_stash_error;  // in bytes
};

/// Two cases, the faster one first.
struct CasePair {
  std::size_t faster = 0;  // as measured
  std::size_t slower = 0;
};

/// Whether the simulator ranks cases as the machine does. Pairs are comparable that do the same
/// work (model, batch, micro-batches, steps) over the same link, by programs that are predicted to
/// differ in some op's time; they are decidable when their
/// medians differ by more than the sum of their two noises, each at least the mean noise of all
/// cases as a share. Without that bound, of equally fast cases of three (nine) normally varying
/// runs 5.8 % (2.0 %) would be decidable; with it, 0.5 % (0.1 %) are.
struct Ranking {
  int pairs = 0;                  // comparable
  int decidable = 0;              // of the comparable pairs
  int tied = 0;                   // of the decidable pairs: predicted to take equally long
  int discordant = 0;             // of the decidable pairs: predicted in reverse order
  std::optional<double> tau;      // Kendall's: (in order - discordant) / decidable
  std::optional<CasePair> worst;  // in the wrong order, and the clearest as measured
  double worst_difference = 0;    // of that pair's medians, as a share of the smaller
};

/// The largest value of a figure, and its case.
struct Worst {
  double value = 0;  // signed
  std::size_t at = 0;
};

/// What is left of an error, as a share of the measured makespan, beyond the case's own noise:
/// signed, and 0 within it.
double beyond_noise(const CaseJudgement& judged);

/// A summary of several cases. Means and medians are of absolute values.
struct Summary {
  std::vector<std::size_t> cases;
  double mean_error = 0;         // of the makespan
  double median_error = 0;       // of the makespan
  double bias = 0;               // signed mean of the makespan's error
  Worst worst_error;             // of the makespan
  double mean_beyond_noise = 0;  // of the makespan: beyond_noise()
  Worst worst_beyond_noise;      // of the makespan
  double mean_idle_error = 0;
  Worst worst_idle_error;              // of a device's idle time
  double mean_idle_noise = 0;          // of that device, over the cases with known noise
  double worst_idle_beyond_noise = 0;  // largest idle error less its noise; at least 0
  Worst worst_transfer_error;          // of a device's messages
  int memory_cases = 0;                // cases with measured memory
  Worst worst_peak_error;              // of a device's peak
  Worst worst_peak_beyond_runs;        // of a device's peak, beyond the range of its runs
  int peaks_within_aim = 0;            // memory cases within aim_peak_error, beyond that range
  int stash_exact = 0;      // memory cases with every device's stash predicted to the byte
  Worst worst_stash_error;  // bytes
  // The counted runs, on their own clock:
  int clocks_kept = 0;               // cases with that clock; none: the next ones say nothing
  Worst worst_counted_peak_error;    // of a device's peak
  int counted_peaks_within_aim = 0;  // memory cases within aim_peak_error
  int counted_stash_exact = 0;       // memory cases with every device's stash to the byte
  int noise_cases = 0;               // cases with known noise
  double mean_noise = 0;             // as a share of the measured makespan
  Worst worst_noise;                 // as a share of the measured makespan
  Ranking ranking;                   // of the pairs among these cases
};

struct EvidenceJudgement {
  std::vector<CaseJudgement> cases;  // in the order of the evidence
  Summary held_out;                  // cases that the calibration has not seen
  Summary calibrated;                // cases that the calibration has seen
};

/// Throws as predict() does, and UsageError where a device lacks the time of a run. `stop`, where
/// it is not null, ends it behind the case at hand: the judgement is then of the cases before.
EvidenceJudgement judge(const Evidence& evidence, const Progress& progress = {},
                        const std::atomic<bool>* stop = nullptr);

/// The summary of some of the cases.
Summary summary_of(const Evidence& evidence, const std::vector<CaseJudgement>& cases,
                   std::vector<std::size_t> of);

}  // namespace stageline::lab
