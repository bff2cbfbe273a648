// What is searched: the shapes of a cluster, and for each of them the families.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/planner/planner.hpp"

namespace stageline::planner {

/// A schedule with its knobs, and what becomes of its stashes; together with a shape all that a
/// candidate says but the cut.
struct Family {
  ScheduleSpec spec;
  Recomputation recomputation{};
  Offloading offloading{};
};

/// Which values of the knobs of schedules that order their ops by their costs are tried.
enum class KnobReach : std::uint8_t {
  one,  // of one knob at a time, beside the defaults of the others
  all,  // placement with limit, goal or priority
};

/// Those to try on a pipeline of so many ranks: what the space says, else every synchronous
/// schedule (with PlanSpace::asynchronous all), with the knobs that change its memory or its chunks
/// as far as the model has layers for them; each without recomputation, with selective one where
/// the model says what that rebuilds, by layers and in full. `cuts`: whether slices of sequences
/// are priced by kernels of their own; without, none that cuts sequences unless the space names it,
/// and with it none whose order is rebuilt.
std::vector<Family> families_of(const PlanSpace& space, const Model& model, int pipeline,
                                bool cuts = false, KnobReach reach = KnobReach::one);

/// Tokens of the shortest slice on a rank that is tried where no schedule is named: products of as
/// many rows take 8 to 24 % longer than at their full rate (KernelRates::gemm_rows, 83 to 250 of
/// all chips), shorter ones more (assumed).
inline constexpr std::int64_t least_slice_tokens = 1024;

/// Whether a schedule cuts sequences into chunks. It is not proposed as a change where it is not
/// named.
bool cuts_sequences(const ScheduleSpec& spec);

/// Whether the schedule runs on so many ranks: a program runs on those that it says.
bool suits(const ScheduleSpec& spec, int pipeline);

/// The knobs of a schedule one step further, each way.
std::vector<ScheduleSpec> neighbours_of(const ScheduleSpec& spec);

/// The cuts to try first where the space does not say them.
std::vector<std::string> first_cuts(const PlanSpace& space, const Model& model);

/// Beside those: of PipeDream's schedule that of its own partitioner, which replicates stages.
std::vector<std::string> own_cuts(const PlanSpace& space, const Scheduler& scheduler,
                                  const Degrees& degrees);

/// How many cuts of the layers into so many stages there are; at most `most` + 1.
std::int64_t count_cuts(int layers, int stages, std::int64_t most);

/// All of them, as --partition takes them, in lexicographic order.
std::vector<std::string> all_cuts(int layers, int stages);

/// Stages of the schedule on so many devices; 0 where it cannot be placed, or cuts by itself.
int stages_of(const ScheduleSpec& spec, int devices);

}  // namespace stageline::planner
