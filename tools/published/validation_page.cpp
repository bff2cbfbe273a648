// Writes the page of coverage and error by class.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/published/evidence.hpp"

namespace stageline {
namespace {

constexpr std::string_view head = R"(# How sure an answer is

Written by `stageline published {} --evidence-out tools/study/evidence/evidence.csv
--validation-out tools/guide/validation.md`{}.

A language model priced for a device has a range behind its step, tokens/s, MFU and peak memory: `9.68 s (8.90–10.6)`. It is
the prediction times two factors. In 80 % of the published runs of its class measured over predicted is between them. Where no
run of its kind was published on its chip, a line says so, and the range is the widest of all classes.

* A class is: software stated or not; dense or experts; chip; format of products; gradients or weights sharded across machines
  or not; sequences above 8,192 tokens or not. One with fewer than {} runs, or with one source alone, is widened by its last
  trait first. No range reaches further than {:g} times the mean error of its runs.
* Each source has the same weight in ranges and means, however many runs its table has. (Pooled quantiles of two-layer conformal
  prediction: Dunn, Wasserman and Ramdas, arXiv 1809.07441.) A range always has the prediction in it.
* Rows that a constant was fitted to are no runs of a class. Built-in constants may have been chosen with rows of `calibrate` in
  view (tools/published/README.md). Coverage below is of sources left out of the ranges, not of the constants.
* "Without software": the same rows without generation and recipe, as a question without `--software` has it.
* With `--calibration` the range stays that of the built-in constants, unless the file rests on few runs of the same software
  and class: then it is what [such calibrations](../../cost_models/README.md#from-few-runs) left on published runs.
* Ties: two runs of one model on one machine share most of what is wrong with their predictions, so the ranges above are not what
  tells them apart. Pairs of published dense runs whose parallelism differs, where they are predicted to differ by less than 3 %,
  came out in that order in 57 % (of those that differ by 3 to 6 %, in 71 %), and the one predicted to be faster was no faster on
  the mean. So rows at most 3 % slower than the fastest tie, and `compare` and `plan` recommend the one with the least time ×
  memory, which saves a larger share of memory than it is slower. They name the fastest beside it, and a note names all rows
  that tie. `--within` is as exact as it says. Rows of one schedule that differ in their cut or in what is recomputed alone tie within 1 %:
  the same costs decide between them. Another note names the schedules that no published run was held against.
* Given times (`uniform:…`, a file, a profile) have no range. To add them up is exact arithmetic, and how far they are from the
  machine is not ours to know. [Accuracy](accuracy.md#accuracy-against-real-runs) has the executor's runs.
* Models priced by a roofline (`model:resnet50@h100`) have none: they are bounds, and were held against no run.
)";

std::string share_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

// That of the source with or without software; null: it has no such rows.
const Coverage* find_coverage(const std::vector<Coverage>& coverage, const Coverage& like,
                              std::string_view software) {
  const auto found = std::find_if(coverage.begin(), coverage.end(), [&](const Coverage& one) {
    return one.figure == like.figure && one.source == like.source && one.software == software;
  });
  return found == coverage.end() ? nullptr : &*found;
}

std::string coverage_table(const std::vector<Coverage>& coverage, HeldFigure figure) {
  std::string text =
      "\n| source left out | rows | within, software stated | within, without software |\n"
      "|---|---:|---:|---:|\n";
  for (const Coverage& one : coverage) {
    const Coverage* const known = find_coverage(coverage, one, "known");
    const Coverage* const unknown = find_coverage(coverage, one, "unknown");
    if (one.figure != figure || !one.software.empty() || known == nullptr || unknown == nullptr) {
      continue;
    }
    text += fmt::format("| {} | {} | {} | {} |\n",
                        one.source.empty() ? "**all, one at a time**" : markdown_line(one.source),
                        known->rows, share_text(known->share()), share_text(unknown->share()));
  }
  return text;
}

std::string classes_table(const EvidenceTable& table, HeldFigure figure) {
  std::string text =
      "\n| software | class | rows | sources | mean error | range |\n|---|---|---:|---:|---:|---|\n";
  for (const ClassEvidence& row : table) {
    if (row.figure != figure) continue;
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} |\n", row.of.front(), words_of(row.of), row.rows,
        row.sources, percent(row.mean_error),
        row.is_enough() ? fmt::format("{:.2f}–{:.2f}", row.low, row.high) : "of the wider class");
  }
  return text;
}

}  // namespace

std::string validation_page(const EvidenceTable& table, const std::vector<Coverage>& coverage,
                            const std::vector<std::string>& files) {
  std::vector<std::string> names;
  for (const std::string& file : files) names.push_back(file.substr(file.rfind('/') + 1));
  const std::string date = table.empty() ? "" : ", " + table.front().date;
  std::string text =
      fmt::format(fmt::runtime(head), fmt::join(names, " "), date, fewest_runs, furthest);
  for (const HeldFigure figure : {HeldFigure::step, HeldFigure::memory}) {
    const bool step = figure == HeldFigure::step;
    text += fmt::format("\n## {}: runs left out\n", step ? "Step" : "Peak memory");
    text += coverage_table(coverage, figure);
    text += fmt::format("\n## {}: classes\n", step ? "Step" : "Peak memory");
    text += classes_table(table, figure);
  }
  return text;
}

}  // namespace stageline
