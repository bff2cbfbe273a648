// Are the cuts of a chain the best ones, and what do they give for LayerPipe?
#include "schedulers/partition/chain_cut.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>

#include "cost_models/shapes/shapes.hpp"
#include "schedulers/partition/cuts.hpp"
#include "sim/base/errors.hpp"
#include "tests/partition/models.hpp"

namespace stageline::chain_cut_tests {

using namespace stageline::testing;

namespace {

const std::vector<Division> divisions = {Division::never, Division::half, Division::anywhere};

std::vector<ChainItem> random_chain(std::mt19937& random, int items) {
  std::vector<ChainItem> chain;
  int layer = 0;
  for (int i = 0; i < items; ++i) {
    if (draw(random, 3) == 0) ++layer;
    chain.push_back({Time{draw(random, 8)}, draw(random, 2) == 0, layer, OpKind::forward});
  }
  return chain;
}

std::int64_t slowest(const std::vector<std::int64_t>& work, const std::vector<double>& rates) {
  std::int64_t most = 0;
  for (std::size_t p = 0; p < work.size(); ++p) {
    most = std::max(most, on_device(Time{work[p]}, rates[p]).count());
  }
  return most;
}

// Every way to give the items from `item` on to the pieces from `piece` on, by the definition.
std::int64_t best_of_all(const std::vector<ChainItem>& chain, Division division,
                         const std::vector<double>& rates, std::vector<std::int64_t>& work,
                         std::size_t item = 0, std::size_t piece = 0) {
  if (item == chain.size()) return slowest(work, rates);
  std::int64_t best = INT64_MAX;
  const std::int64_t time = chain[item].time.count();
  for (std::size_t p = piece; p < rates.size(); ++p) {
    work[p] += time;
    best = std::min(best, best_of_all(chain, division, rates, work, item + 1, p));
    work[p] -= time;
    if (!chain[item].divisible || division == Division::never) continue;
    for (std::int64_t part = 1; part < time; ++part) {
      if (division == Division::half && part != time / 2) continue;
      for (std::size_t q = p + 1; q < rates.size(); ++q) {
        work[p] += part;
        work[q] += time - part;
        best = std::min(best, best_of_all(chain, division, rates, work, item + 1, q));
        work[p] -= part;
        work[q] -= time - part;
      }
    }
  }
  return best;
}

// That it is a cut, and as large as it says.
void check_cut(const std::vector<ChainItem>& chain, Division division,
               const std::vector<double>& rates, const ChainCut& cut) {
  REQUIRE(cut.shares.size() == chain.size());
  std::vector<std::int64_t> work(rates.size());
  int piece = 0;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const std::vector<ChainShare>& shares = cut.shares[i];
    REQUIRE(!shares.empty());
    REQUIRE(shares.size() <= (chain[i].divisible && division != Division::never ? 2U : 1U));
    Time sum{};
    for (const ChainShare& share : shares) {
      REQUIRE(share.piece >= piece);
      REQUIRE(share.piece < static_cast<int>(rates.size()));
      piece = share.piece;
      sum += share.time;
      nth(work, piece) += share.time.count();
    }
    CHECK(sum == chain[i].time);
    if (shares.size() < 2) continue;
    CHECK(shares[0].piece < shares[1].piece);
    CHECK(shares[0].time > Time{});
    CHECK(shares[1].time > Time{});
    if (division == Division::half) CHECK(shares[0].time == chain[i].time / 2);
  }
  CHECK(cut.largest.count() == slowest(work, rates));
}

void compare_with_all_cuts(unsigned seed, bool equal_rates) {
  std::mt19937 random(seed);
  for (int round = 0; round < 600; ++round) {
    const std::vector<ChainItem> chain = random_chain(random, 1 + draw(random, 5));
    std::vector<double> rates(as_size(1 + draw(random, 4)), 1.0);
    for (double& rate : rates) {
      if (!equal_rates) rate = 0.25 * (1 + draw(random, 8));
    }
    CAPTURE(round);
    for (const Division division : divisions) {
      CAPTURE(static_cast<int>(division));
      const ChainCut cut = chain_cut(chain, static_cast<int>(rates.size()), division, rates);
      check_cut(chain, division, rates, cut);
      std::vector<std::int64_t> work(rates.size());
      CHECK(cut.largest.count() == best_of_all(chain, division, rates, work));
    }
  }
}

// `F1 W1 I2 F2 W2 I3 …`: LayerPipe's chain; the first layer needs no input gradient.
std::vector<ChainItem> layerpipe_chain(const std::vector<std::int64_t>& times) {
  std::vector<ChainItem> chain;
  for (std::size_t l = 0; l < times.size(); ++l) {
    const int layer = static_cast<int>(l);
    if (l > 0) chain.push_back({Time{times[l]}, true, layer, OpKind::input_grad});
    chain.push_back({Time{times[l]}, false, layer, OpKind::forward});
    chain.push_back({Time{times[l]}, false, layer, OpKind::weight_grad});
  }
  return chain;
}

std::vector<ChainItem> of_times(const std::vector<std::int64_t>& times, bool divisible) {
  std::vector<ChainItem> chain;
  for (std::size_t i = 0; i < times.size(); ++i) {
    chain.push_back({Time{times[i]}, divisible, static_cast<int>(i), OpKind::forward});
  }
  return chain;
}

// "0 0 1:3+2:4 2": the piece of each item, and of a divided one both with their times.
std::string text(const ChainCut& cut) {
  std::string out;
  for (const std::vector<ChainShare>& shares : cut.shares) {
    if (!out.empty()) out += ' ';
    for (std::size_t i = 0; i < shares.size(); ++i) {
      out += (i > 0 ? "+" : "") + std::to_string(shares[i].piece);
      if (shares.size() > 1) out += ":" + std::to_string(shares[i].time.count());
    }
  }
  return out;
}

}  // namespace

