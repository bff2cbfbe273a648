// Is --help readable on a narrow terminal, and can its examples be copied?
#include "tools/commands/help_text.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "tests/text.hpp"
#include "tools/base/text.hpp"

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
  CHECK(help_text(help, 0) == help);
}

TEST_CASE("descriptions keep their column, and long examples a backslash") {
  const std::string text = help_text(help, 60);
  CHECK(contains(text,
                 "  --devices TEXT              number of devices, or a sweep\n"
                 "                              such as 2..16; default: all\n"));
  CHECK(contains(help_text(help, 64),
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
    const std::string text = help_text(help, width);
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

}  // namespace
}  // namespace stageline::help_text_tests
