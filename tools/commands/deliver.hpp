// Where an answer goes, and in which forms: the end of every command.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/commands/svg_flags.hpp"
#include "tools/report/page/page.hpp"

namespace stageline::cli {

/// The values of the flags as typed; empty where one is not given, "-" for standard output.
struct Outputs {
  std::string json{};
  SvgFlags svg{};
  std::string html{};
  bool quiet = false;                // no notes, and no word of what was written
  std::vector<OutputFile> others{};  // that the command writes itself
};

/// What an answer is delivered as. Each form is made where it is wanted; null: there is none.
struct Forms {
  std::function<std::string()> json{};
  std::function<std::string(const report::SvgOptions&)> svg{};
  std::function<report::Page()> page{};
  std::function<std::string()> text{};  // wrapped at the terminal's width
  std::function<std::vector<std::string>()> notes{};
  std::string hint{};                     // behind the notes
  std::vector<std::string_view> wrote{};  // flags whose files are named in the end
};

/// Throws UsageError for a theme or width without a picture, and where several outputs go to
/// standard output.
void check_outputs(const Outputs& outputs);
/// Whether standard output is for one of the files alone. Throws as check_outputs().
bool is_silent(const Outputs& outputs);

/// "note: …", a line each.
std::string note_lines(const std::vector<std::string>& notes);

/// Writes JSON, pictures and page where they are wanted. Prints text, notes and hint, and names the
/// files that were written, unless standard output is one of them. Throws what the forms and
/// write_file() throw.
void deliver(const Outputs& outputs, const Forms& forms);

}  // namespace stageline::cli
