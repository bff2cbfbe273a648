// Prints and wraps the text of --help.
#include "tools/commands/help_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "tools/base/text.hpp"

namespace stageline::cli {
namespace {

constexpr std::size_t description_column = 30;
constexpr std::string_view command_begins = "  stageline";
constexpr std::string_view usage = "Usage:";

// A name of 27 characters leaves one blank in front of its description, which would make them one
// text.
std::string set_apart(const std::string& line) {
  const bool entry = line.size() > description_column && line.compare(0, 2, "  ") == 0 &&
                     line[2] != ' ' && line[description_column - 2] != ' ' &&
                     line[description_column - 1] == ' ' && line[description_column] != ' ';
  return entry ? line.substr(0, description_column) + " " + line.substr(description_column) : line;
}

// Whether a line goes on with the sentence of the one before, which was broken for its length.
bool continues_sentence(const std::string& before, const std::string& line) {
  const auto begins_at_margin = [](const std::string& text) {
    return !text.empty() && text.front() != ' ';
  };
  return begins_at_margin(before) && begins_at_margin(line) && before.back() != '.' &&
         before.back() != ':' && line.compare(0, usage.size(), usage) != 0;
}

// The help with each sentence of the texts above and below the flags in one line.
std::string joined(const std::string& help) {
  std::string out;
  std::string before;
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = std::min(help.find('\n', at), help.size());
    const std::string line = help.substr(at, end - at);
    if (at > 0) out += continues_sentence(before, line) ? " " : "\n";
    out += line;
    before = line;
    at = end + 1;
  }
  return out + (!help.empty() && help.back() == '\n' ? "\n" : "");
}

// A flag and its value, or another word, with the blanks in front of it.
std::string next_argument(const std::string& line, std::size_t at) {
  const auto word_end = [&](std::size_t from) {
    return std::min(line.find(' ', std::min(line.find_first_not_of(' ', from), line.size())),
                    line.size());
  };
  const std::size_t begin = line.find_first_not_of(' ', at);
  std::size_t end = word_end(at);
  const bool is_flag = begin != std::string::npos && line.compare(begin, 2, "--") == 0;
  if (is_flag && end + 1 < line.size() && line[end + 1] != '-' && line[end + 1] != '\\') {
    end = word_end(end);
  }
  return line.substr(at, end - at);
}

std::string wrapped_command(const std::string& line, int width) {
  if (columns_of(line) <= width) return line;
  const std::string rest_begins = "   ";  // and the blank in front of an argument
  std::string out;
  int used = 0;
  for (std::size_t at = 0; at < line.size();) {
    const std::string argument = next_argument(line, at);
    at += argument.size();
    if (used > 0 && used + columns_of(argument) + 2 > width) {  // with " \\"
      out += " \\\n" + rest_begins;
      used = columns_of(rest_begins);
    }
    out += argument;
    used += columns_of(argument);
  }
  return out;
}

std::string printed(std::string_view title, const std::vector<HelpPage::Entry>& entries) {
  if (entries.empty()) return "";
  std::string out = fmt::format("\n{}:\n", title);
  for (const HelpPage::Entry& entry : entries) {
    std::string line = "  " + entry.name;
    if (!entry.text.empty()) {
      if (line.size() >= description_column) {
        out += line + "\n";
        line.clear();
      }
      line.resize(description_column, ' ');
    }
    out += line + entry.text + "\n";
  }
  return out;
}

std::string printed_groups(const std::vector<HelpPage::Entry>& options, HelpScreen screen) {
  std::string out;
  for (const SettingGroup group : all_setting_groups) {
    std::vector<HelpPage::Entry> entries;
    for (const HelpPage::Entry& option : options) {
      if (option.group != group) continue;
      if (screen == HelpScreen::all || option.common) entries.push_back(option);
    }
    out += printed(name(group), entries);
  }
  return out;
}

}  // namespace

std::string printed(const HelpPage& page, HelpScreen screen) {
  const bool few = page.options.size() <= most_on_first_screen;
  const bool one_list = few && screen == HelpScreen::first;
  std::string out = page.about + "\nUsage: " + page.usage + "\n" +
                    printed("Positionals", page.positionals) +
                    (one_list ? printed(name(SettingGroup::other), page.options)
                              : printed_groups(page.options, screen)) +
                    printed("Subcommands", page.subcommands) +
                    (page.footer.empty() ? "" : "\n" + page.footer + "\n");
  if (few || screen == HelpScreen::all) return out;
  return out + fmt::format("\n`{} --help all` shows all {} options in their groups.\n",
                           page.command, page.options.size());
}

std::string help_text(const std::string& page, int width) {
  if (width <= 0) return page;
  std::string out;
  bool in_command = false;
  const std::string help = joined(page);
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = std::min(help.find('\n', at), help.size());
    const std::string line = help.substr(at, end - at);
    const bool command = in_command || line.compare(0, command_begins.size(), command_begins) == 0;
    out += command ? wrapped_command(line, width) : wrapped(set_apart(line), width);
    if (end < help.size()) out += "\n";
    in_command = command && !line.empty() && line.back() == '\\';
    at = end + 1;
  }
  return out;
}

}  // namespace stageline::cli
