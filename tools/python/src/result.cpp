#include "tools/python/src/result.hpp"

#include <fmt/core.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/names.hpp"
#include "sim/text/visible.hpp"
#include "tools/answers/simulated.hpp"
#include "tools/python/src/interrupt.hpp"
#include "tools/python/src/sweep.hpp"
#include "tools/report/drawing_of.hpp"
#include "tools/report/drawing_view.hpp"
#include "tools/report/figure_table.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/page/outcome_page.hpp"
#include "tools/report/svg/aspect.hpp"
#include "tools/report/timeline/chrome_trace.hpp"
#include "tools/report/timeline/svg.hpp"
#include "tools/study/whatif/sensitivity.hpp"
#include "tools/study/whatif/waterfall.hpp"

namespace stageline::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// Other threads may ask for the same meanwhile, and the first answer is kept.
std::shared_ptr<const Outcome> drawn_of(Simulated& self) {
  if (self.drawn) return self.drawn;
  auto drawn = without_lock(
      [&] { return std::make_shared<const Outcome>(answers::drawn_outcome(self.asked)); });
  if (!self.drawn) self.drawn = std::move(drawn);
  return self.drawn;
}

std::string json_of(const Simulated& self, bool timeline, bool changes) {
  return without_lock([&] {
    const WaysToFit ways = changes ? answers::ways_to_fit(self.request->setting, *self.setting,
                                                          self.asked, self.outcome)
                                   : WaysToFit{};
    return report::outcome_json(*self.setting, self.asked, self.outcome, timeline, nullptr,
                                self.request->budget, nullptr, changes ? &ways : nullptr);
  });
}

report::Panels panels_of(const Simulated& self, const std::vector<std::string>& names) {
  if (names.empty()) {
    return self.asked.ranked ? report::Panels{true, false, true, true} : report::Panels{};
  }
  const std::vector<std::string> known{"timeline", "memory", "weights", "categories"};
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw UsageError(
        fmt::format("panels: \"{}\" is none of timeline, memory, weights, "
                    "categories{}",
                    name, did_you_mean(name, known)));
  }
  const auto wanted = [&](std::size_t i) {
    return std::find(names.begin(), names.end(), known[i]) != names.end();
  };
  return {wanted(0), wanted(1), wanted(2), wanted(3)};
}

// One name, or several.
using PanelNames = std::variant<std::string, std::vector<std::string>>;

// What .svg() takes: the flags of draw for pictures, by their names without dashes.
struct PictureWords {
  PanelNames panels;
  std::optional<int> width;
  std::string theme;
  double from = 0;
  std::optional<double> to;
  std::string aspect;
  std::string title;
  bool plain = false;
  std::string numbers;
  std::vector<std::string> rows;
  PanelNames arrows;
};

std::vector<std::string> names_in(const PanelNames& names) {
  const auto* const one = std::get_if<std::string>(&names);
  return one != nullptr ? std::vector{*one} : std::get<std::vector<std::string>>(names);
}

report::DrawingView view_of(const Simulated& self, const PictureWords& words,
                            std::span<const Outcome> outcomes) {
  report::DrawingView view;
  view.panels = panels_of(self, names_in(words.panels));
  view.numbers = report::op_numbers(words.numbers, outcomes);
  view.arrows = report::arrow_choice(names_in(words.arrows));
  try {
    view.from = from_seconds(words.from);
    if (words.to) view.to = from_seconds(*words.to);
  } catch (const std::invalid_argument& error) {
    throw UsageError(fmt::format("start and end are seconds: {}", error.what()));
  }
  return view;
}

// The picture that `draw` makes, with the look and the shape that are asked for.
std::string picture(const PictureWords& words,
                    const std::function<std::string(const report::SvgOptions&)>& draw) {
  if (words.width && !words.aspect.empty()) {
    throw UsageError(
        "width and aspect exclude each other: the height of a picture follows from its content");
  }
  report::SvgOptions options =
      svg_options_of(words.width.value_or(report::SvgOptions{}.width), words.theme);
  options.title = words.title;
  options.plain = words.plain;
  if (words.aspect.empty()) return without_lock([&] { return draw(options); });
  const double aspect = report::aspect_of(words.aspect);
  return without_lock([&] { return report::in_aspect(aspect, options, draw); });
}

