// A finding's names and place, and the first of them thrown.
#include <fmt/format.h>

#include "sim/base/errors.hpp"
#include "sim/check/check.hpp"
#include "sim/text/figure.hpp"

namespace stageline {

std::string_view name(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "";
}

std::string_view name(LintRule rule) {
  switch (rule) {
    case LintRule::size:
      return "size";
    case LintRule::placement:
      return "placement";
    case LintRule::range:
      return "range";
    case LintRule::twice:
      return "done-twice";
    case LintRule::missing:
      return "missing";
    case LintRule::unmatched:
      return "unmatched-message";
    case LintRule::unsent:
      return "missing-message";
    case LintRule::pairing:
      return "overlapped-pair";
    case LintRule::order:
      return "order";
    case LintRule::deadlock:
      return "deadlock";
    case LintRule::channel:
      return "message-order";
    case LintRule::early_receive:
      return "early-receive";
    case LintRule::late_send:
      return "late-send";
    case LintRule::updates:
      return "updates";
  }
  return "";
}

std::string with_place(const Program& program, const LintFinding& finding) {
  if (finding.position < 0) return finding.message;
  const auto device = static_cast<std::size_t>(finding.device);
  return fmt::format("{}, op {} ({}): {}", program.devices[device], finding.position,
                     print(program.ops[device][static_cast<std::size_t>(finding.position)]),
                     finding.message);
}

void validate(const Program& program) {
  check(program, [&](const LintFinding& finding) {
    const bool placed = finding.position >= 0;
    throw ProgramError(
        with_place(program, finding), finding.device, finding.position,
        placed ? grid(program, {program.ops[static_cast<std::size_t>(finding.device)]
                                           [static_cast<std::size_t>(finding.position)]})
               : std::string());
  });
}

}  // namespace stageline
