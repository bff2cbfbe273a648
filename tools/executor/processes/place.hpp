// The place of a process among those that run one program together, which torchrun gives it as
// environment variables. Needs no LibTorch.
#pragma once

#include <optional>
#include <string>

namespace stageline::executor {

/// The rank of this process among those that run one program together, and where they meet.
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

/// The place that torchrun, or launch() below, gave this process; nothing where neither RANK nor
/// WORLD_SIZE is set. Throws UsageError for a variable that is missing beside others or is not such
/// a number.
std::optional<Place> place_from_environment();

}  // namespace stageline::executor
