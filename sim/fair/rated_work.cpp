// When work ends whose rate changes from time to time.
#include "sim/fair/rated_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors.hpp"

namespace stageline {

Time RatedWork::go_on(double new_rate, Time now) {
  if (rate > 0) left = std::max(0.0, left - rate * static_cast<double>((now - since).count()));
  rate = new_rate;
  since = now;
  return now + time_to_end(left, rate);
}

Time time_to_end(double left, double rate) {
  const double exact = left / rate;
  if (!(exact < static_cast<double>(longest_run.count()))) {
    throw UsageError(fmt::format(
        "a transfer of {:.4g} B at a fair share of {:.4g} B/s takes longer than the clock's {:.3g} s (53 days); check the units of sizes and links",
        left, rate * 1e12, to_seconds(longest_run)));
  }
  const double rounding = std::min(0.25, 1e-3 + 1e-14 * exact);
  return Time{std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(exact - rounding)))};
}

}  // namespace stageline
