// Are the bounds of schedules that run overlapped pairs below what they take?
#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <string>

#include "schedulers/scheduler.hpp"
#include "tests/study/uniform.hpp"
#include "tools/planner/bounds.hpp"
#include "tools/study/study.hpp"

namespace stageline::pair_bounds_tests {
namespace {

constexpr Bytes megabyte{1'000'000};

Degrees experts_of(int expert, int data, int pipeline) {
  Degrees degrees;
  degrees.data = data;
  degrees.pipeline = pipeline;
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

TEST_CASE("no pair takes less than the planner's bounds") {
  std::mt19937 random(49);
  const auto below = [&](unsigned most) { return static_cast<int>(random() % most); };
  for (int trial = 0; trial < 60; ++trial) {
    for (const std::string schedule : {"dualpipe", "dualpipe_v", "interleaved_1f1b:overlap=experts",
                                       "1f1b:overlap=experts", "1f1b"}) {
      const int pipeline = schedule == "1f1b:overlap=experts" ? 1 : 2;
      Case asked = case_of(schedule, ports(2 * pipeline), experts_of(2, 2, pipeline));
      asked.microbatches = 4 + 2 * below(3);
      for (Layer& layer : asked.model.layers) {
        layer.forward = from_seconds(1e-4 * (1 + below(9)));
        layer.input_grad = from_seconds(1e-4 * (1 + below(9)));
        layer.weight_grad = from_seconds(1e-4 * (1 + below(9)));
        layer.backward = layer.input_grad + layer.weight_grad;
        const Bytes tokens{100'000LL * (1 + below(12))};
        layer.collectives = {{CollectiveKind::all_to_all, Dimension::expert, tokens, 1, 1, 0}};
      }
      CAPTURE(trial);
      CAPTURE(schedule);
      const Time step = study(asked).step_time;
      CHECK(planner::bound_of_family(asked).step <= step);
      CHECK(planner::bound_of_shape(asked).step <= step);
    }
  }
}

}  // namespace
}  // namespace stageline::pair_bounds_tests
