// Measures a model by layers, in rounds, until the medians are steady.
#include "tools/executor/profile/profile.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <string_view>

#include "sim/analysis/statistics.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/executor/devices/device.hpp"
#include "tools/executor/profile/rounds.hpp"
#include "tools/executor/run/worker_pool.hpp"
#include "tools/executor/tensors/tensor_model.hpp"

namespace stageline::executor {
namespace {

constexpr int warm_up_rounds = 3;
constexpr std::uint64_t seed = 1;

at::ScalarType number_format(const std::string& dtype, at::Device device) {
  const bool tf32 = dtype == "tf32";
  // Off by default in one library and on in the other: say it to both.
  at::globalContext().setAllowTF32CuBLAS(tf32);
  at::globalContext().setAllowTF32CuDNN(tf32);
  at::globalContext().setBenchmarkCuDNN(true);
  if (dtype == "fp32" || (tf32 && !device.is_cpu())) return at::kFloat;
  if (dtype == "fp64") return at::kDouble;
  throw UsageError(
      fmt::format("the number format must be fp32, fp64 or, on an accelerator, tf32, "
                  "not '{}' on {}",
                  dtype, device.str()));
}

const std::vector<Time>& of(const LayerSamples& samples, Timed timed) {
  return nth(samples, timed);
}

Steadiness steadiness_of(const Samples& samples, const ModelShape& shape) {
  const Time step = median(samples.step);
  Steadiness result;
  result.step = std::max(fraction_of(drift(samples.step), step),
                         fraction_of(drift(samples.whole_step), median(samples.whole_step)));
  for (std::size_t i = 0; i < samples.layers.size(); ++i) {
    const LayerSamples& layer = samples.layers[i];
    const auto typical = [&](std::initializer_list<Timed> together) {
      Time sum{};
      for (const Timed timed : together) sum += median(of(layer, timed));
      return sum;
    };
    const auto moved = [&](std::initializer_list<Timed> together) {
      Time sum{};
      for (const Timed timed : together) sum += drift(of(layer, timed));
      return fraction_of(sum, typical(together));
    };
    if (fraction_of(typical({Timed::forward, Timed::backward, Timed::update}), step) < 0.01) {
      continue;
    }
    const double share = std::max(moved({Timed::forward, Timed::backward, Timed::update}),
                                  moved({Timed::input_grad, Timed::weight_grad}));
    if (share > result.worst) {
      result.worst = share;
      result.worst_layer = shape.layers[i].name;
    }
  }
  return result;
}

// Beyond what is held before and after an op, the most over a layer's ops.
struct Workspace {
  Bytes forward{};
  Bytes backward{};
  Bytes input_grad{};
  Bytes weight_grad{};
  Bytes all{};  // updates too
};

std::vector<Workspace> workspaces(TensorModel& model, MicroBatch batch, at::Device device,
                                  const std::atomic<bool>* stop) {
  const c10::NoGradGuard plain;
  zero_gradients(model);
  MemoryMeter meter(device);
  std::vector<Workspace> most(model.layers.size());
  const auto watch = [&](Workspace& of, Bytes Workspace::*pass, const std::function<void()>& op) {
    stop_if(stop);
    const std::int64_t before = meter.held();
    meter.take_peak();
    op();
    const Bytes beyond{meter.take_peak() - std::max(before, meter.held())};
    of.*pass = std::max(of.*pass, beyond);
    of.all = std::max(of.all, beyond);
  };
  const std::size_t count = model.layers.size();
  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t i = 0; i < count; ++i) {
      watch(most[i], &Workspace::forward, [&] { forward(model, i, batch); });
    }
    for (std::size_t i = count; i-- > 0;) {
      if (pass == 0) {
        watch(most[i], &Workspace::backward, [&] { backward(model, i, batch); });
      } else {
        watch(most[i], &Workspace::input_grad, [&] { input_grad(model, i, batch); });
        watch(most[i], &Workspace::weight_grad, [&] { weight_grad(model, i, batch); });
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      watch(most[i], &Workspace::all, [&] { update(model, i, {learning_rate}); });
    }
  }
  return most;
}

Bytes size_of(const std::vector<at::Tensor>& tensors) {
  Bytes sum{};
  for (const at::Tensor& tensor : tensors) {
    sum += Bytes{static_cast<std::int64_t>(tensor.nbytes())};
  }
  return sum;
}

bool does(const LayerShape& shape, Work Primitive::*pass) { return total(shape, pass) != Work{}; }

// What recomputation adds to F and B: R, less what a forward saves that keeps no stash and a
// backward that finds its stash in the cache.
Time added_by_recomputation(const LayerSamples& samples) {
  const auto of_kind = [&](Timed timed) { return typical(of(samples, timed)); };
  const Time added = of_kind(Timed::forward_without_stash) + of_kind(Timed::recompute) +
                     of_kind(Timed::backward_of_recomputed) - of_kind(Timed::forward) -
                     of_kind(Timed::backward);
  return std::max(added, Time{1});  // 0 is not measured
}

Layer layer_of(const LayerShape& shape, const LayerWeights& weights, const LayerBytes& bytes,
               const Workspace& workspace, const LayerSamples& samples) {
  Layer layer;
  layer.name = shape.name;
  layer.kind = shape.kind;
  const auto put = [&](Timed timed, Time Layer::*time, Time Layer::*spread) {
    layer.*time = typical(of(samples, timed));
    layer.*spread = half_interquartile(of(samples, timed));
  };
  put(Timed::forward, &Layer::forward, &Layer::forward_spread);
  put(Timed::backward, &Layer::backward, &Layer::backward_spread);
  // What a layer does not do takes no time, however long the clock takes to read.
  if (does(shape, &Primitive::input_grad)) {
    put(Timed::input_grad, &Layer::input_grad, &Layer::input_grad_spread);
  }
  if (does(shape, &Primitive::weight_grad)) {
    put(Timed::weight_grad, &Layer::weight_grad, &Layer::weight_grad_spread);
    layer.lone_weight_grad = typical(of(samples, Timed::lone_weight_grad));
  }
  if (shape.weights > 0) put(Timed::update, &Layer::update, &Layer::update_spread);
  layer.recompute = added_by_recomputation(samples);
  layer.weights = size_of(weights.values);
  layer.gradients = layer.weights;
  layer.optimizer_state = size_of(weights.state);
  layer.output = bytes.output_bytes;
  layer.stash_input_grad = bytes.stash_input_grad;
  layer.stash_weight_grad = bytes.stash_weight_grad;
  layer.stash_gradient = bytes.stash_gradient;
  layer.input_kept = bytes.input_kept;
  layer.output_kept = bytes.output_kept;
  layer.workspace = workspace.all;
  layer.forward_workspace = workspace.forward;
  layer.backward_workspace = workspace.backward;
  layer.input_grad_workspace = workspace.input_grad;
  layer.weight_grad_workspace = workspace.weight_grad;
  layer.parameters = shape.parameters;
  return layer;
}

WholeRun whole_of(const Samples& samples) {
  return {.samples = static_cast<int>(samples.whole_step.size()),
          .forward = typical(samples.whole[0]),
          .backward = typical(samples.whole[1]),
          .update = typical(samples.whole[2]),
          .spread = half_interquartile(samples.whole_step),
          .noise = drift(samples.whole_step)};
}

}  // namespace

