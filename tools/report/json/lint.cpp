// Diagnostics of a program as JSON. The keys are documented in tools/report/json/README.md and
// stable.
#include "tools/report/text/lint.hpp"
#include "sim/base/index.hpp"
#include "tools/base/json.hpp"

namespace stageline::report {

std::string lint_json(const std::string& file, const Program& program, const Lint& lint) {
  const auto or_null = [](bool known, auto value) { return known ? Json(value) : Json(nullptr); };
  Json findings = Json::array();
  for (const LintFinding& finding : lint.findings) {
    const bool placed = finding.position >= 0;
    Json one;
    one["severity"] = name(finding.severity);
    one["rule"] = name(finding.rule);
    one["device"] = placed ? Json(nth(program.devices, finding.device)) : Json(nullptr);
    one["position"] = or_null(placed, finding.position);
    one["op"] = placed
                    ? Json(print(program.ops[as_size(finding.device)][as_size(finding.position)]))
                    : Json(nullptr);
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
  return all.text();
}

}  // namespace stageline::report
