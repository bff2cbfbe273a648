// Cuts to look at first: of those whose slowest stage is about as fast as can be, the best by
// several aims, each by a dynamic program from the last stage to the first.
//
// Stage s with the units i..j-1 is within a limit T where
//
//   its time · the stages on its device <= T             the device keeps up
//   Σ passages and messages from s on <= T · ahead(s)    what it has in flight covers the way
//   the message into it, one way <= T                    the link keeps up
//   its memory · the stages on its device <= the device's
//
// The second needs the sum from s to the end, which the program carries along with the aim; it is
// exact where the aim is that sum. T is the least that is feasible, and some above it: a flushed
// step also fills and drains. O(stages · units · longest stage) for each pair of limit and aim.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "sim/base/errors.hpp"
#include "tools/planner/cuts/cut_search.hpp"
#include "tools/planner/cuts/cut_space.hpp"

namespace stageline::planner {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

enum class Aim : std::uint8_t { shortest_way, even, light_first, light_last, memory, bytes };
constexpr std::array all_aims{Aim::shortest_way, Aim::even,   Aim::light_first,
                              Aim::light_last,   Aim::memory, Aim::bytes};
constexpr std::array above{1.0, 1.005, 1.01, 1.02, 1.05, 1.1, 1.2};  // of the least limit

class CutTable {
 public:
  explicit CutTable(const CutSpace& space) : space_(space) {
    const auto rows = as_size(space.stages());
    table_.assign(rows, std::vector<State>(as_size(space.units()) + 1));
  }

  /// The best cut by that aim within the limit; empty where there is none.
  std::optional<Begins> best(double limit, Aim aim, bool in_memory) {
    limit_ = limit;
    aim_ = aim;
    in_memory_ = in_memory;
    for (int s = space_.stages() - 1; s >= 0; --s) {
      const int last = s == 0 ? 0 : space_.units() - (space_.stages() - s);
      for (int from = s; from <= last; ++from) at(s, from) = from_here(s, from);
    }
    if (at(0, 0).value == infinite) return std::nullopt;
    Begins cut;
    for (int s = 0; s + 1 < space_.stages(); ++s) {
      cut.push_back(at(s, cut.empty() ? 0 : cut.back()).to);
    }
    return cut;
  }

 private:
  struct State {
    double value = infinite;  // of the aim, over this stage and those behind it
    double way = 0;           // ps there and back
    int to = 0;
  };

  State& at(int s, int from) { return nth(nth(table_, s), from); }

  State from_here(int s, int from) {
    const CutStage& stage = space_.stage(s);
    const bool is_last = s + 1 == space_.stages();
    const int last = is_last ? space_.units() : space_.units() - (space_.stages() - s - 1);
    State best;
    for (int to = is_last ? last : from + 1; to <= last; ++to) {
      const double time = space_.time(s, from, to) * stage.sharers;
      if (time > limit_) break;
      const double memory = space_.memory(s, from, to) * stage.sharers;
      if (in_memory_ && memory > stage.limit) break;
      State here{0, space_.passage(s, from, to), to};
      if (!is_last) {
        const State& behind = at(s + 1, to);
        const double message = nth(space_.stage(s + 1).into, to);
        if (behind.value == infinite || message > limit_) continue;
        here.value = behind.value;
        here.way += behind.way + 2 * message;
      }
      if (here.way > stage.ahead * limit_) continue;
      here.value = value(s, to, here, time, memory);
      if (here.value < best.value) best = here;
    }
    return best;
  }

  double value(int s, int to, const State& here, double time, double memory) const {
    const auto fourth = [](double share) { return share * share * share * share; };
    switch (aim_) {
      case Aim::shortest_way:
        return here.way;
      case Aim::even:
        return here.value + (time / limit_) * (time / limit_);
      case Aim::light_first:
        return s == 0 ? time : here.way;
      case Aim::light_last:
        return s + 1 == space_.stages() ? time : here.value;
      case Aim::memory: {
        const double of = space_.stage(s).limit;
        return here.value + fourth(memory / (of == infinite ? 1e9 : of));
      }
      case Aim::bytes:
        return here.value + (s + 1 == space_.stages() ? 0 : space_.crossing(to));
    }
    return 0;  // unreachable
  }

  const CutSpace& space_;
  double limit_ = 0;
  Aim aim_ = Aim::shortest_way;
  bool in_memory_ = false;
  std::vector<std::vector<State>> table_;  // by stage and first unit
};

// To four digits; 0: none is feasible.
double least_limit(const CutSpace& space, CutTable& table, bool in_memory) {
  double high = space.passage(0, 0, space.units()) / space.stages();
  int doubled = 0;
  while (!table.best(high, Aim::shortest_way, in_memory)) {
    high *= 2;
    if (++doubled > 40) return 0;
  }
  double low = doubled == 0 ? 0 : high / 2;
  while (high - low > 1e-4 * high) {
    const double middle = low + (high - low) / 2;
    (table.best(middle, Aim::shortest_way, in_memory) ? high : low) = middle;
  }
  return high;
}

}  // namespace

std::vector<Begins> promising_cuts(const CutSpace& space, int most) {
  std::vector<Begins> cuts;
  const auto add = [&](const std::optional<Begins>& cut) {
    if (cut && std::find(cuts.begin(), cuts.end(), *cut) == cuts.end()) cuts.push_back(*cut);
  };
  for (const char* const plain : plain_partitioners) add(space.cut_by(plain));
  CutTable table(space);
  for (const bool in_memory : {true, false}) {
    const double least = least_limit(space, table, in_memory);
    if (least == 0) {
      add(table.best(infinite, Aim::memory, false));
      continue;
    }
    for (const double more : above) {
      for (const Aim aim : all_aims) add(table.best(least * more, aim, in_memory));
    }
    break;
  }
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    order.emplace_back(space.estimate(cuts[i]).order(), i);
  }
  std::sort(order.begin(), order.end());
  if (order.size() > as_size(most)) {
    const auto kept = order.begin() + most;
    const auto balanced = [](const auto& one) { return one.second == 0; };
    if (most > 1 && std::none_of(order.begin(), kept, balanced)) {
      *(kept - 1) = *std::find_if(kept, order.end(), balanced);
    }
    order.erase(kept, order.end());
  }
  std::vector<Begins> chosen;
  for (const auto& [value, i] : order) chosen.push_back(cuts[i]);
  return chosen;
}

std::vector<std::string> promising_cuts(const Case& asked, int most, bool whole_blocks) {
  const CutSpace space(asked, whole_blocks);
  std::vector<std::string> texts;
  for (const Begins& cut : promising_cuts(space, most)) texts.push_back(space.text(cut));
  return texts;
}

}  // namespace stageline::planner
