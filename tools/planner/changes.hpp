// Single changes of a candidate after which it may take less memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/planner/candidate.hpp"
#include "tools/study/case.hpp"
#include "tools/study/verdict.hpp"

namespace stageline::planner {

enum class ChangeKind : std::uint8_t {
  recompute,          // of some stages or all: selective, by layers or whole
  offload,            // of some stages or all, or of none where the candidate has some
  microbatch_size,    // smaller micro-batches, as many samples a step
  knob,               // another value of a knob of the same schedule
  schedule,           // another schedule of the same synchrony
  zero,               // a higher level
  cut,                // another partition: plain, or promising (tools/planner/cuts/cut_search.hpp)
  sequence_parallel,  // beside tensor parallelism
  degrees,            // tensor, data and pipeline ranks of as many devices
  devices,            // more of them: pipeline, tensor or data ranks
};
inline constexpr std::array all_change_kinds{
    ChangeKind::recompute, ChangeKind::offload,           ChangeKind::microbatch_size,
    ChangeKind::knob,      ChangeKind::schedule,          ChangeKind::zero,
    ChangeKind::cut,       ChangeKind::sequence_parallel, ChangeKind::degrees,
    ChangeKind::devices};
/// "recompute", "micro-batch size", "other ranks", as in sentences and JSON.
std::string_view name(ChangeKind kind);

struct Change {
  ChangeKind kind = ChangeKind::recompute;
  std::string what;     // the same of all candidates to which the same is done: "full, all stages"
  Candidate candidate;  // after it
};

/// What the cluster and the trace allow.
struct ChangeLimits {
  int most_devices = 1;        // that may be used, in all
  bool hosts = false;          // copies to the host take time: its links are known
  bool is_fixed = false;       // the trace or the cluster can be opened once: shapes stay
  bool promising_cuts = true;  // look for them, which takes as long as tens of simulations
};

/// The candidate that the request asks for, on so many devices of the setting.
Candidate candidate_of(const SettingRequest& request, const Setting& setting,
                       const ScheduleSpec& spec, int devices);

/// All changes of one kind, of all kinds in the order above. Stages are named that are on devices
/// which lack memory: of each such device the first one, the first two, and so on; and all. Of
/// asynchronous schedules pipedream_2bw is the one other that is tried. What cannot run is refused
/// when it is judged. `asked` and `verdict` are those of the candidate.
std::vector<Change> single_changes(const Candidate& from, const Case& asked, const Verdict& verdict,
                                   const ChangeLimits& limits);

/// Whether study() of both says the same: shape, schedule, stashes and cut.
bool same(const Candidate& a, const Candidate& b);

/// Whether stashes of a stage are copied to the host.
bool offloads(const Candidate& candidate);

}  // namespace stageline::planner
