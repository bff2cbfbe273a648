// Times ranges by the kernels that their operators launched.
//
//   CPU   |F          |             |B          |      a kernel has the External id of the operator
//          |linear||relu|             |linear|         that launched it, or the correlation of the
//   GPU         |gemm| |relu|               |gemm|     call that did (PyTorch 1.12 to 2.0), and
//   that
//                                                      begins inside a range
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "traces/kineto/found.hpp"

namespace stageline {
namespace {

struct Kernel {
  std::string launched_by;  // External id
  std::string correlation;
  KinetoStretch time;
  bool of_nccl = false;
  bool message = false;
};

bool is_message(RangeMeaning meaning) {
  switch (meaning) {
    case RangeMeaning::send_forward:
    case RangeMeaning::receive_forward:
    case RangeMeaning::send_backward:
    case RangeMeaning::receive_backward:
      return true;
    case RangeMeaning::forward:
    case RangeMeaning::backward:
    case RangeMeaning::input_grad:
    case RangeMeaning::weight_grad:
    case RangeMeaning::recompute:
    case RangeMeaning::optimizer:
    case RangeMeaning::ignored:
    case RangeMeaning::interleaved:
    case RangeMeaning::layer:
      return false;
  }
  return false;  // unreachable; g++ requires it
}

class KernelReader {
 public:
  KernelReader(const ProfileTimes& times, FoundRun& run) : times_(times), run_(run) {}

  void read(const std::string& file, const std::string& json) {
    scan_trace_events(json, file, [&](const TraceEvent& event) { look_at(event); });
    std::int64_t work = 0;
    std::int64_t other_work = 0;
    for (const Kernel& kernel : kernels_) {
      const auto at = range_of(kernel);
      const bool collective = kernel.of_nccl && !kernel.message;
      if (at && !collective) join(kernel, *at);
      if (kernel.of_nccl) continue;
      (at ? work : other_work) += kernel.time.end - kernel.time.start;
    }
    if (!run_.timed_on_gpu) return;
    run_.work = work;
    run_.other_work = other_work;
    measure_reductions();
    run_.receives.clear();
    for (const Kernel& kernel : kernels_) {
      if (kernel.message) run_.receives.push_back(kernel.time);
    }
    std::sort(run_.receives.begin(), run_.receives.end(),
              [](const KinetoStretch& a, const KinetoStretch& b) { return a.start < b.start; });
  }

 private:
  // By the operator that launched it, or else by the call.
  std::optional<std::size_t> range_of(const Kernel& kernel) const {
    const auto by_operator = range_of_.find(kernel.launched_by);
    if (by_operator != range_of_.end()) return by_operator->second;
    const auto by_call = range_of_call_.find(kernel.correlation);
    if (by_call != range_of_call_.end()) return by_call->second;
    return {};
  }

  void look_at(const TraceEvent& event) {
    if (event.phase != "X") return;
    const bool kernel = is_on_device(event);
    const bool call = is_launcher(event) && !event.correlation.empty();
    if (!kernel && !call && (event.category != "cpu_op" || event.external_id.empty())) return;
    std::int64_t start = times_.start(event);
    start += times_.counted_from(start);
    if (!kernel) {
      const std::size_t range = range_at(start);
      if (range == run_.ranges.size()) return;
      if (call) {
        range_of_call_.emplace(event.correlation, range);
      } else {
        range_of_.emplace(event.external_id, range);
      }
      return;
    }
    // ncclDevKernel_SendRecv, ncclKernel_SendRecv_RING_SIMPLE_… before NCCL 2.19
    const bool of_nccl = event.name.starts_with("nccl");
    const bool message = of_nccl && event.name.find("SendRecv") != std::string::npos;
    kernels_.push_back({event.external_id,
                        event.correlation,
                        {start, start + times_.duration(event)},
                        of_nccl,
                        message});
  }

  // The range inside of which the moment is; the number of ranges where there is none.
  std::size_t range_at(std::int64_t moment) const {
    const auto after = std::upper_bound(
        run_.ranges.begin(), run_.ranges.end(), moment,
        [](std::int64_t at, const FoundRange& range) { return at < range.launch.start; });
    if (after == run_.ranges.begin()) return run_.ranges.size();
    const auto before = std::prev(after);
    if (moment > before->launch.end) return run_.ranges.size();
    return static_cast<std::size_t>(before - run_.ranges.begin());
  }

  // One range that sends and receives is two of the list, with one launch.
  void join(const Kernel& kernel, std::size_t last) {
    const std::int64_t launched = run_.ranges[last].launch.start;
    for (std::size_t at = last + 1; at-- > 0 && run_.ranges[at].launch.start == launched;) {
      FoundRange& range = run_.ranges[at];
      if (kernel.message != is_message(range.meaning)) continue;
      if (!range.on_gpu) range.on_gpu = kernel.time;
      range.on_gpu->start = std::min(range.on_gpu->start, kernel.time.start);
      range.on_gpu->end = std::max(range.on_gpu->end, kernel.time.end);
      if (!kernel.message) run_.timed_on_gpu = true;
    }
  }

  // Collectives between the kernels of a pass are in it (tensor parallelism); those that outlast
  // them reduce its gradients, beside it and behind.
  void measure_reductions() {
    std::map<std::size_t, std::int64_t> ends;  // by range: of its last collective
    for (const Kernel& kernel : kernels_) {
      if (!kernel.of_nccl || kernel.message) continue;
      const auto at = range_of(kernel);
      if (!at || is_message(run_.ranges[*at].meaning)) continue;
      std::int64_t& end = ends.try_emplace(*at, kernel.time.end).first->second;
      end = std::max(end, kernel.time.end);
    }
    for (const auto& [at, end] : ends) {
      const std::optional<KinetoStretch>& pass = run_.ranges[at].on_gpu;
      if (pass) run_.reductions += std::max<std::int64_t>(0, end - pass->end);
    }
  }

  const ProfileTimes& times_;
  FoundRun& run_;
  std::unordered_map<std::string, std::size_t> range_of_;       // by External id of an operator
  std::unordered_map<std::string, std::size_t> range_of_call_;  // by correlation of a call
  std::vector<Kernel> kernels_;
};

}  // namespace

void time_by_kernels(const std::string& file, const std::string& json, const ProfileTimes& times,
                     FoundRun& run) {
  KernelReader(times, run).read(file, json);
}

}  // namespace stageline
