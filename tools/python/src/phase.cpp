// Phase maps: which schedule wins where.
#include <fmt/core.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <variant>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "sim/text/visible.hpp"
#include "tools/python/src/interrupt.hpp"
#include "tools/python/src/reports.hpp"
#include "tools/python/src/sweep.hpp"
#include "tools/sweep/phase.hpp"

namespace stageline::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// A range or list as typed, or values.
using AxisText = std::variant<std::string, std::vector<std::string>>;
using NamedAxis = std::pair<std::string, AxisText>;

SweepAxis axis_of(const NamedAxis& named, std::int64_t points) {
  const auto& [name, values] = named;
  if (const auto* const text = std::get_if<std::string>(&values)) {
    return phase_axis(name, *text, points);
  }
  return list_axis(name, std::get<std::vector<std::string>>(values));
}

PhaseMap phase(const std::vector<std::pair<std::string, std::string>>& fixed, const NamedAxis& x,
               const NamedAxis& y, const std::vector<std::string>& schedules, int threads,
               bool exhaustive, const std::string& title, const Progress& progress) {
  return without_lock([&] {
    Reports reports(progress);
    PhaseRequest request;
    for (const auto& [key, text] : fixed) request.fixed.push_back({key, text});
    request.x = axis_of(x, phase_across);
    request.y = axis_of(y, phase_upwards);
    request.schedules = schedules;
    request.threads = threads;
    request.exhaustive = exhaustive;
    request.progress = [&](std::int64_t done, std::int64_t wanted) { reports(done, wanted); };
    PhaseMap map = phase_map(std::move(request));
    map.request.progress = {};  // it refers to this call
    reports.end();
    if (!title.empty()) map.chart.title = fmt::format("The fastest schedule of {}", title);
    return map;
  });
}

std::string phase_picture(const PhaseMap& self, int width, const std::string& theme) {
  const report::SvgOptions options = svg_options_of(width, theme);
  return without_lock([&] { return report::phase_svg(self.chart, options); });
}

nb::list phase_rows(const PhaseMap& self) {
  const report::PhaseChart& chart = self.chart;
  nb::list rows;
  for (std::size_t y = 0; y < chart.ys.size(); ++y) {
    for (std::size_t x = 0; x < chart.xs.size(); ++x) {
      const report::PhaseCell& cell = chart.cells[y][x];
      nb::dict one;
      one[chart.x.c_str()] = chart.xs[x];
      one[chart.y.c_str()] = chart.ys[y];
      one["winner"] = cell.winner ? nb::cast(chart.names[*cell.winner]) : nb::none();
      one["second"] = cell.second.empty() ? nb::none() : nb::cast(cell.second);
      one["lead"] = cell.lead ? nb::cast(*cell.lead) : nb::none();
      one["by_memory"] = cell.by_memory;
      one["possible"] = cell.possible;
      one["simulated"] = cell.known;
      rows.append(std::move(one));
    }
  }
  return rows;
}

}  // namespace

report::SvgOptions svg_options_of(int width, const std::string& theme) {
  report::SvgOptions options;
  options.width = width;
  if (theme == "light") {
    options.theme = report::Theme::light;
  } else if (theme == "dark") {
    options.theme = report::Theme::dark;
  } else if (theme != "auto") {
    throw UsageError(fmt::format("theme is auto, light or dark (it is \"{}\")", theme));
  }
  return options;
}

void bind_phase(nb::module_& module) {
  nb::class_<PhaseMap>(module, "Phase", "Which schedule wins where, over two settings.")
      .def_prop_ro(
          "rows", &phase_rows,
          nb::for_getter(nb::sig("def rows(self, /) -> list[dict[str, typing.Any]]")),
          "Cells (dicts), the lowest row first: the two settings as text, winner and second "
          "(None: none fits), lead (share by which the winner is faster), by_memory\n"
          "(a faster one does not fit), simulated (else between cells that agree).")
      .def_prop_ro("schedules", [](const PhaseMap& self) { return self.chart.names; })
      .def_prop_ro(
          "simulated", [](const PhaseMap& self) { return self.cells; },
          "Cells that were simulated.")
      .def_prop_ro(
          "any", [](const PhaseMap& self) { return self.any; },
          "Whether any schedule fits anywhere.")
      .def(
          "json", [](const PhaseMap& self) { return phase_json(self).text(); },
          "What `stageline phase --json` writes; keys in tools/report/json/README.md.")
      .def(
          "text",
          [](const PhaseMap& self, int columns, int rows) {
            return report::phase_text(self.chart, columns, rows);
          },
          "columns"_a = 100, "rows"_a = 24, "The map in characters.")
      .def("svg", &phase_picture, "width"_a = report::SvgOptions{}.width, "theme"_a = "auto",
           "The map as SVG. width: px. theme: auto, light or dark.")
      .def("_repr_svg_",
           [](const PhaseMap& self) {
             return phase_picture(self, report::SvgOptions{}.width, "auto");
           })
      .def("__repr__", [](const PhaseMap& self) {
        return fmt::format("<stageline.Phase: {} by {}, {} schedules>", visible(self.chart.x),
                           visible(self.chart.y), self.chart.names.size());
      });
  module.def("phase", &phase, "fixed"_a, "x"_a, "y"_a, "schedules"_a, "threads"_a, "exhaustive"_a,
             "title"_a, "progress"_a = nb::none());
}

}  // namespace stageline::python