std::string run_picture(Simulated& self, const PictureWords& words) {
  const std::shared_ptr<const Outcome> outcome = drawn_of(self);
  const report::DrawingView view = view_of(self, words, {outcome.get(), 1});
  const report::Drawing drawing =
      report::with_rows(report::drawing_of(*self.setting, self.asked, *outcome), words.rows);
  return picture(words, [&](const report::SvgOptions& options) {
    return report::svg(drawing, options, view);
  });
}

using Runs = std::vector<std::shared_ptr<Simulated>>;

// What draws several runs of one problem, whose words are those of the first.
struct DrawnRuns {
  std::vector<Case> asked;
  std::vector<Outcome> outcomes;
};

DrawnRuns drawn_runs(const Runs& runs) {
  if (runs.empty()) throw UsageError("runs: there are none; give at least one result");
  const Simulated& first = *runs.front();
  DrawnRuns drawn;
  for (const std::shared_ptr<Simulated>& run : runs) {
    for (const auto& [what, here, there] :
         {std::tuple{"model", run->asked.model.name, first.asked.model.name},
          {"cluster", run->asked.cluster.name, first.asked.cluster.name},
          {"number of devices", fmt::format("{}", run->outcome.all_devices),
           fmt::format("{}", first.outcome.all_devices)},
          {"number of micro-batches", fmt::format("{}", run->outcome.microbatches),
           fmt::format("{}", first.outcome.microbatches)}}) {
      if (here == there) continue;
      throw UsageError(fmt::format(
          "runs: the {} of {} is \"{}\", and that of {} \"{}\"; a figure has one for all its runs",
          what, first.outcome.schedule, there, run->outcome.schedule, here));
    }
    drawn.asked.push_back(run->asked);
    drawn.outcomes.push_back(*drawn_of(*run));
  }
  return drawn;
}

std::string runs_picture(const Runs& runs, const PictureWords& words) {
  if (runs.size() == 1) return run_picture(*runs.front(), words);
  const DrawnRuns drawn = drawn_runs(runs);
  const report::DrawingView view = view_of(*runs.front(), words, drawn.outcomes);
  report::Drawings drawings =
      report::drawings_of(*runs.front()->setting, drawn.asked, drawn.outcomes);
  for (report::Drawing& run : drawings.runs) run = report::with_rows(std::move(run), words.rows);
  return picture(words, [&](const report::SvgOptions& options) {
    return report::svg(drawings, options, view);
  });
}

// The page of draw --html.
std::string runs_page(const Runs& runs) {
  const DrawnRuns drawn = drawn_runs(runs);
  return without_lock([&] {
    return report::page_html(report::page_of(*runs.front()->setting, drawn.asked, drawn.outcomes));
  });
}

// The page of simulate --html.
std::string html_of(Simulated& self) {
  const std::shared_ptr<const Outcome> outcome = drawn_of(self);
  return without_lock([&] {
    return report::page_html(report::page_of(*self.setting, {&self.asked, 1}, {outcome.get(), 1}));
  });
}

nb::dict by_kind(const MemoryUse& use) {
  nb::dict parts;
  for (int kind = 0; kind < memory_kinds; ++kind) {
    const std::string key(name(static_cast<MemoryKind>(kind)));
    parts[key.c_str()] = use[as_size(kind)].count;
  }
  return parts;
}

nb::object limit_of(const std::optional<Bytes>& limit) {
  return limit ? nb::cast(limit->count) : nb::none();
}

