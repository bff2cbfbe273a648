// Renders the page of the staleness study.
#include "tools/lab/papers/staleness/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/lab/papers/published.hpp"

namespace stageline::lab {
namespace {

constexpr const char* staleness_preface = R"(# What stale weights cost in accuracy

Made by `stageline-study staleness`, and from its runs (`staleness.json.gz`) again by
`stageline staleness tools/executor/studies/staleness.json.gz --report tools/executor/studies`; a test does
that and fails where a byte differs. Beside ours are the figures of Zhang and Abdelrahman (arXiv 1912.12675), who
trained full nets on MNIST and CIFAR-10: **ours are smaller nets on drawn tasks**, so directions and orders can agree,
sizes need not.

Accuracies are of the test set after the last step, in percent: mean ± half the range over the seeds. *Lost* is
non-pipelined less this; its ± is the sum of both halves, and a smaller difference is *within the spread*.
The settings were chosen so that plain training does well and staleness has an effect (momentum 0.9, small batches);
the rows at a gentler rate show how much depends on that. The first three findings below are the paper's, the orders
are tested on our runs alone. Every run can be made by hand: its command is in `staleness.json.gz`.
)";

constexpr const char* counting = R"(
## How it is counted

* *within 1.5 points*: agrees where loss and spread together are 1.5 points or less, differs where the loss less the
  spread is more; otherwise the seeds leave it open.
* *measurably worse*: the loss is larger than the spread.
* *recovers half*: hybrid is above the midpoint of non-pipelined and pipelined by more than its half range and the
  mean of theirs. *Recovered* is (hybrid − pipelined) / (non-pipelined − pipelined).
* *the deeper, the worse*, *the more stale weights, the worse*: all pairs of cases (non-pipelined among them) that
  differ beyond the spread must be in that order.
* *copies*: weight tensors kept beside the newest, in copies of all weights; activations are not included.
* *×*: speed-up of the whole training in simulated time, on as many devices as the pipeline has.
* A seed that diverged counts with its final accuracy (guessing is 10 %).
)";

std::string accuracy_text(const CaseResult& one) {
  std::string text = fmt::format("{:.2f} ± {:.2f}", one.accuracy.mean, one.accuracy.half);
  if (one.diverged > 0) {
    text += fmt::format(" ({} of {} diverged)", one.diverged, one.accuracy.seeds);
  }
  return text;
}

std::string lost_text(const Difference& loss) {
  const std::string numbers = fmt::format("{:.2f} ± {:.2f}", loss.points, loss.spread);
  return loss.decided() ? numbers : numbers + ", within the spread";
}

std::string speedup_text(const CaseResult& plain, const CaseResult& one) {
  return fmt::format("{:.2f} ×", to_seconds(plain.total) / to_seconds(one.total));
}

std::string ppv_text(const StudyCase& one) {
  std::string text;
  for (const int at : one.ppv) text += (text.empty() ? "" : ",") + fmt::format("{}", at);
  return "(" + text + ")";
}

std::string share_text(const CaseResult& one) { return percent(one.stale_share); }

const ZhangLoss* published_of(const NetResult& one) {
  const auto found =
      std::find_if(zhang_losses.begin(), zhang_losses.end(),
                   [&](const ZhangLoss& theirs) { return theirs.model == one.net->model; });
  return found == zhang_losses.end() ? nullptr : &*found;
}

// ---- sections

void findings(std::string& text, const std::vector<NetResult>& results) {
  text +=
      "\n## What agrees and what does not\n\n| finding | net | here | ours | "
      "published |\n|---|---|---|---|---|\n";
  for (const StudyFinding& one : findings_of(results)) {
    text += fmt::format("| {} | {} | **{}** | {} | {} |\n", one.what, one.net, name(one.holds),
                        one.numbers, one.published);
  }
}

