// Collects the findings of lint().
#include "sim/check/lint_findings.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/base/index.hpp"
#include "sim/text/figure.hpp"

namespace stageline {

void LintFindings::add(LintFinding finding) {
  if (finding.severity == Severity::error) errors_ = true;
  if (++seen_[finding.rule] > options_.most) {
    ++result_.left_out[finding.rule];
    return;
  }
  const TextPlaces* const places = options_.places;
  TextPlace text;
  if (places != nullptr && finding.position >= 0) {
    text = nth(nth(places->op, finding.device), finding.position);
  } else if (places != nullptr && finding.stage >= 0) {
    text = nth(places->stage, finding.stage);
  }
  finding.line = text.line;
  finding.column = text.column;
  if (finding.position >= 0 && finding.figure.empty()) {
    finding.figure = grid(program_, {nth(nth(program_.ops, finding.device), finding.position)});
  }
  result_.findings.push_back(std::move(finding));
}

void LintFindings::add(Severity severity, LintRule rule, Op op, std::string message,
                       std::string figure) {
  const Place place = place_of(op);
  LintFinding finding;
  finding.severity = severity;
  finding.rule = rule;
  finding.device = place.device;
  finding.position = place.position;
  finding.message = std::move(message);
  finding.figure = std::move(figure);
  add(std::move(finding));
}

bool LintFindings::only_count(Severity severity, LintRule rule) {
  if (seen_[rule] < options_.most) return false;
  if (severity == Severity::error) errors_ = true;
  ++seen_[rule];
  ++result_.left_out[rule];
  return true;
}

Lint LintFindings::finish() {
  std::stable_sort(result_.findings.begin(), result_.findings.end(),
                   [](const LintFinding& a, const LintFinding& b) {
                     const auto key = [](const LintFinding& f) {
                       return std::tuple(f.severity, f.line, f.column, f.device, f.position);
                     };
                     return key(a) < key(b);
                   });
  return std::move(result_);
}

// No place for an op that a pass has added.
LintFindings::Place LintFindings::place_of(Op op) const {
  for (std::size_t d = 0; d < program_.ops.size(); ++d) {
    for (std::size_t i = 0; i < program_.ops[d].size(); ++i) {
      if (plain(program_.ops[d][i]) == plain(op)) return {static_cast<int>(d), static_cast<int>(i)};
    }
  }
  return {};
}

}  // namespace stageline
