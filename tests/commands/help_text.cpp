// Is --help readable on a narrow terminal, is its first screen short, and can its examples be
// copied?
#include "tools/commands/help_text.hpp"
#include "tools/lab/commands.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "tests/text.hpp"
#include "tools/base/text.hpp"
#include "tools/commands/command.hpp"

namespace stageline::help_text_tests {
namespace {

using test::contains;

const std::string help =
    "Compare schedules: step time, bubbles, memory, staleness, and which one wins\n"
    "Usage: stageline compare [OPTIONS] TRACE\n"
    "\n"
    "Options:\n"
    "  --devices TEXT              number of devices, or a sweep such as 2..16; default: all\n"
    "  --pipelined-fractions TEXT  names of this length leave two blanks before the text\n"
    "  --pipelined-fraction1 FLOAT a name of this length leaves one blank before its text\n"
    "  --microbatches INT:INT in [1 - 67108864]\n"
    "                              micro-batches per step; default: 4 per device\n"
    "\n"
    "Example:\n"
    "  stageline compare model:resnet50@h100,batch=32 --devices 8 --microbatches 64\n"
    "ranks all schedules on 8 H100s. A sentence that is broken in the source\n"
    "is one on the terminal.\n";

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("without a width the help is as the parser writes it") {
  CHECK(cli::help_text(help, 0) == help);
}

TEST_CASE("descriptions keep their column, and long examples a backslash") {
  const std::string text = cli::help_text(help, 60);
  CHECK(contains(text,
                 "  --devices TEXT              number of devices, or a sweep\n"
                 "                              such as 2..16; default: all\n"));
  CHECK(contains(cli::help_text(help, 64),
                 "  --pipelined-fraction1 FLOAT  a name of this length leaves one\n"
                 "                               blank before its text\n"));
  CHECK(contains(text,
                 "  stageline compare model:resnet50@h100,batch=32 \\\n"
                 "    --devices 8 --microbatches 64\n"));
  CHECK(contains(text,
                 "ranks all schedules on 8 H100s. A sentence that is broken in\n"
                 "  the source is one on the terminal.\n"));
  CHECK(contains(text, "wins\nUsage: stageline compare [OPTIONS] TRACE\n\nOptions:\n"));
}

TEST_CASE("no line is wider than the terminal, and no word is lost") {
  for (const int width : {40, 60, 80, 120}) {
    const std::string text = cli::help_text(help, width);
    for (const std::string& line : lines_of(text)) {
      if (!contains(line, "model:resnet50")) CHECK(columns_of(line) <= width);
    }
    std::istringstream before(help);
    std::istringstream after(text);
    std::string word;
    for (std::string other; before >> word;) {
      do {
        REQUIRE(static_cast<bool>(after >> other));
      } while (other == "\\");
      CHECK(word == other);
    }
  }
}

// The flags that a page lists: "--out", a line each.
std::vector<std::string> flags_in(const std::string& page) {
  std::vector<std::string> flags;
  for (const std::string& line : lines_of(page)) {
    if (!line.starts_with("  -")) continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    flags.push_back(name.substr(name.rfind("--")));
  }
  return flags;
}

TEST_CASE("the first screen of each command is short, and --help all names every flag") {
  cli::CommandLine line("stageline", "", "");
  const cli::Flags program = line.flags();
  std::vector<const cli::Command*> all_commands;
  for (const auto table : {cli::commands(), lab::lab_commands()}) {
    for (const cli::Command* const one : table) {
      if (one->add != nullptr) all_commands.push_back(one);
    }
  }
  CHECK(all_commands.size() == cli::commands().size());
  for (const cli::Command* const command : all_commands) {
    CAPTURE(command->name);
    const cli::Flags parent =
        command->parent.empty() ? program : program.find_subcommand(std::string(command->parent));
    const cli::Flags flags =
        parent.subcommand(std::string(command->name), std::string(command->about));
    command->add(flags);
    const cli::HelpPage page = flags.help("stageline " + std::string(command->name));
    const std::vector<std::string> first = flags_in(cli::printed(page, cli::HelpScreen::first));
    const std::vector<std::string> all = flags_in(cli::printed(page, cli::HelpScreen::all));
    CHECK(first.size() <= cli::most_on_first_screen);
    CHECK(all.size() == page.options.size());
    std::size_t named = 0;
    for (const cli::Flag flag : flags.all()) {
      if (!flag.name().starts_with("--")) continue;
      CAPTURE(flag.name());
      CHECK(std::count(all.begin(), all.end(), flag.name()) == 1);
      ++named;
    }
    CHECK(named == all.size());
    for (const std::string& flag : first) CHECK(std::count(all.begin(), all.end(), flag) == 1);
    const std::string last = lines_of(cli::printed(page, cli::HelpScreen::first)).back();
    CHECK((first.size() < all.size()) ==
          (last == "`" + page.command + " --help all` shows all " + std::to_string(all.size()) +
                       " options in their groups."));
  }
}

TEST_CASE("groups have one order, and few options one list") {
  cli::HelpPage page;
  page.command = "stageline compare";
  page.options = {{"--json FILE", "results", SettingGroup::output, true},
                  {"--tp N", "ranks", SettingGroup::parallelism, false},
                  {"-h,--help", "help"}};
  CHECK(contains(cli::printed(page, cli::HelpScreen::first), "\nOptions:\n  --json FILE"));
  const auto places_of = [](const std::string& text) {
    std::vector<std::size_t> places;
    for (const char* const part :
         {"\nParallelism:\n  --tp N", "\nOutput:\n  --json", "\nOptions:\n  -h"}) {
      places.push_back(text.find(part));
    }
    return places;
  };
  const std::vector<std::size_t> all = places_of(cli::printed(page, cli::HelpScreen::all));
  CHECK(all.back() != std::string::npos);
  CHECK(std::is_sorted(all.begin(), all.end()));
  for (int i = 0; i < 30; ++i) {
    page.options.push_back({"--memory-" + std::to_string(i), "", SettingGroup::memory, false});
  }
  const std::string first = cli::printed(page, cli::HelpScreen::first);
  CHECK(flags_in(first) == std::vector<std::string>{"--json", "--help"});
  CHECK(!contains(first, "Memory:"));
  CHECK(first.ends_with(
      "\n\n`stageline compare --help all` shows all 33 options in their groups.\n"));
}

}  // namespace
}  // namespace stageline::help_text_tests
