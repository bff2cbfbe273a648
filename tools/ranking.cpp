// Which schedule wins, and why: the sentence below each block of a comparison.
#include <fmt/format.h>

#include <algorithm>

#include "tools/study.hpp"

namespace stageline {
namespace {

std::string named(const Outcome& outcome, bool with_devices) {
  return with_devices ? fmt::format("{} on {} devices", outcome.schedule, outcome.devices)
                      : outcome.schedule;
}

// Times that differ by less than this share are called the same.
constexpr double same = 0.0005;

}  // namespace

Ranked rank(const std::vector<Outcome>& outcomes, const std::vector<std::size_t>& of) {
  Ranked ranked{of, ""};
  const auto peak = [&](std::size_t i) {
    return outcomes[i].memory.device[static_cast<std::size_t>(outcomes[i].peak_device())].peak;
  };
  // Time for one sample, so that a sweep over devices ranks too; what differs by a hair is the
  // same, and then the smaller memory is better.
  const auto pace = [&](std::size_t i) { return outcomes[i].throughput; };
  std::sort(ranked.order.begin(), ranked.order.end(), [&](std::size_t a, std::size_t b) {
    const bool fits_a = outcomes[a].fit != Fit::no;
    const bool fits_b = outcomes[b].fit != Fit::no;
    if (fits_a != fits_b) return fits_a;
    if (pace(a) != pace(b)) return pace(a) > pace(b);
    return peak(a) != peak(b) ? peak(a) < peak(b) : a < b;
  });
  // Exact comparison keeps the order strict; only the head of the list is looked at again.
  if (ranked.order.empty()) return ranked;
  for (std::size_t i = 1; i < ranked.order.size(); ++i) {
    const std::size_t other = ranked.order[i];
    const std::size_t first = ranked.order[0];
    if (outcomes[other].fit == Fit::no || pace(other) < pace(first) * (1 - same)) break;
    if (peak(other) < peak(first)) {
      std::rotate(ranked.order.begin(), ranked.order.begin() + static_cast<std::ptrdiff_t>(i),
                  ranked.order.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    }
  }
  const std::size_t best = ranked.order[0];
  const bool sweep = std::any_of(of.begin(), of.end(), [&](std::size_t i) {
    return outcomes[i].devices != outcomes[of[0]].devices;
  });
  if (outcomes[best].fit == Fit::no) {
    const int device = outcomes[best].peak_device();
    ranked.sentence = fmt::format(
        "none fits: {} comes nearest to the time, and needs {} where there are {}",
        named(outcomes[best], sweep), print(peak(best)),
        print(outcomes[best].memory_limit[static_cast<std::size_t>(device)].value_or(Bytes{})));
    return ranked;
  }
  std::string reason;
  if (ranked.order.size() == 1) {
    reason = fmt::format("{:.2f}× one device", outcomes[best].speedup);
  } else {
    const std::size_t next = ranked.order[1];
    const double faster = pace(best) / std::max(pace(next), 1e-15);
    const double memory = static_cast<double>(peak(next).count) /
                          std::max(static_cast<double>(peak(best).count), 1.0);
    const std::string against = named(outcomes[next], sweep);
    if (outcomes[next].fit == Fit::no) {
      reason = fmt::format("the only one that fits; {} needs {}", against, print(peak(next)));
    } else if (faster < 1 + same) {
      reason = fmt::format("same time as {}", against);
    } else {
      reason = fmt::format("{:.1f} % more throughput than {}", (faster - 1) * 100, against);
    }
    if (outcomes[next].fit != Fit::no) {
      if (memory >= 1.05) reason += fmt::format(", {:.1f}× less memory", memory);
      if (memory <= 1 / 1.05) reason += fmt::format(", {:.1f}× more memory", 1 / memory);
    }
  }
  // A faster one that does not fit is worth knowing.
  for (const std::size_t i : ranked.order) {
    if (outcomes[i].fit != Fit::no || pace(i) < pace(best) * (1 + same)) continue;
    reason += fmt::format("; {} would be {:.1f} % faster but needs {}", named(outcomes[i], sweep),
                          (pace(i) / pace(best) - 1) * 100, print(peak(i)));
    break;
  }
  ranked.sentence = fmt::format("{}: {}", named(outcomes[best], sweep), reason);
  return ranked;
}

}  // namespace stageline
