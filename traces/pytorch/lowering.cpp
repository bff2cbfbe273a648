// Replays PyTorch's placement of messages, and checks their order.
#include "traces/pytorch/lowering.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/deadlock.hpp"
#include "sim/lower/passes.hpp"
#include "sim/rules.hpp"
#include "sim/task_graph.hpp"

namespace stageline {
namespace {

bool is_message(Op op) { return cargo_of(op.kind).has_value(); }

// Replays the program: the ranks take turns, one action each. A message is sent right after the
// action that produces it and received on the other rank at once, so any two ranks see their
// messages in one order.
class Lowering {
 public:
  explicit Lowering(const Program& program) : program_(program), out_(program) {
    for (auto& list : out_.ops) list.clear();
    at_.resize(program.ops.size());
  }

  Program lower() {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t d = 0; d < program_.ops.size(); ++d) progress = turn(d) || progress;
    }
    return std::move(out_);
  }

 private:
  bool turn(std::size_t device) {
    const std::vector<Op>& list = program_.ops[device];
    const std::size_t first = at_[device];
    if (first == list.size()) return false;
    const std::size_t last = first + (list[first].overlapped ? 2 : 1);
    for (std::size_t i = first; i < last; ++i) {
      if (!ready(list[i])) return false;
    }
    std::vector<Op>& out = out_.ops[device];
    out.insert(out.end(), list.begin() + static_cast<std::ptrdiff_t>(first),
               list.begin() + static_cast<std::ptrdiff_t>(last));
    for (std::size_t i = first; i < last; ++i) {
      made_.insert({list[i].kind == OpKind::forward, list[i].stage, list[i].microbatch});
      send(list[i], device);
    }
    at_[device] = last;
    return true;
  }

  // A rank proceeds once its input exists: at that moment the message has arrived as well.
  bool ready(Op op) const {
    if (op.kind == OpKind::forward) {
      return op.stage == 0 || made_.count({true, op.stage - 1, op.microbatch}) > 0;
    }
    if (op.kind == OpKind::backward || op.kind == OpKind::input_grad) {
      return op.stage + 1 == program_.stages() ||
             made_.count({false, op.stage + 1, op.microbatch}) > 0;
    }
    return true;
  }

  void send(Op op, std::size_t device) {
    const bool forward = op.kind == OpKind::forward;
    if (!forward && op.kind != OpKind::backward && op.kind != OpKind::input_grad) return;
    const int other = op.stage + (forward ? 1 : -1);
    if (other < 0 || other >= program_.stages()) return;
    const auto to = as_size(nth(program_.placement.stage, other).replicas.front());
    if (to == device) return;
    const Cargo cargo = forward ? Cargo::activation : Cargo::gradient;
    Op message = op;
    message.overlapped = 0;
    message.kind = send_of(cargo);
    out_.ops[device].push_back(message);
    message.kind = receive_of(cargo);
    message.stage = static_cast<std::uint16_t>(other);
    out_.ops[to].push_back(message);
  }

  const Program& program_;
  Program out_;
  std::vector<std::size_t> at_;                          // by device: the next op
  std::set<std::tuple<bool, int, std::uint32_t>> made_;  // forward or backward, stage, micro-batch
};

// "gpu0 has 0SEND_F1 ahead of 0RECV_B0, but gpu1 has 1SEND_B0 ahead of 1RECV_F1", or empty.
std::string pair_in_two_orders(const Program& program) {
  const StageGraph stages = stage_graph(program);
  std::map<std::pair<int, int>, std::vector<Op>> between;  // by (this device, other)
  for (std::size_t d = 0; d < program.ops.size(); ++d) {
    for (const Op op : program.ops[d]) {
      if (!is_message(op)) continue;
      const Wire& way = wire(stages, *cargo_of(op.kind), wire_of(stages, op));
      const Ends ends = ends_of(program.placement, way, op.microbatch);
      const auto here = static_cast<int>(d);
      between[{here, ends.from == here ? ends.to : ends.from}].push_back(op);
    }
  }
  for (const auto& [devices, here] : between) {
    if (devices.first > devices.second) continue;
    const std::vector<Op>& there = between[{devices.second, devices.first}];
    const auto [mine, theirs] =
        std::mismatch(here.begin(), here.end(), there.begin(), there.end(),
                      [&](Op one, Op other) { return one == other_end(stages, other); });
    if (mine == here.end() || theirs == there.end()) continue;
    const auto name = [&](int device) { return nth(program.devices, device); };
    return fmt::format("{} has {} ahead of {}, but {} has {} ahead of {}", name(devices.first),
                       print(*mine), print(other_end(stages, *theirs)), name(devices.second),
                       print(*theirs), print(other_end(stages, *mine)));
  }
  return "";
}

}  // namespace

Program lowered_as_pytorch(Program program) {
  for (auto& list : program.ops) std::erase_if(list, [](Op op) { return is_message(op); });
  return Lowering(program).lower();
}

std::string misread_by_pytorch(const Program& program) {
  Program one_at_a_time = program;
  one_at_a_time.settings.messages = Messages::blocking;
  try {
    compile(one_at_a_time, unit_costs(one_at_a_time));
    return "";
  } catch (const Deadlock& deadlock) {
    const std::string pair = pair_in_two_orders(program);
    return pair.empty() ? deadlock.what() : pair;
  }
}

}  // namespace stageline
