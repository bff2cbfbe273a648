// From keyword arguments, as the JSON of a request, to results.
#include <fmt/core.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/op_time.hpp"
#include "sim/problem.hpp"
#include "sim/text/visible.hpp"
#include "tools/answers/compared.hpp"
#include "tools/answers/simulated.hpp"
#include "tools/inputs/settings.hpp"
#include "tools/inputs/training_budget.hpp"
#include "tools/python/src/interrupt.hpp"
#include "tools/python/src/reports.hpp"
#include "tools/python/src/result.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/sweep/words.hpp"

namespace stageline::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

/// The rows of a comparison, and what they are of.
struct Compared {
  std::shared_ptr<const answers::Request> request;
  std::shared_ptr<const Setting> setting;
  std::vector<Row> rows;
  std::vector<RankedRows> rankings;
};

std::shared_ptr<const answers::Request> request_of(const std::string& json,
                                                   const std::optional<Program>& program) {
  auto request = std::make_shared<answers::Request>(answers::parse_request(json));
  if (program) {
    if (program->devices.empty()) throw UsageError("program: it is empty, and has no devices");
    if (!request->setting.schedules.empty()) {
      throw UsageError("a program runs instead of a schedule; leave one of them out");
    }
    Program named = *program;
    if (named.schedule.empty()) named.schedule = "program";
    request->setting.schedules = {given_schedule(std::move(named))};
  }
  return request;
}

answers::SettingQuestion question_of(const answers::Request& request) {
  answers::SettingQuestion question{request.setting};
  question.check = [&request](const Setting& setting) {
    if (setting.device_counts.size() > 1) {
      throw UsageError("simulate takes one number of devices; compare takes several");
    }
    if (request.setting.partitions.size() > 1) {
      throw UsageError(
          fmt::format("simulate takes one cut, and {} were given; compare takes several",
                      request.setting.partitions.size()));
    }
    if (request.setting.schedules.size() > 1) {
      throw UsageError(
          fmt::format("simulate takes one schedule, and {} were named; compare takes many",
                      request.setting.schedules.size()));
    }
    check_budget(request.budget, setting.model, "tokens");
  };
  return question;
}

std::shared_ptr<Simulated> result_of(std::shared_ptr<const answers::Request> request,
                                     answers::OpenedCase opened) {
  answers::Simulation found = answers::simulated(std::move(opened));
  return std::make_shared<Simulated>(
      Simulated{std::move(request), std::make_shared<const Setting>(std::move(found.setting)),
                std::move(found.asked), std::move(found.outcome)});
}

std::shared_ptr<Simulated> simulate(const std::string& json,
                                    const std::optional<Program>& program) {
  return without_lock([&] {
    const auto request = request_of(json, program);
    return result_of(request, answers::opened_case(question_of(*request)));
  });
}

// A value in a message, a text without quotes.
std::string shown(const nb::handle& object) {
  std::string text;
  if (nb::try_cast(object, text)) return visible(text);
  return nb::cast<std::string>(nb::module_::import_("stageline._amounts").attr("shown")(object));
}

// An op as Python writes it: "0F3", or (stage, "F", number).
std::optional<Op> op_of_object(const nb::handle& object) {
  std::string text;
  if (nb::try_cast(object, text)) return parse_op(text);
  std::tuple<int, std::string, std::int64_t> parts;
  if (!nb::isinstance<nb::tuple>(object) || !nb::try_cast(object, parts)) return {};
  const auto& [stage, kind, number] = parts;
  return parse_op(fmt::format("{}{}{}", stage, kind, number));
}

// More than a device can have, of all kinds, stages, micro-batches and parts.
std::size_t too_many_ops(const Program& program) {
  constexpr double most = static_cast<double>(most_forwards) * op_kinds;
  const double here = static_cast<double>(program.total_microbatches()) * program.stages() *
                      static_cast<double>(program.devices.size()) * op_kinds;
  return static_cast<std::size_t>(std::min(most, here)) + 1;
}

