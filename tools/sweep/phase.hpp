// Which schedule wins where: a map over two settings, refined where the winner changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/base/json.hpp"
#include "tools/report/charts/phase.hpp"
#include "tools/sweep/rows.hpp"

namespace stageline {

inline constexpr std::int64_t phase_across = 33;  // values of an axis that says none
inline constexpr std::int64_t phase_upwards = 17;

struct PhaseRequest {
  std::vector<SettingWord> fixed;
  SweepAxis x;
  SweepAxis y;
  std::vector<std::string> schedules;       // empty: all synchronous ones
  int threads = 0;                          // 0: one a processor core; changes nothing
  bool exhaustive = false;                  // simulate every cell
  const std::atomic<bool>* stop = nullptr;  // ends the refinement early
  /// Called with the cells that are simulated and those known to be wanted so far, by one thread
  /// at a time.
  std::function<void(std::int64_t done, std::int64_t wanted)> progress;
};

struct PhaseMap {
  PhaseRequest request;
  report::PhaseChart chart;  // the fastest by throughput wins, of those that fit; where something
                             // is uncertain, by the step that 95 % of the scenarios stay below
  std::int64_t cells = 0;    // simulated
  std::int64_t rows = 0;     // simulated, of all schedules
  bool any = false;          // whether any schedule fits anywhere
  bool partial = false;      // stopped before its borders were followed to single cells
  std::string
      why_not{};  // of the first of the simulated rows without a result; empty: all have one
  std::vector<std::string> notes{};  // SweepRunner::notes()
};

/// "1GB/s..400GB/s" without a form, spread by its logarithm over `points` values where its ends are
/// at least eightfold apart, else evenly; any other text as parse_axis() reads it.
SweepAxis phase_axis(const std::string& name, const std::string& text, std::int64_t points);

/// Simulates every eighth value of each axis, and every one of an axis of whole numbers or of a
/// list; then halves rectangles whose corners differ in the winner, or in whether memory decides,
/// down to single cells. Cells of a rectangle whose corners agree have that winner, and a lead
/// between those of the corners. Where it is stopped, cells of rectangles still to be halved are
/// like their nearest corner. Throws what checked() and SweepRunner::probe() throw, and CalledOff
/// where it is stopped before the first values are simulated.
PhaseMap phase_map(PhaseRequest request);

/// Keys in tools/report/json/README.md.
Json phase_json(const PhaseMap& map);

}  // namespace stageline
