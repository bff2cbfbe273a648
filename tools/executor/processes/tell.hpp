// Notes and progress on standard error. Where that is full or closed they are lost, and the run
// goes on; fmt::print would throw.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <utility>

#include "sim/text/visible.hpp"

namespace stageline::executor {

/// Prints as visible_lines() lets it through: names may be those of files.
template <class... Args>
void tell(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(visible_lines(fmt::format(format, std::forward<Args>(args)...)).c_str(), stderr);
}

/// Prints a line on a terminal that what is printed next overwrites.
template <class... Args>
void tell_in_place(fmt::format_string<Args...> format, Args&&... args) {
  const std::string line = visible(fmt::format(format, std::forward<Args>(args)...));
  std::fputs((line + "\033[K\r").c_str(), stderr);
}

/// Erases the line of tell_in_place().
inline void erase_told() { std::fputs("\033[K", stderr); }

}  // namespace stageline::executor
