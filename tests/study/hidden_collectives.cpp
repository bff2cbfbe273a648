// What is hidden of the collectives inside ops takes no time, and is not said to block.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/base/index.hpp"
#include "tests/study/uniform.hpp"
#include "tools/study/figures/drop_spans.hpp"
#include "tools/study/figures/notes.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/study.hpp"
#include "tools/study/whatif/levers.hpp"

namespace stageline::hidden_collectives_tests {
namespace {

constexpr Bytes megabyte{1'000'000};

Degrees degrees_of(int tensor, int data, int pipeline) {
  Degrees degrees;
  degrees.tensor = tensor;
  degrees.data = data;
  degrees.pipeline = pipeline;
  return degrees;
}

Degrees experts_of(int expert, int data, int pipeline) {
  Degrees degrees = degrees_of(1, data, pipeline);
  degrees.expert = expert;
  return degrees;
}

Cluster ports(int devices) {
  return uniform_cluster(devices, LinkSpec{{1'000'000'000}, Time{}}, Bytes{16'000'000'000});
}

// Eight layers of 1 ms for each pass, with 1 MB of gradients and of output.
Case case_of(const std::string& schedule, const Cluster& cluster, const Degrees& degrees) {
  Case asked;
  asked.model =
      uniform_model("layers=8,forward=1ms,input_grad=1ms,weight_grad=1ms,weights=1MB,output=1MB");
  for (Layer& layer : asked.model.layers) layer.gradients = megabyte;
  asked.ranked = std::make_shared<RankedCluster>(cluster, degrees, "best", "none", false);
  asked.cluster = asked.ranked->ranks();
  asked.sharing = Sharing::fair;
  asked.spec = parse_schedules(schedule).at(0);
  asked.microbatches = 8;
  return asked;
}

TEST_CASE("what overlapped pairs hide of the exchange is not reported as blocking") {
  const auto outcome_of = [](const std::string& schedule, std::optional<double> overlap) {
    Degrees degrees = experts_of(2, 2, 2);
    Cluster cluster = ports(4);
    cluster.pair_overlap = overlap;
    Case asked = case_of(schedule, cluster, degrees);
    for (Layer& layer : asked.model.layers) {
      layer.collectives = {{CollectiveKind::all_to_all, Dimension::expert, megabyte, 1, 1, 0}};
    }
    return study(asked);
  };
  const Outcome plain = outcome_of("interleaved_1f1b", std::nullopt);
  const Outcome paired = outcome_of("interleaved_1f1b:overlap=experts", std::nullopt);
  const Outcome apart = outcome_of("interleaved_1f1b:overlap=experts", 0);
  CHECK(plain.figures.hidden == 0);
  CHECK(apart.figures.hidden == 0);
  CHECK(paired.step_time < plain.step_time);
  CHECK(paired.figures.hidden > 0);
  // Times of all devices: what is hidden blocks no more.
  const auto seconds = [](const Outcome& outcome, double share) {
    return share * to_seconds(outcome.step_time);
  };
  CHECK(seconds(paired, paired.figures.blocking + paired.figures.hidden) ==
        doctest::Approx(seconds(plain, plain.figures.blocking)));
  CHECK(nth(paired.figures.blocking_by_group, Dimension::expert) <
        nth(plain.figures.blocking_by_group, Dimension::expert));
  CHECK(paired.costs.stage[0].blocking == plain.costs.stage[0].blocking);
}

TEST_CASE("a pair without its collectives, or a part of them, takes what it would be priced at") {
  for (const std::string schedule : {"dualpipe_v", "interleaved_1f1b:overlap=experts"}) {
    for (const int tokens : {100'000, 1'000'000, 6'000'000}) {
      CAPTURE(schedule);
      CAPTURE(tokens);
      const auto asked_with = [&](int bytes) {
        Case asked = case_of(schedule, ports(4), experts_of(2, 2, 2));
        if (bytes == 0) return asked;
        for (Layer& layer : asked.model.layers) {
          layer.collectives = {
              {CollectiveKind::all_to_all, Dimension::expert, Bytes{bytes}, 1, 2, 0}};
        }
        return asked;
      };
      const Case asked = asked_with(tokens);
      const Layout layout = checked_layout(asked);
      const Outcome outcome = study(asked);
      const TaskGraph graph = compile(outcome.program, outcome.costs);
      const Levers levers(asked, layout, outcome.costs, outcome.program, graph);
      const TaskTable& all = levers.times();
      const TaskTable part =
          levers.part({LeverKind::collectives, "", {}, {}, {}, {}, Dimension::expert});
      const auto priced = [&](int bytes) {
        return compile(outcome.program, costs_of(asked_with(bytes), layout)).duration;
      };
      REQUIRE(all.others.size() == 3);
      for (const int halves : {0, 1, 2}) {
        const TaskTable left = scaled(all, part, halves / 2.0);
        const std::vector<Time> expected = priced(tokens / 2 * halves);
        for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
          if (lane_of(graph.op[task].kind) != LaneKind::compute) continue;
          CHECK(longest_of(left, task) == expected[task]);
        }
      }
    }
  }
}

TEST_CASE("expert overlap says where no op exchanges tokens") {
  const auto notes = [](bool exchange) {
    Case asked = case_of("interleaved_1f1b:overlap=experts", ports(4), experts_of(2, 2, 2));
    for (Layer& layer : asked.model.layers) {
      if (!exchange) continue;
      layer.collectives = {{CollectiveKind::all_to_all, Dimension::expert, megabyte, 1, 1, 0}};
    }
    std::string all;
    for (const std::string& note : setting_notes(asked)) all += note;
    Outcome outcome = study(asked);
    drop_spans(outcome);  // as the rows of a comparison
    for (const std::string& note : stream_notes(asked, outcome)) all += note;
    return all;
  };
  CHECK(notes(false).find("overlap=experts hides nothing") != std::string::npos);
  CHECK(notes(true).find("overlap=experts hides nothing") == std::string::npos);
  CHECK(notes(true).find("what two chains can at best") != std::string::npos);
}

TEST_CASE("a collective hides its share under products, and no more than these take") {
  const auto stage_of = [](double hidden, Time forward, Time backward) {
    Case asked = case_of("1f1b", ports(8), degrees_of(2, 1, 4));
    for (Layer& layer : asked.model.layers) {
      layer.collectives = {{CollectiveKind::all_reduce,
                            Dimension::tensor,
                            megabyte,
                            2,
                            2,
                            0,
                            {},
                            hidden,
                            forward,
                            backward}};
    }
    return study(asked);
  };
  // Two layers a stage, twice 1 ms in each pass.
  const Outcome half = stage_of(0.5, from_seconds(1), from_seconds(1));
  CHECK(to_seconds(half.costs.stage[1].blocking.forward) == doctest::Approx(2e-3));
  CHECK(to_seconds(half.costs.stage[1].blocking.backward) == doctest::Approx(2e-3));
  CHECK(to_seconds(half.costs.stage[1].hidden.forward) == doctest::Approx(2e-3));
  CHECK(half.figures.hidden == doctest::Approx(half.figures.blocking));
  const Outcome little = stage_of(1, from_seconds(0.5e-3), from_seconds(0.1e-3));
  CHECK(to_seconds(little.costs.stage[1].blocking.forward) == doctest::Approx(3e-3));
  CHECK(to_seconds(little.costs.stage[1].blocking.backward) == doctest::Approx(3.8e-3));
  const Outcome none = stage_of(0, from_seconds(1), from_seconds(1));
  CHECK(none.costs.stage[1].hidden == BlockingTimes{});
  CHECK(none.costs.stage[1].forward - half.costs.stage[1].forward ==
        half.costs.stage[1].hidden.forward);
}

}  // namespace
}  // namespace stageline::hidden_collectives_tests
