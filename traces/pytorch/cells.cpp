// Splits a schedule CSV into cells and parses their actions.
#include "traces/pytorch/cells.hpp"

#include <fmt/core.h>

#include <array>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "sim/program.hpp"

namespace stageline {
namespace {

constexpr std::array<std::string_view, cell_words> spellings{
    "F",      "I",      "W",      "B",       "BW",      "SEND_F",
    "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD"};

constexpr std::uint32_t most_microbatches = 1U << 26;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<std::uint32_t> whole_number(std::string_view digits, std::uint32_t below) {
  const auto value = parse_number<std::uint32_t>(digits);
  return value && *value < below ? value : std::nullopt;
}

CellAction action_of(std::string_view text, const Cell& cell) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t first = 0;
  while (first < text.size() && is_digit(text[first])) ++first;
  std::size_t last = text.size();
  while (last > first && is_digit(text[last - 1])) --last;
  CellAction action;
  const std::string_view word = text.substr(first, last - first);
  std::size_t at = 0;
  while (at < spellings.size() && spellings[at] != word) ++at;
  if (first == 0 || at == spellings.size()) {
    refuse(
        cell,
        fmt::format(
            "\"{}\" is not an action <stage><word><micro-batch>, such as 1F0; the words are F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, and without a micro-batch UNSHARD, RESHARD, REDUCE_GRAD",
            text));
  }
  action.word = static_cast<CellWord>(at);
  const auto stage = whole_number(text.substr(0, first), max_stages);
  if (!stage) {
    refuse(cell, fmt::format("\"{}\": a stage is a number below {}", text, max_stages));
  }
  action.stage = static_cast<int>(*stage);
  const bool counts = is_compute(action.word) || is_message(action.word);
  if (counts != (last < text.size())) {
    refuse(cell,
           counts ? fmt::format("\"{}\" names no micro-batch; write {}0 for the first", text, text)
                  : fmt::format("\"{}\" names a micro-batch, but {} is of the whole step", text,
                                word));
  }
  if (!counts) return action;
  const auto microbatch = whole_number(text.substr(last), most_microbatches);
  if (!microbatch) {
    refuse(cell,
           fmt::format("\"{}\": a micro-batch is a number below {}", text, most_microbatches));
  }
  action.microbatch = *microbatch;
  return action;
}

void read_pair(std::string_view text, Cell& cell) {
  const std::size_t close = text.find(')');
  const std::size_t between = text.find(';');
  if (close == std::string_view::npos || trimmed(text.substr(close + 1)) != overlap_mark ||
      between == std::string_view::npos || between > close ||
      text.find(';', between + 1) != std::string_view::npos) {
    refuse(cell, fmt::format("\"{}\": an overlapped pair is written (7F3;0B2)OVERLAP_F_B", text));
  }
  for (const std::string_view half :
       {text.substr(1, between - 1), text.substr(between + 1, close - between - 1)}) {
    cell.actions.push_back(action_of(trimmed(half), cell));
    if (is_compute(cell.actions.back().word)) continue;
    refuse(cell, fmt::format("{} cannot be overlapped; only F, B, I and W can",
                             print(cell.actions.back())));
  }
}

// CSV as in RFC 4180, after an optional byte order mark: a cell in double quotes may hold commas,
// line ends and doubled quotes. Blanks around a cell's content are ignored.
class CellText {
 public:
  explicit CellText(std::string_view text) : text_(text) {
    if (text_.starts_with(byte_order_mark)) text_.remove_prefix(byte_order_mark.size());
    if (!text_.empty() && text_.back() == '\n') text_.remove_suffix(1);  // ends the last line
  }

  bool done() const { return at_ > text_.size(); }

  // Reads a cell; returns whether its row continues.
  bool next(const Cell& cell, std::string& content) {
    std::size_t from = at_;
    while (from < text_.size() && blank(text_[from])) ++from;
    if (from < text_.size() && text_[from] == '"') {
      at_ = from + 1;
      content = quoted(cell);
    } else {
      at_ = std::min(text_.find_first_of(",\n", at_), text_.size());
      content = text_.substr(from, at_ - from);
    }
    const bool goes_on = at_ < text_.size() && text_[at_] == ',';
    ++at_;
    return goes_on;
  }

 private:
  static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

  std::string quoted(const Cell& cell) {
    std::string content;
    while (true) {
      const std::size_t quote = text_.find('"', at_);
      if (quote == std::string_view::npos) {
        refuse(cell, "it begins with a double quote, but no second one ends it");
      }
      content += text_.substr(at_, quote - at_);
      at_ = quote + 1;
      if (at_ == text_.size() || text_[at_] != '"') break;
      content += '"';
      ++at_;
    }
    while (at_ < text_.size() && blank(text_[at_])) ++at_;
    if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') {
      refuse(cell, "there is text behind its closing double quote");
    }
    return content;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string_view spelled(CellWord word) { return nth(spellings, word); }

std::string print(const CellAction& action) {
  const bool counts = is_compute(action.word) || is_message(action.word);
  return fmt::format("{}{}{}", action.stage, spelled(action.word),
                     counts ? std::to_string(action.microbatch) : "");
}

void refuse(const Cell& cell, const std::string& message) {
  throw ProgramError(
      fmt::format("rank {} (line {}), cell {}: {}", cell.rank, cell.rank + 1, cell.column, message),
      cell.rank, cell.column - 1);
}

std::string at(const Cell& cell) { return fmt::format("rank {}, cell {}", cell.rank, cell.column); }

CellRows schedule_cells(std::string_view text) {
  CellText cells(text);
  CellRows rows;
  while (!cells.done()) {
    std::vector<Cell>& row = rows.emplace_back();
    bool goes_on = true;
    while (goes_on) {
      Cell& cell = row.emplace_back();
      cell.rank = static_cast<int>(rows.size()) - 1;
      cell.column = static_cast<int>(row.size());
      std::string content;
      goes_on = cells.next(cell, content);
      const std::string_view word = trimmed(content);
      if (word.empty()) continue;
      if (word.front() == '(') {
        read_pair(word, cell);
      } else {
        cell.actions.push_back(action_of(word, cell));
      }
    }
  }
  return rows;
}

}  // namespace stageline
