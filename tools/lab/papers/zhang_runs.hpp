// Simulates table 5: CIFAR ResNets on two devices, shared by the sections that need it.
#pragma once

#include <string>
#include <vector>

#include "tools/lab/papers/finding.hpp"
#include "tools/lab/papers/published.hpp"
#include "tools/study/study.hpp"

namespace stageline::lab {

/// Stale weights on the two-device mapping, with the paper's cut.
struct ZhangRun {
  const ZhangSpeedup* row = nullptr;  // of table 5; nullptr: ResNet-20, which has no row
  std::string title;
  Case asked;
  int depth = 0;  // of the network, in layers
  Basis basis = Basis::roofline_costs;
  double share = 0;    // the first device's part of forward + backward time
  double speedup = 0;  // over one device with the same work, updates included
  double seconds = 0;  // per mini-batch in the steady state
};

/// From the measured traces (ResNet-20, -56, -110), then from the roofline of a GTX 1060 (all).
std::vector<ZhangRun> zhang_runs();

}  // namespace stageline::lab
