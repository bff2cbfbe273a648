// Messages between ranks, and what they imply for clocks and waiting.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "traces/kineto/rank.hpp"

namespace stageline {

std::vector<KinetoMessage> messages_of(const std::vector<KinetoRank>& ranks) {
  using Key = std::tuple<int, int, std::uint32_t, OpKind>;  // step, stage, micro-batch
  std::map<Key, std::pair<int, const KinetoRange*>> where;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const KinetoRange& range : ranks[i].ranges) {
      for (const Op op : range.ops) {
        where[{range.step, op.stage, op.microbatch, op.kind}] = {static_cast<int>(i), &range};
      }
    }
  }
  const auto find = [&](int step, int stage, std::uint32_t m, OpKind kind) {
    const auto at = where.find({step, stage, m, kind});
    return at == where.end() ? std::pair<int, const KinetoRange*>{-1, nullptr} : at->second;
  };
  std::vector<KinetoMessage> messages;
  for (const auto& [key, reads] : where) {
    const auto [step, stage, m, kind] = key;
    const bool forward = kind == OpKind::forward;
    if (!forward && kind != OpKind::backward && kind != OpKind::input_grad) continue;
    const int from = forward ? stage - 1 : stage + 1;
    auto made = find(step, from, m, forward ? OpKind::forward : OpKind::backward);
    if (made.second == nullptr && !forward) made = find(step, from, m, OpKind::input_grad);
    if (made.second == nullptr || made.first == reads.first) continue;
    const auto send =
        find(step, from, m, forward ? OpKind::send_forward : OpKind::send_backward).second;
    const auto receive =
        find(step, stage, m, forward ? OpKind::receive_forward : OpKind::receive_backward).second;
    KinetoMessage message;
    message.from = made.first;
    message.to = reads.first;
    message.reader.kind = kind;
    message.reader.stage = static_cast<std::uint16_t>(stage);
    message.reader.microbatch = m;
    message.reader.overlapped = reads.second->ops.size() == 2 &&
                                        reads.second->ops[0].kind == kind &&
                                        reads.second->ops[0].stage == stage
                                    ? 1
                                    : 0;
    message.made = made.second;
    message.read = reads.second;
    message.sent = made.second->end;
    if (send != nullptr) message.sent = std::max(message.sent, send->start);
    message.arrived = reads.second->end;
    if (receive != nullptr) message.posted = receive->start;
    if (receive != nullptr && receive->arrival) {
      message.arrival_known = true;
      message.arrived = std::min(message.arrived, *receive->arrival);
    }
    const std::optional<KinetoStretch>& inside = reads.second->inside;
    if (receive == nullptr && inside && message.sent > reads.second->start &&
        inside->end >= message.sent) {
      message.arrival_known = true;
      message.arrived = inside->end;
      message.posted = inside->start;
    }
    messages.push_back(message);
  }
  return messages;
}

std::map<Op, Time> transits_of(const std::vector<KinetoRank>& ranks, int microbatches) {
  std::map<Op, Time> transits;
  for (const KinetoMessage& message : messages_of(ranks)) {
    const std::optional<KinetoStretch>& input = message.read->input;
    if (!message.arrival_known && !input) continue;
    const std::int64_t arrived = message.arrival_known ? message.arrived : input->end;
    std::int64_t both =
        std::max(message.sent, message.arrival_known ? message.posted : input->start);
    // The first op of a pair that was divided ends before its range.
    const bool first = message.made->first_end && message.made->ops[0].kind == OpKind::forward &&
                       message.reader.kind == OpKind::forward;
    if (first) both = std::max(*message.made->first_end, message.posted);
    Op reader = plain(message.reader);
    reader.microbatch +=
        static_cast<std::uint32_t>(message.read->step) * static_cast<std::uint32_t>(microbatches);
    transits[reader] = kineto_time(std::max<std::int64_t>(0, arrived - both));
  }
  return transits;
}

void drop_outer_messages(std::vector<KinetoRank>& ranks) {
  int last = 0;
  for (const KinetoRank& rank : ranks) {
    for (const KinetoRange& range : rank.ranges) {
      const Op op = range.ops[0];
      if (lane_of(op.kind) == LaneKind::compute) last = std::max<int>(last, op.stage);
    }
  }
  for (KinetoRank& rank : ranks) {
    std::erase_if(rank.ranges, [last](const KinetoRange& range) {
      const Op op = range.ops[0];
      if (op.kind == OpKind::receive_forward || op.kind == OpKind::send_backward) {
        return op.stage == 0;
      }
      return (op.kind == OpKind::send_forward || op.kind == OpKind::receive_backward) &&
             op.stage == last;
    });
  }
}

