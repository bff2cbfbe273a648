// libcuda.so.1 without a GPU: what CUDA's driver answers where a GPU is asked for its parts.
//
// One GPU of 132 SMs, parted by 8, as an H200 is. Arguments that CUDA refuses are refused with its
// error codes; a function is given to those alone who ask for the version that brought it, or a
// later one.
//
// Sources: cuda.h of CUDA 12.4 to 13.5, and its documentation of green contexts.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

#include "tools/executor/devices/green_contexts.hpp"

namespace stageline::executor {
namespace {

constexpr int success = 0;
constexpr int invalid_value = 1;
constexpr int invalid_device = 101;
constexpr int invalid_handle = 400;
constexpr int not_found = 500;
constexpr int invalid_resource = 914;  // CUDA_ERROR_INVALID_RESOURCE_TYPE

constexpr unsigned all_processors = 132;
constexpr unsigned step = 8;
constexpr int device_handle = 7;  // no ordinal
constexpr int sm_resource = 1;

struct Part {
  unsigned processors;
};

// What lives until the process ends. Pointers to them are the handles.
struct Made {
  std::mutex mutex;
  std::set<const void*> descriptions;
  std::set<const void*> contexts;
  std::set<const void*> streams;
};

Made& made() {
  static Made* const all = new Made;  // outlives whoever asks
  return *all;
}

bool holds(std::set<const void*> Made::*which, const void* handle) {
  const std::lock_guard lock(made().mutex);
  return (made().*which).contains(handle);
}

void* make(std::set<const void*> Made::*which, unsigned processors) {
  const std::lock_guard lock(made().mutex);
  auto* const part = new Part{processors};
  (made().*which).insert(part);
  return part;
}

DeviceResource resource_with(unsigned processors) {
  DeviceResource resource;
  resource.type = sm_resource;
  resource.processors = processors;
  resource.least = step;
  resource.step = step;
  return resource;
}

unsigned processors_of(const void* handle) { return static_cast<const Part*>(handle)->processors; }

int get_device(int* handle, int ordinal) {
  if (handle == nullptr) return invalid_value;
  if (ordinal != 0) return invalid_device;
  *handle = device_handle;
  return success;
}

int get_name(char* name, int length, int device) {
  constexpr std::string_view title = "NVIDIA H200 (stand-in)";
  if (name == nullptr || length <= static_cast<int>(title.size())) return invalid_value;
  if (device != device_handle) return invalid_device;
  std::memcpy(name, title.data(), title.size());
  name[title.size()] = '\0';
  return success;
}

int get_resource(int device, DeviceResource* all, int type) {
  if (device != device_handle) return invalid_device;
  if (all == nullptr) return invalid_value;
  if (type != sm_resource) return invalid_resource;
  *all = resource_with(all_processors);
  return success;
}

int split(DeviceResource* parts, unsigned* count, const DeviceResource* all, DeviceResource*,
          unsigned flags, unsigned processors) {
  if (count == nullptr || all == nullptr || flags != 0) return invalid_value;
  if (all->type != sm_resource || all->processors != all_processors) return invalid_resource;
  const unsigned each = (std::max(processors, 1U) + step - 1) / step * step;
  const unsigned go = all->processors / each;
  if (parts == nullptr) {
    *count = go;
    return success;
  }
  if (*count == 0) return invalid_value;
  *count = std::min(*count, go);
  std::fill_n(parts, *count, resource_with(each));
  return success;
}

int describe(void** description, DeviceResource* resources, unsigned count) {
  if (description == nullptr || resources == nullptr || count != 1) return invalid_value;
  if (resources->type != sm_resource || resources->processors % step != 0) return invalid_resource;
  *description = make(&Made::descriptions, resources->processors);
  return success;
}

int create(void** context, void* description, int device, unsigned flags) {
  if (context == nullptr || flags != 1) return invalid_value;
  if (device != device_handle) return invalid_device;
  if (!holds(&Made::descriptions, description)) return invalid_handle;
  *context = make(&Made::contexts, processors_of(description));
  return success;
}

int resource_of(void* context, DeviceResource* has, int type) {
  if (has == nullptr) return invalid_value;
  if (!holds(&Made::contexts, context)) return invalid_handle;
  if (type != sm_resource) return invalid_resource;
  *has = resource_with(processors_of(context));
  return success;
}

int create_stream(void** stream, void* context, unsigned flags, int) {
  if (stream == nullptr || flags != 1) return invalid_value;
  if (!holds(&Made::contexts, context)) return invalid_handle;
  *stream = make(&Made::streams, processors_of(context));
  return success;
}

int name_of_error(int error, const char** name) {
  struct Named {
    int error;
    const char* name;
  };
  constexpr std::array names{Named{invalid_value, "CUDA_ERROR_INVALID_VALUE"},
                             Named{invalid_device, "CUDA_ERROR_INVALID_DEVICE"},
                             Named{invalid_handle, "CUDA_ERROR_INVALID_HANDLE"},
                             Named{invalid_resource, "CUDA_ERROR_INVALID_RESOURCE_TYPE"}};
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const Named& one) { return one.error == error; });
  if (name == nullptr || found == names.end()) return invalid_value;
  *name = found->name;
  return success;
}

struct Function {
  std::string_view name;
  int since;  // 12040 is CUDA 12.4
  void* address;
};

template <typename Signature>
Function function(const char* name, int since, Signature* address) {
  return {name, since, reinterpret_cast<void*>(address)};
}

const std::vector<Function>& functions() {
  static const std::vector<Function> all{
      function("cuDeviceGet", 2000, get_device),
      function("cuDeviceGetName", 2000, get_name),
      function("cuGetErrorName", 6000, name_of_error),
      function("cuDeviceGetDevResource", 12040, get_resource),
      function("cuDevSmResourceSplitByCount", 12040, split),
      function("cuDevResourceGenerateDesc", 12040, describe),
      function("cuGreenCtxCreate", 12040, create),
      function("cuGreenCtxGetDevResource", 12040, resource_of),
      function("cuGreenCtxStreamCreate", 12050, create_stream),
  };
  return all;
}

}  // namespace
}  // namespace stageline::executor

// The names of CUDA's own, and one more that asks whether a stream is one that was made here.
extern "C" {

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

int cuDeviceGet(int* handle, int ordinal) {
  return stageline::executor::get_device(handle, ordinal);
}

int cuDeviceGetName(char* name, int length, int device) {
  return stageline::executor::get_name(name, length, device);
}

int cuGetProcAddress_v2(const char* name, void** address, int version, std::uint64_t, int*) {
  for (const auto& one : stageline::executor::functions()) {
    if (one.name == name && version >= one.since) {
      *address = one.address;
      return stageline::executor::success;
    }
  }
  *address = nullptr;
  return stageline::executor::not_found;
}

bool stand_in_made_stream(const void* stream) {
  return stageline::executor::holds(&stageline::executor::Made::streams, stream);
}
}
