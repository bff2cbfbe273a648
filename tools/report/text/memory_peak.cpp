// Writes the sentence about a peak.
#include "tools/report/text/memory_peak.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/index.hpp"

namespace stageline::report {
namespace {

std::string_view op_words(OpKind kind) {
  switch (kind) {
    case OpKind::forward:
      return "forward";
    case OpKind::input_grad:
      return "input gradient";
    case OpKind::weight_grad:
      return "weight gradient";
    case OpKind::backward:
      return "backward";
    case OpKind::recompute:
      return "recomputation";
    case OpKind::update:
      return "update";
    case OpKind::reduce_grad:
      return "gradient reduction";
    case OpKind::send_forward:
    case OpKind::receive_forward:
      return "activation";
    case OpKind::send_backward:
    case OpKind::receive_backward:
      return "gradient";
    case OpKind::send_stash:
    case OpKind::receive_stash:
      return "stash";
    case OpKind::send_weights:
    case OpKind::receive_weights:
      return "weights";
    case OpKind::offload:
      return "offload";
    case OpKind::prefetch:
      return "prefetch";
  }
  return "";
}

// "0F7 (forward of micro-batch 7 in stage 0)", "0U1 (update 1 in stage 0)".
std::string op_words(const Outcome& outcome, Op op) {
  if (!counts_microbatches(op.kind)) {
    return fmt::format("{} ({} {} in stage {})", print(op), op_words(op.kind), op.microbatch,
                       op.stage);
  }
  const bool chunks = outcome.program.settings.sequence_chunks > 1;
  return fmt::format("{} ({} of {} {} in stage {})", print(op), op_words(op.kind),
                     chunks ? "chunk" : "micro-batch", op.microbatch, op.stage);
}

std::string op_clause(const Outcome& outcome, const PeakOp& peak) {
  std::string ops = op_words(outcome, peak.op);
  if (peak.other) ops += " and " + op_words(outcome, *peak.other);
  switch (peak.moment) {
    case PeakOp::Moment::runs:
      return fmt::format(" while {} run{}", ops, peak.other ? "" : "s");
    case PeakOp::Moment::starts:
      return fmt::format(" when {} starts", ops);
    case PeakOp::Moment::has_ended:
      return fmt::format(" when {} {} ended", ops, peak.other ? "have" : "has");
  }
  return "";
}

// " (8 micro-batches)", or of a device with several stages " (8 stashes)".
std::string count_words(const Outcome& outcome, int device) {
  const int held = nth(outcome.memory.device, device).stashes_at_peak;
  if (held == 0) return "";
  const auto& stages = outcome.program.placement.stage;
  const auto here = std::count_if(stages.begin(), stages.end(), [&](const StagePlace& place) {
    return std::find(place.replicas.begin(), place.replicas.end(), device) != place.replicas.end();
  });
  const bool whole = here == 1 && outcome.program.settings.sequence_chunks == 1;
  const char* const noun =
      whole ? (held == 1 ? "micro-batch" : "micro-batches") : (held == 1 ? "stash" : "stashes");
  return fmt::format(" ({} {})", held, noun);
}

// The parts of the peak with their op_words, the largest first.
std::vector<std::pair<Bytes, std::string>> parts_of(const Outcome& outcome, int device) {
  const DeviceMemory& memory = nth(outcome.memory.device, device);
  const auto of = [&](MemoryKind kind) { return nth(memory.at_peak, kind); };
  const Bytes boundaries = nth(memory.stash_at_peak, StashPart::boundary);
  std::vector<std::pair<Bytes, std::string>> parts{
      {of(MemoryKind::stash) - boundaries, "stash" + count_words(outcome, device)},
      {boundaries, "stage inputs to recompute from"},
      {of(MemoryKind::weights), "weights"},
      {of(MemoryKind::versions), "older weights"},
      {of(MemoryKind::gradients), "gradients"},
      {of(MemoryKind::optimizer), "optimizer state"},
      {of(MemoryKind::buffers), "messages"},
      {of(MemoryKind::communication), "communication buffers"},
      {of(MemoryKind::workspace), "workspace"},
  };
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return parts;
}

}  // namespace

std::string peak_sentence(const Outcome& outcome, int device) {
  const DeviceMemory& memory = nth(outcome.memory.device, device);
  if (!outcome.bytes_known() || memory.peak == Bytes{}) return "";
  std::string text = fmt::format("{} peaks at {} at {}", nth(outcome.program.devices, device),
                                 print(memory.peak), print(memory.peak_at));
  if (memory.peak_op) text += op_clause(outcome, *memory.peak_op);
  if (total(memory.at_peak) == memory.peak) {
    const char* separator = ": ";
    for (const auto& [bytes, op_words] : parts_of(outcome, device)) {
      if (bytes == Bytes{}) continue;
      text += fmt::format("{}{} {}", separator, print(bytes), op_words);
      separator = ", ";
    }
  }
  if (memory.reserve > Bytes{}) {
    text += fmt::format("; beside it {} of reserve", print(memory.reserve));
  }
  return text;
}

std::string peak_lines(const Outcome& outcome, bool all) {
  std::string text;
  for (int device = 0; device < static_cast<int>(outcome.memory.device.size()); ++device) {
    if (!all && device != outcome.peak_device()) continue;
    const std::string sentence = peak_sentence(outcome, device);
    if (!sentence.empty()) text += sentence + "\n";
  }
  return text;
}

}  // namespace stageline::report
