// α and β from measured times, and plans that use them.
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

TEST_CASE("one law is kept where it is near, and lines follow a protocol that changes") {
  const auto noisy = law(CollectiveKind::all_reduce, 8, 86e-6, 228.2e9, {1.05, 0.96, 1.02, 0.95});
  const MeasuredLines one = fit_lines(CollectiveKind::all_reduce, 8, noisy);
  REQUIRE(one.lines.size() == 1);
  CHECK(one.lines[0].alpha == fit_alpha_beta(CollectiveKind::all_reduce, 8, noisy).alpha);
  CHECK(one.worst_error < 0.1);

  const std::vector<TimedSize> times = two_protocols();
  CHECK(fit_alpha_beta(CollectiveKind::all_reduce, 8, times).worst_error > 0.2);
  const MeasuredLines lines = fit_lines(CollectiveKind::all_reduce, 8, times);
  CHECK(lines.lines.size() == 3);  // before the jump, across it, behind it
  CHECK(lines.worst_error < 0.05);
  CHECK(lines.mean_error < 0.01);
  CHECK(lines.lines[0].from == Bytes{});
  CHECK(lines.lines[2].from == Bytes{8 * mebi});
  CHECK(static_cast<double>(lines.lines[2].bandwidth.bytes_per_second) ==
        doctest::Approx(250e9).epsilon(1e-6));

  // As a cluster has them, they price each measured size, and those beyond.
  Cluster cluster = cluster_of({1, 8, "h100"});
  for (const MeasuredLines::Line& line : lines.lines) {
    cluster.collectives.push_back(
        {CollectiveKind::all_reduce, 8, 1, line.alpha, line.bandwidth, "a log"});
  }
  Routes routes(cluster);
  Collectives collectives(cluster, routes);
  const auto seconds = [&](Bytes bytes) {
    const Collective asked{CollectiveKind::all_reduce, bytes, {test::ranks_to(8)}};
    return to_seconds(alone(collectives.plan(asked).costs));
  };
  for (const TimedSize& one : times) {
    CAPTURE(one.bytes.count);
    CHECK(seconds(one.bytes) == doctest::Approx(to_seconds(one.time)).epsilon(0.05));
  }
  const Bytes beyond{std::int64_t{1} << 34};
  CHECK(seconds(beyond) ==
        doctest::Approx(100e-6 + 1.75 * static_cast<double>(beyond.count) / 250e9).epsilon(1e-3));
}

TEST_CASE("times that fall with the size, or several of one size, make no line of their own") {
  std::vector<TimedSize> times = two_protocols();
  for (std::size_t i = 0; i < 12; ++i)
    times[i].time = from_seconds((31e-6) - 1e-8 * static_cast<double>(i));
  const std::size_t once = times.size();
  for (std::size_t i = 0; i < once; ++i) times.push_back(times[i]);
  times.push_back(
      {Bytes{std::int64_t{1} << 33}, from_seconds(29e-3)});  // no slower than half of it
  const MeasuredLines lines = fit_lines(CollectiveKind::all_reduce, 8, times);
  for (std::size_t i = 0; i < lines.lines.size(); ++i) {
    CHECK(lines.lines[i].alpha >= Time{});
    CHECK(lines.lines[i].bandwidth.bytes_per_second > 0);
    if (i > 0) CHECK(lines.lines[i].from > lines.lines[i - 1].from);
  }
  CHECK(lines.worst == Bytes{std::int64_t{1} << 33});
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
