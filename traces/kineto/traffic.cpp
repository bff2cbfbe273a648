// Recognises messages, collectives and kernels by the names and categories of events.
#include "traces/kineto/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/base/numbers.hpp"
#include "sim/base/units.hpp"
#include "traces/kineto/profile_times.hpp"

namespace stageline {
namespace {

// Categories of Kineto (libkineto/src/ActivityType.cpp of July 2025) and of converters of Nsight
// Systems that are none of a device's own work; "…_runtime" and "…_driver" are none either.
constexpr std::array<std::string_view, 15> host_categories{"cpu_op",
                                                           "user_annotation",
                                                           "gpu_user_annotation",
                                                           "python_function",
                                                           "overhead",
                                                           "ac2g",
                                                           "fwdbwd",
                                                           "cpu_instant_event",
                                                           "cuda_sync",
                                                           "cuda_event",
                                                           "collective_comm",
                                                           "external_correlation",
                                                           "cuda_profiler_range",
                                                           "nvtx",
                                                           "nvtx-kernel"};

bool holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "all_reduce", "allreduce_", "_allgather_base_", "reduce_scatter_tensor_coalesced".
bool names_collective(std::string_view name) {
  constexpr std::array<std::string_view, 5> words{"reduce", "gather", "scatter", "broadcast",
                                                  "barrier"};
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view w) { return holds(name, w); });
}

bool names_all_to_all(std::string_view name) {
  return holds(name, "all_to_all") || holds(name, "alltoall");
}

}  // namespace

namespace {

// What a backend's operator or annotation does: "allreduce_" of "c10d::allreduce_", "all_reduce" of
// "gloo:all_reduce"; empty of any other event.
std::string_view backend_call(const TraceEvent& event) {
  const std::string_view name = event.name;
  constexpr std::string_view operators = "c10d::";
  if (event.category == "cpu_op" && name.starts_with(operators)) {
    return name.substr(operators.size());
  }
  if (event.category != "user_annotation") return {};
  for (const std::string_view backend : {"nccl:", "gloo:", "mpi:", "ucc:"}) {
    if (name.starts_with(backend)) return name.substr(backend.size());
  }
  return {};
}

}  // namespace

bool is_all_to_all(const TraceEvent& event) { return names_all_to_all(backend_call(event)); }

bool is_collective(const TraceEvent& event, bool all_to_alls) {
  if (is_kernel(event)) {
    const std::string_view name = event.name;
    return name.starts_with("nccl") && (all_to_alls || !holds(name, "SendRecv"));
  }
  const std::string_view call = backend_call(event);
  return names_collective(call) || names_all_to_all(call);
}

bool is_launcher(const TraceEvent& event) {
  const std::string_view category = event.category;
  return category.ends_with("_runtime") || category.ends_with("_driver");
}

bool is_kernel(const TraceEvent& event) {
  const std::string_view category = event.category;
  if (category == "kernel") return true;
  if (category.empty() || category == "gpu_memcpy" || category == "gpu_memset") return false;
  if (is_launcher(event) || category.ends_with("_user_annotation")) return false;
  if (event.external_id.empty() && event.correlation.empty()) return false;
  return std::find(host_categories.begin(), host_categories.end(), category) ==
         host_categories.end();
}

bool is_on_device(const TraceEvent& event) {
  return event.category == "gpu_memcpy" || event.category == "gpu_memset" || is_kernel(event);
}

std::string memory_text(const ProfiledMemory& memory) {
  if (memory.allocated <= 0 && memory.reserved <= 0) return "";
  std::string text = "device memory:";
  if (memory.allocated > 0) text += fmt::format(" {} allocated", print(Bytes{memory.allocated}));
  if (memory.allocated > 0 && memory.reserved > 0) text += " and";
  if (memory.reserved > 0) text += fmt::format(" {} reserved", print(Bytes{memory.reserved}));
  return text + " at most";
}

void KinetoTraffic::look_at(const TraceEvent& event, const ProfileTimes& times) {
  if (event.phase == "i" && event.name == "[memory]" && event.device_type != "0") {
    const auto most = [](std::int64_t& peak, const std::string& bytes) {
      peak = std::max(peak, parse_number<std::int64_t>(bytes).value_or(0));
    };
    most(memory_.allocated, event.allocated);
    most(memory_.reserved, event.reserved);
    return;
  }
  if (event.phase != "X") return;
  const std::string_view name = event.name;
  if (is_kernel(event)) {
    accelerator_ = true;
    if (!name.starts_with("nccl")) return;
    if (holds(name, "SendRecv")) {
      ++message_kernels_;
    } else {
      ++collectives_;
    }
    return;
  }
  // cudaLaunchKernel, hipExtLaunchKernel, … Others of their kind are called without any kernel,
  // too.
  if (is_launcher(event) && holds(name, "Launch")) accelerator_ = true;
  // "c10d::recv_", and the annotations of backends: "gloo:recv", "nccl:recv 1<-0". One of NCCL,
  // "nccl:coalesced", is of several messages at once.
  const bool operation = event.category == "cpu_op" && name.starts_with("c10d::");
  const bool annotation = event.category == "user_annotation" && holds(name, ":");
  if (!operation && !annotation) return;
  if (annotation && name.starts_with("nccl:")) accelerator_ = true;
  const std::string_view what =
      operation ? name.substr(std::string_view("c10d::").size()) : name.substr(name.find(':') + 1);
  if (operation || !name.starts_with("PP:")) {
    if (what.starts_with("send")) return add_message(times.start(event), MessageWay::send);
    if (what.starts_with("recv")) return add_message(times.start(event), MessageWay::receive);
  }
  if (annotation && name == "nccl:coalesced") return add_message(times.start(event), std::nullopt);
  if (operation || name.starts_with("nccl:") || name.starts_with("gloo:") ||
      name.starts_with("mpi:") || name.starts_with("ucc:")) {
    if (names_all_to_all(what)) {
      ++all_to_alls_;
    } else if (names_collective(what)) {
      ++collectives_;
    }
  }
}

void KinetoTraffic::add_message(std::int64_t start, std::optional<MessageWay> way) {
  ++messages_;
  if (!first_ || start < first_->start) first_ = End{start, way};
  if (!last_ || start >= last_->start) last_ = End{start, way};
}

}  // namespace stageline
