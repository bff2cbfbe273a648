// One program as several processes that know of each other the way torchrun's do: by environment
// variables. What they then say to each other is in peers.hpp. Nothing here needs LibTorch.
#pragma once

#include <optional>
#include <string>

namespace stageline {

/// Where this process stands among those that run one program together.
struct Place {
  int rank = 0;            ///< RANK, from 0
  int size = 1;            ///< WORLD_SIZE
  std::string master;      ///< MASTER_ADDR: the name or address of rank 0's machine
  int port = 0;            ///< MASTER_PORT: where they find each other there
  int local_rank = 0;      ///< LOCAL_RANK: from 0 on each machine; 0 where it is not set
  int local_size = 1;      ///< LOCAL_WORLD_SIZE: processes on this machine; 1 where it is not set
  std::string agent = {};  ///< where torchrun's agent holds the store at that port, and rank 0 does
                           ///< not: the prefix that keeps this attempt apart from earlier ones
};

/// The place that torchrun, or launch() below, gave this process; none where neither RANK nor
/// WORLD_SIZE is set. Throws UsageError for a variable that is missing beside others or is no such
/// number.
std::optional<Place> place_from_environment();

/// Starts this program `count` times on this machine, with the same arguments and torchrun's
/// variables, and waits for all of them.
///
/// Standard input and output are rank 0's. What the others write to standard error is held back,
/// and shown with "rank 2: " before each line if that rank is the first to fail and rank 0 has not
/// ended with an error of its own (of what rank 0 then says, "rank 2: …" is part). When one fails,
/// the others have five seconds to end by themselves; then, and at once when this process gets
/// SIGINT, SIGTERM or SIGHUP, they get SIGTERM and two seconds later SIGKILL. When this process is
/// itself killed, so are they. Call it before other threads start, from a thread that stays.
///
/// Returns the exit code: 0, that of the first to fail (128 and the signal for one that a signal
/// ended), or 128 and the signal that this process got. `argv` is main's. Throws UsageError where
/// the system gives no process, pipe or port.
int launch(int count, char** argv);

}  // namespace stageline
