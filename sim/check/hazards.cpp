// Finds messages in costly places: moves each, simulates, and reports what that gains.
#include "sim/check/hazards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/deadlock.hpp"
#include "sim/engine.hpp"
#include "sim/lower/passes.hpp"
#include "sim/rules.hpp"
#include "sim/task_graph.hpp"
#include "sim/text/figure.hpp"

namespace stageline {
namespace {

constexpr std::size_t most_tasks = 20'000'000;  // simulated in all

// A message, and the op of the same list that it could move ahead of.
struct Move {
  std::size_t device = 0;
  std::size_t from = 0;
  std::size_t to = 0;
  std::size_t past = 0;  // the work that it delays, or comes after
  bool receives = false;
};

// Updates are short, and no op waits for the last one of a step.
bool works(Op op) { return lane_of(op.kind) == LaneKind::compute && op.kind != OpKind::update; }

// The moves that bring a message next to its producer or its first reader in the list.
std::vector<Move> moves_of(const Program& program) {
  const StageGraph stages = stage_graph(program);
  const ProductIndex index(program, stages);
  const auto slot_of = [&](Product product, int at, std::uint32_t number, int part) {
    return index.has(product) ? index.index(product, at, number, part) : -1;
  };
  constexpr std::uint32_t nowhere = 0xffffffff;
  std::vector<bool> made(index.size());
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      makes(stages, op, [&](Product product, int at, std::uint32_t number, int part) {
        nth(made, index.index(product, at, number, part)) = true;
      });
    }
  }
  const auto exists = [&](Product product, int at, std::uint32_t number, int part) {
    const std::int64_t slot = slot_of(product, at, number, part);
    return slot >= 0 && nth(made, slot);
  };
  std::vector<Move> moves;
  std::vector<std::uint32_t> maker(index.size(), nowhere);   // by product: position in this list
  std::vector<std::uint32_t> reader(index.size(), nowhere);  // by product: position in this list
  std::vector<std::size_t> touched;
  for (std::size_t d = 0; d < program.ops.size(); ++d) {
    const auto& list = program.ops[d];
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto here = static_cast<std::uint32_t>(i);
      makes(stages, list[i], [&](Product product, int at, std::uint32_t number, int part) {
        const std::size_t slot = as_size(index.index(product, at, number, part));
        maker[slot] = here;
        touched.push_back(slot);
      });
      if (cargo_of(list[i].kind)) continue;
      needs(program, stages, list[i], exists,
            [&](Product product, int at, std::uint32_t number, int part) {
              const std::int64_t slot = slot_of(product, at, number, part);
              if (slot < 0 || !cargo_of(product)) return;
              std::uint32_t& first = nth(reader, slot);
              first = std::min(first, here);
              touched.push_back(as_size(slot));
            });
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto cargo = cargo_of(list[i].kind);
      if (!cargo) continue;
      if (is_send(list[i].kind)) {
        std::size_t behind = list.size();
        needs(program, stages, list[i], exists,
              [&](Product product, int at, std::uint32_t number, int part) {
                const std::int64_t slot = slot_of(product, at, number, part);
                if (slot < 0 || nth(maker, slot) >= i) return;
                const std::size_t at_maker = nth(maker, slot);
                behind = behind == list.size() ? at_maker : std::max(behind, at_maker);
              });
        if (behind == list.size()) continue;
        if (list[behind].overlapped) ++behind;
        ++behind;
        while (behind < i && !works(list[behind])) ++behind;
        if (behind < i) moves.push_back({d, i, behind, behind, false});
        continue;
      }
      const std::int64_t slot =
          slot_of(sent(*cargo), wire_of(stages, list[i]), list[i].microbatch, 0);
      if (slot < 0 || nth(reader, slot) == nowhere) continue;
      std::size_t before = nth(reader, slot);
      if (before > 0 && list[before - 1].overlapped) --before;
      std::size_t past = i + 1;
      while (past < before && !works(list[past])) ++past;
      if (past < before) moves.push_back({d, i, before, past, true});
    }
    for (const std::size_t slot : touched) maker[slot] = reader[slot] = nowhere;
    touched.clear();
  }
  return moves;
}

