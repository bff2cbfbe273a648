// Ranges of a profile that torch.distributed.pipelining did not name: found by rules for names, or
// by operators; and how they become a KinetoRank.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "traces/kineto/names.hpp"
#include "traces/kineto/profile_times.hpp"
#include "traces/kineto/rank.hpp"

namespace stageline {

/// Nanoseconds of the rank's own clock.
struct FoundRange {
  RangeMeaning meaning = RangeMeaning::forward;
  KinetoStretch launch;                     // on the CPU
  std::optional<KinetoStretch> on_gpu;      // from its first to its last kernel
  std::optional<int> stage;                 // where the name tells it
  std::optional<std::uint32_t> microbatch;  // where the name tells it
  std::optional<std::size_t> forward_of;    // of a backward: index of its forward in the list
  std::size_t event = 0;                    // index in the file
};

struct FoundStep {
  std::int64_t number = 0;
  KinetoStretch stretch;
};

/// In order of launch.
struct FoundRun {
  std::vector<FoundRange> ranges;
  std::vector<FoundStep> steps;         // ProfilerStep#N
  std::vector<KinetoStretch> receives;  // of the backend: each ends when its message has arrived
  bool has_kernels = false;
  bool timed_on_gpu = false;  // on_gpu is filled in where a range launched kernels
  // Time of kernels, or of operators where there are none: in forwards and backwards, and in no
  // range. That of operators is filled in where ranges were found by them.
  std::int64_t work = 0;
  std::int64_t other_work = 0;
  std::int64_t recomputed = 0;  // time of operators of forwards that ran again inside of backwards
  std::int64_t reductions = 0;  // time of collectives behind the last kernels of their ranges
};

/// Names of ranges by how often they occur, for messages.
using NameCounts = std::vector<std::pair<std::string, std::int64_t>>;

/// Reads a rank by the first of `candidates` that names a forward and a backward. Returns false,
/// and `seen` gets the most frequent names, where none names both. Throws TraceError.
bool find_by_names(const std::string& file, const std::string& json,
                   const std::vector<const RangeNames*>& candidates, KinetoRank& rank,
                   NameCounts& seen);

/// Reads a rank by the operators that autograd's engine runs. Returns false where no backward
/// belongs to a forward. Throws TraceError.
bool find_by_operators(const std::string& file, const std::string& json, KinetoRank& rank);

/// Fills in on_gpu from the kernels that the operators inside each range launched: those of NCCL
/// for messages, those that are not NCCL's for all else. `receives` becomes NCCL's send and receive
/// kernels.
void time_by_kernels(const std::string& file, const std::string& json, const ProfileTimes& times,
                     FoundRun& run);

/// Numbers steps and micro-batches: `rank` has the head already. Throws TraceError.
void assemble(const FoundRun& run, const ProfileTimes& times, KinetoRank& rank);

}  // namespace stageline