void settings(std::string& text, const StalenessEvidence& evidence,
              const std::vector<NetResult>& results) {
  text +=
      "\n## What was trained\n\n| | model | data | batch | recipe | steps | seeds | reduced "
      "|\n|---|---|---|--:|---|--:|--:|---|\n";
  double seconds = 0;
  int runs = 0;
  for (const NetResult& one : results) {
    for (const CaseResult& result : one.cases) {
      if (result.asked->group == StudyGroup::optimizer) continue;  // they shared their cores
      seconds += result.wall_seconds;
      runs += result.accuracy.seeds;
    }
    const auto run = std::find_if(evidence.runs.begin(), evidence.runs.end(),
                                  [&](const StudyRun& some) { return some.net == one.net->name; });
    const TrainingSettings& s = run->log.settings;
    text += fmt::format("| {} | {} | {} | {} | {}, {} | {} | {} | {} |\n", one.net->title,
                        markdown_line(s.model), markdown_code(s.data), one.net->batch,
                        markdown_line(s.optimizer), markdown_line(s.recipe), s.steps,
                        evidence.seeds, one.net->reduced);
  }
  std::string software;
  for (const std::string& some : evidence.runs.front().log.software) software += " · " + some;
  std::string priced;
  for (const NetResult& one : results) {
    priced += fmt::format("{}`{}`", priced.empty() ? "" : " and ", one.net->trace);
    if (!one.net->link.empty()) priced += fmt::format(" with links of {}", one.net->link);
  }
  text += fmt::format(
      "\n{} runs, {:.0f} minutes of one core in all; each on one core, by the delays of its "
      "program{}. Steps are priced on {}.\n",
      runs, seconds / 60, markdown_line(software), priced);
}

void figure(std::string& text, const std::vector<StudyFigure>& figures, const std::string& file) {
  for (const StudyFigure& one : figures) {
    if (one.file != file) continue;
    text += fmt::format("\n![{}]({})\n\n{}\n", one.file.substr(0, one.file.find('.')), one.file,
                        one.caption);
  }
}

void depth_row(std::string& text, const NetResult& net, const CaseResult& one,
               const std::string& published) {
  const CaseResult& plain = *net.plain();
  const bool base = &one == &plain;
  text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", net.net->title,
                      one.asked->name, base ? "" : ppv_text(*one.asked), share_text(one),
                      one.staleness, accuracy_text(one),
                      base ? "" : lost_text(difference(plain.accuracy, one.accuracy)), published,
                      base ? "" : speedup_text(plain, one));
}

constexpr const char* depth_head =
    "| | pipeline | PPV | stale weights | most updates late | accuracy | lost | published | × "
    "|\n|---|---|---|--:|--:|--:|--:|--:|--:|\n";

void depth(std::string& text, const std::vector<NetResult>& results) {
  text += fmt::format("\n## By depth\n\n{}", depth_head);
  for (const NetResult& net : results) {
    if (net.plain() == nullptr) continue;
    const ZhangLoss* const theirs = published_of(net);
    depth_row(text, net, *net.plain(), "");
    for (const CaseResult* const one : net.of(StudyGroup::depth)) {
      std::string published;
      if (theirs != nullptr && one == net.shallowest()) {
        published = fmt::format("{}", theirs->early);
      } else if (theirs != nullptr && one == net.deepest() && theirs->deep > 0) {
        published = fmt::format("up to {}", theirs->deep);
      }
      depth_row(text, net, *one, published);
    }
  }
  text += "\nPublished, of nets that are not here:";
  const char* between = " ";
  for (const ZhangLoss& one : zhang_losses) {
    const bool here = std::any_of(results.begin(), results.end(), [&](const NetResult& net) {
      return net.net->model == one.model;
    });
    if (here) continue;
    text += fmt::format("{}{} {} points lost with early layers pipelined", between, one.title,
                        one.early);
    if (one.deep > 0) text += fmt::format(", up to {} deeper", one.deep);
    between = "; ";
  }
  text += ".\n";
}

void gentle(std::string& text, const std::vector<NetResult>& results) {
  std::string rows;
  for (const NetResult& net : results) {
    const auto some = net.of(StudyGroup::gentle);
    for (const CaseResult* const one : some) {
      const CaseResult& plain = *some.front();
      rows += fmt::format(
          "| {} | {} instead of {} | {} | {} | {} |\n", net.net->title, one->asked->rate,
          net.net->cases.front().rate, markdown_line(one->asked->name), accuracy_text(*one),
          one == &plain ? "" : lost_text(difference(plain.accuracy, one->accuracy)));
    }
  }
  if (rows.empty()) return;
  text +=
      "\n### At a gentler rate\n\nThe same trainings with a fifth of the rate; of corrections, the "
      "deepest pipeline with them.\n\n| | rate | | accuracy | lost |\n|---|---|---|--:|--:|\n" +
      rows;
}

