// Writes findings as text and JSON.
#include "tools/report/text/lint.hpp"

#include <fmt/core.h>

#include "sim/base/index.hpp"

namespace stageline::report {
namespace {

std::string counted_findings(int number, const std::string& noun) {
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
  return text + fmt::format("{}: {}, {}, {}\n", file,
                            counted_findings(lint.count(Severity::error), "error"),
                            counted_findings(lint.count(Severity::warning), "warning"),
                            counted_findings(lint.count(Severity::note), "note"));
}

}  // namespace stageline::report
