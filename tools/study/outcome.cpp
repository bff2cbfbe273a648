#include "tools/study/outcome.hpp"

#include <algorithm>

namespace stageline {

std::string_view name(Fit fit) {
  switch (fit) {
    case Fit::yes:
      return "yes";
    case Fit::no:
      return "no";
    case Fit::unknown:
      return "unknown";
  }
  return "";
}

int Outcome::peak_device() const {
  // Where it does not fit, by how much it does not; else by size.
  std::size_t worst = 0;
  const auto weight = [&](std::size_t d) {
    const Bytes peak = memory.device[d].peak;
    return fit == Fit::no ? peak - memory_limit[d].value_or(peak) : peak;
  };
  for (std::size_t d = 1; d < memory.device.size(); ++d) {
    if (weight(d) > weight(worst)) worst = d;
  }
  return static_cast<int>(worst);
}

int Outcome::versions_peak() const {
  int most = 1;
  for (const StageVersions& stage : versions) most = std::max(most, stage.held_peak);
  return most;
}

double Outcome::staleness_max() const {
  double most = 0;
  for (const StageVersions& stage : versions) most = std::max(most, stage.staleness_max);
  return most;
}

bool Outcome::consistent() const {
  return std::all_of(versions.begin(), versions.end(),
                     [](const StageVersions& stage) { return stage.consistent; });
}

double Outcome::samples() const {
  return static_cast<double>(microbatches) * copies * std::max(microbatch_size, 1);
}

}  // namespace stageline
