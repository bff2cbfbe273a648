// Cuts one GPU into accelerators that have some of its streaming multiprocessors (SMs) each, by
// CUDA's green contexts:
//
//   132 SMs   |0 … 63|64 … 127|128 … 131|
//              part 0  part 1  left over
//
// A part is a stream: kernels that are put on it run on the part's SMs alone. Nothing else is
// needed. Its context is never made current, although CUDA can do that, because
// * a green context may be current to one thread at a time, and an accelerator has three workers;
// * some LibTorchs call cudaSetDevice wherever they destroy an event, and that makes the device's
//   primary context current again, silently;
// * so all that LibTorch makes (memory, events, cuBLAS's and cuDNN's handles) is of the primary
//   context, whichever thread makes it, and serves every part.
// Copies between a GPU and the host use no SMs; a part's copy lanes have ordinary streams.
//
// All else of a GPU is shared: L2, memory bandwidth, copy engines and the queues to the device
// (CUDA_DEVICE_MAX_CONNECTIONS, 8 unless it is set; accelerators.cpp sets 32). Libraries choose
// their kernels for the whole GPU's SMs.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include <string>
#include <vector>

namespace stageline::executor {

struct GreenContext {
  c10::Stream stream;
  int processors = 0;  // SMs
};

/// CUdevResource of CUDA's cuda.h, for SMs. Compared with that of 12.4, 12.8, 13.0 and 13.5, all of
/// version 1: later ones name more fields, at the same offsets. Zero where a driver does not set
/// one.
struct alignas(8) DeviceResource {
  int type = 0;
  unsigned char padding[92] = {};
  unsigned processors = 0;  // smCount
  unsigned least = 0;       // minSmPartitionSize
  unsigned step = 0;        // smCoscheduledAlignment
  unsigned char rest[36] = {};
};
static_assert(sizeof(DeviceResource) == 144);

/// The functions used of CUDA's driver; int is CUresult, 0 for success, and CUdevice.
struct GreenDriver {
  int (*device)(int* handle, int ordinal) = nullptr;
  int (*resource)(int device, DeviceResource* all, int type) = nullptr;
  /// With null `parts`: counts them only.
  int (*split)(DeviceResource* parts, unsigned* count, const DeviceResource* all,
               DeviceResource* left_over, unsigned flags, unsigned processors) = nullptr;
  int (*describe)(void** description, DeviceResource* resources, unsigned count) = nullptr;
  int (*create)(void** context, void* description, int device, unsigned flags) = nullptr;
  int (*resource_of)(void* context, DeviceResource* has, int type) = nullptr;
  int (*create_stream)(void** stream, void* context, unsigned flags, int priority) = nullptr;
  int (*name_of_error)(int error, const char** name) = nullptr;
};

/// The driver of this machine, loaded at run time, so that programs start where there is none.
/// Throws UsageError where there is none, or one before CUDA 12.5.
GreenDriver green_driver();

/// So many parts of `each` SMs, or (0) of as many as each can have: the same number, a multiple of
/// what the GPU is parted by (8 from Hopper on, 2 before). Contexts and streams stay until the
/// process ends, as LibTorch's own streams do: its allocator may ask for a stream at any time.
/// Something must have been allocated on the GPU before. Throws UsageError where it does not go;
/// `title` is what it calls the GPU.
std::vector<GreenContext> cut_gpu(const GreenDriver& driver, c10::Device gpu,
                                  const std::string& title, int count, int each);

}  // namespace stageline::executor
