#include "tools/study/figures/reported_memory.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <iterator>

#include "cost_models/transformers/priced_language.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

Bytes times(Bytes bytes, double factor) {
  return {std::llround(static_cast<double>(bytes.count) * factor)};
}

}  // namespace

ReservedShare reserved_share(const Case& asked) {
  const bool pipelined = std::ssize(asked.cluster.devices) > asked.pipelines();
  const std::optional<PricedLanguage> priced = priced_language(asked.model);
  const bool of_2021 =
      priced && (priced->software == "megatron-2021" || priced->software == "deepspeed-2021");
  return of_2021 && pipelined ? pipelined_2021_reserved : usual_reserved;
}

std::optional<ReportedMemory> reported_memory(const Case& asked, const Outcome& outcome,
                                              std::size_t device) {
  const bool known = outcome.bytes_known() && asked.model.tokens > 0 && !outcome.grows;
  if (!known || device >= outcome.memory.device.size()) return std::nullopt;
  const DeviceMemory& memory = outcome.memory.device[device];
  ReportedMemory reported;
  reported.allocated = memory.peak;
  const ReservedShare share = reserved_share(asked);
  reported.reserved = times(memory.peak, share.mean);
  reported.least_reserved = times(memory.peak, share.least);
  reported.most_reserved = times(memory.peak, share.most);
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
