// stageline reproduce: the tables of the papers, ours beside theirs.
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tools/base/files.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/lab.hpp"
#include "tools/commands/progress_line.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/lab/papers/markdown.hpp"
#include "tools/lab/papers/sections.hpp"

namespace stageline::lab {
namespace {

struct ReproduceFlags {
  std::string output;
  std::string json;
  std::vector<std::string> only;
};

void run_reproduce(const ReproduceFlags& flags) {
  std::vector<const SectionEntry*> wanted;
  for (const std::string& name : flags.only) wanted.push_back(&reproduction_section(name));
  if (flags.only.empty()) {
    for (const SectionEntry& entry : reproduction_sections()) wanted.push_back(&entry);
  }
  std::vector<Section> sections;
  cli::ProgressLine line(true);
  for (const SectionEntry* const entry : wanted) {
    sections.push_back(section_of(*entry));
    line(std::ssize(sections), std::ssize(wanted));
  }
  line.clear();
  if (!flags.output.empty()) {
    const std::filesystem::path folder = flags.output;
    make_folder((folder / "figures").string());
    write_file((folder / "report.md").string(), report_markdown(sections));
    for (const Section& section : sections) {
      for (const Figure& figure : section.figures) {
        write_file((folder / "figures" / figure.file).string(), figure.svg);
      }
    }
  }
  if (!flags.json.empty()) write_file(flags.json, sections_json(sections));
  if (flags.json == "-") return;
  cli::show("{}", report_text(sections));
}

void add_reproduce(cli::Flags command) {
  const auto flags = std::make_shared<ReproduceFlags>();
  command.writes_also(
      command
          .option("--output", flags->output,
                  "write report.md and its figures to this folder (made where it is missing)")
          .writes_folder(),
      {"{}/report.md", "{}/figures/*.svg"});
  std::string names;
  for (const SectionEntry& entry : reproduction_sections()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  }
  command
      .option("--only", flags->only,
              fmt::format("this table, with all its numbers: {}; repeatable", names))
      .repeatable();
  command.option("--json", flags->json, "write the tables as JSON to a file, or - for stdout")
      .writes_file();
  command.footer("Example:\n  stageline reproduce --only hybrid");
  command.runs([flags] {
    run_reproduce(*flags);
    return 0;
  });
}

}  // namespace

extern const cli::Command reproduce_lab_command;
const cli::Command reproduce_lab_command = {cli::reproduce_at_lab.name, cli::reproduce_at_lab.about,
                                            add_reproduce, ""};

}  // namespace stageline::lab
