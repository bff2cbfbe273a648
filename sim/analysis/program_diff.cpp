#include "sim/analysis/program_diff.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/index.hpp"
#include "sim/text/words.hpp"

namespace stageline {
namespace {

constexpr std::size_t context = 4;  // ops on each side of the first that differs

using Lists = std::vector<std::vector<Op>>;  // by device

const std::vector<std::string>& devices_of(const DiffSide& side) {
  return side.program ? side.program->devices : side.timeline.devices;
}

Lists lists_of(const DiffSide& side, bool compute_only, bool marks) {
  Lists lists;
  for (std::size_t d = 0; d < devices_of(side).size(); ++d) {
    lists.emplace_back();
    const auto add = [&](Op op) {
      if (compute_only && lane_of(op.kind) != LaneKind::compute) return;
      lists.back().push_back(marks ? op : plain(op));
    };
    if (side.program) {
      for (const Op op : side.program->ops[d]) add(op);
    } else {
      for (const Span& span : side.timeline.lanes[d * lane_kinds]) add(span.op);
    }
  }
  return lists;
}

// What a pass adds where a scheduler has written none of it.
enum class Added : std::uint8_t { nothing, message, update, reduction, copy };
Added added(OpKind kind) {
  if (cargo_of(kind)) return Added::message;
  if (kind == OpKind::update) return Added::update;
  if (kind == OpKind::reduce_grad) return Added::reduction;
  if (kind == OpKind::offload || kind == OpKind::prefetch) return Added::copy;
  return Added::nothing;
}
std::string_view words(Added what) {
  switch (what) {
    case Added::nothing:
      return "ops";
    case Added::message:
      return "messages";
    case Added::update:
      return "updates";
    case Added::reduction:
      return "reductions";
    case Added::copy:
      return "copies";
  }
  return "";
}

void leave_out_what_one_lacks(Lists& first, Lists& second, std::vector<std::string>& notes) {
  const auto has = [](const Lists& lists, Added what) {
    return std::any_of(lists.begin(), lists.end(), [&](const std::vector<Op>& list) {
      return std::any_of(list.begin(), list.end(), [&](Op op) { return added(op.kind) == what; });
    });
  };
  for (const Added what : {Added::message, Added::update, Added::reduction, Added::copy}) {
    const bool of_first = has(first, what);
    if (of_first == has(second, what)) continue;
    for (auto& list : of_first ? first : second) {
      std::erase_if(list, [&](Op op) { return added(op.kind) == what; });
    }
    notes.push_back(fmt::format("only the {} has {}; they are not compared",
                                of_first ? "first" : "second", words(what)));
  }
}

// By device of the first, that of the second; devices that only one has stand last, alone.
struct Match {
  int first = -1;
  int second = -1;
};
std::vector<Match> match(const std::vector<std::string>& first,
                         const std::vector<std::string>& second) {
  const std::set<std::string> names(first.begin(), first.end());
  const bool by_name = names.size() == first.size() && first.size() == second.size() &&
                       names == std::set<std::string>(second.begin(), second.end());
  std::vector<Match> matches;
  for (std::size_t d = 0; d < std::max(first.size(), second.size()); ++d) {
    Match one;
    if (d < first.size()) one.first = static_cast<int>(d);
    if (d < second.size()) one.second = static_cast<int>(d);
    if (by_name) {
      one.second =
          static_cast<int>(std::find(second.begin(), second.end(), first[d]) - second.begin());
    }
    matches.push_back(one);
  }
  return matches;
}

std::string around(const std::vector<Op>& list, std::size_t position) {
  std::string text;
  const std::size_t from = position > context ? position - context : 0;
  const std::size_t to = std::min(list.size(), position + context + 1);
  if (from > 0) text = "…";
  for (std::size_t i = from; i < to; ++i) {
    const std::string op = print(list[i]) + (list[i].overlapped ? ";" : "");
    text +=
        fmt::format("{}{}", text.empty() ? "" : " ", i == position ? fmt::format("[{}]", op) : op);
  }
  if (position >= list.size()) text += text.empty() ? "[end]" : " [end]";
  return text + (to < list.size() ? " …" : "");
}

// The length of the longest ascending subsequence: all other numbers have to move.
std::size_t longest_ascending(const std::vector<std::size_t>& numbers) {
  std::vector<std::size_t> ends;  // by length, the smallest last number
  for (const std::size_t number : numbers) {
    const auto at = std::lower_bound(ends.begin(), ends.end(), number);
    if (at == ends.end()) {
      ends.push_back(number);
    } else {
      *at = number;
    }
  }
  return ends.size();
}

// An op and which of its occurrences.
using Key = std::pair<Op, std::size_t>;
std::map<Key, std::size_t> positions_of(const std::vector<Op>& list) {
  std::map<Op, std::size_t> count;
  std::map<Key, std::size_t> positions;
  for (std::size_t i = 0; i < list.size(); ++i) {
    positions.emplace(Key{plain(list[i]), count[plain(list[i])]++}, i);
  }
  return positions;
}

void compare_device(const std::vector<Op>& first, const std::vector<Op>& second, std::size_t device,
                    ProgramDiff& diff) {
  DeviceDiff& of = diff.device[device];
  of.first_ops = first.size();
  of.second_ops = second.size();
  const auto [a, b] = std::mismatch(first.begin(), first.end(), second.begin(), second.end());
  if (a == first.end() && b == second.end()) return;
  const auto position = as_size(a - first.begin());
  of.position = position;
  if (!diff.first || position < diff.first->position) {
    FirstDifference found{
        device, position, {}, {}, around(first, position), around(second, position)};
    if (a != first.end()) found.first = *a;
    if (b != second.end()) found.second = *b;
    diff.first = std::move(found);
  }
  const std::map<Key, std::size_t> there = positions_of(second);
  const auto partner = [](const std::vector<Op>& list, std::size_t i) -> std::optional<Op> {
    if (list[i].overlapped && i + 1 < list.size()) return plain(list[i + 1]);
    if (i > 0 && list[i - 1].overlapped) return plain(list[i - 1]);
    return {};
  };
  std::vector<std::size_t> order(first.size(), second.size());
  for (const auto& [key, at] : positions_of(first)) {
    const auto other = there.find(key);
    if (other == there.end()) continue;
    order[at] = other->second;
    if (partner(first, at) != partner(second, other->second)) {
      ++diff.repaired;
      ++of.differ;
    }
  }
  order.erase(std::remove(order.begin(), order.end(), second.size()), order.end());
  const std::size_t moved = order.size() - longest_ascending(order);
  diff.reordered += moved;
  of.differ += moved + (first.size() - order.size()) + (second.size() - order.size());
}

// Ops that are not on the same device in both.
void compare_sets(const Lists& first, const Lists& second, const std::vector<Match>& matches,
                  ProgramDiff& diff) {
  std::map<Op, std::size_t> place;  // of the second, by matched device
  for (std::size_t i = 0; i < matches.size(); ++i) {
    if (matches[i].second < 0) continue;
    for (const Op op : nth(second, matches[i].second)) place[plain(op)] = i;
  }
  std::set<Op> seen;
  for (std::size_t i = 0; i < matches.size(); ++i) {
    if (matches[i].first < 0) continue;
    for (const Op op : nth(first, matches[i].first)) {
      const auto other = place.find(plain(op));
      seen.insert(plain(op));
      if (other == place.end()) {
        diff.only_first.push_back(plain(op));
      } else if (other->second != i) {
        ++diff.elsewhere;
      }
    }
  }
  for (const auto& [op, device] : place) {
    if (seen.count(op) == 0) diff.only_second.push_back(op);
  }
  std::sort(diff.only_first.begin(), diff.only_first.end());
  diff.ops = seen.size() + diff.only_second.size();
}

std::string yes_or_no(bool value) { return value ? "on" : "off"; }

std::string numbers(const std::vector<int>& values) {
  return fmt::format("{}", fmt::join(values, " "));
}

std::string place_text(const StagePlace& place, const std::vector<std::string>& devices) {
  const auto names = [&](const std::vector<int>& of) {
    std::string text;
    for (const int device : of) {
      text += (text.empty() ? "" : "+") + nth(devices, device);
    }
    return text;
  };
  std::string text = names(place.replicas);
  if (!place.input_grad.empty()) text += " I=" + names(place.input_grad);
  if (!place.share.empty()) text += fmt::format(" share={}", fmt::join(place.share, "+"));
  if (!place.weight_grad.empty()) text += " W=" + names(place.weight_grad);
  if (!place.stash_homes.empty()) text += " stash=" + names(place.stash_homes);
  return text;
}

void compare_settings(const Program& a, const Program& b, const std::vector<Match>& matches,
                      ProgramDiff& diff) {
  const auto line = [&](const std::string& what, const std::string& first,
                        const std::string& second) {
    if (first == second) return;
    diff.settings.push_back(fmt::format("{}: {} | {}", what, first.empty() ? "none" : first,
                                        second.empty() ? "none" : second));
  };
  const ProgramSettings& x = a.settings;
  const ProgramSettings& y = b.settings;
  line("microbatches", std::to_string(a.microbatches), std::to_string(b.microbatches));
  line("steps", std::to_string(a.steps), std::to_string(b.steps));
  line("weights", std::string(name(x.weights)), std::string(name(y.weights)));
  line("correction", x.correction, y.correction);
  line("stages", std::to_string(a.stages()), std::to_string(b.stages()));
  // Places in the words of the first's devices.
  std::vector<std::string> named(b.devices.size());
  for (const Match& match : matches) {
    if (match.second < 0) continue;
    const auto second = as_size(match.second);
    named[second] = match.first < 0 ? b.devices[second] : nth(a.devices, match.first);
  }
  for (std::size_t s = 0; s < std::min(a.placement.stage.size(), b.placement.stage.size()); ++s) {
    line(fmt::format("stage {}", s), place_text(a.placement.stage[s], a.devices),
         place_text(b.placement.stage[s], named));
  }
  const auto edges = [](const Program& program) {
    if (program.edges == chain_edges(program.stages())) return std::string("chain");
    std::string text;
    for (const StageEdge edge : program.edges) {
      text += fmt::format("{}{}>{}", text.empty() ? "" : " ", edge.from, edge.to);
    }
    return text;
  };
  line("edges", edges(a), edges(b));
  const auto independent = [](const Program& program) {
    std::vector<int> stages;
    for (std::size_t s = 0; s < program.independent_w.size(); ++s) {
      if (program.independent_w[s]) stages.push_back(static_cast<int>(s));
    }
    return numbers(stages);
  };
  line("independent_w", independent(a), independent(b));
  line("delays", by_stage(x.delay, no_delay), by_stage(y.delay, no_delay));
  line("windows", by_stage(x.window, no_window), by_stage(y.window, no_window));
  line("sequence_chunks", std::to_string(x.sequence_chunks), std::to_string(y.sequence_chunks));
  line("costs", fmt::format("{}", fmt::join(x.costs, " ")),
       fmt::format("{}", fmt::join(y.costs, " ")));
  const auto lengths = [](const ProgramSettings& settings) {
    std::string text;
    for (const Documents& documents : settings.lengths) {
      text += (text.empty() ? "" : " ") + print(documents);
    }
    return text;
  };
  line("lengths", lengths(x), lengths(y));
  line("slices", fmt::format("{}", fmt::join(x.slices, " ")),
       fmt::format("{}", fmt::join(y.slices, " ")));
  line("messages", std::string(name(x.messages)), std::string(name(y.messages)));
  line("clock", std::string(name(x.clock)), std::string(name(y.clock)));
  line("copies", std::string(name(x.copies)), std::string(name(y.copies)));
  line("recompute", std::string(name(x.recompute)), std::string(name(y.recompute)));
  line("data_ranks", std::to_string(x.data_ranks), std::to_string(y.data_ranks));
  line("weights_transfer", yes_or_no(x.weights_transfer), yes_or_no(y.weights_transfer));
}

}  // namespace

ProgramDiff diff_of(const DiffSide& first, const DiffSide& second) {
  ProgramDiff diff;
  const bool programs = first.program && second.program;
  Lists a = lists_of(first, !programs, programs);
  Lists b = lists_of(second, !programs, programs);
  if (!programs) {
    diff.notes.emplace_back(
        "of a timeline the order of the compute lanes is compared; messages have lanes of their "
        "own, and settings do not show");
  }
  leave_out_what_one_lacks(a, b, diff.notes);
  const std::vector<std::string>& names_a = devices_of(first);
  const std::vector<std::string>& names_b = devices_of(second);
  const std::vector<Match> matches = match(names_a, names_b);
  if (names_a.size() != names_b.size()) {
    diff.settings.push_back(fmt::format("devices: {} | {}", names_a.size(), names_b.size()));
  }
  static const std::vector<Op> none;
  for (std::size_t i = 0; i < matches.size(); ++i) {
    const auto [x, y] = matches[i];
    const std::string name_a = x < 0 ? "-" : nth(names_a, x);
    const std::string name_b = y < 0 ? "-" : nth(names_b, y);
    diff.device.push_back({name_a == name_b ? name_a : name_a + " / " + name_b, x, y, 0, 0, 0, {}});
    compare_device(x < 0 ? none : nth(a, x), y < 0 ? none : nth(b, y), i, diff);
  }
  compare_sets(a, b, matches, diff);
  if (programs) compare_settings(*first.program, *second.program, matches, diff);
  return diff;
}

}  // namespace stageline