std::string_view name(Timed timed) {
  switch (timed) {
    case Timed::forward:
      return "F";
    case Timed::input_grad:
      return "I";
    case Timed::weight_grad:
      return "W";
    case Timed::lone_weight_grad:
      return "W alone";
    case Timed::backward:
      return "B";
    case Timed::update:
      return "U";
    case Timed::forward_without_stash:
      return "F without stash";
    case Timed::recompute:
      return "R";
    case Timed::backward_of_recomputed:
      return "B of recomputed";
  }
  return "";  // unreachable; g++ wants it
}

std::string device_spelled_out(const std::string& name) { return device_called(name).str(); }

namespace {

// A slice finds keys and values of all tokens before it, as one slice has left them.
MicroBatch profiled_batch(const TensorModel& model, const ProfileRequest& request) {
  MicroBatch whole =
      random_micro_batch(model, request.batch, seed + 1, request.begin + request.tokens);
  if (request.begin == 0) return whole;
  whole.slices = std::make_shared<std::vector<SlicedAttention>>(model.layers.size());
  MicroBatch earlier = slice_of(whole, {0, request.begin, 0});
  for (std::size_t i = 0; i < model.layers.size(); ++i) forward(model, i, earlier);
  return slice_of(whole, {request.begin, request.tokens, 1});
}

}  // namespace

