// stageline replay: compares stored measurements with today's simulator.
#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "tools/base/files.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/lab.hpp"
#include "tools/commands/program_main.hpp"
#include "tools/commands/progress_line.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/lab/evidence/kept.hpp"
#include "tools/lab/evidence/report.hpp"

namespace stageline::lab {
namespace {

struct ReplayFlags {
  std::string evidence;
  std::string json;
  std::string report;
  std::string summary;
  std::string against;
};

void write_report(const std::filesystem::path& folder, const Evidence& evidence,
                  const EvidenceJudgement& judgement) {
  make_folder(folder.string());
  const std::vector<Picture> pictures = replay_pictures(evidence, judgement);
  for (const Picture& picture : pictures) {
    write_file((folder / picture.file).string(), picture.svg);
  }
  write_file((folder / "report.md").string(), replay_markdown(evidence, judgement, pictures));
}

int replay(const ReplayFlags& flags) {
  if (flags.json == "-" && flags.summary == "-") {
    throw UsageError("only one of --json and --summary can go to standard output (-)");
  }
  Evidence evidence = read_evidence(read_content(flags.evidence).named.text, flags.evidence);
  const std::atomic<bool>& stop = cli::catch_signals(cli::SecondSignal::ends);
  cli::ProgressLine line(true);
  const EvidenceJudgement judgement = judge(evidence, cli::shown_by(line), &stop);
  line.clear();
  const std::size_t all = evidence.cases.size();
  const std::size_t judged = judgement.cases.size();
  const bool partial = judged < all;
  if (partial && judged == 0) {
    throw cli::Interrupted{"no case was simulated, nothing was written", false};
  }
  if (partial) {
    evidence.cases.resize(judged);
    evidence.notes.push_back(
        fmt::format("interrupted: only {} of {} cases were simulated{}", judged, all,
                    flags.summary.empty() && flags.against.empty()
                        ? ""
                        : "; what is kept is of all of them, and was not compared or written"));
  }
  std::vector<std::string> worse;
  if (!flags.against.empty() && !partial) {
    worse = worse_than_kept(read_text(flags.against), flags.against, judgement);
  }
  if (!flags.report.empty()) write_report(flags.report, evidence, judgement);
  if (!flags.json.empty()) write_file(flags.json, replay_json(evidence, judgement));
  if (!flags.summary.empty() && !partial) write_file(flags.summary, kept_json(judgement));
  const bool printed = flags.json != "-" && flags.summary != "-";
  if (printed) cli::show("{}", replay_text(evidence, judgement));
  if (printed && partial) cli::print_wrapped(fmt::format("\nnote: {}\n", evidence.notes.back()));
  for (const std::string& sentence : worse) {
    cli::show(printed ? stdout : stderr, "worse than kept: {}\n", sentence);
  }
  if (partial) return cli::exit_code_after_signal();
  return worse.empty() ? 0 : 1;
}

void add_replay(cli::Flags command) {
  const auto flags = std::make_shared<ReplayFlags>();
  command
      .option(
          "EVIDENCE", flags->evidence,
          "a file of measured runs, as stageline-validate writes it, plain or gzip; - is standard "
          "input")
      .required();
  command.option("--json", flags->json, "write all figures as JSON to a file, or - for stdout")
      .writes_file();
  command.writes_also(
      command
          .option("--report", flags->report,
                  "write report.md and its pictures to this folder (made where it is missing)")
          .writes_folder(),
      {"{}/report.md", "{}/*.svg"});
  command
      .option("--summary", flags->summary,
              "write the figures that --against compares with, or - for stdout")
      .writes_file();
  command.option("--against", flags->against,
                 "a kept summary: exit code 1 if errors have grown since");
  command.footer(
      "Example:\n  stageline replay evidence.json --report report\n"
      "Exit code 130, 143: interrupted; the cases until then were reported.");
  command.runs([flags] { return replay(*flags); });
}

}  // namespace

extern const cli::Command replay_lab_command;
const cli::Command replay_lab_command = {cli::replay_at_lab.name, cli::replay_at_lab.about,
                                         add_replay, ""};

}  // namespace stageline::lab
