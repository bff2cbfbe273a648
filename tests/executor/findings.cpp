// Do the three findings of Zhang and Abdelrahman (arXiv 1912.12675) hold on a task that comes with
// Stageline? LeNet-5 on drawn digits, three seeds each; the accuracy of a run is the mean over its
// last looks at the test set, since a constant rate leaves it unsteady.
#include "tools/executor/train/trainer.hpp"

#include <doctest/doctest.h>  // behind LibTorch, which has a CHECK of its own

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "cost_models/roofline.hpp"
#include "tests/executor/sampled.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/inputs/inputs.hpp"

namespace stageline::executor {
namespace {

constexpr std::int64_t steps = 900;
constexpr std::size_t last_looks = 6;  // of 30

struct Spread {
  double mean = 0;
  double least = 1;
  double most = 0;
};

double accuracy(const lab::DataSource& data, const std::string& ppv, std::int64_t pipelined,
                std::uint64_t seed) {
  TrainingRequest request;
  request.model = "lenet5";
  request.shape = parse_shape(request.model);
  TraceRequest trace;
  trace.text = "model:lenet5@h100,batch=64";
  request.asked.model = open_trace(trace);
  const auto pairs = static_cast<int>(std::count(ppv.begin(), ppv.end(), ',')) + 1;
  request.asked.cluster = uniform_cluster(2 * pairs + 1, std::nullopt, std::nullopt, std::nullopt);
  request.asked.spec = parse_schedules("stale_weights").at(0);
  request.asked.partition = "ppv:" + ppv;
  request.asked.microbatches = 1;
  request.recipe.rate = 0.008;
  request.recipe.steps = steps;
  request.pipelined = pipelined;
  request.seed = seed;
  request.data = &data;
  request.devices.resize(1);
  request.evaluate_every = steps / 30;
  const auto looks = train(request, [](const TrainingProgress&) {}).log.evaluations;
  double sum = 0;
  for (std::size_t i = looks.size() - last_looks; i < looks.size(); ++i) sum += looks[i].accuracy;
  return sum / last_looks;
}

}  // namespace

TEST_CASE("shallow pipelining costs little, deep costs much, hybrid at half wins half back") {
  if (sampled()) {
    MESSAGE("skipped: another LibTorch runs this in the same check");
    return;
  }
  const lab::DataSource data = lab::open_data("digits");
  struct Run {
    std::string ppv;
    std::int64_t pipelined = 0;
    std::uint64_t seed = 0;
    double accuracy = 0;
  };
  std::vector<Run> runs;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    runs.push_back({"1", 0, seed, 0});
    runs.push_back({"1", steps, seed, 0});
    runs.push_back({"1,2,3", steps, seed, 0});
    runs.push_back({"1,2,3", steps / 2, seed, 0});
  }
  std::vector<std::thread> workers;
  for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {
    workers.emplace_back([&, first] {
      set_threads(1);
      for (std::size_t i = first; i < runs.size(); i += 2) {
        runs[i].accuracy = accuracy(data, runs[i].ppv, runs[i].pipelined, runs[i].seed);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  std::vector<Spread> found(4);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Spread& one = found[i % 4];
    one.mean += runs[i].accuracy / 3;
    one.least = std::min(one.least, runs[i].accuracy);
    one.most = std::max(one.most, runs[i].accuracy);
  }
  const Spread& plain = found[0];
  const Spread& shallow = found[1];
  const Spread& deep = found[2];
  const Spread& hybrid = found[3];
  MESSAGE("non-pipelined " << plain.mean << ", 4-stage " << shallow.mean << ", 8-stage "
                           << deep.mean << ", 8-stage and half hybrid " << hybrid.mean);
  CHECK(plain.mean > 0.85);                  // it is learned at all
  CHECK(shallow.mean > plain.mean - 0.015);  // within 1.5 points
  CHECK(deep.most < plain.least);            // outside the spread over the seeds
  CHECK(hybrid.least > deep.most);           //
  CHECK(hybrid.mean - deep.mean >= 0.5 * (plain.mean - deep.mean));
}

}  // namespace stageline::executor
