#include "tests/benchmarks/bare_batch.hpp"

#include <algorithm>
#include <stdexcept>

#include "sim/batch/batched_sweep.hpp"
#include "sim/batch/versions.hpp"

namespace stageline::bench {

constexpr std::int64_t bare_width = BatchedSweep::width;

struct BareTable {
  const std::int64_t* duration;
  std::int64_t* available;
};

// External linkage: compilers resolve versions of such functions only.
STAGELINE_VERSIONS
void bare_block(std::int64_t devices, std::int64_t microbatches, BareTable forward,
                BareTable backward, BareTable send_forward, BareTable send_backward,
                std::int64_t* device_free, std::int64_t* port_free);

using Eight = std::int64_t __attribute__((vector_size(64), aligned(8), may_alias));

// As bare_recurrence(): in tick t device s does forward t-s while it warms up, forward (t-s)/2 in
// every other tick from then on, and backward (t-(2p-1-s))/2 in the ticks between.
STAGELINE_VERSIONS
void bare_block(std::int64_t devices, std::int64_t microbatches, BareTable forward,
                BareTable backward, BareTable send_forward, BareTable send_backward,
                std::int64_t* device_free, std::int64_t* port_free) {
  const std::int64_t p = devices;
  const std::int64_t m = microbatches;
  const std::int64_t ticks = 2 * (m + p - 1);
  for (std::int64_t t = 0; t < ticks; ++t) {
    for (std::int64_t s = 0; s < std::min({p, t + 1, ticks - t}); ++s) {
      const std::int64_t warm_up = p - 1 - s;
      const bool goes_forward = t - s < warm_up || (t - s) % 2 == 0;
      const std::int64_t i = !goes_forward     ? (t - (2 * p - 1 - s)) / 2
                             : t - s < warm_up ? t - s
                                               : (t - s) / 2;
      if (i >= m) continue;
      if (goes_forward ? t - s >= warm_up && i < warm_up : t < 2 * p - 1 - s) continue;
      const BareTable op = goes_forward ? forward : backward;
      const BareTable send = goes_forward ? send_forward : send_backward;
      const std::int64_t from = goes_forward ? s - 1 : s + 1;  // device
      const bool last = goes_forward ? s + 1 == p : s == 0;
      const bool first = from < 0 || from == p;
      const std::int64_t at = (i * p + s) * bare_width;
      for (std::int64_t half = 0; half < bare_width; half += 8) {
        auto* const free = reinterpret_cast<Eight*>(device_free + s * bare_width + half);
        Eight start = *free;
        if (!first) {
          const Eight ready =
              *reinterpret_cast<const Eight*>(send.available + (i * p + from) * bare_width + half);
          start = ready > start ? ready : start;
        }
        const Eight end = start + *reinterpret_cast<const Eight*>(op.duration + at + half);
        *free = end;
        *reinterpret_cast<Eight*>(op.available + at + half) = end;
        if (last) continue;
        auto* const port = reinterpret_cast<Eight*>(port_free + s * bare_width + half);
        const Eight sent = (*port > end ? *port : end) +
                           *reinterpret_cast<const Eight*>(send.duration + at + half);
        *port = sent;
        *reinterpret_cast<Eight*>(send.available + at + half) = sent;
      }
    }
  }
}

BareBatch::BareBatch(const Pipeline& pipeline)
    : devices_(pipeline.devices), microbatches_(pipeline.microbatches) {
  if (pipeline.wires != Wires::own) throw std::logic_error("on wires of their own alone");
  const auto width = static_cast<std::size_t>(bare_width);
  for (BareOps* ops : {&forward_, &backward_, &send_forward_, &send_backward_}) {
    ops->duration.resize(static_cast<std::size_t>(devices_ * microbatches_) * width);
    ops->available.resize(ops->duration.size());
  }
  device_free_.resize(static_cast<std::size_t>(devices_) * width);
  port_free_.resize(device_free_.size());
}

void BareBatch::set_durations(const TaskGraph& graph, std::span<const std::int64_t> duration) {
  for (std::uint32_t task = 0; task < graph.tasks(); ++task) {
    const Op op = graph.op[task];
    BareOps* const ops = op.kind == OpKind::forward         ? &forward_
                         : op.kind == OpKind::backward      ? &backward_
                         : op.kind == OpKind::send_forward  ? &send_forward_
                         : op.kind == OpKind::send_backward ? &send_backward_
                                                            : nullptr;
    if (ops == nullptr && graph.duration[task] == Time{}) continue;  // updates
    if (ops == nullptr) throw std::logic_error("an op that the bare recurrence does not know");
    const std::int64_t to = (std::int64_t{op.microbatch} * devices_ + op.stage) * bare_width;
    std::copy_n(duration.begin() + std::int64_t{task} * bare_width, bare_width,
                ops->duration.begin() + to);
  }
}

void BareBatch::run() {
  std::fill(device_free_.begin(), device_free_.end(), 0);
  std::fill(port_free_.begin(), port_free_.end(), 0);
  const auto table = [](BareOps& ops) {
    return BareTable{ops.duration.data(), ops.available.data()};
  };
  bare_block(devices_, microbatches_, table(forward_), table(backward_), table(send_forward_),
             table(send_backward_), device_free_.data(), port_free_.data());
}

std::vector<std::int64_t> BareBatch::makespans() const {
  std::vector<std::int64_t> last(static_cast<std::size_t>(bare_width));
  for (std::size_t i = 0; i < device_free_.size(); ++i) {
    std::int64_t& latest = last[i % last.size()];
    latest = std::max(latest, device_free_[i]);
  }
  return last;
}

}  // namespace stageline::bench
