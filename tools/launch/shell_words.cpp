#include "tools/launch/shell_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

#include "sim/base/errors.hpp"
#include "tools/launch/shell_arithmetic.hpp"

namespace stageline {
namespace {

constexpr char mark = '\x01';
constexpr std::size_t most_words = 100'000;
constexpr std::size_t most_expanded = std::size_t{16} << 20U;  // bytes, of all variables together

std::string unknown(const std::string& what) { return mark + what + mark; }

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

using Words = std::vector<std::string>;

bool comes_before_assignment(const std::string& word) {
  static constexpr std::array<std::string_view, 7> words{"export", "then",    "else",    "do",
                                                         "local",  "declare", "readonly"};
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "bash" of "/bin/bash".
bool is_shell(const std::string& word) {
  const std::string name = word.substr(word.rfind('/') + 1);
  return name == "bash" || name == "sh" || name == "zsh";
}

// Whose document is a script of its own.
bool runs_document(const std::string& word) { return word == "sbatch" || is_shell(word); }

// "-c", "-lc", "-xc": the next word is what a shell runs.
bool is_command_flag(const std::string& word) {
  constexpr std::size_t longest = 5;
  return word.size() >= 2 && word.size() <= longest && word[0] == '-' && word.back() == 'c' &&
         std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

class Script {
 public:
  Script(const std::string& text, const std::string& file, const LaunchAdditions& variables)
      : text_(text), file_(file) {
    for (const auto& [name, value] : variables) {
      variables_[name] = {value};
      fixed_.push_back(name);
    }
  }

  std::vector<ShellCommand> commands() {
    while (at_ < text_.size()) read_command();
    return std::move(commands_);
  }

 private:
  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }
  bool ends_command() const { return std::string_view("\n;|&").find(now()) != std::string::npos; }

  void step() {
    if (now() == '\n') ++line_;
    ++at_;
  }

  // Blanks, and lines that a backslash joins.
  void skip_blanks() {
    while (at_ < text_.size()) {
      if (now() == ' ' || now() == '\t' || now() == '\r') {
        step();
      } else if (now() == '\\' && (next() == '\n' || next() == '\r')) {
        step();
        if (now() == '\r') step();
        if (now() == '\n') step();
      } else {
        break;
      }
    }
  }

  void skip_comment() {
    while (at_ < text_.size() && now() != '\n') step();
  }

  // Commented lines within a command that goes on are left out, as people do there.
  void read_command() {
    ShellCommand command;
    bool first = true;
    skip_blanks();
    command.line = line_;
    while (at_ < text_.size()) {
      skip_blanks();
      if (now() == '#') {
        skip_comment();
        continue;
      }
      if (at_ >= text_.size() || ends_command()) break;
      if (first && assignment()) continue;
      if (first && now() == '(') {
        step();
        continue;
      }
      if (now() == '<' && next() == '<') {
        begin_inner_document();
        continue;
      }
      if (now() == ')' || now() == '<' || now() == '>') {
        step();
        continue;
      }
      const Words words = word();
      first = first && words.size() == 1 && comes_before_assignment(words.front());
      if (first) continue;
      command.words.insert(command.words.end(), words.begin(), words.end());
      if (command.words.size() > most_words) {
        throw TraceError(file_, fmt::format("line {}", command.line),
                         fmt::format("a command of more than {} words", most_words));
      }
    }
    if (at_ < text_.size()) step();
    if (!document_end_.empty()) {
      const bool runs = !command.words.empty() && runs_document(command.words.front());
      if (!runs) skip_inner_document();
      document_end_.clear();
    }
    finish(std::move(command));
  }

  // <<EOF, whose lines are commands where a shell or sbatch reads them.
  void begin_inner_document() {
    at_ += 2;
    if (now() == '<') {
      step();
      return;
    }
    if (now() == '-') step();
    skip_blanks();
    const Words words = word();
    document_end_ = words.empty() ? "" : words.front();
  }

  void skip_inner_document() {
    while (at_ < text_.size()) {
      std::string line = text_.substr(at_, text_.find('\n', at_) - at_);
      line.erase(0, line.find_first_not_of('\t'));
      skip_comment();
      if (at_ < text_.size()) step();
      if (line == document_end_) break;
    }
    document_end_.clear();
  }

  void finish(ShellCommand command) {
    if (command.words.empty()) return;
    static constexpr std::array<std::string_view, 5> opening{"if", "for", "while", "case", "until"};
    static constexpr std::array<std::string_view, 3> closing{"fi", "done", "esac"};
    const std::string& word = command.words.front();
    if (std::find(opening.begin(), opening.end(), word) != opening.end()) {
      ++branches_;
    } else if (std::find(closing.begin(), closing.end(), word) != closing.end()) {
      branches_ = std::max(branches_ - 1, 0);
    } else if (!run_inside(command)) {
      commands_.push_back(std::move(command));
    }
  }

  // srun … bash -c "COMMANDS": what it runs is inside, each behind the launcher's words.
  bool run_inside(const ShellCommand& command) {
    constexpr int deepest = 4;
    const Words& words = command.words;
    const auto shell = std::find_if(words.begin(), words.end(), is_shell);
    if (shell == words.end() || depth_ >= deepest) return false;
    const auto flag = std::find_if(std::next(shell), words.end(), [](const std::string& word) {
      return is_command_flag(word) || !word.starts_with('-');
    });
    if (flag == words.end() || !is_command_flag(*flag) || std::next(flag) == words.end()) {
      return false;
    }
    Script inner(*std::next(flag), file_, {});
    inner.variables_ = variables_;
    inner.fixed_ = fixed_;
    inner.depth_ = depth_ + 1;
    for (ShellCommand& one : inner.commands()) {
      one.line = command.line;
      one.words.insert(one.words.begin(), words.begin(), shell);
      commands_.push_back(std::move(one));
    }
    return true;
  }

  // NAME=value, NAME+=value, NAME=(several values); whether there was one.
  bool assignment() {
    std::size_t end = at_;
    while (end < text_.size() && in_name(text_[end])) ++end;
    if (end == at_ || std::isdigit(static_cast<unsigned char>(now())) != 0) return false;
    bool adds = text_.compare(end, 2, "+=") == 0;
    if (!adds && (end >= text_.size() || text_[end] != '=')) return false;
    const std::string name = text_.substr(at_, end - at_);
    const int line = line_;
    at_ = end + (adds ? 2 : 1);
    Words values = now() == '(' ? array() : single();
    if (std::find(fixed_.begin(), fixed_.end(), name) != fixed_.end()) return true;
    Words& held = variables_[name];
    if (branches_ > 0) {
      adds = adds || goes_on(held, values);
      const char* const blank = adds && !now_array_ ? " " : "";
      values = {blank + unknown(fmt::format("{}, which line {} sets in a branch", name, line))};
    }
    if (!adds) {
      held = std::move(values);
    } else if (now_array_) {
      held.insert(held.end(), values.begin(), values.end());
    } else {
      if (held.empty()) held.emplace_back();
      held.back() += values.empty() ? "" : values.front();
    }
    return true;
  }

  // NAME="$NAME more", NAME=("${NAME[@]}" more): whether the branch is taken or not, it begins with
  // what was there before.
  bool goes_on(const Words& held, const Words& values) const {
    if (held.empty() || values.empty()) return false;
    if (!now_array_) {
      const std::string& before = held.front();
      return !before.empty() && values.front().starts_with(before + " ");
    }
    return values.size() > held.size() && std::equal(held.begin(), held.end(), values.begin());
  }

  Words single() {
    now_array_ = false;
    quoted_ = true;  // an assignment is not split
    Words words;
    if (!ends_command() && now() != ' ' && now() != '\t' && at_ < text_.size()) words = word();
    quoted_ = false;
    std::string joined;
    for (const std::string& one : words) joined += (joined.empty() ? "" : " ") + one;
    return {joined};
  }

  Words array() {
    step();
    Words all;
    while (at_ < text_.size()) {
      skip_blanks();
      if (now() == ')') break;
      if (now() == '\n') {
        step();
      } else if (now() == '#') {
        skip_comment();
      } else if (ends_command()) {
        step();
      } else {
        const Words words = word();
        all.insert(all.end(), words.begin(), words.end());
      }
    }
    if (at_ < text_.size()) step();
    now_array_ = true;
    return all;
  }

  // One word as written, which an array or a variable with blanks turns into several.
  Words word() {
    Words words;
    std::string part;
    bool some = false;
    const std::size_t from = at_;
    while (at_ < text_.size()) {
      const char c = now();
      if (c == ' ' || c == '\t' || c == '\r' || ends_command() || c == ')' || c == '<' ||
          c == '>' || (c == '\\' && (next() == '\n' || next() == '\r'))) {
        break;
      }
      if (c == mark) {  // of a text that was replaced before
        part += marked();
      } else if (c == '\'') {
        part += single_quoted();
        some = true;
      } else if (c == '"') {
        double_quoted(part, words);
        some = true;
      } else if (c == '$' || c == '`') {
        split_into(expansion(), quoted_, part, words);
      } else {
        if (c == '\\') step();
        part += now();
        step();
      }
    }
    if (!part.empty() || (some && words.empty())) words.push_back(part);
    if (at_ == from) step();
    return words;
  }

  // A variable that holds itself twice, line after line, would fill the memory.
  void count(const Words& values) {
    for (const std::string& value : values) expanded_bytes_ += value.size() + 1;
    if (expanded_bytes_ <= most_expanded) return;
    throw TraceError(
        file_, fmt::format("line {}", line_),
        fmt::format("the variables until here are replaced by more than {} bytes", most_expanded));
  }

  void split_into(const Words& values, bool whole, std::string& part, Words& words) {
    count(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0 && !part.empty()) {
        words.push_back(std::move(part));
        part.clear();
      }
      if (whole) {
        part += values[i];
        continue;
      }
      bool marked = false;  // within what is not known
      for (const char c : values[i]) {
        if (c == mark) marked = !marked;
        if (marked || (c != ' ' && c != '\t' && c != '\n' && c != '\r')) {
          part += c;
        } else if (!part.empty()) {
          words.push_back(std::move(part));
          part.clear();
        }
      }
    }
  }

  std::string marked() {
    std::string text;
    do {
      text += now();
      step();
    } while (at_ < text_.size() && now() != mark);
    if (at_ < text_.size()) step();
    return text + mark;
  }

  std::string single_quoted() {
    const int line = line_;
    step();
    std::string text;
    while (at_ < text_.size() && now() != '\'') {
      text += now();
      step();
    }
    close('\'', line);
    return text;
  }

  void close(char quote, int line) {
    if (now() != quote) {
      throw TraceError(file_, fmt::format("line {}", line),
                       fmt::format("the quote {} that begins here does not end", quote));
    }
    step();
  }

  void double_quoted(std::string& part, Words& words) {
    const int line = line_;
    step();
    while (at_ < text_.size() && now() != '"') {
      if (now() == '$' || now() == '`') {
        split_into(expansion(), true, part, words);
      } else if (now() == '\\' && next() == '\n') {
        step();
        step();
      } else {
        if (now() == '\\' && std::string_view("\"\\$`").find(next()) != std::string::npos) step();
        part += now();
        step();
      }
    }
    close('"', line);
  }

  // What stands for itself up to its closing bracket.
  std::string bracketed(char open, char close) {
    int depth = 0;
    std::string inside;
    do {
      if (now() == open) ++depth;
      if (now() == close) --depth;
      inside += now();
      step();
    } while (at_ < text_.size() && depth > 0);
    if (inside.size() < 2) return "";
    return inside.substr(1, inside.size() - 2);
  }

  Words expansion() {
    if (now() == '`') {
      step();
      while (at_ < text_.size() && now() != '`') step();
      if (at_ < text_.size()) step();
      return {unknown("the output of a command")};
    }
    step();
    if (now() == '(') {
      const std::string inside = bracketed('(', ')');
      if (inside.size() < 2 || inside.front() != '(') return {unknown("the output of a command")};
      return {calculated(inside.substr(1, inside.size() - 2))};
    }
    if (now() == '{') return braced(bracketed('{', '}'));
    std::string name;
    while (at_ < text_.size() && in_name(now())) {
      name += now();
      step();
    }
    if (name.empty() && at_ < text_.size() && std::string_view("@*#?").find(now()) < 4) {
      step();
      return {};
    }
    return name.empty() ? Words{"$"} : value_of(name);
  }

  Words value_of(const std::string& name) const {
    const auto found = variables_.find(name);
    if (found != variables_.end()) return found->second;
    return {unknown(fmt::format("{}, which no line before it sets", name))};
  }

  // NAME, NAME[@], NAME[*], NAME:-default, NAME-default, NAME:=default.
  Words braced(const std::string& inside) {
    std::size_t end = 0;
    while (end < inside.size() && in_name(inside[end])) ++end;
    const std::string name = inside.substr(0, end);
    std::string rest = inside.substr(end);
    if (rest == "[@]" || rest == "[*]") rest.clear();
    if (rest.empty()) return value_of(name);
    const std::size_t dash = rest.find_first_not_of(':');
    if (dash <= 1 && dash < rest.size() && (rest[dash] == '-' || rest[dash] == '=')) {
      const auto found = variables_.find(name);
      if (found != variables_.end() && !found->second.empty() && !found->second.front().empty()) {
        return found->second;
      }
      return {expanded(rest.substr(dash + 1))};
    }
    return {unknown(fmt::format("${{{}}}, which is not followed", inside))};
  }

  // The variables of a text, which may be in brackets of its own.
  std::string expanded(const std::string& text) {
    if (++depth_ > 20) return unknown("a value in a value in a value");
    Script inner(text, file_, {});
    inner.variables_ = variables_;
    inner.depth_ = depth_;
    inner.quoted_ = true;
    std::string all;
    while (inner.at_ < inner.text_.size()) {
      if (inner.now() == '$' || inner.now() == '`') {
        const Words values = inner.expansion();
        count(values);
        for (const std::string& one : values) all += one;
      } else {
        if (inner.now() != '"') all += inner.now();
        inner.step();
      }
    }
    --depth_;
    return all;
  }

  std::string calculated(const std::string& text) {
    std::string sum;
    const std::string given = expanded(text);
    for (std::size_t i = 0; i < given.size();) {
      if (std::isalpha(static_cast<unsigned char>(given[i])) == 0 && given[i] != '_') {
        sum += given[i++];
        continue;
      }
      std::size_t end = i;
      while (end < given.size() && in_name(given[end])) ++end;
      const Words values = value_of(given.substr(i, end - i));
      sum += values.empty() ? "" : values.front();
      i = end;
    }
    if (is_unknown_word(sum)) return sum;
    const std::optional<std::int64_t> value = shell_arithmetic(sum);
    return value ? fmt::format("{}", *value)
                 : unknown(fmt::format("$(({})), which is not calculated", text));
  }

  std::string text_;
  const std::string& file_;
  std::size_t at_ = 0;
  int line_ = 1;
  int branches_ = 0;
  int depth_ = 0;
  bool quoted_ = false;
  std::size_t expanded_bytes_ = 0;
  bool now_array_ = false;
  std::string document_end_;  // "EOF" where lines of it follow this command
  std::map<std::string, Words> variables_;
  std::vector<std::string> fixed_;  // by the user
  std::vector<ShellCommand> commands_;
};

}  // namespace

std::vector<ShellCommand> shell_commands(const std::string& text, const std::string& file,
                                         const LaunchAdditions& variables) {
  return Script(text, file, variables).commands();
}

bool is_unknown_word(std::string_view word) { return word.find(mark) != std::string_view::npos; }

bool is_set_in_branch(std::string_view word) {
  return is_unknown_word(word) && word.find("in a branch") != std::string_view::npos;
}

std::string why_unknown(std::string_view word) {
  const std::size_t from = word.find(mark) + 1;
  return std::string(word.substr(from, word.find(mark, from) - from));
}

}  // namespace stageline
