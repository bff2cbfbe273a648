// A case that is simulated for advice, and what it takes.
#pragma once

#include <optional>
#include <string>

#include "tools/inputs/setting.hpp"
#include "tools/study/ranking.hpp"

namespace stageline {

struct Trial {
  std::string flags;  // that ask for it
  bool fits = false;
  Time step{};
  double throughput = 0;
  std::optional<MemoryNeed> need;  // where memory is tightest
  std::optional<Bytes> peak;       // of the fullest device; empty: unknown
  bool derived = false;            // from costs of another micro-batch size

  Bytes missing() const { return need ? need->missing() : Bytes{}; }
  /// "20.24 s a step, 1.572 GB of 8.000 GB on gpu0"
  std::string figures() const;
};

/// What a case on so many devices of the setting asks of memory, to scale: its micro-batches times
/// the devices that are simulated, and times the steps where they are given.
double case_size(const SettingRequest& request, const Setting& setting, int devices);

/// How many cases of that size are simulated at a time: up to `workers` (0: one a processor core),
/// and as many as take 3 GB of memory together.
int cases_at_a_time(double size, int workers);

/// Simulates that schedule on so many devices of the setting, in the order of the cluster, and
/// where the cut was to be searched cut by "balanced". Empty where it cannot run.
std::optional<Trial> tried(const SettingRequest& request, const Setting& setting,
                           const ScheduleSpec& spec, int devices, std::string flags);

}  // namespace stageline
