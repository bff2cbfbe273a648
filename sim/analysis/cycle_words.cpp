#include "sim/analysis/cycle_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/base/index.hpp"

namespace stageline {
namespace {

// Ops that are under way between devices, by the symbol of the program text; all others are called
// by it.
struct Name {
  std::string_view symbol;
  std::string_view words;
};
constexpr Name names[] = {
    {"SEND_F", "activation"},    {"SEND_B", "gradient"},        {"SEND_STASH", "stash"},
    {"SEND_WEIGHTS", "weights"}, {"REDUCE_GRAD", "all-reduce"}, {"OFFLOAD", "copy to the host"},
    {"PREFETCH", "copy back"},
};

// What an op waits for when it needs another that makes nothing for it to compute with: the flow
// control of sim/rules.hpp. Empty: any op.
struct Need {
  std::string_view of;
  std::string_view by;
  std::string_view words;
};
constexpr Need needs[] = {
    {"U", "F", "weight version"},          {"F", "U", "weights read"},
    {"B", "F", "room for a stash"},        {"I", "F", "room for a stash"},
    {"W", "F", "room for a stash"},        {"OFFLOAD", "F", "room for a stash"},
    {"B", "PREFETCH", "room for a stash"}, {"I", "PREFETCH", "room for a stash"},
    {"W", "PREFETCH", "room for a stash"},
};

std::string name(Op op, int round) {
  const std::string which =
      round == 1 || !counts_microbatches(op.kind)
          ? ""
          : fmt::format("({})", op.microbatch % static_cast<std::uint32_t>(round));
  for (const Name& known : names) {
    if (known.symbol == symbol(op.kind)) {
      return fmt::format("{} of {}{}", known.words, op.stage, which);
    }
  }
  return fmt::format("{}{}{}", op.stage, symbol(op.kind), which);
}

std::string_view waits_for(const Turn& turn, Op next) {
  switch (turn.wait) {
    case Wait::need:
      if (next.overlapped) return "";  // its partner, which is not known here, may need it
      for (const Need& need : needs) {
        if (need.of == symbol(turn.op.kind) && need.by == symbol(next.kind)) return need.words;
      }
      return "";
    case Wait::lane:
      return "";
    case Wait::resource:
      return "turn on the link";
  }
  return "";
}

bool computes(const Turn& turn) { return turn.lane.kind == LaneKind::compute; }

}  // namespace

std::string in_words(const Period& period, int round, const std::vector<std::string>& devices) {
  constexpr std::size_t at_each_end = 12;
  const std::size_t length = period.cycle.size();
  if (length == 0) return "nothing: no op waits for an earlier round";
  // Where to begin: at a forward behind an earlier round, else at any forward.
  std::size_t first = 0;
  int best = -1;
  for (std::size_t i = 0; i < length; ++i) {
    const bool forward = period.cycle[i].op.kind == OpKind::forward;
    const bool later = period.cycle[(i + length - 1) % length].rounds > 0;
    const int worth = (forward ? 2 : 0) + (later ? 1 : 0);
    if (worth > best) first = i;
    best = std::max(best, worth);
  }
  std::string text;
  int device = -1;
  const bool lanes_only = std::none_of(period.cycle.begin(), period.cycle.end(), computes);
  const auto say = [&](const Turn& turn) {
    // Who computes is named when it changes; what is under way is between two. For messages alone,
    // whose they are.
    if ((computes(turn) || lanes_only) && turn.lane.device != device) {
      device = turn.lane.device;
      text += nth(devices, device);
      text += lanes_only ? fmt::format(" {} lane: ", name(turn.lane.kind)) : ": ";
    }
    text += name(turn.op, round);
  };
  for (std::size_t i = 0; i < length; ++i) {
    if (length > 2 * at_each_end + 1 && i >= at_each_end && i + at_each_end < length) {
      if (i == at_each_end) text += fmt::format("… {} more … → ", length - 2 * at_each_end);
      device = -1;
      continue;
    }
    const Turn& turn = period.cycle[(first + i) % length];
    say(turn);
    text += " → ";
    const std::string_view wait = waits_for(turn, period.cycle[(first + i + 1) % length].op);
    if (!wait.empty()) text += fmt::format("{} → ", wait);
  }
  text += period.rounds == 1 ? (round == 1 ? "(next) " : "(next round) ")
                             : fmt::format("({} rounds later) ", period.rounds);
  say(period.cycle[first]);
  return text;
}

}  // namespace stageline
