// Writes the diff of two programs as text and JSON.
#include "tools/report/text/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/analysis/statistics.hpp"
#include "sim/index.hpp"
#include "tools/base/json.hpp"
#include "tools/base/table.hpp"

namespace stageline {
namespace {

using Json = nlohmann::ordered_json;

std::string op_or_end(const std::optional<Op>& op) {
  return op ? print(*op) : "the end of the list";
}

std::string signed_time(Time time) {
  if (time == Time{}) return "0";
  return (time < Time{} ? "-" : "+") + print(time < Time{} ? -time : time);
}

std::string list_of(const std::vector<Op>& ops) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(ops.size(), most); ++i) text += " " + print(ops[i]);
  return text + (ops.size() > most ? " …" : "");
}

std::string where_text(const ProgramDiff& diff) {
  if (!diff.first) return "the lists of ops are equal\n";
  const FirstDifference& first = *diff.first;
  return fmt::format(
      "{} differs first, at op {} of its list: {} | {}\n  first:  {}\n  second: {}\n",
      diff.device[first.device].name, first.position + 1, op_or_end(first.first),
      op_or_end(first.second), first.first_context, first.second_context);
}

std::string counts_text(const ProgramDiff& diff) {
  std::string text = fmt::format("{} of {} ops differ: {} in another order, {} on another device",
                                 diff.differing(), diff.ops, diff.reordered, diff.elsewhere);
  if (diff.repaired > 0) text += fmt::format(", {} overlapped otherwise", diff.repaired);
  text += "\n";
  if (!diff.only_first.empty()) {
    text += fmt::format("only in the first ({}):{}\n", diff.only_first.size(),
                        list_of(diff.only_first));
  }
  if (!diff.only_second.empty()) {
    text += fmt::format("only in the second ({}):{}\n", diff.only_second.size(),
                        list_of(diff.only_second));
  }
  std::vector<std::vector<std::string>> rows;
  for (const DeviceDiff& device : diff.device) {
    rows.push_back({device.name, fmt::format("{}", device.first_ops),
                    fmt::format("{}", device.second_ops), fmt::format("{}", device.differ),
                    device.position ? fmt::format("{}", *device.position + 1) : "-"});
  }
  return text + "\n" +
         table({{"device", true}, {"ops, first"}, {"ops, second"}, {"differ"}, {"first at op"}},
               rows);
}

std::string times_text(const DiffReport& report) {
  std::string why;
  for (const std::string& sentence : report.untimed) why += "\n" + sentence + "\n";
  if (!report.first && !report.second) return why;
  const auto cell = [](const std::optional<SideTimes>& side, auto&& time) {
    return side ? print(time(*side)) : std::string("-");
  };
  const auto row = [&](const std::string& what, auto&& time) {
    std::vector<std::string> cells{what, cell(report.first, time), cell(report.second, time), "-",
                                   "-"};
    if (report.first && report.second) {
      const Time a = time(*report.first);
      const Time b = time(*report.second);
      cells[3] = signed_time(b - a);
      if (a > Time{}) {
        const double share = fraction_of(b - a, a);
        cells[4] = (share > 0 ? "+" : "") + percent(share);
      }
    }
    return cells;
  };
  std::vector<std::vector<std::string>> rows;
  rows.push_back(row("makespan", [](const SideTimes& side) { return side.makespan; }));
  rows.push_back(row("step", [](const SideTimes& side) { return side.step_time; }));
  for (std::size_t d = 0; d < report.diff.device.size(); ++d) {
    const DeviceDiff& device = report.diff.device[d];
    const auto busy = [&](const SideTimes& side) {
      const int at = &side == &*report.first ? device.first : device.second;
      const bool there = at >= 0 && as_size(at) < side.busy.size();
      return there ? nth(side.busy, at) : Time{};
    };
    rows.push_back(row(report.diff.device[d].name + " busy", busy));
    rows.push_back(row(report.diff.device[d].name + " idle",
                       [&](const SideTimes& side) { return side.makespan - busy(side); }));
  }
  return fmt::format("\n{}", report.costs.empty() ? "" : "times: " + report.costs + "\n") +
         table({{"", true}, {"first"}, {"second"}, {"difference"}, {"of the first"}}, rows) + why;
}

Json ops_json(const std::vector<Op>& ops) {
  Json list = Json::array();
  for (const Op op : ops) list.push_back(print(op));
  return list;
}

Json times_json(const std::optional<SideTimes>& side) {
  if (!side) return nullptr;
  Json json;
  put_time(json, "makespan", side->makespan);
  put_time(json, "step_time", side->step_time);
  json["per_device"] = Json::array();
  for (std::size_t d = 0; d < side->devices.size(); ++d) {
    Json device;
    device["name"] = side->devices[d];
    put_time(device, "busy", side->busy[d]);
    put_time(device, "idle", side->makespan - side->busy[d]);
    json["per_device"].push_back(std::move(device));
  }
  return json;
}

}  // namespace

std::string diff_text(const DiffReport& report) {
  const ProgramDiff& diff = report.diff;
  std::string text =
      fmt::format("first:  {}\nsecond: {}\n\n", report.first_name, report.second_name);
  if (diff.equal()) {
    text += fmt::format("equal: {} ops on {} device{}\n", diff.ops, diff.device.size(),
                        diff.device.size() == 1 ? "" : "s");
  } else {
    for (const std::string& line : diff.settings) text += line + "\n";
    text += where_text(diff) + counts_text(diff);
  }
  return text + times_text(report);
}

std::string diff_json(const DiffReport& report) {
  const ProgramDiff& diff = report.diff;
  Json result;
  result["first"] = report.first_name;
  result["second"] = report.second_name;
  result["equal"] = diff.equal();
  result["settings"] = diff.settings;
  result["first_difference"] = nullptr;
  if (diff.first) {
    const auto op = [](const std::optional<Op>& one) { return one ? Json(print(*one)) : Json(); };
    result["first_difference"] = {{"device", diff.device[diff.first->device].name},
                                  {"position", diff.first->position},
                                  {"first", op(diff.first->first)},
                                  {"second", op(diff.first->second)},
                                  {"first_context", diff.first->first_context},
                                  {"second_context", diff.first->second_context}};
  }
  result["ops"] = diff.ops;
  result["differ"] = {{"all", diff.differing()},
                      {"reordered", diff.reordered},
                      {"on_another_device", diff.elsewhere},
                      {"overlapped_otherwise", diff.repaired}};
  result["only_first"] = ops_json(diff.only_first);
  result["only_second"] = ops_json(diff.only_second);
  result["per_device"] = Json::array();
  for (const DeviceDiff& device : diff.device) {
    result["per_device"].push_back(
        {{"name", device.name},
         {"first_ops", device.first_ops},
         {"second_ops", device.second_ops},
         {"differ", device.differ},
         {"position", device.position ? Json(*device.position) : Json()}});
  }
  result["costs"] = report.costs;
  result["times"] = {{"first", times_json(report.first)}, {"second", times_json(report.second)}};
  result["untimed"] = report.untimed;
  result["notes"] = report.notes;
  return result.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stageline
