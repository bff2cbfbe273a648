#include "tools/study/figures/reported_memory.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

Bytes times(Bytes bytes, double factor) {
  return {std::llround(static_cast<double>(bytes.count) * factor)};
}

}  // namespace

std::optional<ReportedMemory> reported_memory(const Case& asked, const Outcome& outcome,
                                              std::size_t device) {
  const bool known = outcome.bytes_known() && asked.model.tokens > 0 && !outcome.grows;
  if (!known || device >= outcome.memory.device.size()) return std::nullopt;
  const DeviceMemory& memory = outcome.memory.device[device];
  ReportedMemory reported;
  reported.allocated = memory.peak;
  reported.reserved = times(memory.peak, reserved_over_allocated);
  reported.least_reserved = times(memory.peak, least_reserved_over_allocated);
  reported.most_reserved = times(memory.peak, most_reserved_over_allocated);
  if (memory.reserve > Bytes{}) reported.driver = reported.reserved + memory.reserve;
  return reported;
}

std::string reported_line(const Case& asked, const Outcome& outcome) {
  if (outcome.memory.device.empty()) return "";
  const std::size_t device = as_size(outcome.peak_device());
  const std::optional<ReportedMemory> reported = reported_memory(asked, outcome, device);
  if (!reported) return "";
  std::string text = fmt::format(
      "torch would report {} allocated and {} reserved ({} to {}: its allocator rounds and "
      "fragments)",
      print(reported->allocated), print(reported->reserved), print(reported->least_reserved),
      print(reported->most_reserved));
  if (reported->driver) {
    text +=
        fmt::format(", nvidia-smi {} with context, NCCL and workspaces", print(*reported->driver));
  }
  return text + "\n";
}

std::string reserved_note(const Case& asked, const Outcome& outcome) {
  if (outcome.memory.device.empty() || !outcome.bytes_known()) return "";
  const std::size_t device = as_size(outcome.peak_device());
  const std::optional<Bytes>& limit = outcome.memory_limit[device];
  const std::optional<ReportedMemory> reported = reported_memory(asked, outcome, device);
  if (!limit || !reported || reported->allocated > *limit || reported->reserved <= *limit)
    return "";
  return fmt::format(
      "{}: tensors of {} fit in the {} of {}, and what torch's allocator reserves for them ({} to {}) "
      "may not",
      outcome.schedule, print(reported->allocated), print(*limit),
      nth(outcome.program.devices, static_cast<int>(device)), print(reported->least_reserved),
      print(reported->most_reserved));
}

}  // namespace stageline
