// Clocks, memory meters and synchronization of a device.
#include "tools/executor/devices/device.hpp"

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/executor/profile/reported_total.hpp"

namespace stageline::executor {
namespace {

// Milliseconds between two events that have happened.
template <typename Event>
double elapsed(const Event& from, const Event& to) {
  if constexpr (requires { from.elapsedTime(to); }) {
    return from.elapsedTime(to);
  } else {
    throw UsageError("this LibTorch cannot time an accelerator; 2.4 or later can");
  }
}

template <typename Event>
constexpr bool has_elapsed_time = requires(const Event& event) {
  event.elapsedTime(event);
};

// With a flag that keeps the time.
c10::Event timing_event(at::Device device) {
  return {device.type(), c10::EventFlag::BACKEND_DEFAULT};
}

}  // namespace

at::Device device_called(const std::string& name) {
  at::Device device(at::kCPU);
  try {
    device = at::Device(name);
  } catch (const std::exception&) {
    throw UsageError(fmt::format("no device is called '{}' (write cpu, cuda or cuda:1)", name));
  }
  if (device.is_cpu()) return {at::kCPU};
  if (!device.is_cuda()) {
    throw UsageError(fmt::format("{} cannot be measured, only cpu, cuda and cuda:1", name));
  }
  const bool known = c10::impl::hasDeviceGuardImpl(device.type());
  const int count =
      known ? static_cast<int>(c10::impl::VirtualGuardImpl(device.type()).deviceCount()) : 0;
  const int index = device.has_index() ? device.index() : 0;
  if (index >= count) {
    throw UsageError(fmt::format("there is no {}: {} of that type {} here{}", name, count,
                                 count == 1 ? "is" : "are",
                                 known ? "" : ", and this LibTorch is built without it"));
  }
  if (!has_elapsed_time<c10::Event>) {
    throw UsageError("this LibTorch cannot time an accelerator; 2.4 or later can");
  }
  return {device.type(), static_cast<c10::DeviceIndex>(index)};
}

// Asks CUDA's driver, which is opened here so that the program starts where there is none.
std::string title_of(at::Device device) {
  void* const driver = device.is_cuda() ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) : nullptr;
  if (driver == nullptr) return device.str();
  // CUDA driver API: int is both CUresult, 0 for success, and CUdevice.
  const auto get = reinterpret_cast<int (*)(int*, int)>(dlsym(driver, "cuDeviceGet"));
  const auto get_name =
      reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  std::array<char, 256> title{};
  int handle = 0;
  const bool told = get != nullptr && get_name != nullptr && get(&handle, device.index()) == 0 &&
                    get_name(title.data(), static_cast<int>(title.size()), handle) == 0;
  return told ? std::string(title.data()) : device.str();
}

std::string libraries_of(at::Device device) {
  if (!device.is_cuda()) return "";
  const at::CUDAHooksInterface& cuda = at::detail::getCUDAHooks();
  const auto runtime = static_cast<long>(cuda.versionCUDART());  // 13000 is 13.0
  const auto cudnn = static_cast<long>(cuda.versionCuDNN());     // 91501 is 9.15.1
  return fmt::format("CUDA {}.{}, cuDNN {}.{}.{}", runtime / 1000, runtime % 1000 / 10,
                     cudnn / 10000, cudnn % 10000 / 100, cudnn % 100);
}

void synchronize(at::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  c10::Event event = timing_event(device);
  event.record(guard.getStream(device));
  // Between questions other threads get at the driver, and at the core.
  while (!event.query()) sched_yield();
}

void keep_until_done(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.device().is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(tensor.device().type());
  guard.recordDataPtrOnStream(tensor.storage().data_ptr(), guard.getStream(tensor.device()));
}

void Stopwatch::mark() {
  if (device_.is_cpu()) {
    moments_.push_back(std::chrono::steady_clock::now());
    return;
  }
  if (marked_ == events_.size()) events_.push_back(timing_event(device_));
  events_[marked_++].record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
}

std::vector<Time> Stopwatch::laps() {
  std::vector<Time> times;
  for (std::size_t i = 1; i < moments_.size(); ++i) {
    times.push_back(std::chrono::duration_cast<Time>(moments_[i] - moments_[i - 1]));
  }
  moments_.clear();
  if (marked_ > 0) synchronize(device_);
  for (std::size_t i = 1; i < marked_; ++i) {
    times.emplace_back(std::llround(elapsed(events_[i - 1], events_[i]) * 1e9));
  }
  marked_ = 0;
  return times;
}

struct MemoryMeter::Listener : c10::MemoryReportingInfoBase {
  explicit Listener(at::Device of) : device(of) {}
  void reportMemoryUsage(void*, int64_t change, ReportedTotal, ReportedTotal,
                         c10::Device where) override {
    if (where.type() != device.type()) return;
    held += change;
    peak = std::max(peak, held);
  }
  bool memoryProfilingEnabled() const override { return true; }
  at::Device device;
  std::int64_t held = 0;
  std::int64_t peak = 0;
};

MemoryMeter::MemoryMeter(at::Device device)
    : listener_(std::make_shared<Listener>(device)),
      guard_(std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE, listener_)) {
}

MemoryMeter::~MemoryMeter() = default;

std::int64_t MemoryMeter::held() const { return listener_->held; }

std::int64_t MemoryMeter::take_peak() { return std::exchange(listener_->peak, listener_->held); }

}  // namespace stageline::executor
