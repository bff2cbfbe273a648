// Queries the terminal, and prints reports at its width.
#include "tools/commands/terminal.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "sim/text/visible.hpp"
#include "tools/base/text.hpp"
#include "tools/report/text/space_time.hpp"

namespace stageline::cli {
namespace {

constexpr int least_width = 40;
constexpr int usual_width = 80;    // of a terminal that does not report its size
constexpr int usual_figure = 100;  // columns

// As COLUMNS says, 0 for any width; empty where it is not set to a number.
std::optional<int> asked_width() {
  const char* const variable = std::getenv("COLUMNS");
  if (variable == nullptr) return std::nullopt;
  const std::string_view text = variable;
  int width = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
  if (error != std::errc() || end != text.data() + text.size() || width < 0) return std::nullopt;
  return width == 0 ? 0 : std::max(width, least_width);
}

}  // namespace

bool colour_wanted() { return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr; }

int text_width() {
  if (const std::optional<int> asked = asked_width()) return *asked;
  if (::isatty(STDOUT_FILENO) != 1) return 0;
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? std::max(static_cast<int>(size.ws_col), least_width) : usual_width;
}

int text_width_or(int usual) {
  return asked_width() || ::isatty(STDOUT_FILENO) == 1 ? text_width() : usual;
}

int text_width_up_to(int usual) {
  const int width = text_width();
  return width == 0 ? usual : std::min(width, usual);
}

int figure_columns() {
  const int width = text_width();
  return width == 0 ? usual_figure : width - report::space_time_margin;
}

void show(std::FILE* out, const std::string& text) { fmt::print(out, "{}", visible_lines(text)); }

void print_wrapped(const std::string& text) { show(stdout, wrapped(text, text_width())); }

void print_notes(const std::vector<std::string>& notes) {
  if (!notes.empty()) show("\n");
  for (const std::string& note : notes) print_wrapped("note: " + note + "\n");
}

}  // namespace stageline::cli
