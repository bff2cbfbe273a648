// The models that shapes share, with what their blocking collectives take at least: enough for
// bounds, without the ranks of every shape.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>

#include "tools/planner/candidate.hpp"
#include "tools/planner/estimates.hpp"
#include "tools/planner/evaluator.hpp"
#include "tools/planner/shape_loads.hpp"

namespace stageline {

/// Threads may call it at the same time.
class Grounds {
 public:
  /// `evaluator`: opens what cannot be known otherwise, shapes on unequal devices.
  explicit Grounds(Evaluator& evaluator);
  ~Grounds();
  Grounds(const Grounds&) = delete;
  Grounds& operator=(const Grounds&) = delete;

  struct Found {
    ShapeLoads loads;
    std::optional<Bytes> limit;  // the most that a device may hold; empty: unknown
    std::shared_ptr<const Model> model;
  };
  /// Throws as Evaluator::setting().
  Found of(const Shape& shape);
  /// Adds to the loads of the shape what gathers of its weights expose: opens its ranks.
  void add_gathers(const Shape& shape, ShapeLoads& loads, const Model& model);
  const Reach& reach() const { return reach_; }

 private:
  struct Ground;
  std::shared_ptr<Ground> ground(const Shape& shape);
  Found opened(const Shape& shape);

  struct Gathers;

  Evaluator& evaluator_;
  std::mutex access_;
  std::map<std::tuple<int, int, int>, std::shared_ptr<Gathers>> gathers_;  // by degrees
  std::map<std::tuple<int, int, int, bool, int>, std::shared_ptr<Ground>> grounds_;
  std::optional<Device> device_;  // every device of the cluster; empty: they differ
  double pair_overlap_ = 0;
  Reach reach_;
};

}  // namespace stageline
