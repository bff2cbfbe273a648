// The findings of lint(): each with its place in the text and a picture, at most so many per rule.
#pragma once

#include <map>
#include <string>

#include "sim/check/lint.hpp"

namespace stageline {

class LintFindings {
 public:
  LintFindings(const Program& program, const LintOptions& options)
      : program_(program), options_(options) {}

  /// Keeps the finding, with its line and a picture, or only counts it if its rule has the most.
  void add(LintFinding finding);
  /// A finding about an op of the program.
  void add(Severity severity, LintRule rule, Op op, std::string message, std::string figure = "");

  /// Counts another finding of a rule that already has the most, and returns true; false if the
  /// rule has fewer. A list in reverse order has as many findings as ops: no text is made for
  /// those.
  bool only_count(Severity severity, LintRule rule);

  bool has_errors() const { return errors_; }
  /// All findings, sorted.
  Lint finish();

 private:
  struct Place {
    int device = -1;
    int position = -1;
  };
  Place place_of(Op op) const;

  const Program& program_;
  const LintOptions& options_;
  Lint result_;
  bool errors_ = false;
  std::map<LintRule, std::size_t> seen_;
};

}  // namespace stageline
