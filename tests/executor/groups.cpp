// Do 2 × 2 processes over Gloo train two replicas of a pipeline as one device would, with the
// optimizer's state whole or divided?
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/index.hpp"
#include "tests/executor/member.hpp"
#include "tests/executor/sequential.hpp"
#include "tests/executor/trials.hpp"
#include "tools/executor/processes/peers.hpp"

namespace stageline::executor {
namespace {

using trials::replicated_trial;
using trials::ReplicatedTrial;

constexpr int pipeline = 2;
constexpr int replicas = 2;

struct Group {
  std::string schedule;
  bool sharded = false;
};

const std::vector<Group>& groups() {
  static const std::vector<Group> all = {
      {"gpipe", false},     {"gpipe", true},     {"1f1b", false},        {"1f1b", true},
      {"zb_h1", false},     {"zb_h1", true},     {"chimera", true},      {"interleaved_1f1b", true},
      {"pipedream", false}, {"pipedream", true}, {"pipedream_2bw", true}};
  return all;
}

ReplicatedTrial trial_of(const Group& group) {
  const ScheduleSpec spec = parse_schedules(group.schedule).at(0);
  ReplicatedTrial trial = replicated_trial(
      trials::gpt, trials::case_of(trials::gpt, spec, pipeline, 4, 2, std::nullopt), replicas);
  // Between processes every tensor goes by a message, however quick the link is.
  trial.job.program = add_transfers(std::move(trial.job.program));
  trial.job.graph = stage_graph(trial.job.program);
  trial.job.sharded_optimizer = group.sharded;
  return trial;
}

// The bytes of a device's weights, stage after stage.
std::string bytes_of_weights(const Executor& executor, const Job& job, int device) {
  std::string bytes;
  for (std::size_t l = 0; l < job.partition.stage_of.size(); ++l) {
    const auto& homes = nth(job.program.placement.stage, job.partition.stage_of[l]).replicas;
    for (std::size_t r = 0; r < homes.size(); ++r) {
      if (homes[r] != device) continue;
      for (const at::Tensor& value : executor.weights(l, static_cast<int>(r)).values) {
        const at::Tensor dense = value.detach().contiguous();
        bytes.append(static_cast<const char*>(dense.data_ptr()),
                     as_size(dense.numel()) * dense.element_size());
      }
    }
  }
  return bytes;
}

// The same of what a reference has made.
std::string bytes_of_reference(const sequential::Trained& trained, const Job& job, int device) {
  std::string bytes;
  for (std::size_t l = 0; l < job.partition.stage_of.size(); ++l) {
    const auto& homes = nth(job.program.placement.stage, job.partition.stage_of[l]).replicas;
    if (std::find(homes.begin(), homes.end(), device) == homes.end()) continue;
    for (const at::Tensor& value : trained.weights[l]) {
      const at::Tensor dense = value.contiguous();
      bytes.append(static_cast<const char*>(dense.data_ptr()),
                   as_size(dense.numel()) * dense.element_size());
    }
  }
  return bytes;
}

double most_apart(const std::string& one, const std::string& other) {
  REQUIRE(one.size() == other.size());
  double worst = 0;
  for (std::size_t at = 0; at < one.size(); at += sizeof(double)) {
    double a = 0;
    double b = 0;
    std::memcpy(&a, one.data() + at, sizeof a);
    std::memcpy(&b, other.data() + at, sizeof b);
    worst = std::max(worst, std::abs(a - b));
  }
  return worst;
}

struct GroupRun {
  ReplicatedTrial trial;
  Execution run;
  std::vector<std::string> weights;  // by rank
  std::vector<HeldBytes> held;       // by rank
};

// As one rank of four; what comes back is complete on rank 0.
GroupRun run_group(const Group& group, Peers& peers) {
  GroupRun result{trial_of(group), {}, {}, {}};
  const Job& job = result.trial.job;
  Executor executor(job, result.trial.costs, trials::anywhere(job.program.devices.size()), &peers);
  result.run = executor.run();
  result.weights = peers.gather(bytes_of_weights(executor, job, peers.rank()));
  result.held = executor.run_counted();
  peers.barrier();  // all that is on its way to this executor has come
  return result;
}

}  // namespace

TEST_CASE("as a rank: train" * doctest::skip()) {
  Peers peers(place_from_environment().value(), member::seconds(60));
  for (const Group& group : groups()) run_group(group, peers);
}

TEST_CASE("2 × 2 processes train as one device does, and replicas have the same bits") {
  constexpr int ranks = pipeline * replicas;
  const int port = free_port();
  std::vector<std::unique_ptr<Spawned>> others;
  for (int rank = 1; rank < ranks; ++rank) {
    others.push_back(std::make_unique<Spawned>(
        "as a rank: train", member::variables(member::place(rank, ranks, port))));
  }
  {
    Peers peers(member::place(0, ranks, port), member::seconds(60));
    for (const Group& group : groups()) {
      CAPTURE(group.schedule);
      CAPTURE(group.sharded);
      const GroupRun done = run_group(group, peers);
      const Job& job = done.trial.job;
      const sequential::Trained expected =
          done.trial.synchronous
              ? sequential::plain_training(job)
              : sequential::StaleTraining(job, sequential::reads_of(job, done.run)).train();
      CHECK(trials::losses_apart(done.run, expected) < 1e-9);
      for (int device = 0; device < ranks; ++device) {
        CAPTURE(device);
        const std::string& weights = nth(done.weights, device);
        CHECK(weights.size() > 0);
        CHECK(most_apart(weights, bytes_of_reference(expected, job, device)) < 1e-9);
        CHECK(weights == nth(done.weights, device % pipeline));
      }
      // Momentum: as much state as weights. A stage of a directional pipeline has four replicas.
      const auto all = static_cast<std::int64_t>(done.weights[0].size());
      const auto homes = job.program.placement.stage[0].replicas.size();
      const std::int64_t share = group.sharded ? all / static_cast<std::int64_t>(homes) : all;
      const std::int64_t rounding = job.program.stages() * std::int64_t{sizeof(double)};
      CHECK(std::abs(done.held[0].optimizer - share) <= rounding);
      CHECK(std::abs(done.held[pipeline].optimizer - share) <= rounding);
    }
  }
  for (const auto& other : others) CHECK(other->wait() == 0);
}

}  // namespace stageline::executor
