// Writes the summary for the terminal and the page in Markdown.
#include "tools/lab/evidence/report.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/index.hpp"
#include "tools/base/table.hpp"
#include "tools/base/text.hpp"
#include "tools/lab/evidence/aims.hpp"

namespace stageline::lab {
namespace {

constexpr const char* meanings = R"(## How it is counted

* Each case is one program, run several times; *measured* is the median of its makespans. Today's
  simulator predicts it from the trace and the cluster that the evidence keeps. Errors are predicted
  less measured: above 0, the simulator says more than is true.
* *held out*: cases that the calibration of the cluster has not seen. All figures with an aim are
  theirs. *(seen)* marks the others.
* *idle*, *messages*: of the device that is furthest off, as a share of the measured makespan.
* *noise*: what a median may be off by. The larger of the difference between the medians of the odd
  and of the even runs, and 3.72 / √n times half the interquartile range (two standard errors of the
  median of n runs that vary normally).
* A pair is two cases that do the same work (model, batch, micro-batches, steps) over the same link,
  by programs that differ in the time of some op (two schedules can make the same one).
  It is *decidable* when its medians differ by more than the sum of both noises, each at least the mean
  noise of all cases: few runs agree by chance now and then. It is in order when
  the faster one is predicted to be the faster; a tie is not. τ is Kendall's: over decidable pairs,
  those in order less those the other way round, as a share of all.
* *stash*, *peak*: the most bytes held at once by the stashes of a device, and by all its tensors, in
  runs of their own. Where several were counted, the peak is the median of theirs: a message that comes
  in the middle of an op meets more or less beside it, so peaks have a range, and the error beyond
  that is given too. A stash is exact if one of the counted runs had it to the byte; else the error
  is that from the nearest of them.
)";

std::string word(const std::optional<bool>& met, const char* yes, const char* no) {
  return !met ? "" : *met ? yes : no;
}

std::string cases_word(std::size_t count) {
  return fmt::format("{} case{}", count, count == 1 ? "" : "s");
}

// Groups the held-out cases by `key`, in order of first appearance.
template <class Key>
std::string group_table(const Evidence& evidence, const EvidenceJudgement& judgement,
                        const char* title, Key key) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> groups;
  for (const std::size_t at : judgement.held_out.cases) {
    const std::string name = key(evidence.cases[at]);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& one) { return one.first == name; });
    if (group == groups.end()) group = groups.insert(groups.end(), {name, {}});
    group->second.push_back(at);
  }
  std::string text = fmt::format(
      "| {} | cases | mean error | worst | signed mean | idle, worst | peak, worst | noise, mean "
      "|\n|---|--:|--:|--:|--:|--:|--:|--:|\n",
      title);
  for (const auto& [name, cases] : groups) {
    const Summary summary = summary_of(evidence, judgement.cases, cases);
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {} | {} | {} |\n", markdown_line(name), cases.size(),
        percent(summary.mean_error), signed_percent(summary.worst_error.value),
        signed_percent(summary.bias), signed_percent(summary.worst_idle_error.value),
        summary.memory_cases > 0 ? signed_percent(summary.worst_peak_error.value) : "–",
        summary.noise_cases > 0 ? percent(summary.mean_noise) : "–");
  }
  return text;
}

std::string links_of(const MeasuredCase& measured) {
  std::string text = measured.link;
  if (!measured.host_link.empty())
    text += (text.empty() ? "host " : "; host ") + measured.host_link;
  return text.empty() ? "–" : markdown_line(text);
}

