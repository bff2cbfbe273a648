// The Pareto front of step time, fullest peak and devices.
#pragma once

#include <string>
#include <vector>

#include "tools/planner/candidate.hpp"
#include "tools/study/verdict.hpp"

namespace stageline {

struct FrontPoint {
  Candidate candidate;
  Verdict verdict;
  std::string flags;

  int devices() const { return candidate.shape.devices(); }
};

/// Points of which none is dominated, the fastest first. Of points that are equal in all three the
/// one whose flags come first stays: what is kept does not depend on the order of insertion.
class Front {
 public:
  /// Whether it is on the front now.
  bool insert(FrontPoint point);
  /// Whether a point is no worse in any of the three, and better in one.
  bool dominates(Time step, Bytes fullest, int devices) const;

  const std::vector<FrontPoint>& points() const { return points_; }
  bool empty() const { return points_.empty(); }
  const FrontPoint& fastest() const { return points_.front(); }

 private:
  std::vector<FrontPoint> points_;
};

}  // namespace stageline