TEST_CASE("no way to cut a chain has a smaller largest piece") { compare_with_all_cuts(1, true); }

TEST_CASE("the same holds for pieces of different speed") { compare_with_all_cuts(2, false); }

TEST_CASE("equal layers on as many pieces: 3 - 1/L, a share of 1 - (l-1)/L goes down") {
  for (int layers = 2; layers <= 9; ++layers) {
    CAPTURE(layers);
    const std::int64_t time = 1000 * layers;
    const std::vector<ChainItem> chain =
        layerpipe_chain(std::vector<std::int64_t>(as_size(layers), time));
    const ChainCut cut = chain_cut(chain, layers, Division::anywhere);
    CHECK(cut.largest.count() == 3 * time - 1000);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const int l = chain[i].layer + 1;  // from 1, as the paper counts
      CAPTURE(l);
      if (chain[i].kind == OpKind::input_grad) {
        const Time down{time - 1000 * (l - 1)};
        CHECK(cut.shares[i] == std::vector<ChainShare>{{l - 2, down}, {l - 1, Time{time} - down}});
      } else {
        CHECK(cut.shares[i] == std::vector<ChainShare>{{l - 1, Time{time}}});
      }
    }
    CHECK(chain_cut(chain, layers, Division::never).largest.count() == 3 * time);
  }
}

// Counted as the published figures need it: multiply-accumulates of convolutions and linear layers,
// F = I = W, no I of the first layer on either side, no downsampling convolutions on skips, and
// AlexNet in its one-tower form. (With the downsampling, ResNet-18 would give 1.10/1.28/1.14; with
// the I of the first layer in PipeDream's account 1.16 at 9.)
TEST_CASE("LayerPipe's rebuilt assignment over PipeDream's whole layers, by multiply-accumulates") {
  const std::map<std::string, std::vector<double>> ratios = {{"vgg16", {1.12, 1.30, 1.50}},
                                                             {"vgg11", {1.50, 1.77, 2.00}},
                                                             {"alexnet", {2.00, 2.28, 2.35}},
                                                             {"resnet18", {1.07, 1.25, 1.15}}};
  for (const auto& row : ratios) {
    CAPTURE(row.first);
    std::vector<std::int64_t> macs;
    std::vector<ChainItem> whole;  // F + I + W of a layer
    for (const LayerShape& layer : model_shape(row.first).layers) {
      if (layer.kind == "pool" || layer.name.find("downsample") != std::string::npos) continue;
      macs.push_back(layer.ops.front().forward.flops / 2);
      whole.push_back({Time{macs.back() * (whole.empty() ? 2 : 3)}});
    }
    const std::vector<ChainItem> chain = layerpipe_chain(macs);
    for (std::size_t i = 0; i < 3; ++i) {
      const int pieces = 7 + static_cast<int>(i);
      CAPTURE(pieces);
      const Time pipedream = chain_cut(whole, pieces, Division::never).largest;
      const Time layerpipe = chain_cut(chain, pieces, Division::anywhere).largest;
      const double ratio =
          static_cast<double>(pipedream.count()) / static_cast<double>(layerpipe.count());
      CHECK(std::abs(ratio - row.second[i]) <= 0.00501);
    }
  }
}

