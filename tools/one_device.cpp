#include "tools/one_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/errors.hpp"

namespace stageline {
namespace {

__extension__ using Wide = __int128;

}  // namespace

Time time_on_one_device(const Case& asked, std::int64_t microbatches, std::int64_t updates) {
  double fastest = 0;
  for (const Device& device : asked.cluster.devices) fastest = std::max(fastest, device.rate);
  Time update{};
  for (const Layer& layer : asked.model.layers) update += layer.update;
  const Wide whole = static_cast<Wide>(forward_backward(asked.model).count()) * microbatches +
                     static_cast<Wide>(update.count()) * updates;
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  // In floating point, 2^63 itself must not pass.
  if (whole > most || static_cast<double>(whole) / fastest >= static_cast<double>(most)) {
    throw UsageError(
        fmt::format("{} micro-batches on one device would take longer than 106 days, the most that "
                    "picoseconds in 64 bits can say; ask for fewer",
                    microbatches));
  }
  if (fastest == 1) return Time{static_cast<std::int64_t>(whole)};
  return Time{std::llround(static_cast<double>(whole) / fastest)};
}

Time on_fastest_device(const std::vector<Time>& by_device, const Cluster& cluster) {
  double fastest = 0;
  for (const Device& device : cluster.devices) fastest = std::max(fastest, device.rate);
  Time sum{};
  for (std::size_t d = 0; d < by_device.size(); ++d) {
    const double rate = cluster.devices[d].rate;
    sum += rate == fastest
               ? by_device[d]
               : Time{std::llround(static_cast<double>(by_device[d].count()) * rate / fastest)};
  }
  return sum;
}

}  // namespace stageline
