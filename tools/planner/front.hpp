// The Pareto front of step time, fullest peak and devices.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/planner/candidate.hpp"
#include "tools/study/verdict.hpp"

namespace stageline::planner {

struct FrontPoint {
  Candidate candidate;
  Verdict verdict;
  std::string flags;

  int devices() const { return candidate.shape.devices(); }
};

/// Points of which none is dominated, the fastest first. Among points equal in all three one that
/// names no placement stays, and of those the one whose flags come first: what is kept does not
/// depend on the order of insertion.
/// `slower_by`: the front ends where a step takes so much longer than the fastest on no more
/// devices, as a share of it; empty: nowhere.
class Front {
 public:
  explicit Front(std::optional<double> slower_by = {}) : slower_by_(slower_by) {}

  /// Whether it is on the front now.
  bool insert(FrontPoint point);
  /// Whether a point is no worse in any of the three, and better in one.
  bool dominates(Time step, Bytes fullest, int devices) const;
  /// Whether no point with such a step or a longer one is on the front, whatever its memory.
  bool ends_before(Time step, int devices) const;
  /// Seconds of a step below which a point with such a peak is on the front; empty: of any.
  std::optional<double> to_beat(double fullest, int devices) const;

  const std::vector<FrontPoint>& points() const { return points_; }
  bool empty() const { return points_.empty(); }
  const FrontPoint& fastest() const { return points_.front(); }

 private:
  std::optional<Time> last(int devices) const;

  std::optional<double> slower_by_;
  std::vector<FrontPoint> points_;
};

}  // namespace stageline::planner
