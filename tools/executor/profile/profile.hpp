// Measures the costs of a built-in model's layers on a device, in the order and among the
// neighbours that they have on a device of a pipeline, which has one of two stages or the whole
// model. By turns, with h and k for the layers of the two halves, first to last, and h', k' for the
// same from last to first:
//
//   fused   Fh Fk  Bk' Bh'  U         each op timed
//   split   Fh Fk  Ik' Wk' Ih' Wh' U  each op timed
//   again   Fh Fk, none keeps its stash;  Fk again, Bk', Fh again, Bh'  U    each op timed
//   alone   Fh Fk  Wk' Wh'  U         each W as on a device that does not run I
//   whole   forward, autograd's backward, step: each of the three timed
//
// On a core two micro-batches are in flight: each half is run for both before the other half is, so
// that its ops find in the caches what a stage's own ops left there; or, of a device that has all
// layers, the whole model for one and then for the other. All take turns, so that a
// drift of the machine meets all of them. Ops find caches and memory as they would in training,
// which they do not when one op is repeated. An update ends with gradients of zero, so they are
// there to be added to. The learning rate is 0, so the weights stay where they are.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cost_models/roofline.hpp"
#include "cost_models/shapes/shapes.hpp"
#include "sim/model.hpp"

namespace stageline::executor {

/// Which layers run between two runs of an op: the half of the model that the op is in, as on a
/// device that has one of two stages, or all of them (Chimera, DualPipe, GEMS, PipeFB, replicas of
/// the whole model). The more there is, the less of its data an op finds in the caches.
enum class Share : std::uint8_t { half, whole };

struct ProfileRequest {
  ModelShape shape;
  int batch = 1;            // samples in a micro-batch
  std::int64_t tokens = 0;  // of each sequence; 0: as the shape says
  std::int64_t begin = 0;   // tokens of the same sequence before them: they are a slice of it
  Share share = Share::half;
  Optimizer optimizer = Optimizer::momentum;
  std::string device = "cpu";               // cuda, cuda:1
  std::string dtype = "fp32";               // or fp64; tf32 on an accelerator
  int least_rounds = 16;                    // one round: each of these, once
  double least_seconds = 5;                 // so that transient disturbances pass
  double most_seconds = 60;                 // then it stops, steady or not
  double steady = 0.02;                     // of each large layer, as a share; see `Steadiness`
  const std::atomic<bool>* stop = nullptr;  // once it is true, the next op throws Stopped
};

/// How far the medians of the first and the second half of the rounds are apart, as a share: of the
/// step, and of the layer (of those over 1 % of the step) where it is worst: of F, B and U
/// together, or of I and W.
struct Steadiness {
  double step = 0;
  double worst = 0;
  std::string worst_layer;
};

struct Progress {
  int rounds = 0;
  double seconds = 0;  // since the warm-up
  Steadiness so_far;
};

enum class Timed : std::uint8_t {
  forward,
  input_grad,
  weight_grad,
  lone_weight_grad,  // of a device that does not run I
  backward,
  update,
  forward_without_stash,  // of a micro-batch that is recomputed
  recompute,              // its F again
  backward_of_recomputed  // its B, which finds the stash just made
};
inline constexpr std::size_t timed_count = 9;
/// "F", "I", "W", "W alone", "B", "U", "F without stash", "R", "B of recomputed".
std::string_view name(Timed timed);

/// The samples of one layer by Timed, in the order of measurement.
using LayerSamples = std::array<std::vector<Time>, timed_count>;

/// Whether other lanes work while one is measured.
enum class Company : std::uint8_t { alone, beside_others };

struct Profile {
  Model model;            // all but the provenance
  std::string device;     // "NVIDIA H200"; of a CPU, "cpu"
  std::string libraries;  // "CUDA 13.0, cuDNN 9.15.1"; of a CPU, empty
  std::vector<LayerSamples> samples;
  Steadiness steadiness;
  bool steady = false;
};

/// "cpu" or "cuda:0", however it was spelled. Throws UsageError where there is no such device.
std::string device_spelled_out(const std::string& name);

/// A profile in progress, for callers that measure other things by turns with it. Throws as
/// `profile` does, Stopped too.
class ProfileSession {
 public:
  explicit ProfileSession(const ProfileRequest& request);  // and warms up
  ~ProfileSession();
  ProfileSession(const ProfileSession&) = delete;
  ProfileSession& operator=(const ProfileSession&) = delete;
  void round(Company company = Company::alone);
  /// Training steps that are not noted, until `done`: company for another lane that is measured.
  void accompany(const std::function<bool()>& done);
  /// A share (0 to 1) of a training step that is not noted, before a round beside other lanes.
  void lead_in(double share);
  Steadiness steadiness() const;
  /// The profile of all rounds alone so far.
  Profile result() const;
  /// The time of each round's fused step (F, B and U of all layers), in the order of measurement.
  const std::vector<Time>& steps(Company company) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Throws UsageError on an unknown device or number format and when memory runs out, Stopped
/// (tools/executor/run/worker_pool.hpp) when told to stop, and std::exception of LibTorch's own.
Profile profile(const ProfileRequest& request, const std::function<void(const Progress&)>& tell);

}  // namespace stageline::executor
