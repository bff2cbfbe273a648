// Orders outcomes by speed, recommends one and words the reason.
#include "tools/study/figures/ranking.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

class Ranking {
 public:
  Ranking(std::span<const Outcome* const> outcomes, double within,
          std::span<const std::string> names, const std::optional<Tie>& tie)
      : outcomes_(outcomes),
        within_(within),
        names_(names),
        tie_(tie),
        sweep_(std::any_of(outcomes.begin(), outcomes.end(), [&](const Outcome* outcome) {
          return outcome->devices != outcomes[0]->devices;
        })) {}

  Ranked rank() {
    Ranked ranked;
    order();
    ranked.order = order_;
    if (order_.empty()) return ranked;
    if (!fits(order_[0])) {
      ranked.sentence = none_fits();
      return ranked;
    }
    ranked.fastest = order_[0];
    ranked.recommended = recommended();
    ranked.sentence = ranked.recommended == ranked.fastest
                          ? fastest_is_recommended()
                          : less_memory_for_time(*ranked.recommended);
    ranked.sentence += faster_but_too_large(*ranked.recommended) + unlike_steps();
    return ranked;
  }

 private:
  std::span<const Outcome* const> outcomes_;
  double within_;
  std::span<const std::string> names_;
  std::optional<Tie> tie_;
  bool sweep_;  // several numbers of devices
  std::vector<std::size_t> order_;

  const Outcome& at(std::size_t i) const { return *outcomes_[i]; }
  bool fits(std::size_t i) const { return at(i).fit != Fit::no; }
  bool takes_time(std::size_t i) const { return at(i).step_time > Time{}; }
  Bytes peak(std::size_t i) const { return nth(at(i).memory.device, at(i).peak_device()).peak; }

  // By sample, so that a sweep over devices ranks too.
  double pace(std::size_t i) const {
    return takes_time(i) ? at(i).throughput : std::numeric_limits<double>::infinity();
  }
  double times_as_fast(std::size_t a, std::size_t b) const {
    return pace(a) == pace(b) ? 1 : pace(a) / pace(b);
  }