TEST_CASE("an item is begun only where its rest fits one piece") {
  // Filled to the brim, the first piece would leave 9 to the other two, which may not share it.
  const std::vector<ChainItem> chain = {{Time{4}, false, 0, OpKind::forward},
                                        {Time{10}, true, 1, OpKind::forward}};
  const ChainCut cut = chain_cut(chain, 3, Division::anywhere);
  CHECK(cut.largest == Time{5});
  CHECK(text(cut) == "0 1:5+2:5");
}

TEST_CASE("halves of an odd time are whole picoseconds, the first the smaller") {
  const ChainCut cut = chain_cut(of_times({7}, true), 2, Division::half);
  CHECK(cut.largest == Time{4});
  CHECK(text(cut) == "0:3+1:4");
}

TEST_CASE("nothing is divided where a boundary between items is as good") {
  CHECK(text(chain_cut(of_times({3, 3, 3}, true), 2, Division::half)) == "0 0:1+1:2 1");
  CHECK(text(chain_cut(of_times({6, 3, 2}, true), 2, Division::never)) == "0 1 1");
  CHECK(text(chain_cut(of_times({4, 1, 1}, true), 3, Division::anywhere)) == "0:2+1:2 2 2");
  CHECK(text(chain_cut(of_times({5, 5, 1, 1}, true), 2, Division::anywhere)) == "0 0:1+1:4 1 1");
  // Two pieces of 6 are needed for the first item; the others could be begun on the second.
  std::vector<ChainItem> chain = of_times({12, 2, 2, 2}, true);
  CHECK(text(chain_cut(chain, 3, Division::half)) == "0:6+1:6 2 2 2");
}

TEST_CASE("with room for it, the boundaries stand between layers") {
  std::vector<ChainItem> chain = of_times({9, 1, 1, 1, 1, 1, 1}, false);
  for (std::size_t i = 1; i < chain.size(); ++i) chain[i].layer = 1 + static_cast<int>(i - 1) / 2;
  CHECK(text(chain_cut(chain, 3, Division::never)) == "0 1 1 2 2 2 2");
}

TEST_CASE("no piece is empty that need not be") {
  CHECK(text(chain_cut(of_times({5, 1, 1, 1}, false), 4, Division::never)) == "0 1 2 3");
  CHECK(text(chain_cut(of_times({1, 1, 1, 5}, false), 4, Division::never)) == "0 1 2 3");
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    const std::vector<ChainItem> chain = random_chain(random, 3 + draw(random, 9));
    const int pieces = 1 + draw(random, static_cast<int>(chain.size()));
    for (const Division division : divisions) {
      std::set<int> used;
      for (const auto& shares : chain_cut(chain, pieces, division).shares) {
        for (const ChainShare& share : shares) used.insert(share.piece);
      }
      CHECK(static_cast<int>(used.size()) == pieces);
    }
  }
}

TEST_CASE("more pieces than items leave some empty, and a piece too slow for anything too") {
  const ChainCut cut = chain_cut(of_times({3, 4}, false), 4, Division::never);
  CHECK(cut.largest == Time{4});
  CHECK(cut.shares[0][0].piece < cut.shares[1][0].piece);
  CHECK(text(chain_cut(of_times({8, 8}, false), 3, Division::never, {1, 0.1, 1})) == "0 2");
  CHECK(text(chain_cut(of_times({16}, true), 3, Division::anywhere, {1, 0.01, 1})) == "0:8+2:8");
  CHECK(chain_cut({}, 2, Division::anywhere).largest == Time{});
}

