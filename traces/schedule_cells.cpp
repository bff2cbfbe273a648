#include "traces/schedule_cells.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "sim/errors.hpp"
#include "sim/program.hpp"

namespace stageline {
namespace {

constexpr std::array<std::string_view, cell_words> words{
    "F",      "I",      "W",      "B",       "BW",      "SEND_F",
    "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD"};

constexpr std::uint32_t most_microbatches = 1U << 26;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::optional<std::uint32_t> whole_number(std::string_view digits, std::uint32_t below) {
  std::uint32_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || rest != end || value >= below) return std::nullopt;
  return value;
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
  while (at < words.size() && words[at] != word) ++at;
  if (first == 0 || at == words.size()) {
    refuse(cell,
           fmt::format("\"{}\" is no action; an action is <stage><word><micro-batch>, such as "
                       "1F0, and the words are F, B, I, W, SEND_F, RECV_F, SEND_B and RECV_B, "
                       "and without a micro-batch UNSHARD, RESHARD and REDUCE_GRAD",
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

}  // namespace

std::string_view spelled(CellWord word) { return words[static_cast<std::size_t>(word)]; }

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
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);  // of the last line
  CellRows rows;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    std::vector<Cell>& row = rows.emplace_back();
    std::size_t from = 0;
    while (from <= line.size()) {
      const std::size_t comma = std::min(line.find(',', from), line.size());
      const std::string_view word = trimmed(line.substr(from, comma - from));
      from = comma + 1;
      Cell& cell = row.emplace_back();
      cell.rank = static_cast<int>(rows.size()) - 1;
      cell.column = static_cast<int>(row.size());
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
