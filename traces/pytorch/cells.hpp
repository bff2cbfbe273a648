// Parses the cells of PyTorch's schedule CSV, and throws the errors that name one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stageline {

/// The words of actions; `BW` occurs in older files only.
enum class CellWord : std::uint8_t {
  forward,           // F
  input_grad,        // I
  weight_grad,       // W
  backward,          // B
  old_backward,      // BW
  send_forward,      // SEND_F
  receive_forward,   // RECV_F
  send_backward,     // SEND_B
  receive_backward,  // RECV_B
  unshard,           // UNSHARD
  reshard,           // RESHARD
  reduce_grad,       // REDUCE_GRAD
};
inline constexpr int cell_words = 12;
std::string_view spelled(CellWord word);
constexpr bool is_compute(CellWord word) { return word <= CellWord::old_backward; }
constexpr bool is_message(CellWord word) {
  return word >= CellWord::send_forward && word <= CellWord::receive_backward;
}

/// "1F0", "0UNSHARD". `microbatch` is 0 for a word without one.
struct CellAction {
  CellWord word = CellWord::forward;
  int stage = 0;
  std::uint32_t microbatch = 0;
};
std::string print(const CellAction& action);

/// One cell of a row: no action (an idle slot), one action, or the two of an overlapped pair.
struct Cell {
  int rank = 0;    // from 0: the row
  int column = 0;  // from 1
  std::vector<CellAction> actions;
};

/// "rank 1, cell 3"
std::string at(const Cell& cell);

/// By rank.
using CellRows = std::vector<std::vector<Cell>>;

/// The byte order mark that programs on Windows put before a UTF-8 text.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Throws ProgramError that names the cell where it is not an action or is quoted wrongly.
CellRows schedule_cells(std::string_view text);

/// Calls visit(cell, action) in file order.
template <class Visit>
void each_action(const CellRows& rows, Visit&& visit) {
  for (const auto& row : rows) {
    for (const Cell& cell : row) {
      for (const CellAction& action : cell.actions) visit(cell, action);
    }
  }
}

/// Throws ProgramError "rank 1 (line 2), cell 3: message".
[[noreturn]] void refuse(const Cell& cell, const std::string& message);

}  // namespace stageline