// A list may have no end, and need no code in Python that would look at signals.
std::vector<Op> ops_of_list(const nb::handle& list, std::size_t device, std::size_t too_many) {
  constexpr std::size_t pause = 4096;
  std::vector<Op> ops;
  for (const nb::handle object : list) {
    const std::optional<Op> op = op_of_object(object);
    if (!op) {
      throw ProgramError(
          fmt::format("{} at position {} of device {} is no op: write \"0F3\" or (0, \"F\", 3), "
                      "with the kinds F, B, I, W, R and U",
                      shown(object), ops.size(), device),
          static_cast<int>(device), static_cast<int>(ops.size()));
    }
    ops.push_back(*op);
    if (ops.size() == too_many) {
      throw ProgramError(fmt::format("the list of device {} has more than {} ops, and a program "
                                     "of that size cannot have so many",
                                     device, too_many - 1),
                         static_cast<int>(device));
    }
    if (ops.size() % pause == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
  }
  return ops;
}

Program program_of_answer(const Program& blank, const nb::object& answer, const std::string& name) {
  Program program;
  if (nb::isinstance<Program>(answer)) {
    program = nb::cast<Program>(answer);
  } else if (nb::isinstance<nb::str>(answer)) {
    std::string text;
    if (!nb::try_cast(answer, text)) {
      throw ProgramError(fmt::format("{} returned a text that has no form in UTF-8", name));
    }
    program = parse_program(text);
  } else {
    program = blank;
    const std::size_t too_many = too_many_ops(program);
    std::size_t device = 0;
    for (const nb::handle list : answer) {
      if (device == program.devices.size()) ++device;
      if (device > program.devices.size()) break;
      program.ops[device] = ops_of_list(list, device, too_many);
      ++device;
    }
    if (device != program.devices.size()) {
      throw ProgramError(
          fmt::format("{} returned {} lists of ops for {} devices; it takes one a "
                      "device, empty where a device has no work",
                      name, device > program.devices.size() ? "more" : fmt::format("{}", device),
                      program.devices.size()));
    }
  }
  if (program.schedule.empty()) program.schedule = name;
  return program;
}

std::shared_ptr<Simulated> simulate_by(const std::string& json, const nb::callable& scheduler,
                                       const std::string& name) {
  std::shared_ptr<const answers::Request> request;
  answers::AskedScheduler asked;
  answers::OpenedCase opened = without_lock([&] {
    request = request_of(json, std::nullopt);
    answers::OpenedCase one = answers::opened_case(question_of(*request));
    asked = answers::asked_scheduler(one.asked, name);
    return one;
  });
  const nb::object answer = scheduler(nb::cast(asked.problem));
  opened.asked.program = program_of_answer(asked.blank, answer, name);
  return without_lock([&] { return result_of(std::move(request), std::move(opened)); });
}

std::shared_ptr<Compared> compare_all(const std::string& json, const Progress& progress) {
  return without_lock([&] {
    Reports reports(progress);
    auto compared = std::make_shared<Compared>();
    compared->request = request_of(json, std::nullopt);
    const answers::Request& request = *compared->request;
    answers::ComparisonQuestion question;
    question.setting = request.setting;
    question.check = [&request](const Setting& setting) {
      check_budget(request.budget, setting.model, "tokens");
    };
    question.within = request.within;
    question.budget = request.budget;
    question.keep = Keep::spans;
    answers::Comparison found =
        answer(question,
               {nullptr, [&](std::int64_t done, std::int64_t wanted) { reports(done, wanted); }});
    reports.end();
    compared->setting = std::make_shared<const Setting>(std::move(found.setting));
    compared->rows = std::move(found.rows);
    for (RankedRows& ranking : found.orders) {
      if (!ranking.rows.empty()) compared->rankings.push_back(std::move(ranking));
    }
    return compared;
  });
}

// By row, its result; or what was asked and why there is none.
nb::list compared_rows(const Compared& self) {
  nb::list rows;
  for (const Row& row : self.rows) {
    const int devices = row.outcome ? row.outcome->all_devices : row.asked.device_count();
    const std::string& schedule = row.outcome ? row.outcome->schedule : row.schedule;
    nb::object result = nb::none();
    if (row.outcome) {
      result = nb::cast(std::make_shared<Simulated>(
          Simulated{self.request, self.setting, row.asked, *row.outcome}));
    }
    rows.append(nb::make_tuple(schedule, devices, row.asked.cut_asked(), result, row.why_not));
  }
  return rows;
}

nb::list rankings_of(const Compared& self) {
  nb::list rankings;
  for (const RankedRows& ranking : self.rankings) {
    nb::dict one;
    one["synchronous"] = ranking.synchrony == Synchrony::synchronous;
    one["rows"] = nb::cast(ranking.rows);
    one["fastest"] = nb::cast(ranking.fastest);
    one["recommended"] = nb::cast(ranking.recommended);
    one["sentence"] = ranking.sentence;
    rankings.append(one);
  }
  return rankings;
}

double seconds_between(const Problem& problem, int from, int to, Bytes bytes) {
  const Network& network = problem.costs.network;
  if (std::max(from, to) >= network.devices || std::min(from, to) < 0) {
    throw std::out_of_range("no such device");
  }
  const Route& route = network.between(from, to);
  return to_seconds(route.latency + transfer_time(bytes, route.bandwidth));
}

// By setting, in the order of the groups, what it is and which calls take it.
nb::list settings_table() {
  std::vector<SettingRow> rows(setting_rows().begin(), setting_rows().end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const SettingRow& a, const SettingRow& b) { return a.group < b.group; });
  nb::list table;
  for (const SettingRow& row : rows) {
    nb::dict one;
    one["name"] = row.key;
    one["group"] = name(row.group);
    one["help"] = row.help;
    one["call"] = row.of != SettingOf::chance;
    one["sweep"] = is_sweep_key(std::string(row.key));
    table.append(one);
  }
  return table;
}

