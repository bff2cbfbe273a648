// Table 5 simulated: CIFAR ResNets on two devices, in one place for the sections that need it.
#pragma once

#include <string>
#include <vector>

#include "tools/papers/finding.hpp"
#include "tools/papers/published.hpp"
#include "tools/study/study.hpp"

namespace stageline {

/// Stale weights on the two-device mapping, cut as the paper cuts.
struct ZhangRun {
  const ZhangSpeedup* row = nullptr;  // of table 5; nullptr: ResNet-20, which has no row
  std::string title;
  Case asked;
  int depth = 0;  // of the network
  Basis basis = Basis::roofline_costs;
  double share = 0;    // of forward + backward time that the first device has
  double speedup = 0;  // over one device that does the same, updates included
  double seconds = 0;  // a mini-batch takes, once the pipeline runs steadily
};

/// From the measured traces (ResNet-20, -56, -110), then from the roofline of a GTX 1060 (all).
std::vector<ZhangRun> zhang_runs();

}  // namespace stageline
