// What the runs of the staleness study say, by rules: means, spreads, and whether the paper's
// findings hold beyond what another seed would change.
//
//   accuracy      ├──●──┤  a: mean, and half the range over the seeds on either side
//                    ├────●────┤  b
//                 the means differ by less than both halves together: "within the spread"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/papers/staleness/evidence.hpp"

namespace stageline {

/// Accuracy over the seeds, in percent.
struct Accuracy {
  double mean = 0;
  double half = 0;  // of the range
  int seeds = 0;
};
Accuracy accuracy_over(const std::vector<double>& percents);

/// a's mean less b's, in points, and both halves together.
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

/// Shallow pipelines cost little: plain less shallow is `most` points or less. Yes or no only where
/// the spread leaves no doubt.
inline constexpr double shallow_points = 1.5;
Holds costs_little(const Accuracy& plain, const Accuracy& shallow, double most = shallow_points);

/// Deep pipelines cost: plain is above deep.
Holds costs_much(const Accuracy& plain, const Accuracy& deep);

/// Of what deep lost, the share that hybrid has again; nothing where the loss is not beyond the
/// spread. 1: all of it; above: hybrid is better than plain.
std::optional<double> recovered(const Accuracy& plain, const Accuracy& deep,
                                const Accuracy& hybrid);
/// Hybrid training recovers at least half: it is above the middle of plain and deep, and the spread
/// of that middle is half of both's. Within the spread, too, where nothing was lost beyond it.
Holds recovers_half(const Accuracy& plain, const Accuracy& deep, const Accuracy& hybrid);

/// Pairs of cases whose accuracies differ beyond the spread, and those of them where more of
/// `cause` goes with less accuracy. Pairs of the same cause do not count.
struct PairsInOrder {
  int decided = 0;
  int falling = 0;
};
struct Caused {
  double cause = 0;
  Accuracy accuracy;
};
PairsInOrder order_of(const std::vector<Caused>& cases);
/// Falling in all decided pairs, in none, or something between (which is no).
Holds falls(const PairsInOrder& order);

/// All runs of one case.
struct CaseResult {
  const StudyCase* asked = nullptr;
  std::vector<double> percents;  // by seed
  Accuracy accuracy;
  int diverged = 0;         // seeds whose loss is no number at the end
  double stale_share = 0;   // of the weights, from 0 to 1
  double staleness = 0;     // updates: the most of any stage
  Time total{};             // simulated, of the whole training
  double copies = 0;        // StudyRun::copies
  double wall_seconds = 0;  // of all seeds
};

struct NetResult {
  const StudyNet* net = nullptr;
  std::vector<CaseResult> cases;  // as in the table, without those that have no run

  /// Null where it was not run.
  const CaseResult* find(StudyGroup group, const std::string& name) const;
  std::vector<const CaseResult*> of(StudyGroup group) const;
  const CaseResult* plain() const;
  const CaseResult* shallowest() const;  // of the depth group: 4-stage
  const CaseResult* deepest() const;     // 10-stage
};

/// Nets that have runs. Runs that were made with other arguments than the table's are left out.
std::vector<NetResult> results_of(const StalenessEvidence& evidence);

/// One finding of the paper on one net.
struct StudyFinding {
  std::string what;  // "4-stage within 1.5 points of non-pipelined"
  std::string net;   // title
  Holds holds = Holds::within_spread;
  std::string numbers;    // ours: "0.35 ± 0.80 points lost"
  std::string published;  // the paper's, or "–"
};
/// The three findings, and the two orders, of every net that has the cases for them.
std::vector<StudyFinding> findings_of(const std::vector<NetResult>& results);

}  // namespace stageline
