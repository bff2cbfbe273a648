// Finds the accelerators of a name and deals out cores to them.
#include "tools/executor/devices/accelerators.hpp"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "tools/executor/devices/device.hpp"
#include "tools/executor/devices/green_contexts.hpp"
#include "tools/executor/processes/process.hpp"

namespace stageline::executor {
namespace {

struct Asked {
  bool gpu = false;
  int count = 0;
  int processors = 0;  // 0: not said
};

// A whole number of 1 or more that ends the text; 0: it is none.
int number_in(std::string_view text) { return std::max(parse_number<int>(text).value_or(0), 0); }

Asked asked_for(const std::string& name) {
  const auto refuse = [&]() -> Asked {
    throw UsageError(
        fmt::format("no accelerators are called '{}' (write cpu:2 for two cores, cuda:2 for two "
                    "GPUs or halves of one, cuda:2@32 for parts of 32 SMs)",
                    name));
  };
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  if (colon == std::string::npos || (kind != "cpu" && kind != "cuda")) return refuse();
  const std::string_view numbers = std::string_view(name).substr(colon + 1);
  const std::size_t at = numbers.find('@');
  Asked asked{kind == "cuda", number_in(numbers.substr(0, at)), 0};
  if (asked.count == 0) return refuse();
  if (at == std::string_view::npos) return asked;
  asked.processors = number_in(numbers.substr(at + 1));
  if (!asked.gpu || asked.processors == 0) return refuse();
  if (asked.processors % 2 != 0) {
    throw UsageError(
        fmt::format("{} wants {} SMs for each accelerator, but a GPU is parted by twos at least "
                    "(by eights from Hopper on)",
                    name, asked.processors));
  }
  return asked;
}

std::vector<Accelerator> cores_called(const std::string& name, int count) {
  const std::vector<int> cores = allowed_cores();
  if (as_size(count) > cores.size()) {
    throw UsageError(fmt::format("{} wants {} cores of its own, but this process may use {} ({})",
                                 name, count, cores.size(), print_cores(cores)));
  }
  std::vector<Accelerator> accelerators;
  for (int i = 0; i < count; ++i) {
    accelerators.push_back({at::kCPU, {nth(cores, i)}});
  }
  return accelerators;
}

// Each the same number of neighbours, where there are enough.
void deal_cores(std::vector<Accelerator>& accelerators) {
  const std::vector<int> cores = allowed_cores();
  const auto each = static_cast<std::ptrdiff_t>(cores.size() / accelerators.size());
  auto next = cores.begin();
  for (Accelerator& accelerator : accelerators) {
    accelerator.cores.assign(next, next + each);
    next += each;
  }
}

// Streams of the primary context, from LibTorch's pool: it has 32 and deals them in turn.
Accelerator whole(at::Device gpu) {
  const c10::impl::VirtualGuardImpl guard(gpu.type());
  Accelerator accelerator;
  accelerator.where = gpu;
  accelerator.streams =
      LaneStreams{guard.getStreamFromGlobalPool(gpu), guard.getStreamFromGlobalPool(gpu),
                  guard.getStreamFromGlobalPool(gpu)};
  return accelerator;
}

std::vector<Accelerator> gpus_called(const Asked& asked) {
  // Read by CUDA when it starts: the queues between host and device. With fewer than there are
  // streams, what is on one may wait behind what is on another.
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  const at::Device first = device_called("cuda");  // throws where there is none
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setBenchmarkCuDNN(true);
  const int gpus = c10::impl::VirtualGuardImpl(first.type()).deviceCount();
  const bool cut = asked.processors > 0 || asked.count > gpus;
  std::vector<Accelerator> accelerators;
  for (int i = 0; i < asked.count; ++i) {
    const at::Device gpu(first.type(), static_cast<c10::DeviceIndex>(cut ? 0 : i));
    at::empty({1}, at::device(gpu));  // makes its primary context
    accelerators.push_back(whole(gpu));
  }
  if (cut) {
    const auto parts =
        cut_gpu(green_driver(), first, title_of(first), asked.count, asked.processors);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      accelerators[i].streams->compute = parts[i].stream;
      accelerators[i].processors = parts[i].processors;
    }
  }
  deal_cores(accelerators);
  return accelerators;
}

}  // namespace

std::vector<Accelerator> accelerators_called(const std::string& name) {
  const Asked asked = asked_for(name);
  return asked.gpu ? gpus_called(asked) : cores_called(name, asked.count);
}

std::vector<Accelerator> unpinned_accelerators(const std::string& name, const std::string& flag) {
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  const int count = colon == std::string::npos ? 0 : number_in(name.substr(colon + 1));
  if ((kind != "cpu" && kind != "process") || count == 0) {
    throw UsageError(
        fmt::format("{} goes with --devices cpu:N or process:N, not '{}'", flag, name));
  }
  return std::vector<Accelerator>(as_size(count));
}

std::string title_of(const std::vector<Accelerator>& accelerators) {
  if (accelerators.empty() || accelerators[0].where.is_cpu()) return "";
  const std::string gpu = title_of(accelerators[0].where);
  const std::size_t count = accelerators.size();
  const int processors = accelerators[0].processors;
  if (processors > 0) {
    return fmt::format("{}, {} of {} SMs", gpu,
                       count == 1 ? "a part" : fmt::format("{} parts", count), processors);
  }
  return count == 1 ? gpu : fmt::format("{} × {}", count, gpu);
}

void enter(const Accelerator& accelerator, LaneKind lane) {
  if (!accelerator.cores.empty()) pin_to_cores(accelerator.cores);
  if (!accelerator.streams) return;
  const LaneStreams& streams = *accelerator.streams;
  const c10::impl::VirtualGuardImpl guard(accelerator.where.type());
  guard.setDevice(accelerator.where);
  guard.exchangeStream(lane == LaneKind::copy_out  ? streams.copy_out
                       : lane == LaneKind::copy_in ? streams.copy_in
                                                   : streams.compute);
}

}  // namespace stageline::executor
