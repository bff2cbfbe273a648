// What the ranks of a measured run did with a step, by their profiles.
//
//   forward            ████████
//   backward                   ██████████████
//   link                                     ██          by cause of idling, as a simulated run
//   data loading                               ████      and by what else the profiles show
//   a step             ████████████████████████████
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/measured_idle.hpp"
#include "tools/answers/step_parts.hpp"
#include "traces/timelines.hpp"

namespace stageline {
class RangeNames;  // traces/kineto/names.hpp
}  // namespace stageline

namespace stageline::answers {

struct ProfileQuestion {
  std::vector<NamedText> profiles;    // one a rank
  const RangeNames* names = nullptr;  // what ranges are by their names; null: whatever they allow
};

/// The time of one rank in all steps.
struct ProfiledRank {
  std::string name;         // "rank0"
  std::vector<Time> parts;  // as ProfiledRun::parts; they add up to `whole`
  Time whole{};             // from the first op of all ranks to the last
  Time late{};              // free, with its inputs there, before an op began
};

/// What messages from one rank to another take, from when both its ends were there.
struct MeasuredLink {
  std::string from;
  std::string to;
  std::size_t messages = 0;
  Time median{};
  Time most{};    // of nine in ten
  Bytes bytes{};  // of a message, where the profile says it and all have as many; 0: unknown

  /// The rate of the median message; 0: unknown.
  double bytes_per_second() const;
};

struct ProfiledRun {
  KinetoRun run;
  MeasuredIdle idle;            // of replicas: of the first one
  std::vector<StepPart> parts;  // of a step, all ranks in the mean; those of no time are left out
  std::vector<ProfiledRank> ranks;
  std::vector<Time> steps;          // how long each took, from the end of the one before
  std::string longest{};            // what makes the longest step long; empty: little
  std::vector<MeasuredLink> links;  // in order of the ranks
  std::vector<std::string> notes;
};

/// The causes of a profiled run's idle time. Throws UsageError where the profiles show launches
/// only, whose idle time is not the GPU's, and as measured_idle() does.
MeasuredIdle idle_of(const KinetoRun& run);

/// Throws TraceError as read_kineto(), and what idle_of() throws.
ProfiledRun answer(const ProfileQuestion& question);

}  // namespace stageline::answers
