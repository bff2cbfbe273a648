// Turns a candidate into the request that asks for it, and into the flags that a user types.
#include "tools/planner/candidate.hpp"

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "sim/base/names.hpp"
#include "sim/degrees.hpp"
#include "tools/base/text.hpp"

namespace stageline {
namespace {

// Whether the command asks for it without a flag of a degree.
bool is_pipeline_alone(const Shape& shape) {
  Degrees beside = shape.degrees;
  beside.pipeline = 0;
  return beside.plain() && !shape.as_ranks;
}

class FlagText {
 public:
  void add(const std::string& flag) { text_ += (text_.empty() ? "" : " ") + flag; }
  void add(std::string_view flag, const std::string& value) {
    add(fmt::format("{} {}", flag, shell_word(value)));
  }
  void add(std::string_view flag, int value, int left_out) {
    if (value != left_out) add(flag, fmt::format("{}", value));
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// As --order takes it.
std::string order_of(const Degrees& degrees) {
  std::string text;
  for (const Dimension dimension : degrees.order) {
    text += fmt::format("{}{}", text.empty() ? "" : "-", name(dimension));
  }
  return text;
}

void add_degrees(const Shape& shape, FlagText& flags) {
  const Degrees& degrees = shape.degrees;
  if (is_pipeline_alone(shape)) {
    flags.add("--devices", degrees.pipeline, 0);
    return;
  }
  flags.add("--pp", degrees.pipeline, 0);
  flags.add("--tp", degrees.tensor, 1);
  flags.add("--cp", degrees.context, 1);
  flags.add("--ep", degrees.expert, 1);
  flags.add("--dp", degrees.data, 1);
  if (degrees.order != Degrees{}.order) flags.add("--order", order_of(degrees));
  if (degrees.zero != Zero::none) flags.add("--zero", std::string(name(degrees.zero)));
  if (!degrees.precision.name.empty()) {
    flags.add("--precision", std::string(degrees.precision.name));
  }
}

}  // namespace

SettingRequest request_of(const SettingRequest& base, const Candidate& candidate) {
  SettingRequest request = base;
  const Shape& shape = candidate.shape;
  request.degrees = shape.degrees;
  request.degrees_are_searched = false;
  request.devices = {shape.devices()};
  if (is_pipeline_alone(shape)) request.degrees = Degrees{};
  request.sequence_parallel = shape.sequence_parallel;
  request.microbatch_size = shape.microbatch_size;
  request.microbatches = shape.microbatches;
  request.recomputation = candidate.recomputation;
  request.offloading = candidate.offloading;
  request.partition = candidate.partition;
  request.program.reset();
  return request;
}

std::string flags_of(const SettingRequest& base, const Candidate& candidate) {
  const Shape& shape = candidate.shape;
  FlagText flags;
  flags.add("--schedule", spelled(candidate.spec));
  // Of a named cluster, a part is used only where --devices says so.
  const bool part = !base.devices.empty() && !base.cluster.cluster.empty();
  if (part && !is_pipeline_alone(shape)) flags.add("--devices", shape.devices(), 0);
  add_degrees(shape, flags);
  if (shape.sequence_parallel) flags.add("--sequence-parallel");
  flags.add("--microbatch-size", shape.microbatch_size, 0);
  flags.add("--microbatches", shape.microbatches, 0);
  if (candidate.partition != SettingRequest{}.partition) {
    flags.add("--partition", candidate.partition);
  }
  const Recomputation& again = candidate.recomputation;
  if (!again.parts.empty()) flags.add("--recompute", print(again));
  if (again.start) flags.add("--recompute-start", std::string(name(*again.start)));
  const Offloading& copied = candidate.offloading;
  if (const std::string text = print(copied); text != "none") {
    flags.add("--offload", text);
    flags.add("--prefetch", copied.ahead, Offloading{}.ahead);
  }
  return flags.take();
}

}  // namespace stageline
