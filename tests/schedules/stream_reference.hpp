// A second opinion on messages that block, for tests only: slow and plain, straight from a
// program's lists. Of sim/rules.hpp it has only how the two ends of a message are called; it shares
// no code with sim/lower/compile.cpp and sim/engine.cpp.
#pragma once

#include "sim/base/index.hpp"
#include "sim/rules.hpp"
#include "tests/schedules/reference.hpp"

namespace stageline::test {

/// By op, receives left out: when it runs if nothing is shared but the devices. A device does what
/// stands in its list one after another: an op (two that overlap), or a batch of messages. It comes
/// to one when it is done with the one before. A message starts when both devices have come to its
/// batch; the sender is done with it when it has left, the receiver a latency later. Copies and
/// reductions go on beside. Empty when the program cannot finish.
inline std::map<Op, When> stream_reference(const Program& program, const Costs& costs) {
  const Table table(program);
  const Prices prices(program, costs);
  constexpr Time unknown{-1};
  const auto is_message = [](Op one) { return cargo_of(one.kind).has_value(); };
  const auto sends = [&](Op one) { return is_message(one) && lane_of(one.kind) == LaneKind::send; };
  struct Item {
    std::vector<Op> ops;
    bool messages = false;
    int before = -1;
    Time come{-1};
    Time done{-1};
  };
  std::vector<Item> items;
  for (const auto& list : program.ops) {
    std::map<int, int> last;  // by lane; messages and computing are one
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool message = is_message(list[i]);
      const int lane = message ? 0 : static_cast<int>(lane_of(program.settings, list[i].kind));
      const bool joins = message && program.settings.messages == Messages::batched &&
                         last.count(0) > 0 && nth(items, last[0]).messages;
      if (!joins) {
        items.emplace_back();
        items.back().messages = message;
        if (last.count(lane) > 0) items.back().before = last[lane];
        last[lane] = static_cast<int>(items.size()) - 1;
      }
      Item& item = nth(items, last[lane]);
      item.ops.push_back(plain(list[i]));
      if (list[i].overlapped) item.ops.push_back(plain(list[++i]));
    }
  }
  // A message by its SEND: its two items, found by who names the same bytes.
  struct Message {
    Op send;
    int from = -1;  // items
    int to = -1;
    Time start{-1};
  };
  std::vector<Message> messages;
  const StageGraph names = stage_graph(program);  // only for how a RECV is called
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (const Op one : items[i].ops) {
      if (!is_message(one)) continue;
      const Op send = sends(one) ? one : other_end(names, one);
      auto found = std::find_if(messages.begin(), messages.end(),
                                [&](const Message& known) { return known.send == send; });
      if (found == messages.end()) {
        messages.push_back({send});
        found = messages.end() - 1;
      }
      (sends(one) ? found->from : found->to) = static_cast<int>(i);
    }
  }
  std::map<Op, When> when;
  // When what the op makes is there for others.
  const auto there = [&](Op one) {
    const auto found = when.find(one);
    return found == when.end() ? unknown : found->second.end + prices.of(one).lag;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (Item& item : items) {
      if (item.come == unknown) {
        if (item.before >= 0 && nth(items, item.before).done == unknown) continue;
        item.come = item.before >= 0 ? nth(items, item.before).done : Time{};
        progress = true;
      }
      if (item.done != unknown || item.messages) continue;
      Time start = item.come;
      Time duration{};
      bool ready = true;
      for (const Op one : item.ops) {
        duration += prices.of(one).duration;
        for (const Op need : table.needs(one)) {
          const Time at = there(need);
          ready = ready && at != unknown;
          start = std::max(start, at);
        }
      }
      if (!ready) continue;
      if (item.ops.size() == 2) {
        const Time shorter =
            std::min(prices.of(item.ops[0]).duration, prices.of(item.ops[1]).duration);
        duration -= Time{
            std::llround(costs.pair_overlap.value_or(0) * static_cast<double>(shorter.count()))};
      }
      item.done = start + duration;
      for (const Op one : item.ops) when[one] = {start, item.done};
      progress = true;
    }
    for (Message& message : messages) {
      if (message.start != unknown || message.from < 0 || message.to < 0) continue;
      const Time here = nth(items, message.from).come;
      const Time other = nth(items, message.to).come;
      Time start = std::max(here, other);
      bool ready = here != unknown && other != unknown;
      for (const Op need : table.needs(message.send)) {
        const Time at = there(need);
        ready = ready && at != unknown;
        start = std::max(start, at);
      }
      if (!ready) continue;
      message.start = start;
      when[message.send] = {start, start + prices.of(message.send).duration};
      progress = true;
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      Item& item = items[i];
      if (!item.messages || item.done != unknown) continue;
      Time done{};
      bool ready = true;
      for (const Message& message : messages) {
        const bool from = message.from == static_cast<int>(i);
        if (!from && message.to != static_cast<int>(i)) continue;
        ready = ready && message.start != unknown;
        if (!ready) break;
        const Time left = when[message.send].end;
        done = std::max(done, from ? left : left + prices.of(message.send).lag);
      }
      if (!ready) continue;
      item.done = done;
      progress = true;
    }
  }
  for (const Item& item : items) {
    if (item.done == unknown) return {};
  }
  return when;
}

}  // namespace stageline::test
