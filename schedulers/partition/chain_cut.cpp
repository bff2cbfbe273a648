// Bisection on the largest piece; for one limit, the pieces are filled from the front.
//
//   limit 5, F1 W1 are 2 each, I2 is 4 and may be cut, F2 is 3:
//
//     F1 F1 W1 W1 I2 | I2 I2 I2 F2 F2 | F2…     no: F2 is not divisible, so
//     F1 F1 W1 W1 I2 | I2 I2 I2 __ __ | F2 F2 F2
//
// Why filling is right. After some pieces let `whole` be the farthest edge between items that they
// can reach, and `part` the most of item `whole` that they can hold besides (0: nothing; it counts
// as a way of its own, since an item begun cannot be cut again). No other way to fill these pieces
// can do better from here on:
//  * one that ends at an earlier edge: take any continuation of it, and move to `whole` every
//    boundary that lies before `whole`. Pieces only lose work, and no item is cut that was not.
//  * one that ends inside an earlier item: the rest of it must go to one piece, so again the
//    continuation can be moved to `whole`.
//  * one that ends inside item `whole` with less of it: the continuation gives the rest to one
//    piece; after a larger part that rest is smaller.
//  * none ends inside a later item: it would have reached that item's edge.
// So two numbers describe the state, and each piece has one best move: with room for the rest
// of the item begun, finish it and fill on from there (that goes at least as far as filling from
// the edge); else fill from the edge, which ends inside the same item, since the rest alone was too
// large, and keep the larger part. A piece that cannot improve stays empty.
//
// The limit counts in whole picoseconds, and what fits under a limit fits under a larger one.
#include "schedulers/partition/chain_cut.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <tuple>

#include "schedulers/partition/cuts.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// A place in the chain: before item `item`, or `inside` picoseconds into it.
struct Place {
  std::size_t item = 0;
  std::int64_t inside = 0;

  friend auto operator<=>(const Place&, const Place&) = default;
};

struct Chain {
  const std::vector<ChainItem>& items;
  Division division;
  std::vector<double> rates;         // by piece
  std::vector<std::int64_t> before;  // ps of the items before this one; one more than items

  std::size_t pieces() const { return rates.size(); }
  std::int64_t time(std::size_t item) const { return items[item].time.count(); }
  std::int64_t at(Place place) const { return before[place.item] + place.inside; }
};

// The most work whose time on a device of that rate is within the limit.
std::int64_t room_of(double rate, std::int64_t limit) {
  if (rate == 1) return limit;
  const double most = (static_cast<double>(limit) + 0.5) * rate;
  // No chain that a run is made of is longer.
  if (most >= static_cast<double>(longest_run.count())) return longest_run.count();
  auto work = static_cast<std::int64_t>(most);
  while (work > 0 && on_device(Time{work}, rate).count() > limit) --work;
  while (on_device(Time{work + 1}, rate).count() <= limit) ++work;
  return work;
}

// How much of an item can end a piece that has `left` for it, which is less than all of it.
std::int64_t first_part(const Chain& chain, std::size_t item, std::int64_t left) {
  if (item == chain.items.size() || !chain.items[item].divisible) return 0;
  switch (chain.division) {
    case Division::never:
      return 0;
    case Division::half:
      return chain.time(item) / 2 <= left ? chain.time(item) / 2 : 0;
    case Division::anywhere:
      return left;
  }
  std::abort();  // unreachable
}

// Where each piece ends when all are filled; nothing when that does not cover the chain.
std::optional<std::vector<Place>> fill(const Chain& chain, std::int64_t limit) {
  std::vector<Place> ends(chain.pieces());
  std::size_t whole = 0;
  std::int64_t part = 0;        // of item `whole`,
  std::size_t part_holder = 0;  // in that piece
  for (std::size_t piece = 0; piece < chain.pieces(); ++piece) {
    std::int64_t left = room_of(chain.rates[piece], limit);
    if (part > 0 && chain.time(whole) - part <= left) {
      for (std::size_t p = part_holder; p < piece; ++p) ends[p] = {whole, part};
      left -= chain.time(whole) - part;
      ++whole;
      part = 0;
    }
    const std::size_t from = whole;
    while (whole < chain.items.size() && chain.time(whole) <= left) left -= chain.time(whole++);
    if (whole > from) part = 0;
    const std::int64_t more = first_part(chain, whole, left);
    if (more > part) {
      part = more;
      part_holder = piece;
    }
    ends[piece] = {whole, 0};
  }
  if (whole < chain.items.size()) return std::nullopt;
  return ends;
}

