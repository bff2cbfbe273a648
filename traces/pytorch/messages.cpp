// Checks the messages of a schedule CSV.
#include <fmt/core.h>

#include <array>

#include "sim/base/index.hpp"
#include "traces/pytorch/rules.hpp"

namespace stageline {
namespace {

class MessageCheck {
 public:
  MessageCheck(const CellRows& rows, const CellTable& table) : rows_(rows), table_(table) {}

  // A SEND must follow its producer, a RECV precede its reader, and both must be there; if there is
  // one message, all must be there.
  void check() {
    std::array<std::map<std::pair<int, std::uint32_t>, const Cell*>, cell_words> place;
    for (const auto& row : rows_) {
      for (const Cell& cell : row) {
        if (cell.actions.empty()) {
          refuse(cell,
                 "the cell is empty, which is an idle slot, and a schedule with messages has none");
        }
        for (const CellAction& action : cell.actions) {
          if (!is_message(action.word)) continue;
          const std::pair key{action.stage, action.microbatch};
          const Cell*& here = nth(place, action.word)[key];
          if (here != nullptr) {
            refuse(cell, fmt::format("{} appears a second time (the first is cell {})",
                                     print(action), here->column));
          }
          here = &cell;
          check_message(cell, action);
        }
      }
    }
    const auto find = [&](CellWord word, int stage, std::uint32_t m) {
      const auto& all = nth(place, word);
      return all.count({stage, m}) > 0;
    };
    each_action(rows_, [&](const Cell& cell, const CellAction& action) {
      const int s = action.stage;
      const std::uint32_t m = action.microbatch;
      const auto partner = [&](CellWord word, int stage, std::string_view does) {
        if (find(word, stage, m)) return;
        refuse(cell, fmt::format("no rank {} {}: rank {} has no {}", does, print(action),
                                 table_.home.at(stage)->rank, print(CellAction{word, stage, m})));
      };
      const auto brought = [&](CellWord word, int from) {
        if (from < 0 || from >= table_.stages || table_.home.at(from)->rank == cell.rank) return;
        if (find(word, s, m)) return;
        refuse(cell,
               fmt::format("{} reads what stage {} makes on rank {}, but there is no {} before "
                           "it; write all messages or none",
                           print(action), from, table_.home.at(from)->rank,
                           print(CellAction{word, s, m})));
      };
      switch (action.word) {
        case CellWord::send_forward:
          return partner(CellWord::receive_forward, s + 1, "receives");
        case CellWord::send_backward:
          return partner(CellWord::receive_backward, s - 1, "receives");
        case CellWord::receive_forward:
          return partner(CellWord::send_forward, s - 1, "sends");
        case CellWord::receive_backward:
          return partner(CellWord::send_backward, s + 1, "sends");
        case CellWord::forward:
          return brought(CellWord::receive_forward, s - 1);
        case CellWord::backward:
        case CellWord::input_grad:
          return brought(CellWord::receive_backward, s + 1);
        case CellWord::weight_grad:
        case CellWord::old_backward:
        case CellWord::unshard:
        case CellWord::reshard:
        case CellWord::reduce_grad:
          return;
      }
    });
  }

 private:
  void check_message(const Cell& cell, const CellAction& action) const {
    const bool forward =
        action.word == CellWord::send_forward || action.word == CellWord::receive_forward;
    const bool sends =
        action.word == CellWord::send_forward || action.word == CellWord::send_backward;
    const int other = action.stage + (forward == sends ? 1 : -1);
    if (other < 0 || other >= table_.stages) {
      refuse(cell,
             fmt::format("stage {} is the {} of {}: there is no stage to {} {} {}", action.stage,
                         other < 0 ? "first" : "last", table_.stages, sends ? "send" : "receive",
                         forward ? "an activation" : "a gradient", sends ? "to" : "from"));
    }
    if (table_.home.at(other)->rank == cell.rank) {
      refuse(cell, fmt::format("{}: stages {} and {} are both on rank {} and need no message",
                               print(action), action.stage, other, cell.rank));
    }
    const auto found = table_.work.find({action.stage, action.microbatch});
    const Cell* const end = found == table_.work.end() ? nullptr
                            : forward                  ? found->second.forward
                                                       : found->second.gradient();
    if (end == nullptr) {
      refuse(cell, fmt::format("{}: there are micro-batches 0 to {} only", print(action),
                               table_.microbatches - 1));
    }
    if ((end->column < cell.column) == sends) return;
    refuse(cell,
           sends ? fmt::format("{} comes before its payload, which cell {} makes", print(action),
                               end->column)
                 : fmt::format("{} comes after its reader, cell {}", print(action), end->column));
  }

  const CellRows& rows_;
  const CellTable& table_;
};

}  // namespace

void check_messages(const CellRows& rows, const CellTable& table) {
  MessageCheck(rows, table).check();
}

}  // namespace stageline
