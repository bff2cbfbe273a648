#include "cost_models/breakdown.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "cost_models/tied_weights.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

CostRow row_of(const Layer& layer, bool bytes_known) {
  CostRow row;
  row.name = layer.name;
  row.kind = layer.kind;
  row.forward = layer.forward;
  row.input_grad = layer.input_grad;
  row.weight_grad = layer.weight_grad;
  row.backward = layer.backward;
  row.update = layer.update;
  row.spread =
      layer.forward_spread + layer.update_spread +
      (layer.backward_spread > Time{} ? layer.backward_spread
                                      : layer.input_grad_spread + layer.weight_grad_spread);
  row.output = layer.output;
  row.stash = layer.stash_input_grad + layer.stash_weight_grad;
  row.weights = layer.weights;
  row.bytes_known = bytes_known;
  return row;
}

void add_row(CostRow& sum, const CostRow& row) {
  sum.layers += row.layers;
  sum.forward += row.forward;
  sum.input_grad += row.input_grad;
  sum.weight_grad += row.weight_grad;
  sum.backward += row.backward;
  sum.update += row.update;
  sum.spread = {};
  sum.output += row.output;
  sum.stash += row.stash;
  sum.weights += row.weights;
  sum.bytes_known = sum.bytes_known && row.bytes_known;
}

// The largest sums that are made, in floating point, which cannot overflow.
void check_sums(const Model& model) {
  double time = 0;
  double bytes = 0;
  for (const Layer& layer : model.layers) {
    const double apart = to_seconds(layer.input_grad) + to_seconds(layer.weight_grad);
    time += to_seconds(layer.forward) + std::max(apart, to_seconds(layer.backward)) +
            to_seconds(layer.update);
    bytes += std::max({static_cast<double>(layer.stash_input_grad.count) +
                           static_cast<double>(layer.stash_weight_grad.count),
                       static_cast<double>(layer.output.count),
                       static_cast<double>(layer.weights.count)});
  }
  constexpr double most_seconds = 9.2e6;  // of 2^63 ps
  constexpr double most_bytes = 9.2e18;   // of 2^63
  if (time > most_seconds) {
    throw UsageError(
        fmt::format("the layers of \"{}\" add up to {:.3g} s, and at most {:.3g} s can be added "
                    "up; check the unit of its times",
                    model.name, time, most_seconds));
  }
  if (bytes > most_bytes) {
    throw UsageError(
        fmt::format("the layers of \"{}\" add up to {:.3g} bytes, and at most {:.3g} can be added "
                    "up; check the unit of its sizes",
                    model.name, bytes, most_bytes));
  }
}

std::optional<double> longer_by(Time some, Time than) { return ratio(some - than, than); }

// Groups in the order in which their keys come first, then the largest first.
template <class Row, class Key, class Add, class Size>
std::vector<Row> grouped(const std::vector<Row>& rows, Key key, Add add_to, Size size) {
  std::vector<Row> groups;
  std::unordered_map<std::string, std::size_t> of;
  for (const Row& row : rows) {
    const auto [found, is_new] = of.emplace(key(row), groups.size());
    if (is_new) {
      groups.push_back(row);
    } else {
      add_to(groups[found->second], row);
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const Row& a, const Row& b) { return size(a) > size(b); });
  return groups;
}

// A kind's row bears its name.
void name_by_kind(CostRow& row, const std::string& kind) {
  row.name = kind;
  row.kind = kind;
}

}  // namespace

std::vector<CostRow> cost_rows(const Model& model, CostsBy by) {
  check_sums(model);
  std::vector<CostRow> rows;
  for (const Layer& layer : held_once(model).layers) {
    rows.push_back(row_of(layer, model.bytes_known));
  }
  if (by == CostsBy::layer) return rows;
  rows = grouped(
      rows, [](const CostRow& row) { return row.kind; }, add_row,
      [](const CostRow& row) { return row.step(); });
  for (CostRow& row : rows) name_by_kind(row, row.kind);
  return rows;
}

CostRow sum_of(const std::vector<CostRow>& rows, const std::string& name) {
  CostRow sum;
  sum.layers = 0;
  for (const CostRow& row : rows) add_row(sum, row);
  sum.name = name;
  return sum;
}

std::vector<std::size_t> largest(const std::vector<Time>& times, int top) {
  std::vector<std::size_t> order(times.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (times.size() <= as_size(top)) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return times[a] > times[b]; });
  order.resize(as_size(top));
  return order;
}

