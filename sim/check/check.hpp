// The errors of a program as a list: the rules that validate() enforces.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/program.hpp"

namespace stageline {

enum class Severity : std::uint8_t {
  error,    // it cannot run
  warning,  // it runs, but loses time or leans on luck
  note,     // worth knowing
};
std::string_view name(Severity severity);

enum class LintRule : std::uint8_t {
  size,           // numbers of micro-batches, steps, ops
  placement,      // a stage, or an op, on devices that are not allowed for it
  range,          // a number that the program does not have
  twice,          // work done, or a message received, more than once
  missing,        // work that no device does, or some of the updates of a stage
  unmatched,      // a message without its other end
  unsent,         // a missing message, in a program that has others
  pairing,        // an overlapped op without its second
  order,          // an op ahead of what it needs, in its own lane
  deadlock,       // devices that wait for each other in a cycle
  channel,        // two devices send and receive in different orders
  early_receive,  // a receive ahead of work that could run before it
  late_send,      // a send after work that it could precede
  updates,        // a stage without updates, though others have them
};
std::string_view name(LintRule rule);

/// One finding. `device` and `position` (in that device's list) are -1 if it has no single place,
/// line and column 0 if the text is not known; `message` is one sentence, without the place;
/// `figure` shows the lists around it, or is empty.
struct LintFinding {
  Severity severity = Severity::error;
  LintRule rule = LintRule::size;
  int device = -1;
  int position = -1;
  int stage = -1;  // the stage that lacks something; -1: none
  int line = 0;
  int column = 0;
  std::string message;
  std::string figure;
};

/// Calls `found` for every error that validate() refuses, in this order: sizes, placement, op by
/// op, stage by stage, messages. Stops after errors that make further checks pointless. Without
/// figures; see grid(). O(ops).
void check(const Program& program, const std::function<void(LintFinding)>& found);

/// "gpu0, op 3 (0B1): message", or the message alone if it has no place.
std::string with_place(const Program& program, const LintFinding& finding);

}  // namespace stageline
