// Computes deviations and verdicts of findings.
#include "tools/lab/papers/finding.hpp"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "schedulers/scheduler.hpp"

namespace stageline::lab {
namespace {

// Tolerance for the rounding of a deviation that equals the allowed one.
constexpr double tolerance = 1e-9;

}  // namespace

std::string_view name(Basis basis) {
  switch (basis) {
    case Basis::their_inputs:
      return "their numbers";
    case Basis::counted:
      return "their network, counted";
    case Basis::closed_form:
      return "closed form";
    case Basis::mac_costs:
      return "MAC costs";
    case Basis::measured_costs:
      return "measured costs";
    case Basis::roofline_costs:
      return "roofline costs";
    case Basis::equal_stages:
      return "equal stages";
    case Basis::their_shares:
      return "their time shares";
  }
  return "";
}

bool from_costs(Basis basis) { return basis != Basis::their_inputs && basis != Basis::counted; }

std::string_view name(Rule rule) { return rule == Rule::quoted ? "quoted" : "rebuilt"; }

Rule rule_of(const std::string& schedule) {
  const std::vector<ScheduleSpec> specs = parse_schedules(schedule);
  return specs.front().scheduler->rebuilt.empty() ? Rule::quoted : Rule::rebuilt;
}

std::string_view name(FindingVerdict verdict) {
  switch (verdict) {
    case FindingVerdict::reproduced:
      return "reproduced";
    case FindingVerdict::consistent:
      return "consistent";
    case FindingVerdict::differs:
      return "differs";
    case FindingVerdict::not_comparable:
      return "not comparable";
  }
  return "";
}

std::string print(const Number& number) {
  return fmt::format("{:.{}f}{}", number.value, number.decimals, number.unit);
}

Claim claim_of(const Number& number) { return {print(number), number.value, number.value}; }

double deviation(const Finding& finding) {
  const double ours = finding.ours->value;
  if (ours < finding.published.low) return ours - finding.published.low;
  if (ours > finding.published.high) return ours - finding.published.high;
  return 0;
}

std::string print_deviation(const Finding& finding) {
  if (!finding.ours || finding.published.text.empty()) return "";
  const double off = deviation(finding);
  const bool range = finding.published.low != finding.published.high;
  if (off == 0 && range) return "inside";
  if (finding.ours->unit == " %") {
    return fmt::format("{:+.{}f} points", off, finding.ours->decimals);
  }
  const double nearest = off < 0 ? finding.published.low : finding.published.high;
  return fmt::format("{:+.1f} %", 100 * off / nearest);
}

Finding judged(Finding finding) {
  const bool same = std::abs(deviation(finding)) <= finding.allowed + tolerance;
  const bool theirs = !from_costs(finding.basis);
  finding.verdict = !same                                    ? FindingVerdict::differs
                    : theirs && finding.rule == Rule::quoted ? FindingVerdict::reproduced
                                                             : FindingVerdict::consistent;
  return finding;
}

Finding not_comparable(Finding finding, std::string why) {
  finding.verdict = FindingVerdict::not_comparable;
  finding.note = std::move(why);
  return finding;
}

}  // namespace stageline::lab
