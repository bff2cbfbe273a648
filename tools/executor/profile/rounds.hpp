// The rounds of a profile: the same work fused, split, whole, recomputed and with lone Ws, by
// turns, with the times of each op.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "sim/base/index.hpp"
#include "tools/executor/devices/device.hpp"
#include "tools/executor/profile/profile.hpp"
#include "tools/executor/tensors/tensor_model.hpp"

namespace stageline::executor {

/// The weights stay where they are.
inline constexpr double learning_rate = 0;

/// Micro-batches in flight: two on a core, whose caches hold what a stage's last one left; one on
/// an accelerator, whose caches are small beside a layer's tensors.
int in_flight_on(at::Device device);

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
  Rounds(TensorModel& model, MicroBatch batch, at::Device device, Share share,
         const std::atomic<bool>* stop);

  /// The five kinds, in an order that changes from round to round.
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
  // The op of a layer that a mark ends; nothing: what nobody asked for.
  struct Lap {
    std::size_t layer;
    std::optional<Timed> timed;
  };

  void begin();
  void time(std::vector<Lap>& laps, std::size_t layer, Timed timed,
            const std::function<void()>& op);
  /// Work whose time is not asked for.
  void pass_by(std::vector<Lap>& laps, const std::function<void()>& work);
  /// The optimizer's step, including the zeroing of gradients.
  void step(std::size_t layer);
  /// Passes of a micro-batch over layers from `first` to before `end`, which one device has.
  using Passes = std::function<void(MicroBatch& batch, std::size_t first, std::size_t end)>;
  /// Each device's layers for all micro-batches in flight, from the first layers to the last.
  void upwards(const Passes& passes);
  /// The other way round.
  void downwards(const Passes& passes);
  void forwards(std::vector<Lap>& laps);
  void updates(std::vector<Lap>& laps);
  /// The sum.
  Time note(const std::vector<Lap>& laps, Samples& into);
  void fused(Samples& into);
  void split(Samples& into);
  void whole(Samples& into);
  void recomputed(Samples& into);
  void with_lone_weight_grads(Samples& into);

  TensorModel& model_;
  std::vector<MicroBatch> in_flight_;  // of equal data
  Stopwatch watch_;
  const std::atomic<bool>* stop_;
  std::size_t cut_;                 // the first layer of the second device; 0: one has all
  std::array<Samples, 2> samples_;  // by Company
  std::size_t turn_ = 0;
};

}  // namespace stageline::executor