std::optional<CostCheck> check_of(const Model& model) {
  const WholeRun& whole = model.whole;
  if (whole.samples == 0) return std::nullopt;
  const CostRow sum = sum_of(cost_rows(model, CostsBy::layer), "");
  CostCheck check;
  check.samples = whole.samples;
  check.layers = sum.step();
  check.whole = whole.forward + whole.backward + whole.update;
  check.difference = longer_by(check.layers, check.whole);
  check.forward = longer_by(sum.forward, whole.forward);
  check.backward = longer_by(sum.backward, whole.backward);
  check.update = longer_by(sum.update, whole.update);
  check.spread = ratio(whole.spread, check.whole);
  check.noise = ratio(whole.noise, check.whole);
  check.within_noise = std::chrono::abs(check.layers - check.whole) <= whole.noise;
  return check;
}

std::optional<double> ratio(Time some, Time of) {
  if (of == Time{}) return std::nullopt;
  return static_cast<double>(some.count()) / static_cast<double>(of.count());
}

std::optional<double> split_over_fused(const CostRow& row) {
  return ratio(row.input_grad + row.weight_grad, row.backward);
}

CostsAgainst costs_against(const Model& first, const Model& second) {
  const std::vector<CostRow> rows = cost_rows(first, CostsBy::layer);
  const std::vector<CostRow> others = cost_rows(second, CostsBy::layer);
  std::unordered_map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < others.size(); ++i) place.emplace(others[i].name, i);
  std::vector<bool> matched(others.size(), false);
  CostsAgainst against;
  for (const CostRow& row : rows) {
    const auto found = place.find(row.name);
    if (found == place.end() || matched[found->second]) {
      against.only_first.push_back(row.name);
      continue;
    }
    matched[found->second] = true;
    against.layers.push_back({row, others[found->second]});
  }
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (!matched[i]) against.only_second.push_back(others[i].name);
  }
  if (against.layers.empty()) {
    throw UsageError(fmt::format(
        "no layer of \"{}\" bears the name of a layer of \"{}\" (their first are \"{}\" and "
        "\"{}\"); compare two traces of one model, whose layers are named alike",
        first.name, second.name, rows.front().name, others.front().name));
  }
  const CostPair total = sum_of(against.layers, "total");
  against.updates = (total.first.update > Time{}) == (total.second.update > Time{});
  if (!against.updates) {
    for (CostPair& pair : against.layers) pair.first.update = pair.second.update = Time{};
  }
  against.total = sum_of(against.layers, "total");
  return against;
}

std::vector<CostPair> cost_pairs(const CostsAgainst& against, CostsBy by) {
  if (by == CostsBy::layer) return against.layers;
  std::vector<CostPair> pairs = grouped(
      against.layers, [](const CostPair& pair) { return pair.first.kind; },
      [](CostPair& sum, const CostPair& pair) {
        add_row(sum.first, pair.first);
        add_row(sum.second, pair.second);
      },
      [](const CostPair& pair) { return pair.longer(); });
  for (CostPair& pair : pairs) {
    const std::string kind = pair.first.kind;
    name_by_kind(pair.first, kind);
    name_by_kind(pair.second, kind);
  }
  return pairs;
}

CostPair sum_of(const std::vector<CostPair>& pairs, const std::string& name) {
  std::vector<CostRow> first;
  std::vector<CostRow> second;
  for (const CostPair& pair : pairs) {
    first.push_back(pair.first);
    second.push_back(pair.second);
  }
  return {sum_of(first, name), sum_of(second, name)};
}

DifferMost differ_most(const CostsAgainst& against) {
  constexpr std::size_t most = 3;
  constexpr double matters = 0.01;     // share of a total
  constexpr double noticeable = 0.01;  // off the ratio of the totals
  const auto keep = [](std::vector<std::pair<double, const CostPair*>> scored) {
    std::stable_sort(scored.begin(), scored.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<CostPair> kept;
    for (const auto& [score, pair] : scored) {
      if (kept.size() < most) kept.push_back(*pair);
    }
    return kept;
  };
  std::vector<std::pair<double, const CostPair*>> by_ratio;
  std::vector<std::pair<double, const CostPair*>> by_time;
  const std::optional<double> all = ratio(against.total.first.step(), against.total.second.step());
  const auto share = [](const CostRow& row, const CostRow& total) {
    return ratio(row.step(), total.step()).value_or(0);
  };
  for (const CostPair& pair : against.layers) {
    const Time first = pair.first.step();
    const Time second = pair.second.step();
    if (first != second) by_time.emplace_back(std::abs(to_seconds(first - second)), &pair);
    if (!all || *all == 0 ||
        std::max(share(pair.first, against.total.first), share(pair.second, against.total.second)) <
            matters) {
      continue;
    }
    // Infinitely far where one of the two takes no time.
    const double off = first == Time{} || second == Time{}
                           ? std::numeric_limits<double>::infinity()
                           : std::abs(std::log(*ratio(first, second) / *all));
    if (off > std::log1p(noticeable)) by_ratio.emplace_back(off, &pair);
  }
  return {keep(std::move(by_ratio)), keep(std::move(by_time))};
}

}  // namespace stageline
