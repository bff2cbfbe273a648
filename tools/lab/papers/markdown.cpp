// Renders sections, tables and figures as Markdown.
#include "tools/lab/papers/markdown.hpp"

#include <fmt/core.h>

#include "tools/base/table.hpp"

namespace stageline::lab {
namespace {

constexpr const char* preface = R"(# The papers' numbers, and ours

Made by `stageline reproduce --output tools/lab/papers`; a test makes it again and fails where a byte
differs. Each table of the three papers is compared with Stageline's results, in two parts that are
never mixed:

* **Their inputs, our arithmetic**: the paper's own numbers or networks, put through its formula.
* **From our own costs**: a schedule cut or run with our costs: a bundled trace measured on a CPU core
  (*measured costs*), a data sheet (*roofline costs*, a lower bound on time), multiply-accumulates
  (*MAC costs*), or equal stages.

| verdict | means |
|---|---|
| **reproduced** | a rule quoted from the paper, on the paper's own inputs, gives the printed number within *allowed* |
| **consistent** | within *allowed*, but the rule is rebuilt (not printed in what we could read) or the costs are ours |
| **differs** | outside of *allowed* |
| **not comparable** | for the reason given |

*Allowed* is half a printed digit, or as stated; for simulations it is a judgement of how near counts as near.
)";

std::string ours_of(const Finding& finding) { return finding.ours ? print(*finding.ours) : "–"; }

std::string allowed(const Finding& finding) {
  if (finding.verdict == FindingVerdict::not_comparable) return "";
  if (finding.allowed == 0) return finding.published.low == finding.published.high ? "0" : "";
  Number most = *finding.ours;
  most.value = finding.allowed;
  if (most.unit == " %") most.unit = " points";
  // As many decimals as two significant digits need.
  while (most.decimals < 4 && most.value < 10 &&
         std::stod(fmt::format("{:.{}f}", most.value, most.decimals)) != most.value)
    ++most.decimals;
  return "± " + print(most);
}

std::string verdict_of(const Finding& finding) {
  std::string word = fmt::format("**{}**", name(finding.verdict));
  if (finding.note.empty()) return word;
  return fmt::format("{}: {}", word, finding.note);
}

void findings_table(std::string& text, const Section& section, bool of_costs) {
  text += "| | published | ours | deviation | allowed | from | rule | verdict |\n";
  text += "|---|--:|--:|--:|--:|---|---|---|\n";
  for (const Finding& finding : section.findings) {
    if (from_costs(finding.basis) != of_costs) continue;
    text +=
        fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", finding.what,
                    finding.published.text, ours_of(finding), print_deviation(finding),
                    allowed(finding), name(finding.basis), name(finding.rule), verdict_of(finding));
  }
}

void section_text(std::string& text, const Section& section) {
  text += fmt::format("\n## {}\n\n{}.\n", section.title, section.source);
  for (const std::string& paragraph : section.says) text += "\n" + paragraph + "\n";
  for (const bool of_costs : {false, true}) {
    if (tally(section, of_costs).all == 0) continue;
    text += of_costs ? "\n### From our own costs\n\n" : "\n### Their inputs, our arithmetic\n\n";
    findings_table(text, section, of_costs);
  }
  for (const Figure& figure : section.figures) {
    text += fmt::format("\n![{}](figures/{})\n\n{}\n", figure.file.substr(0, figure.file.find('.')),
                        figure.file, figure.caption);
  }
  for (const std::string& remark : section.remarks) text += "\n" + remark + "\n";
}

}  // namespace

Tally tally(const Section& section, bool of_costs) {
  Tally count;
  for (const Finding& finding : section.findings) {
    if (from_costs(finding.basis) != of_costs) continue;
    ++count.of[static_cast<int>(finding.verdict)];
    ++count.all;
  }
  return count;
}

std::string print(const Tally& tally) {
  std::string text;
  for (const FindingVerdict verdict : {FindingVerdict::reproduced, FindingVerdict::consistent,
                                       FindingVerdict::differs, FindingVerdict::not_comparable}) {
    const int count = tally.of[static_cast<int>(verdict)];
    if (count == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name(verdict));
  }
  return text.empty() ? "–" : text;
}

std::string report_markdown(const std::vector<Section>& sections) {
  std::string text = preface;
  text += "\n| table | their inputs, our arithmetic | from our own costs | in short |\n";
  text += "|---|---|---|---|\n";
  for (const Section& section : sections) {
    text += fmt::format("| {} | {} | {} | {} |\n", section.title, print(tally(section, false)),
                        print(tally(section, true)), section.headline);
  }
  for (const Section& section : sections) section_text(text, section);
  return text;
}

std::string report_text(const std::vector<Section>& sections) {
  std::vector<std::vector<std::string>> rows;
  for (const Section& section : sections) {
    rows.push_back({section.title, print(tally(section, false)), print(tally(section, true))});
  }
  std::string text =
      table({{"table", true}, {"their inputs, our arithmetic", true}, {"from our own costs", true}},
            rows);
  if (sections.size() != 1) return text;
  rows.clear();
  for (const Finding& finding : sections.front().findings) {
    rows.push_back({finding.what, finding.published.text, ours_of(finding),
                    print_deviation(finding), std::string(name(finding.basis)),
                    std::string(name(finding.rule)), std::string(name(finding.verdict)),
                    finding.note});
  }
  return text + "\n" +
         table({{"", true},
                {"published"},
                {"ours"},
                {"deviation"},
                {"from", true},
                {"rule", true},
                {"verdict", true},
                {"", true}},
               rows);
}

}  // namespace stageline::lab
