// Reads and prints a calibration: the constants of a chip, fitted to measured steps.
//
//   {
//     "format": "stageline-calibration 1",
//     "kind": "h100",
//     "rates": {"gemm": 0.72, "memory": 0.86},         one that is left out is the kind's built-in
//     "fitted": [{"name": "gemm", "value": 0.72, "standard_error": 0.01}],
//     "residuals": [{"point": "774", "measured": 0.843, "predicted": 0.851}],     seconds
//     "rests_on": [{"software": "fsdp-2023", "kind": "dense", "products": "16", "rows": 3,
//                   "low": 0.96, "high": 1.06}],        only of few runs; without a range: it stays
//     "source": "points.csv: FSDP runs of llm-foundry",
//     "date": "2026-11-23"
//   }
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cost_models/transformers/json_file.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/software.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

constexpr std::string_view format_name = "stageline-calibration 1";

using Json = nlohmann::json;

// "/rates" and "a/b" are "/rates/a~1b" (RFC 6901).
std::string below(const std::string& pointer, std::string_view key) {
  std::string step;
  for (const char c : key) step += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return fmt::format("{}/{}", pointer, step);
}

// A value of the file and its JSON pointer.
class CalibrationNode {
 public:
  CalibrationNode(const Json& value, std::string pointer, const std::string& file)
      : value_(&value), pointer_(std::move(pointer)), file_(&file) {}

  [[noreturn]] void refuse(const std::string& message) const {
    throw TraceError(*file_, pointer_.empty() ? "/" : pointer_, message);
  }

  // Refuses another type than an object, and keys that are not in the list.
  void check_object(const std::vector<std::string>& known) const {
    if (!value_->is_object()) refuse("must be an object");
    for (const auto& [key, value] : value_->items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      CalibrationNode(value, below(pointer_, key), *file_)
          .refuse(fmt::format("no such key is known (there are {}){}", fmt::join(known, ", "),
                              did_you_mean(key, known)));
    }
  }

  std::optional<CalibrationNode> find(std::string_view key) const {
    const auto found = value_->find(key);
    if (found == value_->end()) return std::nullopt;
    return CalibrationNode(*found, below(pointer_, key), *file_);
  }

  CalibrationNode at(std::string_view key) const {
    std::optional<CalibrationNode> found = find(key);
    if (!found) refuse(fmt::format("\"{}\" is missing", key));
    return *std::move(found);
  }

  std::vector<CalibrationNode> items() const {
    if (!value_->is_array()) refuse("must be a list");
    std::vector<CalibrationNode> nodes;
    for (std::size_t i = 0; i < value_->size(); ++i) {
      nodes.emplace_back((*value_)[i], below(pointer_, std::to_string(i)), *file_);
    }
    return nodes;
  }

  std::string text() const {
    if (!value_->is_string()) refuse("must be a text");
    return value_->get<std::string>();
  }

  double number() const {
    if (!value_->is_number()) refuse("must be a number");
    return value_->get<double>();
  }

  double positive() const {
    const double value = number();
    if (!(value > 0)) refuse(fmt::format("must be above 0, not {:g}", value));
    return value;
  }

 private:
  const Json* value_;
  std::string pointer_;
  const std::string* file_;
};

