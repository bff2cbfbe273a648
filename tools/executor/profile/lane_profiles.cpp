// Runs the rounds of a profile on several lanes, one thread each.
#include "tools/executor/profile/lane_profiles.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "sim/analysis/statistics.hpp"
#include "sim/base/index.hpp"
#include "tools/executor/devices/torch_runtime.hpp"
#include "tools/executor/run/worker_pool.hpp"

namespace stageline::executor {

struct LaneProfiles::State {
  State(const ProfileRequest& request, const std::vector<Accelerator>& lanes)
      : stop(request.stop), sessions(lanes.size()) {
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      pool.add(
          [this, request, lane, accelerator = lanes[lane]] {
            enter(accelerator, LaneKind::compute);
            set_threads(1);
            sessions[lane] = std::make_unique<ProfileSession>(request);
          },
          [this, lane] { work(lane); });
    }
    pool.wait_until_idle();
    pool.rethrow_failure();
  }

  void work(std::size_t lane) {
    pool.await_release();
    if (chosen && *chosen != lane) return;
    // A step that is not counted, as before a counted run: what ran before may have been another
    // model, and have left its tensors in the caches.
    sessions[lane]->lead_in(1);
    if (chosen) return sessions[lane]->round(Company::alone);
    sessions[lane]->lead_in(ahead(lane));
    sessions[lane]->round(Company::beside_others);
    --left;
    sessions[lane]->accompany([this] { return left <= 0 || pool.stopped(); });
  }

  // The share of a step by which a lane is ahead: spread evenly over the rounds and the lanes (the
  // fractional parts of multiples of the golden ratio).
  double ahead(std::size_t lane) const {
    const double turns = 0.6180339887498949 * static_cast<double>(rounds_together * lane);
    return turns - std::floor(turns);
  }

  void run(std::optional<std::size_t> of) {
    chosen = of;
    if (!of) ++rounds_together;
    left = static_cast<int>(sessions.size());
    pool.begin_round();
    pool.release();
    pool.wait_until_idle();
    pool.rethrow_failure();
    stop_if(stop);
  }

  const std::atomic<bool>* stop;
  std::vector<std::unique_ptr<ProfileSession>> sessions;  // by lane
  std::optional<std::size_t> chosen;                      // the one that works; empty: all do
  std::size_t rounds_together = 0;
  std::atomic<int> left{0};  // lanes whose round has not ended
  WorkerPool pool;           // last: its threads use all of the above
};

LaneProfiles::LaneProfiles(const ProfileRequest& request, const std::vector<Accelerator>& lanes)
    : state_(std::make_unique<State>(request, lanes)) {}
LaneProfiles::~LaneProfiles() = default;

void LaneProfiles::rounds_alone() {
  for (std::size_t lane = 0; lane < state_->sessions.size(); ++lane) state_->run(lane);
}

void LaneProfiles::round_together() { state_->run(std::nullopt); }

Profile LaneProfiles::result() const { return state_->sessions.back()->result(); }

std::vector<double> LaneProfiles::rates(Company company) const {
  const Time last = typical(state_->sessions.back()->steps(company));
  std::vector<double> rates;
  for (const auto& session : state_->sessions) {
    rates.push_back(to_seconds(last) / to_seconds(typical(session->steps(company))));
  }
  return rates;
}

double LaneProfiles::slowdown() const {
  double sum = 0;
  for (const auto& session : state_->sessions) {
    sum += to_seconds(typical(session->steps(Company::beside_others))) /
           to_seconds(typical(session->steps(Company::alone)));
  }
  return std::max(1.0, sum / static_cast<double>(state_->sessions.size()));
}

}  // namespace stageline::executor
