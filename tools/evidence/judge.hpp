// Measured cases through today's simulator: how far off it is, and whether it ranks as the machine
// does.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/evidence/evidence.hpp"
#include "tools/study/study.hpp"

namespace stageline {

/// The case as a question to the simulator: its trace, on the first devices of the evidence's
/// cluster, with one port of the case's link each (as uniform_cluster has them). Throws UsageError
/// for a schedule or link that is not possible.
Case case_of(const Evidence& evidence, const MeasuredCase& measured);

struct PredictedDevice {
  Time busy{};      // compute lane
  Time idle{};      // makespan - busy
  Time transfer{};  // send lane: sum of its messages' spans
  Bytes peak{};     //
  Bytes stash{};    // most that stashes hold at once
};

struct Prediction {
  Time makespan{};
  std::vector<PredictedDevice> devices;
  Timeline timeline;
};

/// The case as the simulator sees it: its trace, on the first devices of the evidence's cluster,
/// with one port of the case's link each (as uniform_cluster has them). Throws UsageError, with the
/// case's name, for a schedule, partition or link that is not possible.
Prediction predict(const Evidence& evidence, const MeasuredCase& measured);

/// "resnet50 batch 8, 1f1b, 8 micro-batches, link 200MB/s"
std::string name_of(const MeasuredCase& measured);

/// How far the median of all runs may be off, by what the runs themselves say. The larger of
///  * the difference between the medians of the odd and of the even runs (so that slow drift, which
///    meets both alike, does not hide that runs vary), and
///  * 3.72 / √n times the half interquartile range: two standard errors of the median of n runs
///    that vary normally (half the quartiles' distance is 0.674 σ; the median's standard error is
///    √(π/2) σ / √n).
/// Nothing of fewer than three runs.
std::optional<Time> noise_of(const std::vector<Time>& runs);

/// What was predicted of a case, less what was measured. Errors are signed: above 0, the simulator
/// says more than is true.
struct CaseJudgement {
  Prediction prediction;
  Time measured{};            // median of the makespans
  Time spread{};              // half their interquartile range
  std::optional<Time> noise;  // of the makespan: noise_of
  double error = 0;           // of the makespan, as a share of the measured one

  // Each of the device where it is furthest off; times as shares of the measured makespan.
  double idle_error = 0;             //
  int idle_device = 0;               //
  double transfer_error = 0;         //
  int transfer_device = 0;           //
  std::optional<double> peak_error;  // as a share of the measured peak
  int peak_device = 0;               //
  std::optional<Bytes> stash_error;  //
  int stash_device = 0;              //
};

/// Two cases, the faster one first.
struct CasePair {
  std::size_t faster = 0;  // as measured
  std::size_t slower = 0;
};

/// Whether the simulator puts cases in the order in which the machine does. Pairs are compared that
/// do the same work (model, batch, micro-batches, steps) over the same link; those are decidable
/// whose medians differ by more than the sum of their two noises.
struct Ranking {
  int pairs = 0;                  // comparable
  int decidable = 0;              //
  int tied = 0;                   // of those: predicted to take equally long
  int discordant = 0;             // of those: predicted the other way round
  std::optional<double> tau;      // Kendall's: (in order - discordant) / decidable
  std::optional<CasePair> worst;  // not in order, and the clearest as measured
  double worst_difference = 0;    // of the medians of that pair, as a share of the smaller
};

/// The largest of something, and the case it is of.
struct Worst {
  double value = 0;  // signed
  std::size_t at = 0;
};

/// Over several cases. Means and medians are of absolute values.
struct Summary {
  std::vector<std::size_t> cases;
  double mean_error = 0;    // of the makespan
  double median_error = 0;  //
  double bias = 0;          // signed mean
  Worst worst_error;        //
  double mean_idle_error = 0;
  Worst worst_idle_error;      //
  Worst worst_transfer_error;  //
  int memory_cases = 0;        // whose memory was measured
  Worst worst_peak_error;      //
  int stash_exact = 0;         // of those, where every device's stash is predicted to the byte
  Worst worst_stash_error;     // bytes
  int noise_cases = 0;         // whose noise is known
  double mean_noise = 0;       // as a share of the measured makespan
  Worst worst_noise;           //
  Ranking ranking;             // of the pairs within
};

struct Judgement {
  std::vector<CaseJudgement> cases;  // as in the evidence
  Summary held_out;                  // cases that the calibration has not seen
  Summary calibrated;                // those that it has
};

/// Throws what predict throws, and UsageError where a device has not a time for each run.
Judgement judge(const Evidence& evidence);

/// The summary of some of the cases.
Summary summary_of(const Evidence& evidence, const std::vector<CaseJudgement>& cases,
                   std::vector<std::size_t> of);

}  // namespace stageline