const KernelConstant* find_constant(std::string_view name) {
  const std::span<const KernelConstant> all = kernel_constants();
  const auto found = std::find_if(all.begin(), all.end(), [&](const KernelConstant& constant) {
    return constant.name == name;
  });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> constant_names() {
  std::vector<std::string> names;
  for (const KernelConstant& constant : kernel_constants()) names.emplace_back(constant.name);
  return names;
}

KernelRates rates_in(const CalibrationNode& node, KernelRates rates) {
  node.check_object(constant_names());
  for (const KernelConstant& constant : kernel_constants()) {
    const auto stated = node.find(constant.name);
    if (!stated) continue;
    const double value = stated->number();
    if (!(value >= constant.least && value <= constant.most)) {
      stated->refuse(fmt::format("{} ({}) must be from {:g} to {:g}{}{}, not {:g}", constant.name,
                                 constant.symbol, constant.least, constant.most,
                                 constant.unit.empty() ? "" : " ", constant.unit, value));
    }
    rates.*constant.member = value;
  }
  return rates;
}

std::vector<Calibration::Fitted> fitted_of(const CalibrationNode& node, const KernelRates& rates) {
  std::vector<Calibration::Fitted> all;
  for (const CalibrationNode& item : node.items()) {
    item.check_object({"name", "value", "standard_error"});
    Calibration::Fitted one;
    one.name = item.at("name").text();
    const KernelConstant* const constant = find_constant(one.name);
    if (constant == nullptr) {
      const std::vector<std::string> names = constant_names();
      item.at("name").refuse(fmt::format("no constant is called \"{}\" (there are {}){}", one.name,
                                         fmt::join(names, ", "), did_you_mean(one.name, names)));
    }
    for (const Calibration::Fitted& other : all) {
      if (other.name == one.name) {
        item.at("name").refuse(fmt::format("{} is fitted twice", one.name));
      }
    }
    one.value = item.at("value").number();
    const double used = rates.*constant->member;
    if (!(std::abs(one.value - used) <= 1e-9 * std::abs(used))) {
      item.at("value").refuse(fmt::format("{} is {:g} here and {:g} in /rates/{}", one.name,
                                          one.value, used, one.name));
    }
    const CalibrationNode error = item.at("standard_error");
    one.standard_error = error.number();
    if (!(one.standard_error >= 0)) {
      error.refuse(fmt::format("must be at least 0, not {:g}", one.standard_error));
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<Calibration::Residual> residuals_of(const CalibrationNode& node) {
  std::vector<Calibration::Residual> all;
  for (const CalibrationNode& item : node.items()) {
    item.check_object({"point", "measured", "predicted"});
    all.push_back(
        {item.at("point").text(), item.at("measured").positive(), item.at("predicted").positive()});
  }
  return all;
}

CalibratedRuns rested_on(const CalibrationNode& item) {
  item.check_object({"software", "kind", "products", "rows", "low", "high"});
  CalibratedRuns runs;
  const auto word = [&](const char* key, const std::vector<std::string>& known) {
    std::string text = item.at(key).text();
    if (std::find(known.begin(), known.end(), text) == known.end()) {
      item.at(key).refuse(fmt::format("must be one of {}, not {}", fmt::join(known, ", "), text));
    }
    return text;
  };
  std::vector<std::string> generations;
  for (const SoftwareGeneration& one : software_generations()) generations.emplace_back(one.name);
  runs.software = word("software", generations);
  runs.kind = word("kind", {"dense", "experts"});
  runs.products = word("products", {"16", "quantized", "32"});
  constexpr double most_rows = 1e6;
  const double rows = item.at("rows").number();
  if (!(rows >= 1 && rows <= most_rows && rows == std::floor(rows))) {
    item.at("rows").refuse(fmt::format("must be a whole number from 1 on, not {:g}", rows));
  }
  runs.rows = static_cast<int>(rows);
  if (!item.find("low") && !item.find("high")) return runs;
  runs.low = item.at("low").positive();
  runs.high = item.at("high").positive();
  if (runs.low > 1 || runs.high < 1) {
    item.refuse(
        fmt::format("the prediction must be within its range, and low {:g} and high {:g} are "
                    "not around 1",
                    runs.low, runs.high));
  }
  return runs;
}

std::vector<CalibratedRuns> all_rested_on(const CalibrationNode& node) {
  std::vector<CalibratedRuns> all;
  for (const CalibrationNode& item : node.items()) all.push_back(rested_on(item));
  return all;
}

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The items of a list, one a line.
std::string json_lines(const std::vector<std::string>& items) {
  if (items.empty()) return "[]";
  return fmt::format("[\n    {}\n  ]", fmt::join(items, ",\n    "));
}

}  // namespace

Calibration read_calibration(const std::string& text, const std::string& file) {
  const Json json = json_in_file(text, file, EqualKeys::refused);
  const CalibrationNode root(json, "", file);
  root.check_object(
      {"format", "kind", "rates", "fitted", "residuals", "rests_on", "source", "date"});
  const CalibrationNode format = root.at("format");
  if (format.text() != format_name) {
    format.refuse(fmt::format("must be \"{}\", not {}", format_name, quoted(format.text())));
  }
  Calibration calibration;
  calibration.kind = root.at("kind").text();
  if (calibration.kind.empty()) {
    root.at("kind").refuse("must name the kind of device that the rates are for");
  }
  calibration.rates = rates_in(root.at("rates"), rates_of(calibration.kind).rates);
  if (const auto fitted = root.find("fitted")) {
    calibration.fitted = fitted_of(*fitted, calibration.rates);
  }
  if (const auto residuals = root.find("residuals")) {
    calibration.residuals = residuals_of(*residuals);
  }
  if (const auto runs = root.find("rests_on")) calibration.rests_on = all_rested_on(*runs);
  if (const auto source = root.find("source")) calibration.source = source->text();
  if (const auto date = root.find("date")) calibration.date = date->text();
  return calibration;
}

std::string print_calibration(const Calibration& calibration) {
  std::vector<std::string> rates;
  for (const KernelConstant& constant : kernel_constants()) {
    rates.push_back(fmt::format("\"{}\": {}", constant.name, calibration.rates.*constant.member));
  }
  std::vector<std::string> fitted;
  for (const Calibration::Fitted& one : calibration.fitted) {
    fitted.push_back(fmt::format(R"({{"name": {}, "value": {}, "standard_error": {}}})",
                                 quoted(one.name), one.value, one.standard_error));
  }
  std::vector<std::string> residuals;
  for (const Calibration::Residual& one : calibration.residuals) {
    residuals.push_back(fmt::format(R"({{"point": {}, "measured": {}, "predicted": {}}})",
                                    quoted(one.point), one.measured, one.predicted));
  }
  std::vector<std::string> runs;
  for (const CalibratedRuns& one : calibration.rests_on) {
    runs.push_back(fmt::format(
        R"({{"software": {}, "kind": {}, "products": {}, "rows": {}{}}})", quoted(one.software),
        quoted(one.kind), quoted(one.products), one.rows,
        one.high > 0 ? fmt::format(R"(, "low": {}, "high": {})", one.low, one.high) : ""));
  }
  const std::string rests_on =
      runs.empty() ? "" : fmt::format("  \"rests_on\": {},\n", json_lines(runs));
  return fmt::format(
      "{{\n  \"format\": \"{}\",\n  \"kind\": {},\n  \"rates\": {{\n    {}\n  }},\n"
      "  \"fitted\": {},\n  \"residuals\": {},\n{}  \"source\": {},\n  \"date\": {}\n}}\n",
      format_name, quoted(calibration.kind), fmt::join(rates, ",\n    "), json_lines(fitted),
      json_lines(residuals), rests_on, quoted(calibration.source), quoted(calibration.date));
}

}  // namespace stageline
