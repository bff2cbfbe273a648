// Do tables and lines fit the width, and does nothing get lost that was not named?
#include "tools/base/table.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "tools/base/row_groups.hpp"
#include "tools/base/text.hpp"

namespace stageline::table_tests {
namespace {

using Cells = std::vector<std::string>;

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

int widest(const std::string& text) {
  int width = 0;
  for (const std::string& line : lines_of(text)) width = std::max(width, columns_of(line));
  return width;
}

const std::vector<Column> measures{
    {"name", true}, {"alpha", false, 3}, {"beta", false, 1}, {"gamma", true, 2}, {"delta"}};
const std::vector<Cells> two_rows{{"first", "1 ms", "2 ms", "3 ms", "4 ms"},
                                  {"second", "10 ms", "20 ms", "30 ms", "40 ms"}};

TEST_CASE("a newline, a tab or an escape in a name is a character of its cell") {
  CHECK(table({{"layer", true}, {"F"}}, {{"a\nb\tc", "1"}, {"\x1b[2Jd", "22"}}) ==
        "layer   F\n─────  ──\na␊b␉c   1\n␛[2Jd  22\n");
}

TEST_CASE("a table that fits is as wide as it needs") {
  const std::string whole = table(measures, two_rows);
  CHECK(whole ==
        "name    alpha   beta  gamma  delta\n"
        "──────  ─────  ─────  ─────  ─────\n"
        "first    1 ms   2 ms  3 ms    4 ms\n"
        "second  10 ms  20 ms  30 ms  40 ms\n");
  for (const int width : {0, 34, 80, 120}) {
    CHECK(table(measures, two_rows, width) == whole);
    CHECK(fitted_table(measures, two_rows, width).text == whole);
    CHECK(fitted_table(measures, two_rows, width).left_out.empty());
  }
}

TEST_CASE("columns are left out from the highest rank on, and those without a rank never") {
  const FittedTable narrow = fitted_table(measures, two_rows, 33);
  CHECK(narrow.left_out == Cells{"alpha"});
  CHECK(widest(narrow.text) == 27);
  CHECK(fitted_table(measures, two_rows, 26).left_out == Cells{"alpha", "gamma"});
  const FittedTable least = fitted_table(measures, two_rows, 14);
  CHECK(least.left_out == Cells{"alpha", "beta", "gamma"});
  CHECK(least.text ==
        "name    delta\n"
        "──────  ─────\n"
        "first    4 ms\n"
        "second  40 ms\n");
}

TEST_CASE("titles are broken into two lines before a column is left out") {
  const std::vector<Column> columns{{"name", true},
                                    {"tokens/s/GPU", false, 2, false, false, 7},
                                    {"peak memory", false, 1, false, false, 5}};
  const std::vector<std::vector<std::string>> rows{{"a", "1.5k", "3 GB"}};
  CHECK(
      fitted_table(columns, rows, 80).text ==
      "name  tokens/s/GPU  peak memory\n────  ────────────  ───────────\na             1.5k         3 GB\n");
  const FittedTable broken = fitted_table(columns, rows, 24);
  CHECK(
      broken.text ==
      "      tokens/    peak\nname    s/GPU  memory\n────  ───────  ──────\na        1.5k    3 GB\n");
  CHECK(broken.left_out.empty());
  CHECK(fitted_table(columns, rows, 14).left_out == std::vector<std::string>{"tokens/s/GPU"});
}

TEST_CASE("a table that may not lose columns is broken into bands with its keys") {
  CHECK(table(measures, two_rows, 22) ==
        "name    alpha   beta\n"
        "──────  ─────  ─────\n"
        "first    1 ms   2 ms\n"
        "second  10 ms  20 ms\n"
        "\n"
        "name    gamma  delta\n"
        "──────  ─────  ─────\n"
        "first   3 ms    4 ms\n"
        "second  30 ms  40 ms\n");
  const std::vector<Column> two_keys{{"name", true}, {"n", false, 0, true}, {"x"}, {"y"}};
  CHECK(table(two_keys, {{"a", "1", "100", "200"}}, 13) ==
        "name  n    x\n"
        "────  ─  ───\n"
        "a     1  100\n"
        "\n"
        "name  n    y\n"
        "────  ─  ───\n"
        "a     1  200\n");
}

TEST_CASE("a name that leaves no room has a line of its own") {
  CHECK(table({{"name", true}, {"value"}}, {{"a", "1"}, {"gpipe:recompute=always", "22.00 ms"}},
              20) ==
        "name           value\n"
        "──────────  ────────\n"
        "a                  1\n"
        "gpipe:recompute=always\n"
        "            22.00 ms\n");
}

TEST_CASE("sentences of a last column are wrapped") {
  const std::vector<Column> columns{{"bound", true}, {"why", true, 0, false, true}};
  const std::vector<Cells> rows{{"load", "the most loaded device has work for 20 ms"}};
  CHECK(table(columns, rows, 30) ==
        "bound  why\n"
        "─────  ───────────────────────\n"
        "load   the most loaded device\n"
        "       has work for 20 ms\n");
  CHECK(table(columns, rows, 80) == table(columns, rows));
}

TEST_CASE("no line is wider than asked, at any width that a word allows") {
  std::vector<Column> columns{{"schedule", true}};
  std::vector<Cells> rows{{"interleaved_1f1b"}, {"naive"}};
  for (int i = 0; i < 12; ++i) {
    columns.push_back({"column " + std::to_string(i), i % 3 == 0, i % 4});
    for (Cells& row : rows) row.push_back(std::to_string(1000 * i) + ".00 ms");
  }
  for (int width = 24; width < 200; ++width) {
    CHECK(widest(table(columns, rows, width)) <= width);
    const FittedTable fitted = fitted_table(columns, rows, width);
    CHECK(widest(fitted.text) <= width);
    for (int i = 0; i < 12; ++i) {
      const std::string title = "column " + std::to_string(i);
      const bool left_out =
          std::find(fitted.left_out.begin(), fitted.left_out.end(), title) != fitted.left_out.end();
      CHECK((table(columns, rows, width).find(title) != std::string::npos));
      CHECK((fitted.text.find(title + "\n") == std::string::npos &&
             fitted.text.find(title + " ") == std::string::npos) == left_out);
      CHECK((!left_out || i % 4 != 0));
    }
  }
}

TEST_CASE("a row may end early, and a table may be empty") {
  CHECK(table({{"a", true}, {"b"}}, {{"…"}, {"x", "1"}}) == "a  b\n─  ─\n…\nx  1\n");
  CHECK(table({}, {}, 10).empty());
  CHECK(table({{"a"}}, {}, 10) == "a\n─\n");
}

TEST_CASE("lines break at blanks, and the rest is indented") {
  CHECK(wrapped("note: communication is free\n", 0) == "note: communication is free\n");
  CHECK(wrapped("note: communication is free\n", 27) == "note: communication is free\n");
  CHECK(wrapped("note: communication is free\n", 26) == "note: communication is\n  free\n");
  CHECK(wrapped("one\n\ntwo three", 6) == "one\n\ntwo\n  three");
  CHECK(wrapped("unbreakable words stay", 5) == "unbreakable\n  words\n  stay");
}

TEST_CASE("an entry keeps the column of its text, or begins it on a line of its own") {
  CHECK(wrapped("  naive   one stage after another\n", 24) ==
        "  naive   one stage\n          after another\n");
  CHECK(wrapped("  --devices TEXT   a number or a sweep\n", 24) ==
        "  --devices TEXT\n      a number or a\n      sweep\n");
  CHECK(wrapped("  1f1b    short, forwardbackwardpipelining\n", 30) ==
        "  1f1b\n      short,\n      forwardbackwardpipelining\n");
  CHECK(wrapped("          a text that goes on\n", 24) ==
        "          a text that\n          goes on\n");
}

TEST_CASE("a legend of several entries is prose, and a long word moves to the left") {
  CHECK(wrapped("█ forward  ▓ input gradient  (full bar: 3.5 %)", 34) ==
        "█ forward  ▓ input gradient  (full\n  bar: 3.5 %)");
  CHECK(wrapped("          priority=forward|backward  (which op)", 30) ==
        "      priority=forward|backward\n      (which op)");
}

TEST_CASE("the groups of a number stay together") {
  CHECK(wrapped("of 12 480 candidates", 11) == "of 12 480\n  candidates");
  CHECK(wrapped("of 12 480, which", 6) == "of\n  12 480,\n  which");
  CHECK(wrapped("in 2 100GB", 6) == "in 2\n  100GB");
}

TEST_CASE("a word of a shell is quoted where it must be") {
  CHECK(shell_word("model:gpt2@h100,batch=4") == "model:gpt2@h100,batch=4");
  CHECK(shell_word("2.5GB/s") == "2.5GB/s");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("Et*2|t") == "'Et*2|t'");
  CHECK(shell_word("it's") == "'it'\\''s'");
}

TEST_CASE("a number stays with its unit, a separator with the word before") {
  for (int width = 16; width < 40; ++width) {
    const std::string text = wrapped("step 20.06 s · bubble 3.6 % · 7.816 GB of 8 GB", width);
    for (const std::string& line : lines_of(text)) {
      CHECK(columns_of(line) <= width);
      const std::size_t first = line.find_first_not_of(' ');
      for (const char* const unit : {"s ", "%", "·", "GB"}) {
        CHECK(line.compare(first, std::string(unit).size(), unit) != 0);
      }
    }
  }
}

TEST_CASE("colours take no columns") {
  CHECK(columns_of("\x1b[38;5;32m0──\x1b[0m") == 3);
  CHECK(columns_of("é ×") == 3);
  CHECK(wrapped("\x1b[38;5;32mab\x1b[0m cd", 5) == "\x1b[38;5;32mab\x1b[0m cd");
}

std::vector<RowGroup> grouped(const std::vector<double>& values) {
  return row_groups(values.size(),
                    [&](std::size_t a, std::size_t b) { return values[a] == values[b]; }, {values});
}

TEST_CASE("short tables show every row") {
  const std::vector<RowGroup> groups = grouped(std::vector<double>(most_rows_shown, 1));
  CHECK(groups.size() == most_rows_shown);
  CHECK(groups.back() == RowGroup{most_rows_shown - 1, most_rows_shown - 1});
}

TEST_CASE("equal neighbours in a long table are one row") {
  std::vector<double> values(30, 1);
  values[7] = 2;
  CHECK(grouped(values) == std::vector<RowGroup>{{0, 6}, {7, 7}, {8, 29}});
}

TEST_CASE("of many different rows the ends and the extremes remain") {
  std::vector<double> values;
  for (int i = 0; i < 96; ++i) values.push_back(i % 2 + 10);
  values[40] = 99;
  values[60] = 1;
  CHECK(grouped(values) == std::vector<RowGroup>{{0, 0},
                                                 {1, 1},
                                                 {2, 39, false},
                                                 {40, 40},
                                                 {41, 59, false},
                                                 {60, 60},
                                                 {61, 93, false},
                                                 {94, 94},
                                                 {95, 95}});
}

TEST_CASE("groups cover all rows in order, and a single one is not left out") {
  for (std::size_t rows = 1; rows < 60; ++rows) {
    std::vector<double> values;
    for (std::size_t i = 0; i < rows; ++i) values.push_back(static_cast<double>(i * 7 % 11));
    std::size_t next = 0;
    for (const RowGroup& group : grouped(values)) {
      CHECK(group.first == next);
      CHECK((group.shown || group.size() > 1));
      next = group.last + 1;
    }
    CHECK(next == rows);
  }
}

TEST_CASE("nothing of a text is markup in Markdown") {
  CHECK(markdown_line("a<b>|`x`_y_*z*") == "a\\<b>\\|\\`x\\`\\_y\\_\\*z\\*");
  CHECK(markdown_line("![x](http://y) &lt; R & D\nz") == "!\\[x](http://y) \\&lt; R & D z");
  CHECK(markdown_line("<script>\x1b") == "\\<script>␛");
  CHECK(markdown_code("a `b` <c>") == "`a 'b' <c>`");
}

}  // namespace
}  // namespace stageline::table_tests
