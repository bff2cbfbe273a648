// A case that is simulated for advice, and what it takes.
#pragma once

#include <optional>
#include <string>

#include "tools/inputs/setting.hpp"
#include "tools/study/figures/ranking.hpp"

namespace stageline {

struct Trial {
  bool fits = false;
  Time step{};
  std::optional<MemoryNeed> need;  // where memory is tightest
  std::optional<Bytes> peak;       // of the fullest device; empty: unknown

  /// "20.24 s a step, 1.572 GB of 8.000 GB on gpu0"
  std::string figures() const;
};

/// What a case on so many devices of the setting asks of memory, as cases_at_a_time() takes it: its
/// micro-batches times the devices that are simulated, and times the steps where they are given.
double case_size(const SettingRequest& request, const Setting& setting, int devices);

/// Simulates that schedule on so many devices of the setting, in the order of the cluster, and
/// where the cut was to be searched cut by "balanced". Empty where it cannot run.
std::optional<Trial> tried(const SettingRequest& request, const Setting& setting,
                           const ScheduleSpec& spec, int devices);

}  // namespace stageline