nb::list memory_of_devices(const Simulated& self) {
  nb::list devices;
  for (std::size_t d = 0; d < self.outcome.memory.device.size(); ++d) {
    const DeviceMemory& memory = self.outcome.memory.device[d];
    nb::dict one;
    one["device"] = self.outcome.program.devices[d].c_str();
    one["peak"] = memory.peak.count;
    one["peak_at"] = to_seconds(memory.peak_at);
    one["peak_op"] = memory.peak_op ? nb::cast(print(memory.peak_op->op)) : nb::none();
    one["limit"] = limit_of(self.outcome.memory_limit[d]);
    one["reserve"] = memory.reserve.count;
    one["stashes"] = self.outcome.memory.device_stash_peak[d];
    one["at_peak"] = by_kind(memory.at_peak);
    devices.append(one);
  }
  return devices;
}

// Steps of the memory of a device: two columns, made anew.
nb::tuple memory_curve(Simulated& self, int device) {
  const std::shared_ptr<const Outcome> outcome = drawn_of(self);
  if (device < 0 || as_size(device) >= outcome->memory.device.size()) {
    throw nb::index_error(fmt::format("device {} of {}", device, outcome->devices).c_str());
  }
  const std::vector<MemoryPoint>& curve = nth(outcome->memory.device, device).curve;
  auto* const columns = new std::vector<std::int64_t>(2 * curve.size());
  const nb::capsule owner(
      columns, [](void* all) noexcept { delete static_cast<std::vector<std::int64_t>*>(all); });
  for (std::size_t i = 0; i < curve.size(); ++i) {
    (*columns)[i] = curve[i].at.count();
    (*columns)[curve.size() + i] = total(curve[i].use).count;
  }
  using Column = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;
  return nb::make_tuple(Column(columns->data(), {curve.size()}, owner),
                        Column(columns->data() + curve.size(), {curve.size()}, owner));
}

nb::list path_of(const Simulated& self) {
  nb::list path;
  for (const PathPiece& piece : self.outcome.critical_path) {
    nb::dict one;
    one["what"] = piece.kind == PathPiece::Kind::task    ? print(piece.op).c_str()
                  : piece.kind == PathPiece::Kind::queue ? "queue"
                                                         : "latency";
    one["kind"] =
        piece.kind == PathPiece::Kind::task ? nb::cast(symbol(piece.op.kind)) : nb::cast("link");
    one["start_ps"] = piece.start.count();
    one["end_ps"] = piece.end.count();
    path.append(one);
  }
  return path;
}

nb::list idle_of_devices(const Simulated& self) {
  nb::list devices;
  for (std::size_t d = 0; d < self.outcome.metrics.device.size(); ++d) {
    const DeviceMetrics& metrics = self.outcome.metrics.device[d];
    nb::dict one;
    one["device"] = self.outcome.program.devices[d].c_str();
    one["busy"] = to_seconds(metrics.busy);
    for (int kind = 0; kind < idle_kinds; ++kind) {
      const std::string key(name(static_cast<IdleKind>(kind)));
      one[key.c_str()] = to_seconds(metrics.idle_by[as_size(kind)]);
    }
    devices.append(one);
  }
  return devices;
}

// Needs the task graph, which rows of a comparison come without.
nb::dict waterfall_dict(Simulated& self, bool shapley) {
  const std::shared_ptr<const Outcome> outcome = drawn_of(self);
  const Waterfall waterfall = without_lock([&] {
    return waterfall_of(self.asked, *outcome, shapley ? CauseOrder::shapley : CauseOrder::fixed);
  });
  nb::dict causes;
  causes["ideal"] = to_seconds(waterfall.ideal);
  for (int cause = 0; cause < step_causes; ++cause) {
    const auto which = static_cast<StepCause>(cause);
    causes[std::string(name(which)).c_str()] = to_seconds(waterfall.of(which));
  }
  causes["step"] = to_seconds(waterfall.step);
  return causes;
}

