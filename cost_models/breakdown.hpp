// What the layers of a trace cost, in rows that can be grouped and added up; the check of a
// measured trace; two traces layer by layer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/model.hpp"

namespace stageline {

/// One layer, or several together, for one micro-batch.
struct CostRow {
  std::string name;
  std::string kind;    // empty where layers of several kinds are together
  int layers = 1;      // that are added up
  Time forward{};      // F
  Time input_grad{};   // I
  Time weight_grad{};  // W
  Time backward{};     // B, both at once
  Time update{};       // U
  Time spread{};       // of F, B and update, added; of I and W where B's was not measured. 0: not
                       // measured, or several layers, whose spreads do not add up
  Bytes output{};      // the activation that it sends on
  Bytes stash{};       // for I and for W
  Bytes weights{};     // one version
  bool bytes_known = true;  // false: all three are 0 because none were measured

  Time step() const { return forward + backward + update; }
  friend bool operator==(const CostRow&, const CostRow&) = default;
};

enum class CostsBy : std::uint8_t { layer, kind };

/// Rows in the order of the model, or a row for each kind, the most expensive first. Weights that
/// are those of the first layer are counted and updated there alone, as on one device. Throws
/// UsageError when the times or bytes of the layers add up to more than 2^63 − 1 (106 days).
std::vector<CostRow> cost_rows(const Model& model, CostsBy by);

/// All rows as one.
CostRow sum_of(const std::vector<CostRow>& rows, const std::string& name);

/// Which rows to show: the `top` largest, largest first and otherwise in order; all, in order, when
/// there are not more than `top`.
std::vector<std::size_t> largest(const std::vector<Time>& times, int top);

/// How much longer the layers are, added up, than the whole model run plainly: 0.02 is 2 % longer.
/// Nothing where the whole takes no time.
struct CostCheck {
  int samples = 0;
  Time layers{};                     // F + B + update, added up
  Time whole{};                      // run plainly
  std::optional<double> difference;  // of the three together
  std::optional<double> forward;     // of F alone
  std::optional<double> backward;    // of B alone
  std::optional<double> update;      // of U alone
  std::optional<double> spread;      // half the interquartile range of the whole, as a share of it
  std::optional<double> noise;       // smaller differences are not significant
  bool within_noise = false;         // whether the difference is at most that
};
/// Nothing when the whole was not measured.
std::optional<CostCheck> check_of(const Model& model);

/// some / of; nothing when `of` is zero.
std::optional<double> ratio(Time some, Time of);

/// (I + W) / B: what running the halves of the backward apart costs. Nothing without a backward.
std::optional<double> split_over_fused(const CostRow& row);

/// A layer, or several, in two traces.
struct CostPair {
  CostRow first;
  CostRow second;
  Time longer() const { return std::max(first.step(), second.step()); }
};

struct CostsAgainst {
  std::vector<CostPair> layers;  // that both have, in the order of the first trace
  CostPair total;                // of these
  std::vector<std::string> only_first;
  std::vector<std::string> only_second;
  bool updates = true;  // whether both traces know the optimizer's time; if not, it is left out
};

/// Matches layers by name. Throws UsageError when no name is in both.
CostsAgainst costs_against(const Model& first, const Model& second);

/// The layers' pairs, or a pair for each kind (as the first trace calls it), the longest first.
std::vector<CostPair> cost_pairs(const CostsAgainst& against, CostsBy by);
CostPair sum_of(const std::vector<CostPair>& pairs, const std::string& name);

/// The layers that differ most, three at most of each. By ratio: furthest, on a log scale, from the
/// ratio of the totals, among the layers over 1 % of either total and only where they are 1 % off.
/// By time: the largest |first − second|, zero left out.
struct DifferMost {
  std::vector<CostPair> by_ratio;
  std::vector<CostPair> by_time;
};
DifferMost differ_most(const CostsAgainst& against);

}  // namespace stageline
