// Compares the peaks of an outcome with the memory that there is.
#include "tools/study/fit.hpp"

#include <algorithm>

namespace stageline {

void set_fit(const Cluster& cluster, Outcome& outcome) {
  for (const Device& device : cluster.devices) {
    outcome.memory_limit.push_back(usable_memory(device));
  }
  for (const Host& host : cluster.hosts) outcome.host_limit.push_back(host.memory);
  outcome.fit = outcome.bytes_known() ? Fit::yes : Fit::unknown;
  if (!outcome.bytes_known()) return;
  for (std::size_t d = 0; d < outcome.memory_limit.size(); ++d) {
    const auto& limit = outcome.memory_limit[d];
    if (!limit) {
      if (outcome.fit == Fit::yes) outcome.fit = Fit::unknown;
    } else if (outcome.memory.device[d].peak > *limit) {
      outcome.fit = Fit::no;
    }
  }
  for (std::size_t h = 0; h < outcome.host_limit.size(); ++h) {
    const auto& limit = outcome.host_limit[h];
    if (limit && outcome.memory.host[h].peak > *limit) outcome.fit = Fit::no;
  }
}

double throughput_of(const Outcome& outcome) {
  const auto samples = static_cast<double>(std::max(outcome.microbatch_size, 1));
  const double step = to_seconds(outcome.step_time);
  return outcome.microbatches * samples * outcome.copies / step;
}

}  // namespace stageline
