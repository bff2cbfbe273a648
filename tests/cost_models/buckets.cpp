// When do gradients fill their buckets, and how much of a reduction or a gather does compute hide?
#include "cost_models/buckets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "cost_models/gathers.hpp"
#include "sim/base/errors.hpp"
#include "sim/costs.hpp"

namespace stageline::buckets_tests {
namespace {

constexpr std::int64_t mebibyte = 1 << 20;

LayerGradient gradient(std::int64_t picoseconds, std::int64_t bytes) {
  return {Time{picoseconds}, Bytes{bytes}};
}

TEST_CASE("buckets are closed behind the layer that fills them") {
  // Backward order. The first bucket takes 10 bytes, the others 30.
  const std::vector<LayerGradient> in_order{gradient(1, 4),  gradient(2, 0), gradient(3, 7),
                                            gradient(4, 29), gradient(5, 1), gradient(6, 5)};
  const GradientBuckets buckets = fill_buckets(in_order, {Bytes{10}, Bytes{30}});
  CHECK(buckets.buckets == std::vector<GradientBucket>{{Bytes{11}, Time{4 + 5 + 6}},
                                                       {Bytes{30}, Time{6}},
                                                       {Bytes{5}, Time{}}});
  CHECK(buckets.bytes() == Bytes{46});
  CHECK(buckets.last_bytes() == Bytes{5});
}

TEST_CASE("without a limit there is one bucket, when the last gradient is there") {
  const GradientBuckets buckets =
      fill_buckets(std::vector{gradient(1, 4), gradient(2, 5), gradient(7, 0)}, {});
  CHECK(buckets.buckets == std::vector<GradientBucket>{{Bytes{9}, Time{7}}});
  const GradientBuckets none = fill_buckets(std::vector{gradient(7, 0)}, {});
  CHECK(none.buckets.empty());
  CHECK(none.last_bytes() == Bytes{});
}

TEST_CASE("DDP's buckets take 1 MiB and then 25, Megatron-LM's at least 40 million parameters") {
  const BucketRule& ddp = find_bucket_rule("ddp");
  CHECK(bucket_limits(ddp, 64, 4, false) == BucketLimits{{mebibyte}, {25 * mebibyte}});
  const BucketRule& megatron = find_bucket_rule("megatron");
  CHECK(bucket_limits(megatron, 8, 4, true) == BucketLimits{{160'000'000}, {160'000'000}});
  CHECK(bucket_limits(megatron, 64, 2, true) == BucketLimits{{128'000'000}, {128'000'000}});
  CHECK(bucket_limits(megatron, 64, 4, false) == BucketLimits{});  // only the first stage
  CHECK(bucket_limits(find_bucket_rule("none"), 8, 4, true) == BucketLimits{});
  CHECK(bucket_rules().size() == 3);
  CHECK_THROWS_WITH_AS(find_bucket_rule("dpd"), doctest::Contains("did you mean \"ddp\""),
                       UsageError);
}

TEST_CASE("a stage's gradients come in the order of its backward") {
  Model model;
  for (int i = 0; i < 4; ++i) {
    Layer layer;
    layer.backward = Time{10 + i};
    layer.gradients = Bytes{100 + i};
    model.layers.push_back(layer);
  }
  const Partition partition{{0, 0, 1, 1}, 2};
  CHECK(backward_order(model, partition, 0) ==
        std::vector<LayerGradient>{gradient(11, 101), gradient(10, 100)});
  CHECK(backward_order(model, partition, 1) ==
        std::vector<LayerGradient>{gradient(13, 103), gradient(12, 102)});
  model.layers[1].parameters = 4;
  model.layers[1].expert_parameters = 3;
  CHECK(backward_order(model, partition, 0, WeightKind::experts) ==
        std::vector<LayerGradient>{gradient(11, 75), gradient(10, 0)});
  CHECK(backward_order(model, partition, 0, WeightKind::dense) ==
        std::vector<LayerGradient>{gradient(11, 26), gradient(10, 100)});
}

TEST_CASE("buckets of experts and of other weights are reduced in the order in which they fill") {
  // Full 9 ns and 2 ns before the end, and 5 ns.
  const GradientBuckets dense{{{Bytes{3}, Time{9000}}, {Bytes{1}, Time{2000}}}};
  const GradientBuckets experts{{{Bytes{4}, Time{5000}}}};
  const Bandwidth dense_rate{1'000'000'000};   // a byte a nanosecond
  const Bandwidth expert_rate{2'000'000'000};  // two
  // From -9: 1 + 3 ns to -5; 2 + 2 ns to -1; 1 + 1 ns to 1.
  CHECK(behind_backward(std::vector<ReducedBuckets>{
            {dense, Time{1000}, dense_rate}, {experts, Time{2000}, expert_rate}}) == Time{1000});
  CHECK(behind_backward(std::vector<ReducedBuckets>{{dense, Time{1000}, dense_rate}}) == Time{});
  CHECK(behind_backward({}) == Time{});
}

// Everything from some bucket on is reduced after that bucket is full, without a pause: the
// greatest of these is the end.
Time greatest_remainder(const GradientBuckets& buckets, Time setup, Bandwidth bandwidth) {
  Time end{};
  for (std::size_t from = 0; from < buckets.buckets.size(); ++from) {
    Time rest = -buckets.buckets[from].before_end;
    for (std::size_t i = from; i < buckets.buckets.size(); ++i) {
      rest += setup + transfer_time(buckets.buckets[i].bytes, bandwidth);
    }
    end = std::max(end, rest);
  }
  return end;
}

TEST_CASE("a reduction ends when its slowest run of buckets does") {
  std::mt19937_64 random(7);
  const Bandwidth bandwidth{1'000'000'000};  // a byte a nanosecond
  bool hidden = false;
  bool exposed = false;
  for (int round = 0; round < 300; ++round) {
    std::vector<LayerGradient> in_order;
    for (std::uint64_t layers = 1 + random() % 9; layers > 0; --layers) {
      in_order.push_back(gradient(static_cast<std::int64_t>(random() % 9000),
                                  static_cast<std::int64_t>(random() % 8)));
    }
    const BucketLimits limits{Bytes{static_cast<std::int64_t>(random() % 5)},
                              Bytes{static_cast<std::int64_t>(1 + random() % 12)}};
    const Time setup{static_cast<std::int64_t>(random() % 900)};
    const GradientBuckets buckets = fill_buckets(in_order, limits);
    Bytes all{};
    Time whole{};
    for (const LayerGradient& g : in_order) {
      all += g.bytes;
      whole += g.time;
    }
    REQUIRE(buckets.bytes() == all);
    const Time first = buckets.buckets.empty() ? Time{} : buckets.buckets.front().before_end;
    REQUIRE(first <= whole);
    const Time behind = behind_backward(std::vector<ReducedBuckets>{{buckets, setup, bandwidth}});
    REQUIRE(behind == greatest_remainder(buckets, setup, bandwidth));
    REQUIRE(behind + first >= transfer_time(all, bandwidth));
    hidden = hidden || (all > Bytes{} && behind < transfer_time(all, bandwidth));
    exposed = exposed || behind > transfer_time(buckets.last_bytes(), bandwidth) + setup;
  }
  CHECK(hidden);
  CHECK(exposed);
}

TEST_CASE(
    "in a shorter op buckets fill the faster, and no reduction ends sooner than they let it") {
  std::mt19937_64 random(19);
  const Time backward{10'000};
  const Bandwidth bandwidth{1'000'000'000};  // a byte a nanosecond
  int hidden = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<LayerGradient> in_order;
    for (int layer = 0; layer < 10; ++layer) {
      in_order.push_back(gradient(1000, static_cast<std::int64_t>(random() % 3)));
    }
    const auto behind = [&](Time last) {
      for (LayerGradient& one : in_order) one.time = last / 10;
      return behind_backward(std::vector<ReducedBuckets>{
          {fill_buckets(in_order, {Bytes{1}, Bytes{2}}), Time{}, bandwidth}});
    };
    const Time in_a_row = behind(Time{});
    CollectiveCosts reduction;
    reduction.head_start = in_a_row - behind(backward);
    reduction.backward = backward;
    const Time last{10 * static_cast<std::int64_t>(random() % 1001)};
    const Time head_start = head_start_behind(reduction, last);
    REQUIRE(head_start >= Time{});
    REQUIRE(head_start <= last);
    REQUIRE(in_a_row - head_start >= behind(last));
    if (head_start > Time{}) ++hidden;
    REQUIRE(head_start_behind(reduction, backward * 2) == reduction.head_start);
  }
  CHECK(hidden > 200);
}

TEST_CASE("ZeRO's levels move 2, 2, 2 and 3 times (n − 1)/n of the parameters") {
  const Bytes parameters{64'000};
  const std::int64_t n = 64;
  for (const Zero zero : all_zeros) {
    std::int64_t sent = 0;
    for (const StateExchange& exchange :
         state_exchanges(zero, ZeroEvery::microbatch, parameters, parameters)) {
      const int rounds = exchange.kind == CollectiveKind::all_reduce ? 2 : 1;
      sent += rounds * exchange.bytes.count * (n - 1) / n;
      const bool of_gradients = exchange.kind != CollectiveKind::all_gather;
      CHECK((exchange.when == ExchangeTime::forward || exchange.when == ExchangeTime::backward) ==
            (zero == Zero::weights || (zero == Zero::gradients && of_gradients)));
    }
    CHECK(sent == (zero == Zero::weights ? 3 : 2) * 63'000);
  }
}

TEST_CASE("once a step ZeRO 2 exchanges as ZeRO 1, and ZeRO 3 gathers in the first forward") {
  const Bytes weights{2'000};
  const Bytes gradients{4'000};
  const auto once = [&](Zero zero) {
    return state_exchanges(zero, ZeroEvery::step, weights, gradients);
  };
  CHECK(once(Zero::gradients) == once(Zero::optimizer));
  const StateExchange gather{CollectiveKind::all_gather, weights, ExchangeTime::first_forward};
  const StateExchange scatter{CollectiveKind::reduce_scatter, gradients,
                              ExchangeTime::last_backward};
  CHECK(once(Zero::weights) == std::vector<StateExchange>{gather, scatter});
  for (const Zero zero : {Zero::none, Zero::optimizer}) {
    CHECK(once(zero) == state_exchanges(zero, ZeroEvery::microbatch, weights, gradients));
  }
}

TEST_CASE("shard groups add up the parts of their gradients once a step") {
  const auto exchanges = [](Zero zero, ZeroEvery every) {
    return state_exchanges(zero, every, Bytes{2'000}, Bytes{4'001}, 4, 8);
  };
  const StateExchange among{CollectiveKind::all_reduce, Bytes{501}, ExchangeTime::last_backward,
                            Among::shard_groups};
  for (const Zero zero : all_zeros) {
    for (const ZeroEvery every : all_zero_everys) {
      std::vector<StateExchange> expected =
          state_exchanges(zero, every, Bytes{2'000}, Bytes{4'001});
      if (zero != Zero::none) expected.push_back(among);
      CHECK(exchanges(zero, every) == expected);
    }
  }
}

TEST_CASE("the first gather of a step shows what the unit before it does not hide") {
  // Gathers of 5, 9 and 4 beside forwards of (before), 6 and 7: 5 − before, 9 − 6, nothing.
  const std::vector<GatheredUnit> units{{Time{6}, Time{12}, Time{5}, Time{1}},
                                        {Time{7}, Time{14}, Time{9}, Time{1}},
                                        {Time{8}, Time{16}, Time{4}, Time{1}}};
  CHECK(exposed_first_gathers(units, Time{}) == Time{5 + 3});
  CHECK(exposed_first_gathers(units, Time{}) == exposed_gathers(units).forward);
  CHECK(exposed_first_gathers(units, Time{2}) == Time{3 + 3});
  CHECK(exposed_first_gathers(units, Time{5}) == Time{3});
  CHECK(exposed_first_gathers({}, Time{}) == Time{});
}

// The queue of collectives and the compute of one pass, op by op: when it all ends.
struct PassUnit {
  Time compute{}, gather{}, scatter{};
};
Time pass_end(const std::vector<PassUnit>& units) {
  std::vector<Time> gathered(units.size());
  std::vector<Time> started(units.size());
  Time queue{};    // when it is free
  Time compute{};  // when it is free
  const auto gather = [&](std::size_t i) {
    // Issued as the unit before starts: the one before that has been freed then.
    const Time earliest = i == 0 ? Time{} : started[i - 1];
    queue = gathered[i] = std::max(queue, earliest) + units[i].gather;
  };
  gather(0);
  for (std::size_t i = 0; i < units.size(); ++i) {
    started[i] = std::max(compute, gathered[i]);
    if (i > 0) queue = std::max(queue, compute) + units[i - 1].scatter;
    if (i + 1 < units.size()) gather(i + 1);
    compute = started[i] + units[i].compute;
  }
  return std::max(compute, queue) + units.back().scatter;
}

TEST_CASE("exposed gathers are those of a queue beside the compute") {
  std::mt19937_64 random(11);
  const auto time = [&] { return Time{static_cast<std::int64_t>(random() % 100)}; };
  for (int round = 0; round < 500; ++round) {
    std::vector<GatheredUnit> units(1 + random() % 6);
    std::vector<PassUnit> forward;
    std::vector<PassUnit> backward;
    Time computes_forward{};
    Time computes_backward{};
    for (GatheredUnit& unit : units) {
      unit = {time(), time(), time(), time()};
      forward.push_back({unit.forward, unit.gather, Time{}});
      backward.insert(backward.begin(), {unit.backward, unit.gather, unit.scatter});
      computes_forward += unit.forward;
      computes_backward += unit.backward;
    }
    const ExposedTimes exposed = exposed_gathers(units);
    REQUIRE(computes_forward + exposed.forward == pass_end(forward));
    REQUIRE(computes_backward + exposed.backward == pass_end(backward));
  }
  CHECK(exposed_gathers({}) == ExposedTimes{});
}

}  // namespace
}  // namespace stageline::buckets_tests
