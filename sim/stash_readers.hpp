// What F leaves for the backward of its micro-batch, and for which devices: its stash, or where R
// makes that again, the stage's input.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/costs.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// Calls each(device) for the devices that read the stash of a stage with split roles: those of I's
/// parts, then that of W, each once. In this order R and PREFETCH number their parts.
template <class Each>
void for_stash_readers(const StagePlace& place, Each&& each) {
  const std::vector<int>& parts = place.homes(Role::input_grad);
  for (auto part = parts.begin(); part != parts.end(); ++part) {
    if (std::find(parts.begin(), part, *part) == part) each(*part);
  }
  for (const int device : place.homes(Role::weight_grad)) {
    if (std::find(parts.begin(), parts.end(), device) == parts.end()) each(device);
  }
}

/// Their number; 1 of a stage in one place, or with replicas, each of which reads its own stashes.
inline int stash_readers(const StagePlace& place) {
  if (!place.apart()) return 1;
  int number = 0;
  for_stash_readers(place, [&](int) { ++number; });
  return number;
}

/// Where a device is among them: the part of its R and PREFETCH. -1: it reads none; 0 if the roles
/// are not split.
inline int stash_reader(const StagePlace& place, int device) {
  if (!place.apart()) return 0;
  int number = 0;
  int found = -1;
  for_stash_readers(place, [&](int reader) {
    if (reader == device) found = number;
    ++number;
  });
  return found;
}

/// The device of reader `number` of a stage with split roles; -1: there are not so many.
inline int stash_reader_at(const StagePlace& place, int number) {
  int found = -1;
  for_stash_readers(place, [&](int reader) {
    if (number-- == 0) found = reader;
  });
  return found;
}

/// What travels to each reader, as a message or by way of the host, or from F to the host.
/// `rebuilt`: R makes the stash there from the stage's input. A reader needs all of the stash: W
/// that runs where no I of the stage does makes the gradients inside the stage again, and a part of
/// I reads its part of every tensor.
inline Bytes left_by_forward(const StageCosts& stage, bool rebuilt) {
  return rebuilt ? stage.boundary : stage.stash();
}

}  // namespace stageline
