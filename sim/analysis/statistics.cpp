#include "sim/analysis/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

// At `share` (0 to 1) of the way from the least to the greatest of sorted samples.
Time quantile(const std::vector<Time>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  const auto step = static_cast<double>((sorted[above] - sorted[below]).count());
  return sorted[below] + Time{std::llround(part * step)};
}

}  // namespace

Time median(std::vector<Time> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return quantile(samples, 0.5);
}

Time typical(const std::vector<Time>& samples) {
  constexpr std::size_t group = 8;
  if (samples.empty()) return {};
  const std::size_t groups = std::max<std::size_t>(samples.size() / group, 1);
  std::vector<Time> means;
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t first = g * group;
    const std::size_t behind = g + 1 == groups ? samples.size() : first + group;
    Time sum{};
    for (std::size_t i = first; i < behind; ++i) sum += samples[i];
    means.push_back(sum / static_cast<std::int64_t>(behind - first));
  }
  return median(std::move(means));
}

Time half_interquartile(std::vector<Time> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  return (quantile(samples, 0.75) - quantile(samples, 0.25)) / 2;
}

Time drift(const std::vector<Time>& samples) {
  if (samples.size() < 2) return {};
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  const Time first = median({samples.begin(), middle});
  const Time second = median({middle, samples.end()});
  return first < second ? second - first : first - second;
}

double fraction_of(Time a, Time b) {
  return b == Time{} ? 0 : static_cast<double>(a.count()) / static_cast<double>(b.count());
}

}  // namespace stageline
