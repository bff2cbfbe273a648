// Writes findings as text and JSON.
#include "tools/report/text/lint.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/index.hpp"

namespace stageline {
namespace {

std::string counted(int number, const std::string& noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

Op op_of(const Program& program, const LintFinding& finding) {
  return program.ops[as_size(finding.device)][as_size(finding.position)];
}

}  // namespace

std::string lint_report(const std::string& file, const Program& program, const Lint& lint,
                        bool notes) {
  std::string text;
  for (const LintFinding& finding : lint.findings) {
    if (finding.severity == Severity::note && !notes) continue;
    const std::string at =
        finding.line > 0 ? fmt::format(":{}:{}", finding.line, finding.column) : "";
    const std::string where = finding.position < 0
                                  ? ""
                                  : fmt::format("{} on {}: ", print(op_of(program, finding)),
                                                nth(program.devices, finding.device));
    text += fmt::format("{}{}: {}: {}{} [{}]\n", file, at, name(finding.severity), where,
                        finding.message, name(finding.rule));
    if (!finding.figure.empty()) text += fmt::format("\n{}\n", finding.figure);
  }
  for (const auto& [rule, number] : lint.left_out) {
    text += fmt::format("{}: {} more of [{}]\n", file, number, name(rule));
  }
  if (text.empty()) return text;
  return text + fmt::format("{}: {}, {}, {}\n", file, counted(lint.count(Severity::error), "error"),
                            counted(lint.count(Severity::warning), "warning"),
                            counted(lint.count(Severity::note), "note"));
}

std::string lint_json(const std::string& file, const Program& program, const Lint& lint) {
  using Json = nlohmann::ordered_json;
  const auto or_null = [](bool known, auto value) { return known ? Json(value) : Json(nullptr); };
  Json findings = Json::array();
  for (const LintFinding& finding : lint.findings) {
    const bool placed = finding.position >= 0;
    Json one;
    one["severity"] = name(finding.severity);
    one["rule"] = name(finding.rule);
    one["device"] = placed ? Json(nth(program.devices, finding.device)) : Json(nullptr);
    one["position"] = or_null(placed, finding.position);
    one["op"] = placed ? Json(print(op_of(program, finding))) : Json(nullptr);
    one["line"] = or_null(finding.line > 0, finding.line);
    one["column"] = or_null(finding.column > 0, finding.column);
    one["message"] = finding.message;
    one["figure"] = finding.figure;
    findings.push_back(std::move(one));
  }
  Json left_out = Json::object();
  for (const auto& [rule, number] : lint.left_out) left_out[std::string(name(rule))] = number;
  Json all;
  all["file"] = file;
  all["errors"] = lint.count(Severity::error);
  all["warnings"] = lint.count(Severity::warning);
  all["notes"] = lint.count(Severity::note);
  all["findings"] = std::move(findings);
  all["left_out"] = std::move(left_out);
  return all.dump(2) + "\n";
}

}  // namespace stageline
