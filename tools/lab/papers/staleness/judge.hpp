// Judges the runs of the staleness study by rules: means, spreads, and whether the paper's findings
// hold beyond the variation between seeds.
//
//   accuracy      ├──●──┤  a: mean, and half the range over the seeds on either side
//                    ├────●────┤  b
//                 the means differ by less than both halves together: "within the spread"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/lab/papers/staleness/evidence.hpp"

namespace stageline::lab {

/// Accuracy over the seeds, in percent.
struct Accuracy {
  double mean = 0;
  double half = 0;  // of the range
  int seeds = 0;
};
Accuracy accuracy_over(const std::vector<double>& percents);

/// a's mean less b's, in points, and the sum of both halves.
struct Difference {
  double points = 0;
  double spread = 0;
  bool above() const { return points > spread; }
  bool below() const { return points < -spread; }
  bool decided() const { return above() || below(); }
};
Difference difference(const Accuracy& a, const Accuracy& b);

enum class Holds : std::uint8_t { yes, no, within_spread };
/// "agrees", "differs", "within the spread".
std::string_view name(Holds holds);

/// Shallow pipelines cost little: plain less shallow is at most `most` points. Yes or no only where
/// the spread leaves no doubt.
inline constexpr double shallow_points = 1.5;
Holds costs_little(const Accuracy& plain, const Accuracy& shallow, double most = shallow_points);

/// Deep pipelines cost: plain is above deep.
Holds costs_much(const Accuracy& plain, const Accuracy& deep);

/// The share of deep's loss that hybrid recovers; empty where the loss is within the spread. 1: all
/// of it; above: hybrid is better than plain.
std::optional<double> recovered(const Accuracy& plain, const Accuracy& deep,
                                const Accuracy& hybrid);
/// Hybrid training recovers at least half: it is above the midpoint of plain and deep, whose spread
/// is half the sum of both. Within the spread, too, where the loss was within it.
Holds recovers_half(const Accuracy& plain, const Accuracy& deep, const Accuracy& hybrid);

/// Pairs of cases whose accuracies differ beyond the spread, and the number of them with less
/// accuracy for more of `cause`. Pairs of equal cause do not count.
struct PairsInOrder {
  int decided = 0;
  int falling = 0;
};
struct Caused {
  double cause = 0;
  Accuracy accuracy;
};
PairsInOrder order_of(const std::vector<Caused>& cases);
/// Yes if falling in all decided pairs, no if in none or in some.
Holds falls(const PairsInOrder& order);

/// All runs of one case.
struct CaseResult {
  const StudyCase* asked = nullptr;
  std::vector<double> percents;  // by seed
  Accuracy accuracy;
  double loss = 0;          // of the test set at the end; mean
  int diverged = 0;         // seeds with a NaN loss at the end
  double stale_share = 0;   // of the weights, from 0 to 1
  double staleness = 0;     // updates; the maximum over the stages
  Time total{};             // simulated, of the whole training
  double copies = 0;        // StudyRun::copies
  double wall_seconds = 0;  // sum over the seeds
};

struct NetResult {
  const StudyNet* net = nullptr;
  std::vector<CaseResult> cases;  // in the order of the table, without those that have no run

  /// Null where the case was not run.
  const CaseResult* find(StudyGroup group, const std::string& name) const;
  std::vector<const CaseResult*> of(StudyGroup group) const;
  /// The row of an optimizer, or null. `schedule`: empty: non-pipelined.
  const CaseResult* row(const std::string& title, const std::string& schedule,
                        const std::string& correction = "none") const;
  const CaseResult* plain() const;
  const CaseResult* shallowest() const;  // of the depth group: 4-stage
  const CaseResult* deepest() const;     // 10-stage
};

/// The nets that have runs. Runs that were made with other arguments than the table's are left out.
std::vector<NetResult> results_of(const StalenessEvidence& evidence);

/// One finding of the paper on one net.
struct StudyFinding {
  std::string what;  // "4-stage within 1.5 points of non-pipelined"
  std::string net;   // title
  Holds holds = Holds::within_spread;
  std::string numbers;    // ours: "0.35 ± 0.80 points lost"
  std::string published;  // the paper's, or "–"
};
/// The three findings, the two orders, and those of the optimizers' papers (Ajanthan et al., arXiv
/// 2505.01099; Zmushko et al., arXiv 2606.30634), of every net that has the cases for them.
std::vector<StudyFinding> findings_of(const std::vector<NetResult>& results);

}  // namespace stageline::lab
