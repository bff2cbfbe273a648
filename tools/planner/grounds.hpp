// The models that shapes share, with the least that their blocking collectives take. Bounds need no
// more, so the ranks of most shapes are never opened.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "tools/planner/candidate.hpp"
#include "tools/planner/estimates.hpp"
#include "tools/planner/evaluator.hpp"
#include "tools/planner/shape_loads.hpp"

namespace stageline::planner {

/// The models and least collectives of shapes, each found once. Thread-safe.
class Grounds {
 public:
  /// `evaluator` opens the shapes of a cluster with unequal devices, each one as a case.
  explicit Grounds(Evaluator& evaluator);
  ~Grounds();
  Grounds(const Grounds&) = delete;
  Grounds& operator=(const Grounds&) = delete;

  struct Found {
    ShapeLoads loads;
    std::optional<Bytes> limit;          // the most that a device may hold; empty: unknown
    std::shared_ptr<const Model> model;  // where micro-batches differ, their mean
    std::optional<ShapeLoads> usual{};   // of that mean; empty: as `loads`

    const ShapeLoads& expected() const { return usual ? *usual : loads; }
  };
  /// The loads, the limit and the model of a shape. Throws as Evaluator::setting().
  Found of(const Shape& shape);
  /// Adds to the shape's loads what the gathers of its weights expose (ZeRO 3). Opens its ranks.
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
  std::map<std::tuple<int, int, int, int, bool, std::string, int>, std::shared_ptr<Ground>>
      grounds_;
  std::optional<Device> device_;  // every device of the cluster; empty: they differ
  std::optional<double> pair_overlap_;
  Reach reach_;
};

}  // namespace stageline::planner