nb::list sensitivity_rows(Simulated& self) {
  const std::shared_ptr<const Outcome> outcome = drawn_of(self);
  const Sensitivity found = without_lock([&] { return sensitivity_of(self.asked, *outcome); });
  nb::list rows;
  for (const LeverEffect& effect : found.effects) {
    nb::dict one;
    one["lever"] = effect.lever.name;
    one["kind"] = name(effect.lever.kind);
    one["share_faster"] = effect.share_faster;
    one["share_slower"] = effect.share_slower;
    one["faster"] = to_seconds(effect.faster);
    one["slower"] = to_seconds(effect.slower);
    one["twice"] = to_seconds(effect.twice);
    one["free"] = to_seconds(effect.free);
    rows.append(one);
  }
  return rows;
}

// A time in seconds; 0 where it is unknown.
double as_python(const report::FigureValue& value, double) {
  if (const Time* const time = std::get_if<Time>(&value)) return to_seconds(*time);
  const double* const number = std::get_if<double>(&value);
  return number == nullptr ? 0 : *number;
}

// A time in picoseconds.
std::int64_t as_python(const report::FigureValue& value, std::int64_t) {
  if (const Time* const time = std::get_if<Time>(&value)) return time->count();
  return std::get<std::int64_t>(value);
}

std::optional<std::int64_t> as_python(const report::FigureValue& value,
                                      std::optional<std::int64_t>) {
  if (const Time* const time = std::get_if<Time>(&value)) return time->count();
  const Bytes* const bytes = std::get_if<Bytes>(&value);
  return bytes == nullptr ? std::nullopt : std::optional(bytes->count);
}

// A time in seconds.
std::optional<double> as_python(const report::FigureValue& value, std::optional<double>) {
  const Time* const time = std::get_if<Time>(&value);
  return time == nullptr ? std::nullopt : std::optional(to_seconds(*time));
}

std::optional<std::string> as_python(const report::FigureValue& value,
                                     const std::optional<std::string>&) {
  const std::string* const words = std::get_if<std::string>(&value);
  return words == nullptr ? std::nullopt : std::optional(*words);
}

bool as_python(const report::FigureValue& value, bool) { return std::get<bool>(value); }

std::optional<bool> as_python(const report::FigureValue& value, std::optional<bool>) {
  const std::string& fit = std::get<std::string>(value);
  return fit == name(Fit::unknown) ? std::nullopt : std::optional(fit == name(Fit::yes));
}

std::string as_python(const report::FigureValue& value, const std::string&) {
  return std::get<std::string>(value);
}

// The getter of a property, which reads the figure of that name.
template <class Value>
auto figure(std::string_view property) {
  return [&row = report::figure_of_property(property)](const Simulated& self) {
    static const BudgetFigures unasked;  // no property is of a budget
    return as_python(row.value(report::facts_of(self.asked, self.outcome, unasked)), Value());
  };
}

std::shared_ptr<const SpanTable> spans_of(Simulated& self) {
  if (self.table) return self.table;
  auto table = without_lock([&] { return table_of(self.outcome.timeline); });
  if (!self.table) self.table = std::move(table);
  return self.table;
}

// "0-3,4-7"; as pictures show it where a stage is no range behind that of the stage before.
std::string ranges_of(const Partition& partition) {
  std::string text;
  int stage = 0;
  int first = 0;
  const auto layers = static_cast<int>(partition.stage_of.size());
  for (int layer = 0; layer < layers; ++layer) {
    if (nth(partition.stage_of, layer) != stage) return print(partition);
    if (layer + 1 < layers && nth(partition.stage_of, layer + 1) == stage) continue;
    text += fmt::format("{}{}-{}", text.empty() ? "" : ",", first, layer);
    first = layer + 1;
    ++stage;
  }
  return text;
}

std::string repr(const Simulated& self) {
  const Outcome& outcome = self.outcome;
  const auto peak = figure<std::optional<std::int64_t>>("peak_memory")(self);
  return fmt::format("<stageline.Result {}: step {}, bubble {:.1f} %, peak memory {}{}>",
                     visible(outcome.schedule), print(outcome.step_time),
                     100 * outcome.bubble_fraction, peak ? print(Bytes{*peak}) : "unknown",
                     outcome.fit == Fit::no ? ", does NOT fit" : "");
}

