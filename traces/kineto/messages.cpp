// Messages between ranks, and what they imply for clocks and waiting.
#include <fmt/core.h>

#include <algorithm>
#include <map>
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
    if (receive != nullptr && receive->arrival) {
      message.arrival_known = true;
      message.arrived = std::min(message.arrived, *receive->arrival);
    }
    messages.push_back(message);
  }
  return messages;
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
  run.waited.resize(ranks.size());
  std::map<const KinetoRange*, std::pair<int, std::int64_t>> begins;
  std::map<const KinetoRange*, std::pair<int, std::int64_t>> seconds;
  for (const KinetoMessage& message : messages_of(ranks)) {
    const std::int64_t there = message.arrival_known ? message.arrived : message.sent;
    const bool first = message.read->ops[0] == message.reader;  // otherwise the second op of a pair
    auto& [rank, start] =
        (first ? begins : seconds).try_emplace(message.read, message.to, there).first->second;
    start = std::max(start, there);
  }
  Time most{};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (KinetoRange& range : ranks[i].ranges) {
      const auto second = seconds.find(&range);
      if (second != seconds.end()) range.second_arrival = second->second.second;
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