// The positions to try: for a RECV, right before its reader, or after the first work that it
// delays, since the sender waits, too.
std::vector<std::size_t> places_for(const Program& program, const Move& move) {
  std::vector<std::size_t> places{move.to};
  const std::size_t behind = move.past + (program.ops[move.device][move.past].overlapped ? 2U : 1U);
  if (move.receives && behind != move.to) places.push_back(behind);
  return places;
}

Program moved(Program program, const Move& move, std::size_t to) {
  const auto begin = program.ops[move.device].begin();
  const auto at = [&](std::size_t i) { return begin + static_cast<std::ptrdiff_t>(i); };
  if (move.from < to) {
    std::rotate(at(move.from), at(move.from + 1), at(to));
  } else {
    std::rotate(at(to), at(move.from), at(move.from + 1));
  }
  return program;
}

std::optional<Time> time_of(const Program& program, const Costs& costs) {
  try {
    return makespan(simulate(compile(program, costs)));
  } catch (const Deadlock&) {
    return std::nullopt;
  }
}

}  // namespace

std::vector<LintFinding> hazards(const Program& program, const Costs* given, std::size_t most) {
  std::vector<LintFinding> findings;
  const std::vector<Move> moves = moves_of(program);
  if (moves.empty()) return findings;
  const Costs costs = given != nullptr ? *given : unit_costs(program);
  const bool own = program.settings.messages != Messages::async;
  Program run = complete(program, costs);
  std::optional<Time> with;
  for (const Messages messages : {Messages::blocking, Messages::batched}) {
    if (!own) run.settings.messages = messages;
    with = time_of(run, costs);
    if (with || own) break;
  }
  if (!with) return findings;
  const auto part = [&](Time lost) {
    return with->count() > 0
               ? 100 * static_cast<double>(lost.count()) / static_cast<double>(with->count())
               : 0;
  };
  std::size_t tasks = 0;
  for (const auto& list : program.ops) tasks += list.size();
  std::size_t reported[2] = {0, 0};  // late sends, early receives
  const std::size_t affordable =
      std::max<std::size_t>(most_tasks / std::max<std::size_t>(tasks, 1), 1);
  for (std::size_t i = 0; i < moves.size() && i < affordable; ++i) {
    const Move& move = moves[i];
    if (reported[move.receives ? 1 : 0] == most) continue;
    std::optional<Time> without;
    for (const std::size_t to : places_for(program, move)) {
      Program other = complete(moved(program, move, to), costs);
      other.settings.messages = run.settings.messages;
      const std::optional<Time> time = time_of(other, costs);
      if (time && (!without || *time < *without)) without = time;
    }
    // If the move stops the program or makes it slower, the message is in the right place.
    if (!without || *without > *with || (!own && *without == *with)) continue;
    const Time lost = *with - *without;
    const auto& list = program.ops[move.device];
    LintFinding finding;
    finding.severity = own && lost > Time{} ? Severity::warning : Severity::note;
    finding.rule = move.receives ? LintRule::early_receive : LintRule::late_send;
    finding.device = static_cast<int>(move.device);
    finding.position = static_cast<int>(move.from);
    const std::string cost = lost == Time{}
                                 ? std::string("that costs nothing here")
                                 : fmt::format("that costs {:.3g} % of the {}{}", part(lost),
                                               program.steps == 1 ? "step" : "run",
                                               given != nullptr ? "" : " on unit costs");
    const std::string under =
        own ? std::string() : fmt::format("under messages: {} ", name(run.settings.messages));
    finding.message =
        move.receives ? fmt::format("{} comes before {}, which does not wait for it; {}{}",
                                    print(list[move.from]), print(list[move.past]), under, cost)
                      : fmt::format("{} comes after {}, though what it sends is ready sooner; {}{}",
                                    print(list[move.from]), print(list[move.past]), under, cost);
    finding.figure = grid(program, {list[move.from], list[move.past]});
    findings.push_back(std::move(finding));
    ++reported[move.receives ? 1 : 0];
  }
  return findings;
}

}  // namespace stageline
