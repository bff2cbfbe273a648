// The rounds of a profile: the same work fused, split, whole and recomputed, by turns, with the
// times of each op.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "sim/index.hpp"
#include "tools/executor/devices/device.hpp"
#include "tools/executor/profile/profile.hpp"
#include "tools/executor/tensors/tensor_model.hpp"

namespace stageline::executor {

/// The weights stay where they are.
inline constexpr double learning_rate = 0;

/// All samples, in the order of measurement.
struct Samples {
  std::vector<LayerSamples> layers;
  std::vector<Time> step;                  // F + B + U of all layers
  std::array<std::vector<Time>, 3> whole;  // forward, backward, update
  std::vector<Time> whole_step;            // the three together
};

class Rounds {
 public:
  /// `model` and `stop` (null: never) outlive this. Once `stop` is true, run() and accompany()
  /// throw Stopped before the next op.
  Rounds(TensorModel& model, MicroBatch batch, at::Device device, const std::atomic<bool>* stop);

  /// The four kinds, in an order that changes from round to round.
  void run(Company company = Company::alone);
  /// Fused steps that nothing notes, until `done`: company for another lane that is measured.
  void accompany(const std::function<bool()>& done);
  /// That share of the Fs and Bs of a fused step, which nothing notes: puts this lane at another
  /// place in its steps than lanes that begin with it.
  void lead_in(double share);

  /// Drops the samples: the warm-up is over.
  void forget();
  const Samples& samples(Company company = Company::alone) const { return nth(samples_, company); }

 private:
  // The op of a layer that a mark ends.
  struct Lap {
    std::size_t layer;
    Timed timed;
  };

  void begin();
  void time(std::vector<Lap>& laps, std::size_t layer, Timed timed,
            const std::function<void()>& op);
  /// The optimizer's step, including the zeroing of gradients.
  void step(std::size_t layer);
  void forwards(std::vector<Lap>& laps);
  void updates(std::vector<Lap>& laps);
  /// The sum.
  Time note(const std::vector<Lap>& laps, Samples& into);
  void fused(Samples& into);
  void split(Samples& into);
  void whole(Samples& into);
  void recomputed(Samples& into);

  TensorModel& model_;
  MicroBatch batch_;
  Stopwatch watch_;
  const std::atomic<bool>* stop_;
  std::size_t half_;                       // the first layer of the second half
  std::vector<bool> read_in_second_half_;  // by layer of the first half: its output
  std::array<Samples, 2> samples_;         // by Company
  int turn_ = 0;
};

}  // namespace stageline::executor
