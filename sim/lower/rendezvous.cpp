// Lowering of messages that block. They are ops of the compute lane's list. A lane that reaches one
// posts it; the lane that posts second makes the tasks of both ends. The tasks have lanes of their
// own: SEND comes after everything ahead of either end in its list, RECV (the latency) after SEND,
// and the rest of each list after its end.
//
//     gpu0  │ F ├──┐          ┌───│ the ops after SEND
//           └───┘  ▼          │
//                 [ SEND ]────┤          a batch is several messages in parallel: the ops after it
//           ┌───┐  ▲          ▼          wait for all of them
//     gpu1  │ B ├──┘       [ RECV ]───│ the ops after RECV
#include <algorithm>
#include <utility>

#include "sim/lower/lowering.hpp"

namespace stageline {

// The next task comes after the ops ahead of it in the list. Leaves out what the task needs already
// and what is ahead of it in its own lane.
void Lowering::follow(std::uint32_t list, std::uint32_t lane, std::uint32_t needs_before) {
  for (const std::uint32_t task : stream_[list].before) {
    const auto begin = out_.graph.need.begin();
    const auto last = begin + static_cast<std::ptrdiff_t>(out_.needs());
    const bool needed =
        std::find(begin + static_cast<std::ptrdiff_t>(needs_before), last, task) != last;
    if (!needed && out_.graph.lane[task] != lane) out_.need(task);
  }
}

std::size_t Lowering::message_slot(Op op) const {
  return as_size(index_.index(sent(*cargo_of(op.kind)), wire_of(stages_, op), op.microbatch, 0));
}

// The head of the lane's list is a batch: posts it once the products that its SENDs carry are made.
// False while the lane waits for these or for the other ends.
bool Lowering::exchanged(std::uint32_t lane) {
  Stream& here = stream_[lane];
  const std::uint32_t last = head_[lane] + batch_size(standstill(), lane);
  if (!here.posted) {
    const std::uint32_t needs_before = out_.needs();
    for (std::uint32_t at = head_[lane]; at != last; ++at) {
      const Op op = ops_[at];
      const bool made = !is_send(op.kind) || met(op, lane);
      out_.drop_needs_from(needs_before);
      if (!made) return false;
    }
    here.posted = true;
    here.left = last - head_[lane];
    for (std::uint32_t at = head_[lane]; at != last; ++at) post(lane, ops_[at]);
  }
  if (here.left > 0) return false;
  here.before.swap(here.batch);
  here.batch.clear();
  here.posted = false;
  head_[lane] = last;
  if (forgiving_) given_up_ = no_lane;
  return true;
}

void Lowering::post(std::uint32_t lane, Op op) {
  std::uint32_t& other = posted_[message_slot(op)];
  if (other == no_lane) {
    other = lane;
  } else if (other == gone) {
    --stream_[lane].left;
  } else if (is_send(op.kind)) {
    make_message(op, lane, other, other);
  } else {
    make_message(other_end(stages_, op), other, lane, other);
  }
}

// The SEND's task and, right behind it, the RECV's.
void Lowering::make_message(Op send, std::uint32_t from, std::uint32_t to, std::uint32_t waiting) {
  const std::uint32_t task = out_.tasks();
  const std::uint32_t needs_before = out_.needs();
  const Op receive = other_end(stages_, send);
  const std::uint32_t send_lane = channel(from, send, LaneKind::send);
  const std::uint32_t receive_lane = channel(to, receive, LaneKind::receive);
  if (!forgiving_) met(send, send_lane);  // as it was when it was posted
  follow(from, send_lane, needs_before);
  follow(to, send_lane, needs_before);
  const Charge charge = message_charge(send, send_lane);
  out_.add(send, send_lane, charge.path, charge.duration);
  out_.need(task);
  out_.add(receive, receive_lane, 0, charges_.latency(send));
  done(send, task + 1);
  for (const auto& [lane, made] : {std::pair(from, task), std::pair(to, task + 1)}) {
    stream_[lane].batch.push_back(made);
    if (--stream_[lane].left == 0 && lane == waiting) queue_.push_back(lane);
  }
}

// The i-th send (or receive) of a batch uses the device's i-th send (receive) lane, so a batch runs
// in parallel.
std::uint32_t Lowering::channel(std::uint32_t list, Op op, LaneKind kind) {
  std::uint32_t number = 0;
  for (std::uint32_t at = head_[list]; ops_[at] != op; ++at) {
    if (is_send(ops_[at].kind) == (kind == LaneKind::send)) ++number;
  }
  std::vector<Lane>& all = out_.graph.lanes;
  std::vector<std::uint32_t>& lanes = channels_[{list, kind}];
  while (number >= lanes.size()) {
    if (all.size() >= 65535) {
      throw ProgramError("more than 65535 lanes: too many messages in one batch");
    }
    lanes.push_back(static_cast<std::uint32_t>(all.size()));
    all.push_back({all[list].device, kind});
  }
  return lanes[number];
}

}  // namespace stageline