void sliding(std::string& text, const std::vector<NetResult>& results) {
  std::string rows;
  for (const NetResult& net : results) {
    if (net.plain() == nullptr || net.of(StudyGroup::sliding).empty()) continue;
    std::vector<const CaseResult*> pairs = net.of(StudyGroup::sliding);
    for (const CaseResult* const one : net.of(StudyGroup::depth)) pairs.push_back(one);
    std::stable_sort(pairs.begin(), pairs.end(), [](const CaseResult* a, const CaseResult* b) {
      return a->stale_share < b->stale_share;
    });
    for (const CaseResult* const one : pairs) {
      rows += fmt::format("| {} | {} | {} | {} | {} | {} |\n", net.net->title, share_text(*one),
                          ppv_text(*one->asked), one->staleness, accuracy_text(*one),
                          lost_text(difference(net.plain()->accuracy, one->accuracy)));
    }
  }
  if (rows.empty()) return;
  text +=
      "\n## By percentage of stale weights\n\nOne register pair behind more and more layers "
      "(all 2 updates late), and the deeper pipelines among them.\n\n| | stale weights | PPV "
      "| most updates late | accuracy | lost |\n|---|--:|---|--:|--:|--:|\n" +
      rows;
}

std::string recovered_text(const NetResult& net, const CaseResult& one) {
  const std::optional<double> share =
      recovered(net.plain()->accuracy, net.deepest()->accuracy, one.accuracy);
  return share ? fmt::format("{:.0f} %", 100 * *share) : "nothing was lost beyond the spread";
}

void hybrid(std::string& text, const std::vector<NetResult>& results) {
  text +=
      "\n## Hybrid training\n\nThe deepest pipeline for the first part of the steps, one "
      "device for the rest.\n\n| | steps pipelined | accuracy | lost | recovered | × "
      "|\n|---|--:|--:|--:|--:|--:|\n";
  for (const NetResult& net : results) {
    if (net.plain() == nullptr || net.deepest() == nullptr) continue;
    std::vector<const CaseResult*> rows = net.of(StudyGroup::hybrid);
    rows.insert(rows.begin(), net.plain());
    rows.push_back(net.deepest());
    for (const CaseResult* const one : rows) {
      const bool end = one == net.plain() || one == net.deepest();
      text += fmt::format(
          "| {} | {} | {} | {} | {} | {} |\n", net.net->title,
          percent(static_cast<double>(one->asked->pipelined) / static_cast<double>(net.net->steps)),
          accuracy_text(*one),
          one == net.plain() ? "" : lost_text(difference(net.plain()->accuracy, one->accuracy)),
          end ? "" : recovered_text(net, *one),
          one == net.plain() ? "" : speedup_text(*net.plain(), *one));
    }
  }
  text +=
      "\nPublished (table 5, 4-stage, switch at about one half):\n\n| | non-pipelined | "
      "pipelined | hybrid | recovered |\n|---|--:|--:|--:|--:|\n";
  for (const ZhangAccuracy& one : zhang_accuracies) {
    const double loss = one.non_pipelined - one.pipelined;
    text += fmt::format(
        "| {} | {} | {} | {} | {} |\n", one.title, one.non_pipelined, one.pipelined, one.hybrid,
        loss > 0 ? fmt::format("{:.0f} %", 100 * (one.hybrid - one.pipelined) / loss)
                 : "nothing was lost");
  }
}

void corrections(std::string& text, const std::vector<NetResult>& results) {
  std::string rows;
  for (const NetResult& net : results) {
    const auto some = net.of(StudyGroup::correction);
    if (some.empty() || net.plain() == nullptr || net.deepest() == nullptr) continue;
    const CaseResult& deep = *net.deepest();
    const auto row = [&](const CaseResult& one, const std::string& title,
                         const std::string& against) {
      rows += fmt::format("| {} | {} | {} | {} | {} | {} | {:.2f} | {} |\n", net.net->title, title,
                          one.staleness, accuracy_text(one), against,
                          &one == &deep ? "" : recovered_text(net, one), one.copies,
                          speedup_text(*net.plain(), one));
    };
    row(deep, "none", "");
    for (const CaseResult* const one : some) {
      const Difference gain = difference(one->accuracy, deep.accuracy);
      row(*one, markdown_line(one->asked->name),
          gain.above()   ? "better"
          : gain.below() ? "worse"
                         : "within the spread");
    }
  }
  if (rows.empty()) return;
  text +=
      "\n## What can be done about it\n\nEach correction of `stageline-train --corrections` on "
      "the deepest pipeline, and other schedules over the same stages.\n\n| | correction | "
      "most updates late | accuracy | against none | recovered | copies | × "
      "|\n|---|---|--:|--:|---|--:|--:|--:|\n" +
      rows;
}

