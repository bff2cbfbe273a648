// The terminal on standard output.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace stageline::cli {

/// Whether standard output is a terminal and NO_COLOR is not set.
bool colour_wanted();

/// The most columns of a line of a report; 0: any. That is COLUMNS where it is set to a number, 0
/// for any width; else the width of the terminal, 80 where that is unknown; any width where
/// standard output is no terminal. Less than 40 columns count as 40.
int text_width();

/// As text_width(), but `usual` where standard output is no terminal and COLUMNS is not set.
int text_width_or(int usual);

/// text_width(), at most `usual`, which is also returned for any width.
int text_width_up_to(int usual);

/// The columns of a space-time diagram as text: what its margin leaves of the width, or 100.
int figure_columns();

/// Prints a report as visible_lines() lets it through: names in it are those of files.
void show(std::FILE* out, const std::string& text);

template <class... Args>
void show(fmt::format_string<Args...> format, Args&&... args) {
  show(stdout, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void show(std::FILE* out, fmt::format_string<Args...> format, Args&&... args) {
  show(out, fmt::format(format, std::forward<Args>(args)...));
}

/// Prints a report, its lines wrapped at text_width().
void print_wrapped(const std::string& text);

/// Prints "note: …", a line each, behind an empty line; nothing where there are none.
void print_notes(const std::vector<std::string>& notes);

}  // namespace stageline::cli