std::int64_t smallest_limit(const Chain& chain) {
  const double fastest = *std::max_element(chain.rates.begin(), chain.rates.end());
  std::int64_t low = 0;
  std::int64_t high = on_device(Time{chain.before.back()}, fastest).count();  // all on that piece
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (fill(chain, middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

// Filling leaves little for the last pieces and divides what it need not. From the back, every
// boundary moves towards the front to the best place that the piece behind it has room for: an
// edge, or where filling divided an item. That only takes work off the piece before it; boundaries
// farther in front are drawn along where they would be overtaken.
void ease(const Chain& chain, std::int64_t limit, std::vector<Place>& ends) {
  const double rates = std::accumulate(chain.rates.begin(), chain.rates.end(), 0.0);
  std::vector<std::int64_t> divided(chain.items.size() + 1);  // by item, how far inside; 0: not
  for (const Place& end : ends) divided[end.item] = std::max(divided[end.item], end.inside);
  double behind = 0;  // rates of the pieces behind the boundary
  for (std::size_t piece = chain.pieces() - 1; piece > 0; --piece) {
    behind += chain.rates[piece];
    const Place next = ends[piece];
    Place& begin = ends[piece - 1];
    begin = std::min(begin, next);
    const std::int64_t room = room_of(chain.rates[piece], limit);
    const double even = static_cast<double>(chain.before.back()) * (1 - behind / rates);
    // By how bad it is: a piece remains empty that need not; inside an item; inside a layer; uneven
    const auto badness = [&](Place place) {
      const std::size_t begun = place.item + (place.inside > 0 ? 1 : 0);
      const bool empty = begun < piece || place == next;
      const bool in_layer =
          place.inside > 0 || (place.item > 0 && place.item < chain.items.size() &&
                               chain.items[place.item - 1].layer == chain.items[place.item].layer);
      return std::tuple(empty, place.inside > 0, in_layer,
                        std::abs(static_cast<double>(chain.at(place)) - even));
    };
    const Place last = begin;
    for (std::size_t item = last.item + 1; item-- > 0;) {
      for (const Place place : {Place{item, divided[item]}, Place{item, 0}}) {
        if (place > last || chain.at(next) - chain.at(place) > room) continue;
        if (badness(place) < badness(begin)) begin = place;
      }
      if (chain.at(next) - chain.at({item, 0}) > room) break;
    }
  }
}

Chain chain_of(const std::vector<ChainItem>& items, int pieces, Division division,
               const std::vector<double>& rates) {
  if (pieces < 1) {
    throw UsageError(fmt::format("a chain needs at least 1 piece ({} were asked for)", pieces));
  }
  const auto count = as_size(pieces);
  if (!rates.empty() && rates.size() != count) {
    throw UsageError(fmt::format("{} pieces need as many rates, not {}", pieces, rates.size()));
  }
  for (const double rate : rates) {
    if (!(rate > 0)) throw UsageError(fmt::format("a piece's rate must be above 0, not {}", rate));
  }
  Chain chain{items, division, rates.empty() ? std::vector<double>(count, 1.0) : rates, {0}};
  for (const ChainItem& item : items) {
    chain.before.push_back(chain.before.back() + item.time.count());
  }
  return chain;
}

}  // namespace

ChainCut chain_cut(const std::vector<ChainItem>& items, int pieces, Division division,
                   const std::vector<double>& rates) {
  const Chain chain = chain_of(items, pieces, division, rates);
  const std::int64_t limit = smallest_limit(chain);
  std::vector<Place> ends = *fill(chain, limit);
  ease(chain, limit, ends);
  ChainCut cut;
  cut.largest = Time{limit};
  std::size_t piece = 0;
  for (std::size_t item = 0; item < items.size(); ++item) {
    std::vector<ChainShare> shares;
    std::int64_t given = 0;
    while (ends[piece] <= Place{item, 0}) ++piece;
    while (ends[piece] < Place{item + 1, 0}) {  // cut; empty pieces may end at the same place
      if (ends[piece].inside > given) {
        shares.push_back({static_cast<int>(piece), Time{ends[piece].inside - given}});
        given = ends[piece].inside;
      }
      ++piece;
    }
    shares.push_back({static_cast<int>(piece), Time{chain.time(item) - given}});
    cut.shares.push_back(std::move(shares));
  }
  return cut;
}

namespace {

// The largest of the components.
Time slowest(const SideBySide& times) { return *std::max_element(times.begin(), times.end()); }

SideBySide plus(SideBySide a, const SideBySide& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

// The last layers of pieces that are filled up to the limit, every piece but at least one layer
// left for each behind it; more than `pieces` - 1 of them when the layers do not fit. Filling is
// right here for the same reason: farther is better, and nothing is cut.
std::vector<int> fill(const std::vector<SideBySide>& layers, std::size_t pieces, Time limit) {
  std::vector<int> last_layers;
  SideBySide held{};
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const SideBySide more = plus(held, layers[layer]);
    const std::size_t behind = pieces - std::min(pieces, last_layers.size() + 1);
    if (layer > 0 && (slowest(more) > limit || layers.size() - layer <= behind)) {
      last_layers.push_back(static_cast<int>(layer) - 1);
      held = layers[layer];
    } else {
      held = more;
    }
  }
  return last_layers;
}

struct Side {
  Time largest{};
  std::vector<int> last_layers;
};

Side cut_side(const std::vector<SideBySide>& layers, int pieces) {
  const auto count = as_size(pieces);
  Time low{};
  SideBySide all{};
  for (const SideBySide& layer : layers) {
    low = std::max(low, slowest(layer));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] <= longest_run - layer[i]) continue;
      throw UsageError(fmt::format(
          "{} layers take over {:.3g} s to compute or to move, and at most {:.3g} s (53 days) can "
          "be added up; check the units of times and links",
          layers.size(), to_seconds(all[i]), to_seconds(longest_run)));
    }
    all = plus(all, layer);
  }
  Time high = slowest(all);
  while (low < high) {
    const Time middle = low + (high - low) / 2;
    if (fill(layers, count, middle).size() < count) {
      high = middle;
    } else {
      low = middle + Time{1};
    }
  }
  return {high, fill(layers, count, high)};
}

