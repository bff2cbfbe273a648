// Two streams of micro-batches on one device, as DualPipe and DualPipeV write their order: forwards
// and backwards of either stream in turn, each stream's micro-batches in their order, weight
// gradients put off and taken up again first in, first out.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>

#include "schedulers/order.hpp"

namespace stageline {

class DualLanes {
 public:
  /// Stream i runs through `stage[i]` on this device; its k-th micro-batch is first[i] + k ·
  /// stride.
  struct Stream {
    int stage = 0;
    std::uint32_t first = 0;
  };
  DualLanes(Program& program, Stream one, Stream other, std::uint32_t stride)
      : orders_{Order(program, one.stage), Order(program, other.stage)},
        first_{one.first, other.first},
        stride_(stride) {}

  void forward(std::size_t stream) { orders_[stream].forward(next(forwards_, stream)); }

  enum class WeightGrads : std::uint8_t { with, later };
  void backward(std::size_t stream, WeightGrads weight_grads = WeightGrads::with) {
    const std::uint32_t m = next(backwards_, stream);
    if (weight_grads == WeightGrads::with) {
      orders_[stream].backward(m);
      return;
    }
    orders_[stream].input_grad(m);
    put_off_.emplace_back(stream, m);
  }

  /// The weight gradient that was put off first.
  void weight_grad() {
    const auto [stream, m] = put_off_.front();
    put_off_.pop_front();
    orders_[stream].weight_grad(m);
  }

  /// One stream's forward and the other's backward as an overlapped pair.
  void pair(std::size_t stream) {
    const std::uint32_t m = next(forwards_, stream);
    orders_[stream].pair(m, orders_[1 - stream], next(backwards_, 1 - stream));
  }

 private:
  std::uint32_t next(std::array<std::uint32_t, 2>& counts, std::size_t stream) const {
    return first_[stream] + counts[stream]++ * stride_;
  }

  std::array<Order, 2> orders_;
  std::array<std::uint32_t, 2> first_;
  std::uint32_t stride_;
  std::array<std::uint32_t, 2> forwards_{};
  std::array<std::uint32_t, 2> backwards_{};
  std::deque<std::pair<std::size_t, std::uint32_t>> put_off_;
};

/// The order that DualPipe and DualPipeV share: `ranks` devices lie between the two ends of the
/// pipe, this one is `rank` from where stream 0 enters; each stream has `microbatches`, at least
/// twice `ranks` in all, or as many (see there). The last rank has both middle stages: its first
/// forward and backward of the main part follow one another, for the gap is shorter so.
inline void dual_order(DualLanes& lanes, int ranks, int rank, int main_pairs) {
  const int behind = ranks - 1 - rank;
  const auto zero_bubble = DualLanes::WeightGrads::later;
  for (int i = 0; i < 2 * behind; ++i) lanes.forward(0);
  for (int i = 0; i < rank + 1; ++i) {
    lanes.forward(0);
    lanes.forward(1);
  }
  for (int i = 0; i < behind; ++i) {
    lanes.backward(1, zero_bubble);
    lanes.weight_grad();
    lanes.forward(1);
  }
  for (int i = 0; i < main_pairs; ++i) {
    if (i == 0 && behind == 0) {
      lanes.forward(0);
      lanes.backward(1);
    } else {
      lanes.pair(0);
    }
    lanes.pair(1);
  }
  for (int i = 0; i < behind; ++i) {
    lanes.backward(1);
    lanes.pair(1);
  }
  // From the middle on, weight gradients wait for the gaps of the end.
  bool later = false;
  for (int i = 0; i < rank + 1; ++i) {
    const bool half = i == (rank + 1) / 2;
    later = later || (half && rank % 2 == 1);
    lanes.backward(1, later ? zero_bubble : DualLanes::WeightGrads::with);
    later = later || (half && rank % 2 == 0);
    lanes.backward(0, later ? zero_bubble : DualLanes::WeightGrads::with);
  }
  for (int i = 0; i < behind; ++i) {
    lanes.weight_grad();
    lanes.backward(0, zero_bubble);
  }
  for (int i = 0; i < rank + 1; ++i) lanes.weight_grad();
}

}  // namespace stageline
