// A published number beside ours, and the verdict on the two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stageline::lab {

/// The inputs of our number: for the first two the paper's own, else costs of ours, with which a
/// schedule is cut or run.
enum class Basis : std::uint8_t {
  their_inputs,    // the paper's own numbers
  counted,         // the paper's network and cut, counted in our model shapes
  closed_form,     // the rule's formula over equal stages
  mac_costs,       // a pass of a layer takes time in proportion to its multiply-accumulates
  measured_costs,  // a bundled trace
  roofline_costs,  // a model priced from a data sheet: a lower bound on time
  equal_stages,    // equal stages with chosen times
  their_shares,    // time shares worked out from the published times
};
std::string_view name(Basis basis);
/// Whether our own costs are among the inputs; else the number is arithmetic on the paper's inputs.
bool from_costs(Basis basis);

/// Whether the rule behind our number is printed in the paper, or was rebuilt from its abstract,
/// from related papers and from checks.
enum class Rule : std::uint8_t { quoted, rebuilt };
std::string_view name(Rule rule);
/// The rule of a number that the scheduler of that name yields, by Scheduler::rebuilt.
Rule rule_of(const std::string& schedule);

enum class FindingVerdict : std::uint8_t {
  reproduced,      // within `allowed`, by a quoted rule on the paper's own inputs
  consistent,      // within `allowed`, but the rule is rebuilt or the costs are ours
  differs,         // outside `allowed`
  not_comparable,  // the note gives the reason
};
inline constexpr int verdicts = 4;
std::string_view name(FindingVerdict verdict);

/// `unit` is appended to the number: "×", " %", " s".
struct Number {
  double value = 0;
  int decimals = 2;
  std::string unit;
};
std::string print(const Number& number);

/// A number or a range as the paper prints it; low == high for a number, and either end may be
/// infinite ("upwards of").
struct Claim {
  std::string text;
  double low = 0;
  double high = 0;
};
Claim claim_of(const Number& number);

struct Finding {
  std::string what;
  Claim published;
  std::optional<Number> ours;  // empty where none can be computed
  double allowed = 0;  // deviation, in the unit of the number, that still counts as the same
  Basis basis = Basis::their_inputs;
  Rule rule = Rule::quoted;
  FindingVerdict verdict = FindingVerdict::not_comparable;
  std::string note{};  // why it is not comparable, or the cause of a deviation; may be empty
};

/// The distance of ours from the claim: 0 inside a range. Only for a finding with a number of ours.
double deviation(const Finding& finding);
/// "+0.3 %" of the published number; for percentages "+0.3 points"; "inside" for a range; empty
/// where nothing is compared.
std::string print_deviation(const Finding& finding);

/// The finding with its verdict: by `allowed`, then by basis and rule.
Finding judged(Finding finding);
Finding not_comparable(Finding finding, std::string why);

struct Figure {
  std::string file;     // "hybrid.svg"
  std::string caption;  // description, one or two sentences
  std::string svg;
};

/// One table of one paper.
struct Section {
  std::string name;                  // as in --only
  std::string title;                 // heading
  std::string source;                // citation of the published numbers
  std::vector<std::string> says;     // paragraphs above the tables (Markdown)
  std::vector<Finding> findings;     // rows of the tables
  std::vector<Figure> figures;       // below the tables
  std::vector<std::string> remarks;  // conclusions, below the figures
  std::string headline;              // one sentence for the head table
};

}  // namespace stageline::lab
