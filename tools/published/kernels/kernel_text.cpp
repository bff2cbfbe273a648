// What timed kernels say, as tables and as JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <utility>

#include "tools/base/json.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/published/calibrate.hpp"
#include "tools/published/kernels/kernel_fit.hpp"

namespace stageline {
namespace {

std::string constants_table(const KernelsFit& fit, int width) {
  std::vector<std::vector<std::string>> rows;
  for (const KernelFitted& one : fit.constants) {
    rows.push_back({fmt::format("{} ({})", one.constant->name, one.constant->symbol),
                    constant_text(*one.constant, one.built_in),
                    constant_text(*one.constant, one.value) + (one.at_bound ? " (bound)" : ""),
                    fmt::format("{:.3f}", std::exp(one.standard_error)),
                    one.from + (one.taken ? "" : "; not taken: a framework's own differs")});
  }
  return table({{"constant", true, 0, true},
                {"built-in"},
                {"measured"},
                {"×/÷"},
                {"from", true, 0, false, true}},
               rows, width);
}

std::string curve_table(const KernelCurve& curve, int width) {
  std::vector<Column> columns;
  for (const std::string& title : curve.columns) columns.push_back({title, title == "kernel"});
  return table(columns, curve.rows, width);
}

std::string heading(const KernelsFit& fit, const KernelTable& table) {
  return fmt::format(
      "Rates of {} from {} kernels timed on {} (PyTorch {}, {}){}", fit.calibration.kind,
      table.rows.size(), table.device, table.torch, table.date,
      table.left_out > 0
          ? fmt::format("; {} rows of the table were left out or failed", table.left_out)
          : "");
}

std::string remarks(const KernelsFit& fit) {
  std::string text = fmt::format("Error of the curve on {} products: mean {}, worst {} ({}).",
                                 fit.calibration.residuals.size(), percent(fit.mean_error),
                                 percent(fit.worst_error), fit.worst_row);
  if (!fit.untold.empty()) {
    text += fmt::format(" No row tells {}: built-in.", fmt::join(fit.untold, ", "));
  }
  return text;
}

}  // namespace

std::string kernels_text(const KernelsFit& fit, const KernelTable& table, int width) {
  std::string text = wrapped(heading(fit, table) + "\n\n", width) + constants_table(fit, width) +
                     "\n" + wrapped(remarks(fit) + "\n", width);
  for (const KernelCurve& curve : fit.curves) {
    text +=
        "\n" + curve.title + "\n" + curve_table(curve, width) + wrapped(curve.note + "\n", width);
  }
  return text;
}

std::string kernels_page(const KernelsFit& fit, const KernelTable& table) {
  std::string text = fmt::format(
      "# Kernels of {}\n\nMade by `stageline calibrate --kernels`. {}.\n\n"
      "```\n{}```\n\n{}\n",
      table.device, heading(fit, table), constants_table(fit, 0), remarks(fit));
  for (const KernelCurve& curve : fit.curves) {
    text += fmt::format("\n## {}\n\n```\n{}```\n\n{}\n", curve.title, curve_table(curve, 0),
                        curve.note);
  }
  return text;
}

std::string kernels_json(const KernelsFit& fit, const KernelTable& table) {
  Json constants = Json::array();
  for (const KernelFitted& one : fit.constants) {
    constants.push_back({{"name", one.constant->name},
                         {"built_in", one.built_in},
                         {"value", one.value},
                         {"error_factor", std::exp(one.standard_error)},
                         {"at_bound", one.at_bound},
                         {"taken", one.taken},
                         {"from", one.from}});
  }
  Json curves = Json::array();
  for (const KernelCurve& one : fit.curves) {
    Json rows = Json::array();
    for (const std::vector<std::string>& row : one.rows) rows.push_back(Json(row));
    curves.push_back({{"title", one.title},
                      {"columns", Json(one.columns)},
                      {"rows", std::move(rows)},
                      {"note", one.note}});
  }
  return Json{{"kind", fit.calibration.kind},
              {"device", table.device},
              {"source", fit.calibration.source},
              {"date", fit.calibration.date},
              {"rows", table.rows.size()},
              {"left_out", table.left_out},
              {"constants", std::move(constants)},
              {"untold", Json(fit.untold)},
              {"errors",
               {{"mean", fit.mean_error}, {"worst", fit.worst_error}, {"worst_id", fit.worst_row}}},
              {"curves", std::move(curves)}}
      .text();
}

}  // namespace stageline