void bind_problem(nb::module_& module) {
  nb::class_<StageCosts> costs(module, "StageCosts",
                               "One stage, for one micro-batch: seconds and bytes.");
  const auto time = [&](const char* name, Time StageCosts::*member, const char* text) {
    costs.def_prop_ro(
        name, [member](const StageCosts& self) { return to_seconds(self.*member); }, text);
  };
  time("forward", &StageCosts::forward, "F, seconds.");
  time("input_grad", &StageCosts::input_grad, "I, seconds.");
  time("weight_grad", &StageCosts::weight_grad, "W, seconds.");
  time("backward", &StageCosts::backward, "B: I and W in one op, seconds.");
  time("recompute", &StageCosts::recompute, "R, seconds.");
  time("update", &StageCosts::update, "One optimizer step, seconds.");
  costs.def_prop_ro(
      "weights", [](const StageCosts& self) { return self.weights.count; }, "Bytes.");
  costs.def_prop_ro(
      "stash", [](const StageCosts& self) { return self.stash().count; },
      "Held from F to its backward, bytes.");
  nb::class_<Problem>(module, "Problem", "What a scheduler is asked.")
      .def_prop_ro("stages", [](const Problem& self) { return self.placement.stages(); })
      .def_prop_ro("devices", [](const Problem& self) { return self.devices.size(); })
      .def_prop_ro("device_names", [](const Problem& self) { return self.devices; })
      .def_prop_ro(
          "microbatches", [](const Problem& self) { return self.microbatches; }, "In a step.")
      .def_prop_ro(
          "steps", [](const Problem& self) { return self.steps; },
          "Micro-batches are numbered through all of them.")
      .def_prop_ro(
          "placement",
          [](const Problem& self) {
            std::vector<int> devices;
            for (const StagePlace& place : self.placement.stage) {
              devices.push_back(place.replicas.front());
            }
            return devices;
          },
          "By stage, its device.")
      .def_prop_ro(
          "costs", [](const Problem& self) { return self.costs.stage; },
          "By stage, on its device (StageCosts).")
      .def_prop_ro(
          "memory",
          [](const Problem& self) {
            std::vector<std::optional<std::int64_t>> limits;
            for (const std::optional<Bytes>& limit : self.memory) {
              limits.push_back(limit ? std::optional(limit->count) : std::nullopt);
            }
            return limits;
          },
          "By device, bytes that training may fill; None: unknown.")
      .def(
          "message_time",
          [](const Problem& self, int from, int to) {
            const int one =
                self.placement.stage.at(static_cast<std::size_t>(from)).replicas.front();
            const int two = self.placement.stage.at(static_cast<std::size_t>(to)).replicas.front();
            for (const EdgeCosts& edge : self.costs.edges) {
              if (edge.edge.from == from && edge.edge.to == to) {
                return seconds_between(self, one, two, edge.activation);
              }
              if (edge.edge.to == from && edge.edge.from == to) {
                return seconds_between(self, one, two, edge.gradient);
              }
            }
            throw UsageError(fmt::format("stages {} and {} exchange nothing", from, to));
          },
          "from_stage"_a, "to_stage"_a,
          "Seconds that an activation (or, backwards, a gradient) takes where the link is free.");
}

}  // namespace

void bind_question(nb::module_& module) {
  bind_problem(module);
  nb::class_<Compared>(module, "Compared", "Rows of a comparison.")
      .def_prop_ro("rows", &compared_rows,
                   nb::for_getter(nb::sig(
                       "def rows(self, /) -> list[tuple[str, int, str, Result | None, str]]")))
      .def_prop_ro("rankings", &rankings_of,
                   nb::for_getter(nb::sig("def rankings(self, /) -> list[dict[str, typing.Any]]")),
                   "By kind, synchronous first (dicts).")
      .def("json", [](const Compared& self) {
        return without_lock([&] { return report::rows_json(*self.setting, self.rows); });
      });
  module.def("settings", &settings_table, nb::sig("def settings() -> list[dict[str, typing.Any]]"),
             "The table of settings (dicts).");
  module.def("simulate", &simulate, "request"_a, "program"_a = nb::none());
  module.def("simulate_by", &simulate_by, "request"_a, "scheduler"_a, "name"_a);
  module.def("compare", &compare_all, "request"_a, "progress"_a = nb::none());
}

}  // namespace stageline::python
