// α and β from measured times, and plans that use them.
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/network/calibration.hpp"
#include "sim/base/errors.hpp"
#include "sim/bus_bandwidth.hpp"
#include "tests/cost_models/collective_clusters.hpp"

namespace stageline::collectives_calibration_tests {
namespace {

using test::cluster_of;
using test::giga;
using test::load_on;
using test::mebi;
using test::of_all;

std::vector<TimedSize> law(CollectiveKind kind, int ranks, double alpha, double bandwidth,
                           const std::vector<double>& noise = {}) {
  std::vector<TimedSize> times;
  for (int i = 0; i < 11; ++i) {
    const Bytes bytes{mebi << i};
    const double seconds =
        alpha + bus_factor(kind, ranks) * static_cast<double>(bytes.count) / bandwidth;
    const double off = noise.empty() ? 1 : noise[as_size(i) % noise.size()];
    times.push_back({bytes, from_seconds(seconds * off)});
  }
  return times;
}

std::string refusal(const std::vector<TimedSize>& times) {
  try {
    fit_alpha_beta(CollectiveKind::all_reduce, 8, times);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_CASE("a fit finds the law that times were made by") {
  for (const CollectiveKind kind : all_collective_kinds) {
    for (const double alpha : {1e-6, 86e-6, 5e-3}) {
      for (const double bandwidth : {1e9, 228.2e9, 4e12}) {
        const AlphaBeta fit = fit_alpha_beta(kind, 8, law(kind, 8, alpha, bandwidth));
        CHECK(static_cast<double>(fit.bandwidth.bytes_per_second) ==
              doctest::Approx(bandwidth).epsilon(1e-3));
        CHECK(to_seconds(fit.alpha) == doctest::Approx(alpha).epsilon(2e-2));
        CHECK(fit.mean_error < 1e-4);
      }
    }
  }
}

// A protocol that changes with the size: 30 us and 100 GB/s below 8 MiB, a jump, 250 GB/s behind.
std::vector<TimedSize> two_protocols() {
  std::vector<TimedSize> times;
  for (std::int64_t bytes = 8; bytes <= std::int64_t{1} << 32; bytes *= 2) {
    const auto moved = 1.75 * static_cast<double>(bytes);
    const double seconds = bytes < 8 * mebi ? 30e-6 + moved / 100e9 : 100e-6 + moved / 250e9;
    times.push_back({Bytes{bytes}, from_seconds(seconds)});
  }
  return times;
}

// As a cluster has it.
double priced(const MeasuredCollective& measured, Bytes bytes) {
  Cluster cluster = cluster_of({1, 8, "h100"});
  cluster.collectives.push_back(measured);
  Routes routes(cluster);
  Collectives collectives(cluster, routes);
  const Collective asked{measured.kind, bytes, {test::ranks_to(8)}};
  return to_seconds(alone(collectives.plan(asked).costs));
}

TEST_CASE("each measured size takes what was measured, and those between lie between") {
  std::vector<TimedSize> times = two_protocols();
  times[3].time = times[2].time - parse_time("300ns");  // small sizes are noise
  times[20].time += times[20].time / 10;
  const AlphaBeta law = fit_alpha_beta(CollectiveKind::all_reduce, 8, times);
  MeasuredCollective measured{CollectiveKind::all_reduce, 8, 1, law.alpha, law.bandwidth, "a log"};
  CHECK(law.worst_error > 0.2);
  for (const TimedSize& one : times) measured.times.push_back({one.bytes, one.time});
  for (std::size_t i = 0; i < times.size(); ++i) {
    CAPTURE(times[i].bytes.count);
    CHECK(priced(measured, times[i].bytes) ==
          doctest::Approx(to_seconds(times[i].time)).epsilon(1e-6));
    if (i == 0) continue;
    const Bytes between{times[i - 1].bytes.count * 3 / 2};
    const double lower = std::log(to_seconds(times[i - 1].time));
    const double upper = std::log(to_seconds(times[i].time));
    CHECK(std::log(priced(measured, between)) ==
          doctest::Approx(lower + (upper - lower) * std::log2(1.5)).epsilon(1e-6));
  }
  // Beyond, what the last size took above the latency grows with the size.
  const double last = to_seconds(times.back().time);
  const double alpha = to_seconds(law.alpha);
  CHECK(priced(measured, times.back().bytes * 4) ==
        doctest::Approx(alpha + 4 * (last - alpha)).epsilon(1e-6));
  CHECK(priced(measured, Bytes{1}) < to_seconds(times.front().time) * 1.001);
}

TEST_CASE("single times change with the links' rate by what they are above the latency") {
  MeasuredCollective measured{CollectiveKind::all_reduce, 8, 1, parse_time("10us"),
                              parse_bandwidth("100GB/s"), ""};
  measured.times = {{Bytes{1000}, parse_time("9us")}, {Bytes{1'000'000}, parse_time("30us")}};
  scale_times(measured, 0.5);
  CHECK(measured.times[0].time == parse_time("9us"));
  CHECK(measured.times[1].time == parse_time("50us"));
}

TEST_CASE("a fit to noisy times is within the noise, and says how far off it is") {
  const auto times =
      law(CollectiveKind::all_reduce, 8, 86e-6, 228.2e9, {1.05, 0.96, 1.02, 0.95, 1.03});
  const AlphaBeta fit = fit_alpha_beta(CollectiveKind::all_reduce, 8, times);
  CHECK(static_cast<double>(fit.bandwidth.bytes_per_second) ==
        doctest::Approx(228.2e9).epsilon(0.05));
  CHECK(to_seconds(fit.alpha) == doctest::Approx(86e-6).epsilon(0.1));
  CHECK(fit.mean_error > 0.01);
  CHECK(fit.mean_error < 0.05);
  CHECK(fit.worst_error >= fit.mean_error);
  CHECK(fit.worst_error < 0.07);
}

TEST_CASE("times that say nothing about both are refused") {
  CHECK(refusal({}).find("need times of at least two sizes, and there is none") !=
        std::string::npos);
  CHECK(refusal({{Bytes{mebi}, Time{5}}, {Bytes{mebi}, Time{6}}}).find("there is only 1.049 MB") !=
        std::string::npos);
  CHECK(refusal({{Bytes{mebi}, Time{0}}, {Bytes{2 * mebi}, Time{6}}})
            .find("a fit needs sizes and times above 0") != std::string::npos);
  const Time flat = parse_time("12us");
  CHECK(refusal({{Bytes{8}, flat}, {Bytes{64}, flat}, {Bytes{512}, flat}})
            .find("do not grow from 8 B to 512 B") != std::string::npos);
}

TEST_CASE("what was measured on the cluster goes before built-in constants") {
  const Cluster plain = cluster_of({2, 8, "h200"});
  Routes plain_routes(plain);
  const MeasuredCollective inside{CollectiveKind::all_reduce, 8, 1, parse_time("50us"),
                                  Bandwidth{500 * giga},      ""};
  const MeasuredCollective across{CollectiveKind::all_reduce, 16, 2, parse_time("200us"),
                                  Bandwidth{300 * giga},      ""};
  Cluster h200 = plain;
  h200.collectives = {inside, across};
  Routes routes(h200);
  Collectives collectives(h200, routes);
  Collectives built_in(plain, plain_routes);
  const Collective eight{CollectiveKind::all_reduce, Bytes{giga}, {test::ranks_to(8)}};
  const auto plan = collectives.plan(eight);
  CHECK(plan.algorithm == built_in.plan(eight).algorithm);
  CHECK(plan.costs.setup == inside.alpha);
  CHECK(abs(alone(plan.costs) - parse_time("3.55ms")) <= Time{1});  // 50 µs + 1.75 GB / 500 GB/s
  // The fullest link allows that rate, although NVLink states less than is reached in the switch.
  const double port = load_on(h200, plan.costs.route, "gpu0>nvswitch0");
  CHECK(port == doctest::Approx(1.75 * 450 / 500));
  const Collective all = of_all(h200, CollectiveKind::all_reduce, giga);
  CHECK(abs(alone(collectives.plan(all).costs) - parse_time("6.45ms")) <= Time{1});
  // Neither other collectives, nor groups of as many ranks in other machines.
  for (const Collective& other :
       {Collective{CollectiveKind::all_gather, Bytes{giga}, {test::ranks_to(8)}},
        Collective{CollectiveKind::all_reduce, Bytes{giga}, {{0, 1, 2, 3, 8, 9, 10, 11}}}}) {
    CHECK(collectives.plan(other).costs == built_in.plan(other).costs);
  }
}

TEST_CASE("a plan says which entry its time is taken from") {
  Cluster h200 = cluster_of({2, 8, "h200"});
  MeasuredCollective timed{CollectiveKind::all_gather, 8,      1, parse_time("50us"),
                           Bandwidth{500 * giga},      "a log"};
  timed.times = {{Bytes{mebi}, parse_time("60us")}, {Bytes{4 * mebi}, parse_time("90us")}};
  // Two lines of one collective, which take the same time at 7 MB: 2(n−1)/n times 4 MB.
  const MeasuredCollective small{CollectiveKind::all_reduce, 8, 1, parse_time("50us"),
                                 Bandwidth{350 * giga},      ""};
  const MeasuredCollective large{
      CollectiveKind::all_reduce, 8, 1, parse_time("60us"), Bandwidth{700 * giga}, "another log"};
  h200.collectives = {timed, small, large};
  const auto entry = [&](CollectiveKind kind, std::int64_t bytes,
                         const std::vector<std::vector<int>>& groups) {
    return test::planned(h200, {kind, Bytes{bytes}, groups}).entry;
  };
  const std::vector<std::vector<int>> eight{test::ranks_to(8)};
  using Kind = CollectiveKind;
  CHECK(entry(Kind::all_gather, mebi, eight) == PricingEntry{PricedBy::times, 0, "a log"});
  CHECK(entry(Kind::all_gather, 4 * mebi, eight) == PricingEntry{PricedBy::times, 0, "a log"});
  CHECK(entry(Kind::all_gather, 4 * mebi + 1, eight).by == PricedBy::beyond);
  CHECK(entry(Kind::all_gather, mebi - 1, eight).by == PricedBy::beyond);
  CHECK(entry(Kind::all_reduce, mebi, eight) == PricingEntry{PricedBy::fit, 1, ""});
  CHECK(entry(Kind::all_reduce, 64 * mebi, eight) == PricingEntry{PricedBy::fit, 2, "another log"});
  // Of other ranks, machines and devices nothing was measured on it.
  CHECK(entry(Kind::all_reduce, mebi, {{0, 8}}) == PricingEntry{PricedBy::nccl});
  h200.collectives.clear();
  CHECK(entry(Kind::all_reduce, mebi, eight).by == PricedBy::table);
  CHECK_FALSE(entry(Kind::all_reduce, mebi, eight).source.empty());
  CHECK(entry(Kind::all_gather, mebi, eight) == PricingEntry{PricedBy::nccl});
  h200 = cluster_of({2, 8, "card"});
  CHECK(entry(Kind::all_reduce, mebi, eight) == PricingEntry{PricedBy::links});
}

TEST_CASE("what was measured of one group takes longer where several share a link") {
  Cluster cluster = cluster_of({2, 4, "h200", 450 * giga, 50 * giga, true});
  cluster.collectives = {
      {CollectiveKind::all_reduce, 2, 2, parse_time("50us"), Bandwidth{40 * giga}, ""}};
  const auto moving = [&](const std::vector<std::vector<int>>& groups) {
    const CollectiveCosts costs =
        test::planned(cluster, {CollectiveKind::all_reduce, Bytes{giga}, groups}).costs;
    CHECK(costs.setup == parse_time("50us"));
    return to_seconds(alone(costs) - costs.setup);
  };
  CHECK(moving({{0, 4}}) == doctest::Approx(0.025));
  CHECK(moving({{0, 4}, {1, 5}}) == doctest::Approx(0.05));
  CHECK(moving({{0, 4}, {1, 5}, {2, 6}, {3, 7}}) == doctest::Approx(0.1));
}

TEST_CASE("among chips of several kinds the slowest one's constants hold") {
  const auto of_kinds = [&](const std::string& first, const std::string& last) {
    Cluster cluster = cluster_of({1, 8, first});
    cluster.kinds.emplace_back().name = last;
    cluster.devices.back().kind = 1;
    return test::planned(cluster, of_all(cluster, CollectiveKind::all_reduce, giga)).costs;
  };
  CHECK(of_kinds("h100", "h200") == of_kinds("h100", "h100"));
  CHECK(of_kinds("h200", "h100") == of_kinds("h100", "h100"));
  CHECK(of_kinds("h100", "a100") == of_kinds("a100", "a100"));
}

}  // namespace
}  // namespace stageline::collectives_calibration_tests
