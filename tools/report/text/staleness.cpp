#include "tools/report/text/staleness.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "sim/text/words.hpp"

namespace stageline::report {
namespace {

std::string spaced(const std::vector<int>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}

// "+71 % over no pipeline", "6 % under no pipeline".
std::string beside_no_pipeline(double increase) {
  const double percent = std::round(increase * 100) + 0.0;  // no "-0"
  return percent < 0 ? fmt::format("{:.0f} % under no pipeline", -percent)
                     : fmt::format("{:+.0f} % over no pipeline", percent);
}

}  // namespace

std::string stream_report(const Outcome& outcome) {
  std::string text;
  if (outcome.figures.stream) {
    const StreamFacts& facts = *outcome.figures.stream;
    text += fmt::format(
        "stale weights {}; by stage: degree of staleness {} updates, live mini-batches {}\n",
        outcome.bytes_known() ? fmt::format("{:.2f} % of all", facts.stale_share * 100) : "unknown",
        spaced(facts.degree), spaced(facts.live));
    text += fmt::format(
        "utilization {:.1f} %; memory of all devices {}{}\n", (1 - outcome.bubble_fraction) * 100,
        outcome.bytes_known() ? beside_no_pipeline(facts.memory_increase) : "unknown",
        facts.cycles > 0 ? fmt::format("; {} mini-batches in {} cycles",
                                       outcome.program.total_microbatches(), facts.cycles)
                         : "");
  }
  const auto& delay = outcome.program.settings.delay;
  if (!delay.empty()) {
    text += fmt::format("delays by stage (F reads weights so many updates old): {}\n",
                        by_stage(delay, no_delay));
  }
  if (!outcome.program.settings.window.empty()) {
    text += fmt::format("windows by stage (mini-batches in flight at most): {}\n",
                        by_stage(outcome.program.settings.window, no_window));
  }
  for (std::size_t h = 0; h < outcome.memory.host.size(); ++h) {
    const DeviceMemory& host = outcome.memory.host[h];
    if (host.peak == Bytes{}) continue;
    const auto limit = h < outcome.host_limit.size() ? outcome.host_limit[h] : std::nullopt;
    text += fmt::format("host memory: peak {} on {} at {}{}\n", print(host.peak),
                        outcome.costs.network.hosts[h], print(host.peak_at),
                        !limit               ? std::string(" (how much it has is unknown)")
                        : host.peak > *limit ? fmt::format(": does NOT fit in {}", print(*limit))
                                             : fmt::format(" of {}: fits", print(*limit)));
  }
  return text;
}

}  // namespace stageline::report
