// What is known of the schedules' orders before any is made. A test holds the table against the
// programs.
#include <algorithm>

#include "tools/planner/shape_loads.hpp"

namespace stageline::planner {
namespace {

using Backward = ScheduleTraits::Backward;
using InFlight = ScheduleTraits::InFlight;

constexpr ScheduleTraits all_traits[] = {
    {"naive", Backward::whole, InFlight::one, false, 1},
    {"gpipe", Backward::whole, InFlight::all},
    {"1f1b", Backward::whole, InFlight::ascending},
    {"eager_1f1b", Backward::whole, InFlight::twice},
    {"dapple", Backward::whole, InFlight::one},
    {"seq1f1b", Backward::whole, InFlight::one},
    {"svpp", Backward::apart, InFlight::one},
    {"interleaved_1f1b", Backward::whole, InFlight::one},
    {"looped_bfs", Backward::whole, InFlight::one},
    {"1f1b_v", Backward::whole, InFlight::one},
    {"hanayo", Backward::whole, InFlight::one},
    {"chimera", Backward::whole, InFlight::one},
    {"gems", Backward::whole, InFlight::one, false, 2},
    {"dualpipe", Backward::either, InFlight::one, true},
    {"dualpipe_v", Backward::either, InFlight::one, true},
    {"zb_v", Backward::apart, InFlight::one},
    {"v_half", Backward::apart, InFlight::one},
    {"v_min", Backward::apart, InFlight::one},
    {"zb_h1", Backward::apart, InFlight::ascending},
    {"zb_h2", Backward::apart, InFlight::twice},
    {"interleaved_zb", Backward::apart, InFlight::one},
    {"zb_auto", Backward::apart, InFlight::one},
    {"cyclic", Backward::apart, InFlight::one},
};

}  // namespace

ScheduleTraits traits_of(const Scheduler& scheduler) {
  const auto* const known =
      std::find_if(std::begin(all_traits), std::end(all_traits),
                   [&](const ScheduleTraits& traits) { return traits.name == scheduler.name; });
  if (known != std::end(all_traits)) return *known;
  return {scheduler.name, Backward::either, InFlight::one, true};
}

int least_in_flight(const ScheduleTraits& traits, int stage, int stages, int microbatches) {
  switch (traits.in_flight) {
    case InFlight::one:
      return 1;
    case InFlight::ascending:
      return std::min(microbatches, stages - stage);
    case InFlight::twice:
      return std::min(microbatches, 2 * (stages - stage) - 1);
    case InFlight::all:
      return microbatches;
  }
  return 1;  // unreachable; g++ wants it
}

}  // namespace stageline::planner
