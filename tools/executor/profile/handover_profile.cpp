// Two cores write and read the same blocks by turns, and each blocks of its own.
#include "tools/executor/profile/handover_profile.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include "sim/analysis/statistics.hpp"
#include "sim/base/index.hpp"
#include "tools/executor/run/worker_pool.hpp"

namespace stageline::executor {
namespace {

using Clock = std::chrono::steady_clock;

// A typical message, and within the second-level cache of a core. Several are on their way at once,
// as those of several micro-batches are: until a block is written again, others have taken its
// place in the reader's cache.
constexpr std::size_t block_bytes = 512 * 1024;
constexpr std::size_t block_floats = block_bytes / sizeof(float);
constexpr int on_their_way = 4;
constexpr int turns = 3 * on_their_way;  // a round; the first finds other contents in the caches

using Blocks = std::array<std::vector<float>, on_their_way>;

Time since(Clock::time_point begin) {
  return std::chrono::duration_cast<Time>(Clock::now() - begin);
}

// As wide as the kernels' own stores, where the compiler can choose: narrower ones hide a part.
#ifdef __x86_64__
__attribute__((target_clones("avx2", "default")))
#endif
Time write_block(std::vector<float>& block, int from) {
  const Clock::time_point begin = Clock::now();
  float* const values = block.data();
  for (int i = 0; i < static_cast<int>(block_floats); ++i) values[i] = static_cast<float>(from + i);
  return since(begin);
}

Time read_block(const std::vector<float>& block, float& sum) {
  constexpr std::size_t together = 16;  // sums that do not wait for each other: a cache line
  const Clock::time_point begin = Clock::now();
  float sums[together] = {};
  for (std::size_t i = 0; i < block.size(); i += together) {
    for (std::size_t j = 0; j < together; ++j) sums[j] += block[i + j];
  }
  const Time taken = since(begin);
  for (const float one : sums) sum += one;
  return taken;
}

Bandwidth bandwidth_of(Time block) {
  return {static_cast<std::int64_t>(static_cast<double>(block_bytes) / to_seconds(block))};
}

}  // namespace

struct HandoverProfile::State {
  explicit State(const std::vector<Accelerator>& lanes) : count(lanes.size()) {
    const bool cores = std::all_of(lanes.begin(), lanes.end(),
                                   [](const Accelerator& lane) { return lane.where.is_cpu(); });
    if (count < 2 || !cores) return;
    own.resize(count);
    for (std::vector<float>& block : shared) block.resize(block_floats);
    for (Blocks& blocks : own) blocks = shared;
    for (std::size_t lane = 0; lane < count; ++lane) {
      pool.add([accelerator = lanes[lane]] { enter(accelerator, LaneKind::compute); },
               [this, lane] { work(lane); });
    }
    pool.wait_until_idle();
    pool.rethrow_failure();
  }

  void work(std::size_t lane) {
    pool.await_release();
    const std::size_t writer = round % count;
    const std::size_t reader = (round + 1) % count;
    if (lane != writer && lane != reader) return;
    for (int turn = 0; turn < turns; ++turn) {
      // In turns, so that what drifts drifts for both.
      const bool counts = turn >= on_their_way;
      std::vector<float>& mine = nth(own[lane], turn % on_their_way);
      std::vector<float>& ours = nth(shared, turn % on_their_way);
      if (lane == writer) {
        note(own_writes, write_block(mine, turn), counts);
        await(2 * turn);
        note(shared_writes, write_block(ours, turn), counts);
      } else {
        write_block(mine, turn);
        note(own_reads, read_block(mine, sum), counts);
        await(2 * turn + 1);
        note(shared_reads, read_block(ours, sum), counts);
      }
      ++steps;
    }
  }

  static void note(std::vector<Time>& times, Time taken, bool counts) {
    if (counts) times.push_back(taken);
  }

  void await(int step) {
    SpinWait look_again;
    while (steps < step) {
      if (pool.stopped()) throw Stopped();
      look_again.wait();
    }
  }

  std::size_t count;
  std::size_t round = 0;
  std::vector<Blocks> own;  // by lane
  Blocks shared;
  std::vector<Time> own_writes, shared_writes;  // of the lanes that wrote
  std::vector<Time> own_reads, shared_reads;    // of those that read
  float sum = 0;                                // read by nobody, but it might be
  std::atomic<int> steps{0};                    // of both lanes in this round
  WorkerPool pool;                              // last: its threads use all of the above
};

HandoverProfile::HandoverProfile(const std::vector<Accelerator>& lanes)
    : state_(std::make_unique<State>(lanes)) {}
HandoverProfile::~HandoverProfile() = default;

void HandoverProfile::round() {
  if (state_->own.empty()) return;
  state_->steps = 0;
  state_->pool.begin_round();
  state_->pool.release();
  state_->pool.wait_until_idle();
  state_->pool.rethrow_failure();
  ++state_->round;
}

Handover HandoverProfile::result() const {
  if (state_->shared_writes.empty()) return {};
  // Where it is no slower than in one's own memory, it costs nothing.
  Handover result;
  const Time write = median(state_->shared_writes);
  if (write > median(state_->own_writes)) result.write = bandwidth_of(write);
  const Time read_longer = median(state_->shared_reads) - median(state_->own_reads);
  if (read_longer > Time{}) result.read = bandwidth_of(read_longer);
  return result;
}

}  // namespace stageline::executor
