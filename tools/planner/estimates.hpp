// What a family of candidates likely takes, by which the search goes: the best first. Estimates
// prune nothing; bounds.hpp has what does.
#pragma once

#include <optional>

#include "sim/cluster.hpp"
#include "tools/planner/candidate.hpp"
#include "tools/planner/shape_loads.hpp"
#include "tools/planner/space.hpp"

namespace stageline::planner {

/// The links that collectives go over, of one device.
struct Reach {
  int in_a_machine = 1;  // devices
  double inside = 0;     // bytes a second between two of them; 0: no limit
  double across = 0;     // between devices of two machines; 0: no limit
};
/// The links of the cluster's first device.
Reach reach_of(const Cluster& cluster);

/// Whether a schedule makes its order by a search, which takes as long as judging many others.
bool searches_order(const ScheduleSpec& spec);

/// The families of one shape.
class Estimates {
 public:
  /// `model`: of one rank, with undivided state. `limit`: the most that a device may hold.
  Estimates(const ShapeLoads& loads, const Model& model, const Shape& shape, const Reach& reach,
            std::optional<Bytes> limit);

  struct Estimate {
    double step = 0;    // seconds
    double memory = 0;  // bytes of the fullest device
  };
  /// A step with its fill, and with the reductions and gathers that compute does not hide. What
  /// likely does not fit is behind all that does.
  Estimate of(const Family& family, int stages) const;

 private:
  struct Memory {
    double stash = 0;    // of one micro-batch, all layers
    double rebuilt = 0;  // of what one backward makes again
    double again = 0;    // seconds to do so
  };
  Memory memory_of(const Family& family, int stages) const;
  double exchange(double bytes) const;

  ShapeLoads::Totals totals_;
  Reach reach_;
  std::optional<Bytes> limit_;
  Degrees degrees_;
  int devices_ = 1;  // of a pipeline
  double microbatches_ = 1;
  double weights_ = 0;    // bytes of a stage-parallel rank's layers together, undivided
  double gradients_ = 0;  // as weights_
  double outputs_ = 0;    // bytes of all layers' outputs
  double output_ = 0;     // of the largest one
};

}  // namespace stageline::planner