namespace {

// The first message that a step lacks, where it has others; empty: none, or there are none at all.
std::string lacking_message(const std::vector<KinetoRank>& ranks, int stages, int microbatches) {
  std::map<std::tuple<int, Op>, int> times;
  int steps = 0;
  for (const KinetoRank& rank : ranks) {
    for (const KinetoRange& range : rank.ranges) {
      steps = std::max(steps, range.step + 1);
      const Op op = range.ops[0];
      if (class_of(op.kind) == OpClass::message) ++times[{range.step, op}];
    }
  }
  if (times.empty()) return "";
  for (int step = 0; step < steps; ++step) {
    for (int stage = 0; stage + 1 < stages; ++stage) {
      for (int m = 0; m < microbatches; ++m) {
        const auto number = static_cast<std::uint32_t>(m);
        for (const Op op : {op_of(OpKind::send_forward, stage, number),
                            op_of(OpKind::receive_forward, stage + 1, number),
                            op_of(OpKind::send_backward, stage + 1, number),
                            op_of(OpKind::receive_backward, stage, number)}) {
          const auto found = times.find({step, op});
          const int count = found == times.end() ? 0 : found->second;
          if (count != 1) return fmt::format("there are {} {}", count, print(op));
        }
      }
    }
  }
  return "";
}

}  // namespace

void settle_messages(std::vector<KinetoRank>& ranks, int stages, int microbatches, KinetoRun& run) {
  const std::string lacking = lacking_message(ranks, stages, microbatches);
  if (lacking.empty()) return;
  for (KinetoRank& rank : ranks) {
    std::erase_if(rank.ranges, [](const KinetoRange& range) {
      return class_of(range.ops[0].kind) == OpClass::message;
    });
  }
  run.notes.push_back(fmt::format(
      "the named sends and receives are not one of each message in each step ({}): they are left "
      "out of the program",
      lacking));
}

void align(std::vector<KinetoRank>& ranks, KinetoRun& run) {
  ClockShifts aligned = align_clocks(ranks);
  run.shifts = std::move(aligned.shifts);
  if (run.shifts.empty()) return;
  std::string list;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::int64_t by =
        std::chrono::duration_cast<std::chrono::nanoseconds>(run.shifts[i].shift).count();
    if (by == 0) continue;
    list += fmt::format("{}rank {} by {}{} (± {})", list.empty() ? "" : ", ", *ranks[i].rank,
                        by > 0 ? "+" : "-", print(kineto_time(by > 0 ? by : -by)),
                        print(run.shifts[i].either_way));
    for (KinetoRange& range : ranks[i].ranges) {
      range.start += by;
      range.end += by;
      for (auto* const at : {&range.arrival, &range.first_end, &range.second_start}) {
        if (*at) **at += by;
      }
      for (auto* const at : {&range.input, &range.inside}) {
        if (!*at) continue;
        (*at)->start += by;
        (*at)->end += by;
      }
    }
    for (KinetoUpdate& update : ranks[i].updates) {
      update.start += by;
      update.end += by;
    }
  }
  run.notes.push_back(fmt::format(
      "the clocks disagree, since {}; they are shifted to the "
      "middle of what the messages allow: {}",
      aligned.contradicted ? "messages would arrive before they are sent"
                           : "the fastest messages take much longer one way than the other",
      list));
}

// A range that waits for a message inside begins when that message has arrived.
void cut_waiting(std::vector<KinetoRank>& ranks, KinetoRun& run) {
  for (const KinetoRank& rank : ranks) run.waited.push_back(kineto_time(rank.waited));
  std::map<const KinetoRange*, std::pair<int, std::int64_t>> begins;
  std::map<const KinetoRange*, std::pair<int, std::int64_t>> seconds;
  std::set<const KinetoRange*> waited_inside;
  for (const KinetoMessage& message : messages_of(ranks)) {
    const std::int64_t there = message.arrival_known ? message.arrived : message.sent;
    const bool first = message.read->ops[0] == message.reader;  // otherwise the second op of a pair
    auto& [rank, start] =
        (first ? begins : seconds).try_emplace(message.read, message.to, there).first->second;
    start = std::max(start, there);
    if (message.arrival_known && message.read->inside && there == message.read->inside->end) {
      waited_inside.insert(message.read);
    }
  }
  Time most{};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (KinetoRange& range : ranks[i].ranges) {
      const auto second = seconds.find(&range);
      if (second != seconds.end()) range.second_arrival = second->second.second;
      if (waited_inside.count(&range) > 0) range.input = range.inside;
      const auto at = begins.find(&range);
      if (at == begins.end() || at->second.second <= range.start) continue;
      const std::int64_t start = std::min(at->second.second, range.end);
      run.waited[i] += kineto_time(start - range.start);
      range.start = start;
    }
    most = std::max(most, run.waited[i]);
  }
  if (most == Time{}) return;
  std::string list;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    list += fmt::format("{}{} on rank {}", list.empty() ? "" : ", ", print(run.waited[i]),
                        *ranks[i].rank);
  }
  run.notes.push_back(
      fmt::format("ranges that wait for a message begin when it has arrived: cut off {}", list));
}

}  // namespace stageline