TEST_CASE("a chain of a thousand layers on 64 pieces: one picosecond less is too little") {
  std::mt19937 random(4);
  std::vector<std::int64_t> times;
  for (int l = 0; l < 1000; ++l) times.push_back(1'000'000 + draw(random, 1'000'000'000));
  const std::vector<ChainItem> chain = layerpipe_chain(times);
  const ChainCut cut = chain_cut(chain, 64, Division::anywhere);
  check_cut(chain, Division::anywhere, std::vector<double>(64, 1.0), cut);
  std::int64_t all = 0;
  for (const ChainItem& item : chain) all += item.time.count();
  CHECK(cut.largest.count() >= (all + 63) / 64);
  CHECK(cut.largest < chain_cut(chain, 64, Division::half).largest);
}

TEST_CASE("pieces and rates that make no sense are refused") {
  CHECK_THROWS_WITH_AS(chain_cut({}, 0, Division::never),
                       "a chain needs at least 1 piece (0 were asked for)", UsageError);
  CHECK_THROWS_WITH_AS(chain_cut({}, 2, Division::never, {1.0}),
                       "2 pieces need as many rates, not 1", UsageError);
  CHECK_THROWS_WITH_AS(chain_cut({}, 1, Division::never, {0.0}),
                       "a piece's rate must be above 0, not 0", UsageError);
}

namespace {

// The largest piece of all cuts into that many pieces, the least of them.
std::int64_t best_side(const std::vector<SideBySide>& layers, int pieces) {
  std::int64_t best = INT64_MAX;
  for (const std::vector<int>& last_layers : all_cuts(static_cast<int>(layers.size()), pieces)) {
    std::vector<int> ends = last_layers;
    ends.push_back(static_cast<int>(layers.size()) - 1);
    std::int64_t largest = 0;
    int layer = 0;
    for (const int end : ends) {
      std::array<std::int64_t, 3> sums{};
      for (; layer <= end; ++layer) {
        for (std::size_t c = 0; c < 3; ++c) {
          sums[c] += nth(layers, layer)[c].count();
        }
      }
      largest = std::max(largest, *std::max_element(sums.begin(), sums.end()));
    }
    best = std::min(best, largest);
  }
  return best;
}

std::int64_t largest_of(const std::vector<SideBySide>& layers, std::vector<int> ends) {
  ends.push_back(static_cast<int>(layers.size()) - 1);
  std::int64_t largest = 0;
  int layer = 0;
  for (const int end : ends) {
    REQUIRE(end >= layer);
    for (std::size_t c = 0; c < 3; ++c) {
      std::int64_t sum = 0;
      for (int l = layer; l <= end; ++l) sum += nth(layers, l)[c].count();
      largest = std::max(largest, sum);
    }
    layer = end + 1;
  }
  return largest;
}

std::vector<SideBySide> random_side(std::mt19937& random, int layers, int scale) {
  std::vector<SideBySide> side;
  for (int l = 0; l < layers; ++l) {
    side.push_back({Time{draw(random, 5 * scale)}, Time{draw(random, 5)}, Time{draw(random, 5)}});
  }
  return side;
}

}  // namespace

TEST_CASE("no split of devices over forwards and backwards has a faster slowest one") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const int layers = 1 + draw(random, 7);
    const int pieces = 2 + draw(random, 2 * layers - 1);
    const std::vector<SideBySide> forward = random_side(random, layers, 1);
    const std::vector<SideBySide> backward = random_side(random, layers, 2);
    std::int64_t best = INT64_MAX;
    int fewest = 0;
    for (int f = std::max(1, pieces - layers); f <= std::min(layers, pieces - 1); ++f) {
      const std::int64_t here = std::max(best_side(forward, f), best_side(backward, pieces - f));
      CHECK(split_cut(forward, backward, f, pieces - f).largest.count() == here);
      if (here < best) fewest = f;
      best = std::min(best, here);
    }
    const SplitCut cut = split_cut(forward, backward, pieces);
    CHECK(cut.largest.count() == best);
    CHECK(static_cast<int>(cut.forward_last.size()) == fewest - 1);
    CHECK(static_cast<int>(cut.backward_last.size()) == pieces - fewest - 1);
    CHECK(std::max(largest_of(forward, cut.forward_last),
                   largest_of(backward, cut.backward_last)) == best);
  }
}

TEST_CASE("backwards of twice the time get twice the devices") {
  const std::vector<SideBySide> forward(12, {Time{1}});
  const std::vector<SideBySide> backward(12, {Time{2}});
  const SplitCut cut = split_cut(forward, backward, 9);
  CHECK(cut.forward_last == std::vector<int>{3, 7});
  CHECK(cut.backward_last == std::vector<int>{1, 3, 5, 7, 9});
  CHECK(cut.largest == Time{4});
}

TEST_CASE("splits that cannot be are refused with their numbers") {
  const std::vector<SideBySide> side(3, {Time{1}});
  CHECK_THROWS_WITH_AS(split_cut(side, side, 7),
                       "7 devices for forward and backward apart: 3 layers can use 2 to 6",
                       UsageError);
  CHECK_THROWS_WITH_AS(
      split_cut(side, side, 1, 4),
      "1 devices for forward and 4 for backward: each side of 3 layers needs 1 to 3", UsageError);
  CHECK_THROWS_WITH_AS(split_cut(side, {}, 2),
                       "the forwards of 3 layers cannot be matched with backwards of 0",
                       UsageError);
}

}  // namespace stageline::chain_cut_tests
