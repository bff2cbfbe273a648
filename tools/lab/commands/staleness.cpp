// stageline staleness: evaluates the kept runs of the staleness study.
#include <fmt/core.h>

#include <memory>
#include <string>

#include "tools/base/files.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/lab.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/lab/papers/staleness/report.hpp"

namespace stageline::lab {
namespace {

struct StalenessFlags {
  std::string evidence;
  std::string report;
  std::string json;
};

void staleness(const StalenessFlags& flags) {
  const StalenessEvidence evidence =
      parse_staleness_evidence(read_content(flags.evidence).named.text, flags.evidence);
  const std::string text = staleness_text(evidence);  // refuses runs of another study
  if (!flags.report.empty()) write_staleness_report(flags.report, evidence);
  if (!flags.json.empty()) write_file(flags.json, staleness_json(evidence));
  if (flags.json == "-") return;
  cli::show("{}", text);
}

void add_staleness(cli::Flags command) {
  const auto flags = std::make_shared<StalenessFlags>();
  command
      .option("EVIDENCE", flags->evidence,
              "staleness.json.gz, as stageline-study writes it, or plain; - is standard input")
      .required();
  command.writes_also(
      command
          .option("--report", flags->report,
                  "write staleness.md and its figures to this folder (made where it is missing)")
          .writes_folder(),
      {"{}/staleness.md", "{}/*.svg"});
  command.option("--json", flags->json, "write all figures as JSON to a file, or - for stdout")
      .writes_file();
  command.footer("Example:\n  stageline staleness staleness.json --report report");
  command.runs([flags] {
    staleness(*flags);
    return 0;
  });
}

}  // namespace

extern const cli::Command staleness_lab_command;
const cli::Command staleness_lab_command = {cli::staleness_at_lab.name, cli::staleness_at_lab.about,
                                            add_staleness, ""};

}  // namespace stageline::lab