std::string cases_table(const Evidence& evidence, const EvidenceJudgement& judgement) {
  std::string text =
      "| | model | schedule | cut | micro-batches | link | measured | noise | predicted | error | "
      "idle | messages | stash | peak |\n"
      "|--:|---|---|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
  for (std::size_t i = 0; i < evidence.cases.size(); ++i) {
    const MeasuredCase& measured = evidence.cases[i];
    const CaseJudgement& judged = judgement.cases[i];
    std::string work = fmt::format("{}", measured.microbatches);
    if (measured.steps > 1) work += fmt::format(" × {}", measured.steps);
    const auto device_name = [&](int device) {
      return markdown_line(nth(judged.prediction.timeline.devices, device));
    };
    const auto share = [&](double error, int device) {
      return fmt::format("{} ({})", signed_percent(error), device_name(device));
    };
    text += fmt::format(
        "| {}{} | {}, {} | {} | {} | {} | {} | {} | {} | {} | **{}** | {} | {} | {} | {} |\n",
        i + 1, measured.held_out ? "" : " (seen)", markdown_line(measured.model), measured.batch,
        markdown_line(measured.schedule), markdown_line(measured.partition), work,
        links_of(measured), print(judged.measured), judged.noise ? print(*judged.noise) : "–",
        print(judged.prediction.makespan), signed_percent(judged.error),
        share(judged.idle_error, judged.idle_device),
        share(judged.transfer_error, judged.transfer_device),
        !judged.stash_error               ? "–"
        : *judged.stash_error == Bytes{0} ? "exact"
                                          : fmt::format("{:+} B ({})", judged.stash_error->count,
                                                        device_name(judged.stash_device)),
        judged.peak_error ? share(*judged.peak_error, judged.peak_device) : "–");
  }
  return text;
}

std::string machine(const Evidence& evidence) {
  std::string text;
  const auto add = [&](const char* what, const std::string& is) {
    if (!is.empty()) text += fmt::format("* {}: {}\n", what, is);
  };
  add("Device", markdown_line(evidence.device));
  add("Date", markdown_line(evidence.date));
  add("Software", markdown_line(evidence.software));
  add("Settings", markdown_line(evidence.settings));
  if (!evidence.command.empty()) add("Made by", markdown_code(evidence.command));
  if (evidence.imitated) {
    text +=
        "* **Imitated**: ops waited for the times of the traces instead of computing. This tests "
        "order, messages and runtime, not arithmetic.\n";
  }
  for (const std::string& note : evidence.notes) text += "* " + markdown_line(note) + "\n";
  return text;
}

}  // namespace

std::string replay_text(const Evidence& evidence, const EvidenceJudgement& judgement) {
  std::string text =
      fmt::format("{} · {} · {} held out, {} calibrated on{}\n\n", evidence.device, evidence.date,
                  cases_word(judgement.held_out.cases.size()), judgement.calibrated.cases.size(),
                  evidence.imitated ? " · compute imitated" : "");
  std::vector<std::vector<std::string>> rows;
  for (const Aim& aim : aims_of(evidence, judgement)) {
    rows.push_back({aim.figure, aim.is, aim.aim, word(aim.met, "met", "MISSED"), aim.where});
  }
  text += table({{"figure", true}, {"is", true}, {"aim", true}, {"", true}, {"of", true}}, rows);
  const std::string pair = worst_pair_text(evidence, judgement);
  return pair.empty() ? text : text + "\n" + pair + "\n";
}

std::string replay_markdown(const Evidence& evidence, const EvidenceJudgement& judgement,
                            const std::vector<Picture>& pictures) {
  std::string text =
      "# The simulator against real runs\n\nMade by `stageline replay EVIDENCE.json --report DIR` "
      "from stored measurements, simulated anew.\n\n";
  text += machine(evidence);
  text += "\n| figure | is | aim | | of |\n|---|---|---|---|---|\n";
  for (const Aim& aim : aims_of(evidence, judgement)) {
    text += fmt::format("| {} | {} | {} | {} | {} |\n", aim.figure, aim.is, aim.aim,
                        word(aim.met, "met", "**missed**"), markdown_line(aim.where));
  }
  const std::string pair = worst_pair_text(evidence, judgement);
  if (!pair.empty()) text += "\n" + pair + "\n";
  for (const Picture& picture : pictures) {
    text += fmt::format("\n![{}]({})\n\n{}\n", picture.file, picture.file,
                        markdown_line(picture.caption));
  }
  text += "\n## By schedule (held out)\n\n" +
          group_table(evidence, judgement, "schedule",
                      [](const MeasuredCase& one) { return one.schedule; });
  text += "\n## By model (held out)\n\n" +
          group_table(evidence, judgement, "model", [](const MeasuredCase& one) {
            return fmt::format("{}, batch {}", one.model, one.batch);
          });
  text += "\n## Every case\n\n" + cases_table(evidence, judgement);
  return text + "\n" + meanings;
}

}  // namespace stageline::lab