template <class Get>
auto of(const Get& get) {
  return [get](const Simulated& self) { return get(self.outcome); };
}

}  // namespace

void bind_result(nb::module_& module) {
  nb::class_<Simulated>(module, "Result", "One schedule, simulated.")
      .def_prop_ro("schedule", figure<std::string>("schedule"))
      .def_prop_ro("devices", figure<std::int64_t>("devices"),
                   "Devices of the run, all degrees of parallelism together.")
      .def_prop_ro("microbatches", figure<std::int64_t>("microbatches"),
                   "Micro-batches of a step, of all simulated pipelines.")
      .def_prop_ro("step_time", figure<double>("step_time"),
                   "Of a step in the steady state, in seconds.")
      .def_prop_ro("step_time_ps", figure<std::int64_t>("step_time"),
                   "The same, exact: picoseconds.")
      .def_prop_ro("step_low", figure<std::optional<double>>("step_low"),
                   "Seconds: 80 % of the published runs of its class are from here to step_high; "
                   "None: no language model priced for a device.")
      .def_prop_ro("step_low_ps", figure<std::optional<std::int64_t>>("step_low"))
      .def_prop_ro("step_high", figure<std::optional<double>>("step_high"))
      .def_prop_ro("step_high_ps", figure<std::optional<std::int64_t>>("step_high"))
      .def_prop_ro("step_range_of", figure<std::optional<std::string>>("step_range_of"),
                   "The runs that the range is of.")
      .def_prop_ro("makespan", figure<double>("makespan"), "Of all simulated steps, in seconds.")
      .def_prop_ro("makespan_ps", figure<std::int64_t>("makespan"))
      .def_prop_ro("throughput", figure<double>("throughput"), "Per second, in throughput_unit.")
      .def_prop_ro("throughput_unit", figure<std::string>("throughput_unit"))
      .def_prop_ro("speedup", figure<double>("speedup"), "Over one device that does the same step.")
      .def_prop_ro("bubble", figure<double>("bubble"), "Idle share of the compute lanes, 0 to 1.")
      .def_prop_ro("exposed_communication", figure<double>("exposed_communication"),
                   "Share of the step that free links would save, 0 to 1.")
      .def_prop_ro("synchronous", figure<bool>("synchronous"),
                   "Whether updates wait for all micro-batches of a step.")
      .def_prop_ro("staleness", figure<double>("staleness"),
                   "Most updates that the weights of a backward are old.")
      .def_prop_ro("peak_memory", figure<std::optional<std::int64_t>>("peak_memory"),
                   "Of the fullest device, in bytes; None: unknown.")
      .def_prop_ro("fits", figure<std::optional<bool>>("fits"),
                   "Into memory: True, False, or None where it is unknown.")
      .def_prop_ro("memory", &memory_of_devices,
                   nb::for_getter(nb::sig("def memory(self, /) -> list[dict[str, typing.Any]]")),
                   "By device: peak and parts in bytes (dicts).")
      .def("memory_curve", &memory_curve, "device"_a,
           nb::sig("def memory_curve(self, device: int) -> "
                   "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]"),
           "(at_ps, bytes): NumPy arrays, each value from its moment on.")
      .def_prop_ro("idle", &idle_of_devices,
                   nb::for_getter(nb::sig("def idle(self, /) -> list[dict[str, typing.Any]]")),
                   "By device: busy and idle seconds by cause (dicts).")
      .def_prop_ro(
          "critical_path", &path_of,
          nb::for_getter(nb::sig("def critical_path(self, /) -> list[dict[str, typing.Any]]")),
          "Pieces without a gap from 0 to the makespan (dicts, picoseconds).")
      .def_prop_ro("partition", of([](const Outcome& o) { return ranges_of(o.plan.partition); }),
                   "The cut, as the argument partition takes it: \"0-3,4-7\".")
      .def_prop_ro("cut", figure<std::string>("cut"), "As it was asked for: \"balanced\".")
      .def_prop_ro("program", of([](const Outcome& o) { return o.program; }),
                   "The ops of each device, with all passes applied.")
      .def_prop_ro("timeline", &spans_of, "When each op ran: a Timeline, for NumPy and Arrow.")
      .def_prop_ro(
          "notes", [](const Simulated& self) { return notes(*self.setting); },
          "What was assumed, a sentence each.")
      .def("json", &json_of, "timeline"_a = false, "changes"_a = true,
           "What the command writes with --json: keys in tools/report/json/README.md.\n\n"
           "timeline: with every span. changes: where it does not fit, what would.")
      .def(
          "svg",
          [](Simulated& self, PanelNames panels, std::optional<int> width, std::string theme,
             double start, std::optional<double> end, std::string aspect, std::string title,
             bool plain, std::string numbers, std::vector<std::string> rows, PanelNames arrows) {
            return run_picture(self, {std::move(panels), width, std::move(theme), start, end,
                                      std::move(aspect), std::move(title), plain,
                                      std::move(numbers), std::move(rows), std::move(arrows)});
          },
          "panels"_a = PanelNames(std::vector<std::string>{}), "width"_a = nb::none(),
          "theme"_a = "auto", "start"_a = 0.0, "end"_a = nb::none(), "aspect"_a = "",
          "title"_a = "", "plain"_a = false, "numbers"_a = "",
          "rows"_a = std::vector<std::string>{},
          "arrows"_a = PanelNames(std::vector<std::string>{}),
          "The space-time diagram as SVG.\n\n"
          "panels: of timeline, memory, weights, categories. width: px (default: 1000), or aspect: "
          "16:9. start, end: seconds. title, plain, numbers, rows, arrows: as the flags of "
          "`stageline draw`.")
      .def("waterfall", &waterfall_dict, "shapley"_a = false,
           nb::sig("def waterfall(self, shapley: bool = False) -> dict[str, float]"),
           "Seconds of the step by cause: ideal and all causes add up to step (a dict).\n\n"
           "shapley: each cause is the mean over all orders of removal.")
      .def(
          "sensitivity", &sensitivity_rows,
          nb::sig("def sensitivity(self) -> list[dict[str, typing.Any]]"),
          "What the step hangs on (dicts), by gain: the step in seconds with the times of a lever\n"
          "x 0.9 (faster), x 1.1 (slower), x 0.5 (twice), x 0 (free), and its share of the step.")
      .def(
          "chrome_trace",
          [](const Simulated& self) {
            return without_lock([&] {
              return report::chrome_trace(
                  report::drawing_of(*self.setting, self.asked, self.outcome));
            });
          },
          "The timeline as a Chrome trace (JSON; opens in Perfetto).")
      .def("html", &html_of, "The interactive page of `simulate --html`, as a text.")
      .def("_repr_svg_",
           [](Simulated& self) {
             PictureWords words;
             words.theme = "auto";
             words.panels = std::vector<std::string>{};
             words.arrows = std::vector<std::string>{};
             return run_picture(self, words);
           })
      .def("__repr__", &repr);
  module.def(
      "runs_picture",
      [](const Runs& runs, PanelNames panels, std::optional<int> width, std::string theme,
         double start, std::optional<double> end, std::string aspect, std::string title, bool plain,
         std::string numbers, std::vector<std::string> rows, PanelNames arrows) {
        return runs_picture(runs, {std::move(panels), width, std::move(theme), start, end,
                                   std::move(aspect), std::move(title), plain, std::move(numbers),
                                   std::move(rows), std::move(arrows)});
      },
      "runs"_a, "panels"_a, "width"_a = nb::none(), "theme"_a = "auto", "start"_a = 0.0,
      "end"_a = nb::none(), "aspect"_a = "", "title"_a = "", "plain"_a = false, "numbers"_a = "",
      "rows"_a = std::vector<std::string>{}, "arrows"_a = PanelNames(std::vector<std::string>{}),
      "Several runs on one time axis, as SVG.");
  module.def("runs_page", &runs_page, "runs"_a, "The interactive page of several runs.");
}

}  // namespace stageline::python
