#include "tools/study/ranking.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/index.hpp"

namespace stageline {
namespace {

std::string named(const Outcome& outcome, bool with_devices) {
  return with_devices ? fmt::format("{} on {} devices", outcome.schedule, outcome.devices)
                      : outcome.schedule;
}

// "24.00 MB of 20.00 MB on gpu0"
std::string need_of(const Outcome& outcome) {
  const auto device = as_size(outcome.peak_device());
  return fmt::format("{} of {} on {}", print(outcome.memory.device[device].peak),
                     print(outcome.memory_limit[device].value_or(Bytes{})),
                     outcome.program.devices[device]);
}

// Times that differ by less than this share are called the same.
constexpr double same = 0.0005;

}  // namespace

Ranked rank(std::span<const Outcome* const> outcomes) {
  Ranked ranked;
  ranked.order.resize(outcomes.size());
  std::iota(ranked.order.begin(), ranked.order.end(), std::size_t{0});
  const auto peak = [&](std::size_t i) {
    return nth(outcomes[i]->memory.device, outcomes[i]->peak_device()).peak;
  };
  // Time for one sample, so that a sweep over devices ranks too; what differs by a hair is the
  // same, and then the smaller memory is better.
  const auto pace = [&](std::size_t i) {
    return outcomes[i]->step_time == Time{} ? std::numeric_limits<double>::infinity()
                                            : outcomes[i]->throughput;
  };
  const auto times_as_fast = [&](std::size_t a, std::size_t b) {
    return pace(a) == pace(b) ? 1 : pace(a) / pace(b);
  };
  std::sort(ranked.order.begin(), ranked.order.end(), [&](std::size_t a, std::size_t b) {
    const bool fits_a = outcomes[a]->fit != Fit::no;
    const bool fits_b = outcomes[b]->fit != Fit::no;
    if (fits_a != fits_b) return fits_a;
    if (pace(a) != pace(b)) return pace(a) > pace(b);
    return peak(a) != peak(b) ? peak(a) < peak(b) : a < b;
  });
  // Exact comparison keeps the order strict; only the head of the list is looked at again.
  if (ranked.order.empty()) return ranked;
  for (std::size_t i = 1; i < ranked.order.size(); ++i) {
    const std::size_t other = ranked.order[i];
    const std::size_t first = ranked.order[0];
    if (outcomes[other]->fit == Fit::no || pace(other) < pace(first) * (1 - same)) break;
    if (peak(other) < peak(first)) {
      std::rotate(ranked.order.begin(), ranked.order.begin() + static_cast<std::ptrdiff_t>(i),
                  ranked.order.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  }
  const std::size_t best = ranked.order[0];
  const bool sweep = std::any_of(outcomes.begin(), outcomes.end(), [&](const Outcome* outcome) {
    return outcome->devices != outcomes[0]->devices;
  });
  if (outcomes[best]->fit == Fit::no) {
    ranked.sentence = fmt::format("none fits: the fastest, {}, needs {}",
                                  named(*outcomes[best], sweep), need_of(*outcomes[best]));
    return ranked;
  }
  std::string reason;
  const bool rival = ranked.order.size() > 1 && outcomes[ranked.order[1]]->fit != Fit::no;
  if (!rival) {
    reason = fmt::format("{}{}", ranked.order.size() > 1 ? "the only one that fits, " : "",
                         outcomes[best]->step_time == Time{}
                             ? std::string("takes no time")
                             : fmt::format("{:.2f}× one device", outcomes[best]->speedup));
  } else {
    const std::size_t next = ranked.order[1];
    const double faster = times_as_fast(best, next);
    // Of bytes that are unknown, or none, there is no ratio.
    const bool measurable = outcomes[best]->bytes_known() && outcomes[next]->bytes_known() &&
                            peak(best) > Bytes{} && peak(next) > Bytes{};
    const double memory =
        measurable ? static_cast<double>(peak(next).count) / static_cast<double>(peak(best).count)
                   : 1;
    const std::string against = named(*outcomes[next], sweep);
    reason = std::isinf(faster)  ? fmt::format("takes no time, unlike {}", against)
             : faster < 1 + same ? fmt::format("same time as {}", against)
             : faster < 2
                 ? fmt::format("{:.1f} % more throughput than {}", (faster - 1) * 100, against)
                 : fmt::format("{:.1f}× the throughput of {}", faster, against);
    if (memory >= 1.05) reason += fmt::format(", {:.1f}× less memory", memory);
    if (memory <= 1 / 1.05) reason += fmt::format(", {:.1f}× more memory", 1 / memory);
  }
  // A faster one that does not fit is worth knowing.
  for (const std::size_t i : ranked.order) {
    const double faster = times_as_fast(i, best);
    if (outcomes[i]->fit != Fit::no || faster < 1 + same || std::isinf(faster)) continue;
    reason += fmt::format("; {} would be {} but needs {}", named(*outcomes[i], sweep),
                          faster < 2 ? fmt::format("{:.1f} % faster", (faster - 1) * 100)
                                     : fmt::format("{:.1f}× as fast", faster),
                          need_of(*outcomes[i]));
    break;
  }
  ranked.sentence = fmt::format("{}: {}", named(*outcomes[best], sweep), reason);
  return ranked;
}

}  // namespace stageline
