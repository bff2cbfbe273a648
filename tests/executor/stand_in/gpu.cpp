// LibTorch's CUDA device without a GPU, for a LibTorch without CUDA: preloaded, it lets the tools
// ask for `cuda` and for parts of it (driver.cpp).
//
// Its memory is the host's, counted by the device's own allocator, and its kernels are LibTorch's
// for a CPU, which end before they return. Streams and events are those that are asked for: a
// stream that neither the pool nor the driver made is refused. So names, devices, streams, copies,
// memory and results are tested; the speed of SMs, asynchrony and CUDA's own kernels are not.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <dlfcn.h>
#include <torch/library.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

namespace stageline::executor {
namespace {

const c10::Device the_gpu(c10::kCUDA, 0);

// ---- memory

struct Block {
  void* data;
  std::size_t bytes;
};

std::atomic<std::size_t> allocated{0};

void report(void* data, std::int64_t change) {
  const std::size_t all = allocated += static_cast<std::size_t>(change);
  c10::reportMemoryUsageToProfiler(data, change, all, all, the_gpu);
}

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    constexpr std::size_t unit = 512;  // of CUDA's allocator
    const std::size_t rounded = (bytes + unit - 1) / unit * unit;
    if (rounded == 0) return {nullptr, the_gpu};
    auto block = std::make_unique<Block>(Block{std::aligned_alloc(unit, rounded), rounded});
    TORCH_CHECK(block->data != nullptr, "the stand-in's memory is full");
    report(block->data, static_cast<std::int64_t>(rounded));
    void* const data = block->data;
    return {data, block.release(), free_block, the_gpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  static void free_block(void* context) {
    const std::unique_ptr<Block> block(static_cast<Block*>(context));
    report(block->data, -static_cast<std::int64_t>(block->bytes));
    std::free(block->data);
  }
};

Memory memory;
const bool has_allocator = [] {
  c10::SetAllocator(c10::kCUDA, &memory, 1);
  return true;
}();

// ---- streams and events

constexpr c10::StreamId pool_size = 32;  // ids 1 to 32; 0 is the default stream

using Moment = std::chrono::steady_clock::time_point;

bool driver_made(c10::StreamId id) {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr) return false;
  const auto made =
      reinterpret_cast<bool (*)(const void*)>(::dlsym(driver, "stand_in_made_stream"));
  return made != nullptr && made(reinterpret_cast<const void*>(id));
}

thread_local c10::StreamId current = 0;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return the_gpu; }
  c10::Device getDevice() const override { return the_gpu; }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() <= 0, "there is one stand-in for a GPU, and no ", device);
  }
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  static c10::Stream stream(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, the_gpu, id);
  }
  c10::Stream getStream(c10::Device) const override { return stream(current); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    static std::atomic<c10::StreamId> dealt{0};
    return stream(1 + dealt++ % pool_size);
  }
  c10::Stream exchangeStream(c10::Stream wanted) const override {
    const c10::StreamId id = wanted.id();
    TORCH_CHECK((id >= 0 && id <= pool_size) || driver_made(id), "no stream ", id, " was made");
    return stream(std::exchange(current, id));
  }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(c10::DeviceIndex) const override {}

  void record(void** event, const c10::Stream& on, c10::DeviceIndex,
              c10::EventFlag) const override {
    TORCH_CHECK(on.id() == current, "an event of stream ", on.id(), " on stream ", current);
    if (*event == nullptr) *event = new Moment;
    *static_cast<Moment*>(*event) = std::chrono::steady_clock::now();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  double elapsedTime(void* from, void* to, c10::DeviceIndex) const override {
    const std::chrono::duration<double, std::milli> between =
        *static_cast<Moment*>(to) - *static_cast<Moment*>(from);
    return between.count();
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Moment*>(event);
  }
};

const c10::impl::DeviceGuardImplRegistrar guard(c10::kCUDA, new Guard);

// ---- what LibTorch asks CUDA itself

struct StandInHooks final : at::CUDAHooksInterface {
  explicit StandInHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  int getNumGPUs() const override { return 1; }
  c10::DeviceIndex current_device() const override { return 0; }
  c10::Allocator* getCUDADeviceAllocator() const override { return &memory; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  bool isPinnedPtr(const void*) const override { return false; }
  long versionCUDART() const override { return 13000; }
  long versionCuDNN() const override { return 91501; }
};

// ---- kernels

// The same memory, as a tensor of the CPU.
at::Tensor on_host(const at::Tensor& tensor) {
  if (tensor.device().is_cpu()) return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       tensor.options().device(at::kCPU));
}

at::Tensor empty(c10::IntArrayRef size, std::optional<at::ScalarType> type,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory, c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   c10::dtype_or_default(type), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<at::ScalarType> type, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &memory,
                                           c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                           c10::dtype_or_default(type));
}

at::Tensor& copy_in(at::Tensor& self, const at::Tensor& from, bool) {
  at::Tensor there = on_host(self);
  there.copy_(on_host(from));
  return self;
}

at::Tensor copy_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  at::Tensor there = on_host(to);
  there.copy_(on_host(from));
  return to;
}

void by_the_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  at::native::cpu_fallback(op, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&by_the_host>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("copy_", copy_in);
  library.impl("_copy_from_and_resize", copy_and_resize);
  library.impl("resize_", at::native::resize_);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("unfold", at::native::unfold);
  library.impl("_local_scalar_dense", [](const at::Tensor& self) { return on_host(self).item(); });
}

}  // namespace stageline::executor

namespace at {
C10_REGISTER_CLASS(CUDAHooksRegistry, CUDAHooks, stageline::executor::StandInHooks)
}  // namespace at