struct ProfileSession::State {
  ProfileRequest request;
  at::Device device;
  TensorModel model;
  MicroBatch batch;
  std::vector<LayerBytes> bytes;
  Rounds rounds;
  std::vector<Workspace> workspace;

  explicit State(const ProfileRequest& asked)
      : request(asked),
        device(device_called(asked.device)),
        model(tensor_model(asked.shape, asked.optimizer,
                           at::TensorOptions(number_format(asked.dtype, device)).device(device),
                           seed)),
        batch(profiled_batch(model, asked)),
        bytes(count_bytes(model, batch)),
        rounds(model, batch, device, asked.share, asked.stop) {
    // cuDNN tries its algorithms, with workspaces of their own, when it meets a shape for the first
    // time: that must be over before anything is metered or timed.
    for (int i = 0; i < warm_up_rounds; ++i) rounds.run();
    workspace = workspaces(model, batch, device, asked.stop);
    rounds.run();
    rounds.forget();
  }
};

namespace {

// What LibTorch throws when memory runs out, as a sentence of ours.
template <typename Work>
auto in_our_words(const ProfileRequest& request, const Work& work) {
  try {
    return work();
  } catch (const c10::Error& error) {
    const std::string_view said = error.what_without_backtrace();
    // The CPU's allocator and the accelerator's, in their words.
    if (said.find("allocate memory") == std::string_view::npos &&
        said.find("out of memory") == std::string_view::npos) {
      throw;
    }
    throw UsageError(
        fmt::format("{} at batch {} does not fit into the memory of {}; try a smaller "
                    "--batch",
                    request.shape.name, request.batch, request.device));
  }
}

}  // namespace

ProfileSession::ProfileSession(const ProfileRequest& request)
    : state_(in_our_words(request, [&] { return std::make_unique<State>(request); })) {}
ProfileSession::~ProfileSession() = default;

void ProfileSession::round(Company company) {
  in_our_words(state_->request, [&] { state_->rounds.run(company); });
}

void ProfileSession::accompany(const std::function<bool()>& done) {
  state_->rounds.accompany(done);
}

void ProfileSession::lead_in(double share) { state_->rounds.lead_in(share); }

const std::vector<Time>& ProfileSession::steps(Company company) const {
  return state_->rounds.samples(company).step;
}

Steadiness ProfileSession::steadiness() const {
  return steadiness_of(state_->rounds.samples(), state_->request.shape);
}

Profile ProfileSession::result() const {
  const ProfileRequest& request = state_->request;
  const Samples& samples = state_->rounds.samples();
  Profile result;
  result.steadiness = steadiness();
  result.samples = samples.layers;
  result.device = title_of(state_->device);
  result.libraries = libraries_of(state_->device);
  result.model.name = request.shape.name;
  result.model.batch = request.batch;
  result.model.sample = request.shape.sample;
  result.model.edges = request.shape.edges;
  std::sort(result.model.edges.begin(), result.model.edges.end());  // as a trace has them
  result.model.input = Bytes{static_cast<std::int64_t>(state_->batch.input.nbytes())};
  result.model.whole = whole_of(samples);
  for (std::size_t i = 0; i < request.shape.layers.size(); ++i) {
    result.model.layers.push_back(layer_of(request.shape.layers[i], state_->model.weights[i],
                                           state_->bytes[i], state_->workspace[i],
                                           samples.layers[i]));
  }
  return result;
}

Profile profile(const ProfileRequest& request, const std::function<void(const Progress&)>& tell) {
  ProfileSession session(request);
  const auto begin = std::chrono::steady_clock::now();
  const double least_seconds = std::min(request.least_seconds, request.most_seconds);
  Progress progress;
  bool steady = false;
  int next_look = 1;  // at the samples: rarely, so that looking neither takes time nor picks a lull
  while (true) {
    session.round();
    ++progress.rounds;
    progress.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const bool last =
        progress.rounds >= request.least_rounds && progress.seconds >= request.most_seconds;
    if (progress.rounds < next_look && !last) continue;
    next_look = progress.rounds + 1 + progress.rounds / 8;
    progress.so_far = session.steadiness();
    tell(progress);
    if (progress.rounds < request.least_rounds || progress.seconds < least_seconds) continue;
    steady = progress.so_far.step <= request.steady / 2 && progress.so_far.worst <= request.steady;
    if (steady || last) break;
  }
  Profile result = session.result();
  result.steadiness = progress.so_far;
  result.steady = steady;
  return result;
}

}  // namespace stageline::executor
