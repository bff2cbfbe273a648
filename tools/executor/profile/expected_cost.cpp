// Estimates a profile's time and memory from the model's shape and two quick measurements.
#include "tools/executor/profile/expected_cost.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "tools/executor/devices/device.hpp"
#include "tools/executor/profile/rounds.hpp"

namespace stageline::executor {
namespace {

// Layers reach about this share of what one large product does.
constexpr double usual_efficiency = 0.6;
// Rounds that a session's constructor runs, the metering of workspaces among them.
constexpr double expected_warm_up_rounds = 5;

// The shortest of several calls, in seconds.
double shortest(at::Device device, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  work();
  synchronize(device);
  double best = 0;
  double total = 0;
  for (int i = 0; i < 3 || (total < 0.1 && i < 20); ++i) {
    const Clock::time_point begin = Clock::now();
    work();
    synchronize(device);
    const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    total += taken;
    best = i == 0 ? taken : std::min(best, taken);
  }
  return std::max(best, 1e-9);
}

}  // namespace

QuickRates quick_rates(const std::string& name) {
  const c10::InferenceMode no_graph;
  const at::Device device = device_called(name);
  const std::int64_t rows = device.is_cpu() ? 768 : 4096;
  const at::TensorOptions options = at::TensorOptions(at::kFloat).device(device);
  const at::Tensor a = at::ones({rows, rows}, options);
  at::Tensor product = at::empty_like(a);
  const auto side = static_cast<double>(rows);
  QuickRates rates;
  rates.flops = 2 * side * side * side / shortest(device, [&] { at::mm_out(product, a, a); });
  const at::Tensor from = at::ones({std::int64_t{16} << 20}, options);
  at::Tensor to = at::empty_like(from);
  rates.bytes = 2 * static_cast<double>(from.nbytes()) / shortest(device, [&] { to.copy_(from); });
  return rates;
}

ExpectedCost expected_cost(const ProfileRequest& request, const QuickRates& rates) {
  const bool doubles = request.dtype == "fp64";
  const std::int64_t widening = doubles ? 2 : 1;  // of times and bytes
  DeviceKind kind;
  kind.memory_bandwidth = {std::llround(rates.bytes)};
  kind.peak = {{"fp32", rates.flops}};
  RooflineOptions options;
  options.batch = request.batch;
  options.dtype = "fp32";
  options.optimizer = name(request.optimizer);
  options.efficiency = usual_efficiency;
  options.overhead = std::chrono::microseconds(5);
  const Model model = roofline(request.shape, kind, options);
  ExpectedCost cost;
  Time step{};
  Time forward{};
  Time backward{};
  for (const Layer& layer : model.layers) {
    forward += layer.forward;
    backward += layer.backward;
    step += layer.forward + layer.backward + layer.update;
    cost.standing += layer.weights + layer.gradients + layer.optimizer_state;
    cost.stash += layer.stash_input_grad + layer.stash_weight_grad + layer.output;
  }
  cost.standing = cost.standing * widening;
  cost.stash = cost.stash * widening;
  cost.step_seconds = to_seconds(step) * static_cast<double>(widening);
  // A step of one micro-batch, and four of all in flight: two of them plain, one whose forwards run
  // twice, and one whose backwards nearly do.
  const int in_flight = in_flight_on(device_called(request.device));
  cost.in_flight = in_flight;
  cost.round_seconds = to_seconds(step * (1 + 4 * in_flight) + (forward + backward) * in_flight) *
                       static_cast<double>(widening);
  cost.warm_up_seconds = expected_warm_up_rounds * cost.round_seconds;
  return cost;
}

std::string about(double seconds) {
  if (seconds < 90) return fmt::format("about {:.0f} s", std::max(seconds, 1.0));
  if (seconds < 5400) return fmt::format("about {:.0f} min", seconds / 60);
  return fmt::format("about {:.1f} h", seconds / 3600);
}

}  // namespace stageline::executor