constexpr const char* optimizers_about = R"(
## Other optimizers

Shorter trainings by other optimizers, each at a rate that does well without delay, under the delays of three
asynchronous schedules over the deepest pipeline's stages. *Lost* is against the same optimizer without delay.
Nesterov is the correction of Ajanthan et al. (arXiv 2505.01099: momentum 0.99); Muon under pipedream\_2bw, and
error\_feedback, are those of Zmushko et al. (arXiv 2606.30634). They train transformers of up to 10 billion weights, the
former with Nesterov within NAdam; their measure is the loss of validation. Ours is a convolutional
net of 62 thousand weights, trained for less than three passes: which optimizer minds delay can agree, sizes need not.
)";

constexpr const char* optimizers_head =
    "\n| | steps | optimizer | schedule | correction | most updates late | accuracy | lost | test "
    "loss |\n|---|--:|---|---|---|--:|--:|--:|--:|\n";

// What the runs of this group were made with.
std::string software_of(const StalenessEvidence& evidence, StudyGroup group) {
  const auto run = std::find_if(evidence.runs.begin(), evidence.runs.end(),
                                [&](const StudyRun& some) { return some.group == group; });
  std::string text;
  if (run == evidence.runs.end()) return text;
  for (const std::string& one : run->log.software) text += (text.empty() ? "" : " · ") + one;
  return text;
}

void optimizers(std::string& text, const StalenessEvidence& evidence,
                const std::vector<NetResult>& results) {
  std::string rows;
  for (const NetResult& net : results) {
    for (const CaseResult* const one : net.of(StudyGroup::optimizer)) {
      const StudyCase& asked = *one->asked;
      const CaseResult* const plain = net.row(asked.title, "");
      rows += fmt::format("| {} | {} | {}, rate {} | {} | {} | {} | {} | {} | {:.3f} |\n",
                          net.net->title, steps_of(*net.net, asked), asked.title, asked.rate,
                          asked.pipelined > 0 ? markdown_line(asked.schedule) : "non-pipelined",
                          markdown_line(asked.correction), one->staleness, accuracy_text(*one),
                          plain == nullptr || one == plain
                              ? ""
                              : lost_text(difference(plain->accuracy, one->accuracy)),
                          one->loss);
    }
  }
  if (rows.empty()) return;
  text += optimizers_about;
  const std::string software = software_of(evidence, StudyGroup::optimizer);
  if (!software.empty()) {
    text += fmt::format("These runs, on cores shared with other work: {}.\n",
                        markdown_line(software.substr(0, software.find(';'))));
  }
  text += optimizers_head + rows;
}

std::vector<NetResult> some_results(const StalenessEvidence& evidence) {
  std::vector<NetResult> results = results_of(evidence);
  if (results.empty()) {
    throw UsageError(
        "the evidence has no run with the settings of today's study; "
        "`stageline-study staleness` makes them");
  }
  return results;
}

}  // namespace

std::string staleness_markdown(const StalenessEvidence& evidence) {
  const std::vector<NetResult> results = some_results(evidence);
  const std::vector<StudyFigure> figures = staleness_figures(results);
  std::string text = staleness_preface;
  findings(text, results);
  settings(text, evidence, results);
  depth(text, results);
  figure(text, figures, "staleness-depth.svg");
  gentle(text, results);
  sliding(text, results);
  figure(text, figures, "staleness-share.svg");
  hybrid(text, results);
  corrections(text, results);
  optimizers(text, evidence, results);
  return text + counting;
}

std::string staleness_text(const StalenessEvidence& evidence) {
  std::vector<std::vector<std::string>> rows;
  for (const StudyFinding& one : findings_of(some_results(evidence))) {
    rows.push_back({one.what, one.net, std::string(name(one.holds)), one.numbers, one.published});
  }
  return table(
      {{"finding", true}, {"net", true}, {"here", true}, {"ours", true}, {"published", true}},
      rows);
}

void write_staleness_report(const std::string& folder, const StalenessEvidence& evidence) {
  const std::string page = staleness_markdown(evidence);
  make_folder(folder);
  const std::filesystem::path place = folder;
  for (const StudyFigure& one : staleness_figures(results_of(evidence))) {
    write_file((place / one.file).string(), report::chart_svg(one.chart));
  }
  write_file((place / "staleness.md").string(), page);
}

}  // namespace stageline::lab
