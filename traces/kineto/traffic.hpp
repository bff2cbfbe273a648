// What a profile shows of the communication between its rank and others, and of the accelerator
// that the rank launches its work on, with its memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/chrome/trace_events.hpp"

namespace stageline {

class ProfileTimes;

/// Whether an event is a kernel of an accelerator. Kineto calls those of CUDA, ROCm and XPU
/// "kernel"; other devices have categories of their own ("mtia_ccp_events"), whose events name the
/// operator or the call that launched them. Copies are none.
bool is_kernel(const TraceEvent& event);

/// Whether an event is a call that may launch work: cudaLaunchKernel, urEnqueueKernelLaunch, …
bool is_launcher(const TraceEvent& event);

/// A kernel, a copy or a memset.
bool is_on_device(const TraceEvent& event);

/// Bytes of an accelerator's memory at the most, where the profile has "[memory]" events of it
/// (profile_memory=True, or nsys --cuda-memory-usage=true); 0: unknown.
struct ProfiledMemory {
  std::int64_t allocated = 0;  // by PyTorch's allocator
  std::int64_t reserved = 0;   // of the device
};
/// "device memory: 40.00 GB allocated and 42.00 GB reserved at most"; empty where both are unknown.
std::string memory_text(const ProfiledMemory& memory);

/// Whether an event is a collective of several ranks: a kernel of NCCL that is no message, or the
/// operator or annotation of a backend. `all_to_alls`: SendRecv kernels are those of all-to-alls.
bool is_collective(const TraceEvent& event, bool all_to_alls);

/// Whether an event is an operator or annotation of an all-to-all.
bool is_all_to_all(const TraceEvent& event);

enum class MessageWay : std::uint8_t { send, receive };

/// Messages are from one rank to one other (dist.send), collectives among a group.
class KinetoTraffic {
 public:
  /// Throws TraceError where a message has no time.
  void look_at(const TraceEvent& event, const ProfileTimes& times);

  /// Whether any message is recorded, or a kernel that may be of one.
  bool messages() const { return messages_ > 0 || (message_kernels_ > 0 && all_to_alls_ == 0); }
  bool collectives() const { return collectives_ > 0 || all_to_alls_ > 0; }

  /// The ways of the first and of the last message, where the profile tells them.
  std::optional<MessageWay> first() const { return way_of(first_); }
  std::optional<MessageWay> last() const { return way_of(last_); }

  /// Whether work is done on an accelerator: kernels, launches, or NCCL, which moves nothing else.
  bool accelerator() const { return accelerator_; }
  const ProfiledMemory& memory() const { return memory_; }

 private:
  struct End {
    std::int64_t start = 0;
    std::optional<MessageWay> way;  // nothing: several messages in one, of both ways
  };
  static std::optional<MessageWay> way_of(const std::optional<End>& end) {
    return end ? end->way : std::nullopt;
  }
  void add_message(std::int64_t start, std::optional<MessageWay> way);  // as written in the file

  std::int64_t messages_ = 0;
  std::int64_t message_kernels_ = 0;  // NCCL's SendRecv, which all-to-alls run as well
  std::int64_t all_to_alls_ = 0;
  std::int64_t collectives_ = 0;
  std::optional<End> first_;
  std::optional<End> last_;
  bool accelerator_ = false;
  ProfiledMemory memory_;
};

}  // namespace stageline