  void order() {
    order_.resize(outcomes_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      if (fits(a) != fits(b)) return fits(a);
      if (at(a).lower_bound != at(b).lower_bound) return at(b).lower_bound;
      if (pace(a) != pace(b)) return pace(a) > pace(b);
      return peak(a) != peak(b) ? peak(a) < peak(b) : a < b;
    });
    // Exact comparison keeps the order strict; of those as fast as the first, the one with the
    // least memory then becomes the first.
    for (std::size_t i = 1; i < order_.size(); ++i) {
      const std::size_t other = order_[i];
      if (!fits(other) || pace(other) < pace(order_[0]) * (1 - same_time)) break;
      if (at(other).lower_bound != at(order_[0]).lower_bound) break;
      if (peak(other) < peak(order_[0])) {
        const auto begin = order_.begin();
        std::rotate(begin, begin + static_cast<std::ptrdiff_t>(i),
                    begin + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }

  std::size_t recommended() const {
    if (tie_) return tie_->taken;
    std::size_t best = order_[0];
    for (const std::size_t i : order_) {
      if (!fits(i) || times_as_fast(order_[0], i) > 1 + within_) break;
      if (at(i).lower_bound != at(order_[0]).lower_bound) break;
      if (!at(i).bytes_known()) break;
      if (peak(i) < peak(best)) best = i;
    }
    return best;
  }

  std::string named(std::size_t i) const {
    const std::string& name = names_.empty() ? at(i).schedule : names_[i];
    return sweep_ ? fmt::format("{} on {} devices", name, at(i).devices) : name;
  }

  // A step of one sweep is not the same work everywhere.
  std::string speed(std::size_t i) const {
    return sweep_ ? fmt::format("{:.5g} {}", at(i).throughput, at(i).throughput_unit)
                  : print(at(i).step_time);
  }

  // "20.24 s, 1.572 GB"
  std::string figures(std::size_t i) const {
    return at(i).bytes_known() ? fmt::format("{}, {}", speed(i), print(peak(i))) : speed(i);
  }

  // "5.0× the memory"; empty of bytes that are unknown, or none.
  std::string memory_beside(std::size_t more, std::size_t less) const {
    if (peak(less) <= Bytes{}) return "";
    const double ratio =
        static_cast<double>(peak(more).count) / static_cast<double>(peak(less).count);
    return ratio < 2 ? fmt::format("{:.1f} % more memory", (ratio - 1) * 100)
                     : fmt::format("{:.1f}× the memory", ratio);
  }

  std::string less_memory_for_time(std::size_t i) const {
    const std::size_t first = order_[0];
    const std::string memory = memory_beside(first, i);
    const std::string merit =
        tie_ ? fmt::format("the least time × memory of {} that tie", tie_->rows)
             : fmt::format("the least memory within {:g} % of the fastest", within_ * 100);
    const std::string head = fmt::format("{}: {}, {}", named(i), figures(i), merit);
    if (!takes_time(first)) return fmt::format("{}; {} takes no time", head, named(first));
    const double faster = times_as_fast(first, i) - 1;
    const bool same = faster < same_time;
    return fmt::format(
        "{}; {} is {} ({}){}{}", head, named(first),
        same ? "as fast" : fmt::format("{:.1f} % faster", faster * 100), speed(first),
        tie_ && !same ? ", less than can be told," : "",
        memory.empty() ? "" : fmt::format(" with {} ({})", memory, print(peak(first))));
  }

  std::string fastest_is_recommended() const {
    const std::size_t best = order_[0];
    const bool alone = order_.size() == 1;
    const bool rival = !alone && fits(order_[1]);
    std::string reason;
    if (!rival) {
      reason = fmt::format(
          "{}{}", alone ? "" : "the only one that fits, ",
          takes_time(best)
              ? fmt::format("{:.2f}× one {}", at(best).speedup,
                            at(best).divides_layers() ? "rank without collectives" : "device")
              : "takes no time");
    } else {
      reason = beside(best, order_[1]);
    }
    return takes_time(best) ? fmt::format("{}: {}; {}", named(best), figures(best), reason)
                            : fmt::format("{}: {}", named(best), reason);
  }

  std::string beside(std::size_t best, std::size_t next) const {
    const double faster = times_as_fast(best, next);
    // There is no ratio of bytes that are unknown, or none.
    const bool measurable = at(best).bytes_known() && at(next).bytes_known() &&
                            peak(best) > Bytes{} && peak(next) > Bytes{};
    const double memory =
        measurable ? static_cast<double>(peak(next).count) / static_cast<double>(peak(best).count)
                   : 1;
    std::string reason =
        std::isinf(faster)       ? fmt::format("takes no time, unlike {}", named(next))
        : faster < 1 + same_time ? fmt::format("same time as {}", named(next))
        : faster < 2
            ? fmt::format("{:.1f} % more throughput than {}", (faster - 1) * 100, named(next))
            : fmt::format("{:.1f}× the throughput of {}", faster, named(next));
    if (memory >= 1.05) reason += fmt::format(", {:.1f}× less memory", memory);
    if (memory <= 1 / 1.05) reason += fmt::format(", {:.1f}× more memory", 1 / memory);
    return reason;
  }

  // A faster one that does not fit is worth knowing.
  std::string faster_but_too_large(std::size_t taken) const {
    for (const std::size_t i : order_) {
      const double faster = times_as_fast(i, taken);
      if (fits(i) || faster < 1 + same_time || std::isinf(faster)) continue;
      return fmt::format("; {} would be {} but needs {}", named(i),
                         faster < 2 ? fmt::format("{:.1f} % faster", (faster - 1) * 100)
                                    : fmt::format("{:.1f}× as fast", faster),
                         need(i));
    }
    return "";
  }

  // Samples, or micro-batches where their size is unknown, of a step of the row.
  std::int64_t work(std::size_t i) const {
    return std::int64_t{at(i).microbatches} * at(i).copies * std::max(at(i).microbatch_size, 1);
  }

  // That steps of the rows cannot be compared, since they are not of the same work on the same
  // devices. Rows of one number of devices that do the same work need no words.
  std::string unlike_steps() const {
    const auto range = [&](auto&& value, const char* what) -> std::string {
      auto low = value(order_[0]);
      auto high = low;
      for (const std::size_t i : order_) {
        low = std::min(low, value(i));
        high = std::max(high, value(i));
      }
      return low == high ? "" : fmt::format("{} ({} to {})", what, low, high);
    };
    const bool sized = at(order_[0]).microbatch_size > 0;
    const std::string devices = range([&](std::size_t i) { return devices_of(at(i)); }, "devices");
    const std::string samples = range([&](std::size_t i) { return work(i); },
                                      sized ? "samples a step" : "micro-batches a step");
    if (devices.empty() && samples.empty()) return "";
    return fmt::format("; rows differ in {}{}{}: throughput ranks them, not the step", devices,
                       devices.empty() || samples.empty() ? "" : " and ", samples);
  }

  static int devices_of(const Outcome& outcome) {
    return outcome.all_devices > 0 ? outcome.all_devices : outcome.devices;
  }

  std::string need(std::size_t i) const { return print(tightest(at(i)).value_or(MemoryNeed{})); }
  Bytes missing(std::size_t i) const { return tightest(at(i)).value_or(MemoryNeed{}).missing(); }

  std::string none_fits() const {
    const std::size_t nearest =
        *std::min_element(order_.begin(), order_.end(),
                          [&](std::size_t a, std::size_t b) { return missing(a) < missing(b); });
    if (at(nearest).grows) {
      return fmt::format("none fits: {} needs {}", named(nearest), need(nearest));
    }
    return fmt::format("none fits: {} lacks {}{}: it needs {}", named(nearest),
                       order_.size() > 1 ? "least, " : "", print(missing(nearest)), need(nearest));
  }
};

}  // namespace

Bytes MemoryNeed::missing() const { return grows ? most_bytes_held : peak - limit; }

std::optional<MemoryNeed> tightest(const Outcome& outcome) {
  std::optional<MemoryNeed> worst;
  if (outcome.grows) return MemoryNeed{{}, {}, "", true};
  const auto look = [&](Bytes peak, const std::optional<Bytes>& limit, const std::string& place) {
    if (!limit || (worst && peak - *limit <= worst->missing())) return;
    worst = MemoryNeed{peak, *limit, place};
  };
  if (!outcome.bytes_known()) return worst;
  for (std::size_t d = 0; d < outcome.memory_limit.size(); ++d) {
    look(outcome.memory.device[d].peak, outcome.memory_limit[d], outcome.program.devices[d]);
  }
  for (std::size_t h = 0; h < outcome.host_limit.size(); ++h) {
    look(outcome.memory.host[h].peak, outcome.host_limit[h], outcome.costs.network.hosts[h]);
  }
  return worst;
}

std::string print(const MemoryNeed& need) {
  if (need.grows) return "more memory the longer it runs";
  return fmt::format("{} of {} on {}", print(need.peak), print(need.limit), need.place);
}

std::string print_missing(const MemoryNeed& need) {
  return need.grows ? "memory grows as long as it runs"
                    : fmt::format("{} are missing on {}", print(need.missing()), need.place);
}

Ranked rank(std::span<const Outcome* const> outcomes, double within,
            std::span<const std::string> names, const std::optional<Tie>& tie) {
  return Ranking(outcomes, within, names, tie).rank();
}

}  // namespace stageline