SplitCut joined(const Side& forward, const Side& backward) {
  return {std::max(forward.largest, backward.largest), forward.last_layers, backward.last_layers};
}

void check_sides(const std::vector<SideBySide>& forward, const std::vector<SideBySide>& backward) {
  if (forward.size() == backward.size()) return;
  throw UsageError(fmt::format("the forwards of {} layers cannot be matched with backwards of {}",
                               forward.size(), backward.size()));
}

}  // namespace

SplitCut split_cut(const std::vector<SideBySide>& forward, const std::vector<SideBySide>& backward,
                   int forward_pieces, int backward_pieces) {
  check_sides(forward, backward);
  const int layers = static_cast<int>(forward.size());
  for (const int pieces : {forward_pieces, backward_pieces}) {
    if (pieces >= 1 && pieces <= layers) continue;
    throw UsageError(fmt::format(
        "{} devices for forward and {} for backward: each side of {} layers needs 1 to {}",
        forward_pieces, backward_pieces, layers, layers));
  }
  return joined(cut_side(forward, forward_pieces), cut_side(backward, backward_pieces));
}

SplitCut split_cut(const std::vector<SideBySide>& forward, const std::vector<SideBySide>& backward,
                   int pieces) {
  check_sides(forward, backward);
  const int layers = static_cast<int>(forward.size());
  std::optional<SplitCut> best;
  for (int for_forward = std::max(1, pieces - layers); for_forward <= std::min(layers, pieces - 1);
       ++for_forward) {
    const SplitCut here =
        joined(cut_side(forward, for_forward), cut_side(backward, pieces - for_forward));
    if (!best || here.largest < best->largest) best = here;
  }
  if (best) return *best;
  throw UsageError(
      fmt::format("{} devices for forward and backward apart: {} layers can use 2 to {}", pieces,
                  layers, 2 * layers));
}

}  // namespace stageline
