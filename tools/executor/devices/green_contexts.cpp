// Cuts a GPU into parts through CUDA's driver, which it loads at run time.
#include "tools/executor/devices/green_contexts.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::executor {
namespace {

// Constants of cuda.h.
constexpr int sm_resource = 1;               // CU_DEV_RESOURCE_TYPE_SM
constexpr unsigned with_default_stream = 1;  // CU_GREEN_CTX_DEFAULT_STREAM, required
constexpr unsigned non_blocking = 1;         // CU_STREAM_NON_BLOCKING, required
constexpr std::uint64_t default_search = 0;  // CU_GET_PROC_ADDRESS_DEFAULT
constexpr unsigned step_where_untold = 8;    // serves every GPU so far

// Green contexts came with CUDA 12.4, streams of their own with 12.5. Asked for by that version,
// the driver answers with functions of that ABI, whatever comes later.
constexpr int with_green_contexts = 12040;
constexpr int with_streams = 12050;

template <typename Function>
void check(const GreenDriver& driver, const Function& call, const char* what) {
  const int error = call();
  if (error == 0) return;
  const char* name = nullptr;
  if (driver.name_of_error != nullptr) driver.name_of_error(error, &name);
  throw UsageError(fmt::format("CUDA's driver could not {}: {}", what,
                               name == nullptr ? fmt::format("error {}", error) : name));
}

// How many parts of so many SMs, or of a few more.
int parts_of(const GreenDriver& driver, const DeviceResource& all, unsigned processors) {
  unsigned count = 0;
  check(
      driver, [&] { return driver.split(nullptr, &count, &all, nullptr, 0, processors); },
      "say how the GPU can be cut");
  return static_cast<int>(count);
}

// The most that each can have.
unsigned equal_share(const GreenDriver& driver, const DeviceResource& all, int count,
                     unsigned least, unsigned step) {
  const unsigned fair = all.processors / static_cast<unsigned>(count);
  for (unsigned each = fair / step * step; each >= least; each -= step) {
    if (parts_of(driver, all, each) >= count) return each;
  }
  return 0;
}

}  // namespace

GreenDriver green_driver() {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    throw UsageError("a GPU is cut by CUDA's driver, and there is no libcuda.so.1 here");
  }
  const auto version_of = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  if (version_of != nullptr) version_of(&version);
  // CUDA driver API: name, where to put it, version, how to search, what was found.
  const auto look_up = reinterpret_cast<int (*)(const char*, void**, int, std::uint64_t, int*)>(
      dlsym(library, "cuGetProcAddress_v2"));
  const auto find = [&]<typename Function>(Function*& function, const char* name, int since) {
    void* found = nullptr;
    int status = 0;
    if (look_up != nullptr) look_up(name, &found, since, default_search, &status);
    if (found == nullptr) {
      throw UsageError(fmt::format(
          "cutting a GPU needs a driver of CUDA 12.5 or later; this one is of CUDA {}.{} and has "
          "no {}",
          version / 1000, version % 1000 / 10, name));
    }
    function = reinterpret_cast<Function*>(found);
  };
  GreenDriver driver;
  find(driver.device, "cuDeviceGet", with_green_contexts);
  find(driver.resource, "cuDeviceGetDevResource", with_green_contexts);
  find(driver.split, "cuDevSmResourceSplitByCount", with_green_contexts);
  find(driver.describe, "cuDevResourceGenerateDesc", with_green_contexts);
  find(driver.create, "cuGreenCtxCreate", with_green_contexts);
  find(driver.resource_of, "cuGreenCtxGetDevResource", with_green_contexts);
  find(driver.create_stream, "cuGreenCtxStreamCreate", with_streams);
  find(driver.name_of_error, "cuGetErrorName", with_green_contexts);
  return driver;
}

std::vector<GreenContext> cut_gpu(const GreenDriver& driver, c10::Device gpu,
                                  const std::string& title, int count, int each) {
  int device = 0;
  check(
      driver, [&] { return driver.device(&device, gpu.index()); }, "find the GPU");
  DeviceResource all;
  check(
      driver, [&] { return driver.resource(device, &all, sm_resource); }, "count the GPU's SMs");
  const unsigned step = all.step > 0 ? all.step : step_where_untold;
  const unsigned least = all.least > 0 ? all.least : step;
  const std::string rule =
      fmt::format("{} has {} SMs, parted by {}, {} at least", title, all.processors, step, least);

  auto wanted = static_cast<unsigned>(each);
  if (each == 0) {
    wanted = equal_share(driver, all, count, least, step);
    if (wanted == 0) {
      throw UsageError(fmt::format("{} accelerators do not go into one GPU: {}; {} go", count, rule,
                                   parts_of(driver, all, least)));
    }
  } else if (wanted < least || wanted % step != 0 || wanted > all.processors) {
    throw UsageError(fmt::format("an accelerator cannot have {} SMs: {}", each, rule));
  } else if (const int go = parts_of(driver, all, wanted); go < count) {
    throw UsageError(fmt::format("{} accelerators of {} SMs do not go into one GPU: {}; {} go",
                                 count, each, rule, go));
  }

  std::vector<DeviceResource> parts(as_size(count));
  auto made = static_cast<unsigned>(count);
  check(
      driver, [&] { return driver.split(parts.data(), &made, &all, nullptr, 0, wanted); },
      "cut the GPU");
  if (made != static_cast<unsigned>(count)) {
    throw UsageError(
        fmt::format("CUDA's driver made {} parts of the {} that it had promised", made, count));
  }
  std::vector<GreenContext> contexts;
  for (DeviceResource& part : parts) {
    void* description = nullptr;
    void* context = nullptr;
    void* stream = nullptr;
    DeviceResource has;
    check(
        driver, [&] { return driver.describe(&description, &part, 1); }, "describe a part");
    check(
        driver, [&] { return driver.create(&context, description, device, with_default_stream); },
        "make a green context");
    check(
        driver, [&] { return driver.resource_of(context, &has, sm_resource); },
        "count a green context's SMs");
    check(
        driver, [&] { return driver.create_stream(&stream, context, non_blocking, 0); },
        "make a stream of a green context");
    // An external stream's id is its address, in every LibTorch with such streams (from 1.11 on).
    contexts.push_back(
        {c10::Stream(c10::Stream::UNSAFE, gpu,
                     static_cast<c10::StreamId>(reinterpret_cast<std::intptr_t>(stream))),
         static_cast<int>(has.processors)});
  }
  return contexts;
}

}  // namespace stageline::executor
