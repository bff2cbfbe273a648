// One way to train: the degrees, the micro-batches, the schedule, the cut, what is recomputed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "tools/inputs/lengths.hpp"
#include "tools/inputs/setting.hpp"

namespace stageline::planner {

/// What decides which trace is priced for which ranks; candidates of one shape share a Setting.
struct Shape {
  Degrees degrees{};  // with pipeline ≥ 1
  bool sequence_parallel = false;
  std::string cp_comm_type{};  // as --cp-comm-type takes it; empty: as the setting says
  std::string placement{};     // as --placement takes it; empty: as the setting says
  int microbatch_size = 0;     // samples; 0: as in the trace
  int microbatches = 1;        // per step and pipeline
  bool as_ranks = false;  // a pipeline alone is asked for by --pp, so that the gradients of tied
                          // weights on two of its ranks are reduced

  int devices() const { return degrees.width() * degrees.pipeline; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

/// How often ZeRO 2 and 3 exchange so that a rank holds less than with ZeRO 1: as `given` says;
/// else beside a pipeline in every micro-batch, which is not the default there.
std::optional<ZeroEvery> every_that_divides(const Degrees& given, int pipeline);

struct Candidate {
  Shape shape;
  ScheduleSpec spec;
  Recomputation recomputation{};
  Offloading offloading{};
  std::string partition = "balanced";           // as --partition takes it
  std::optional<LengthsOrder> lengths_order{};  // empty: as the setting says
};

/// The request that asks for it: `base`, with what the candidate says in its place. A pipeline
/// without other degrees is asked for by its devices, as the command does without flags of degrees
/// (so any trace and any cluster will do), but where Shape::as_ranks says otherwise.
SettingRequest request_of(const SettingRequest& base, const Candidate& candidate);

/// The flags that ask for it, to paste behind those of the base that no candidate decides (trace,
/// cluster, memory, --sharing, …): "--schedule zb_h1 --pp 8 --tp 4 …". Schedule, ranks and
/// micro-batches are always said; of the others, those whose value is the command's default are
/// left out. Each value is one word of a POSIX shell.
std::string flags_of(const SettingRequest& base, const Candidate& candidate);

/// Those that all candidates of the shape share: "--pp 8 --tp 4 …".
std::string flags_of(const SettingRequest& base, const Shape& shape);

}  // namespace stageline::planner
