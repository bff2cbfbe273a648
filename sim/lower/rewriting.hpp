// Helpers of the passes that rewrite the lists of a program. For sim/lower/ alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/base/index.hpp"
#include "sim/program.hpp"

namespace stageline {

/// By stage, whether the program has an op of that kind.
inline std::vector<bool> stages_with(const Program& program, OpKind kind) {
  std::vector<bool> with(program.placement.stage.size());
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      if (op.kind == kind) with[op.stage] = true;
    }
  }
  return with;
}

inline bool is_message(Op op) { return class_of(op.kind) == OpClass::message; }

/// Copies `list` in units that must stay together (an overlapped pair is one), handing each unit to
/// `around(first, last, out)`.
template <class Around>
std::vector<Op> rebuilt(const std::vector<Op>& list, Around&& around) {
  std::vector<Op> out;
  out.reserve(list.size() + list.size() / 2);
  for (std::size_t i = 0; i < list.size();) {
    const std::size_t last = list[i].overlapped && i + 1 < list.size() ? i + 1 : i;
    around(list.data() + i, list.data() + last + 1, out);
    i = last + 1;
  }
  return out;
}

}  // namespace stageline
