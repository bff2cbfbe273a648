// Reads PyTorch's schedule CSV: one row per rank (pytorch/pytorch, torch/distributed/pipelining/
// schedules.py). Stricter than its own loader, which parses only the beginning of a cell and does
// not check messages.
#include <fmt/core.h>

#include <map>

#include "sim/base/index.hpp"
#include "traces/programs.hpp"
#include "traces/pytorch/rules.hpp"

namespace stageline {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : rows_(schedule_cells(text)) {}

  ReadProgram read() {
    modernize();
    table_ = table_of(rows_);
    if (table_.messages) check_messages(rows_, table_);
    check_reductions();
    return {program(), std::move(notes_)};
  }

 private:
  // Older files write BW for today's B, and B for I. Without any BW they are recognised by a B and
  // a W of the same work.
  void modernize() {
    const Cell* old = nullptr;
    const Cell* modern = nullptr;
    std::map<std::pair<int, std::uint32_t>, int> seen;  // bits: B, W
    each_action(rows_, [&](const Cell& cell, const CellAction& action) {
      if (action.word == CellWord::input_grad && modern == nullptr) modern = &cell;
      if (action.word == CellWord::old_backward && old == nullptr) old = &cell;
      if (action.word != CellWord::backward && action.word != CellWord::weight_grad) return;
      int& both = seen[{action.stage, action.microbatch}];
      both |= action.word == CellWord::backward ? 1 : 2;
      if (both == 3 && old == nullptr) old = &cell;
    });
    if (old == nullptr) return;
    if (modern != nullptr) {
      // In the presence of an I only a BW is of the other spelling; B and W together are an error.
      each_action(rows_, [&](const Cell& cell, const CellAction& action) {
        if (action.word != CellWord::old_backward) return;
        refuse(cell,
               fmt::format("{} is the older spelling of a full backward, but {} has an I, which "
                           "is of the newer one, where it is {}B{}",
                           print(action), at(*modern), action.stage, action.microbatch));
      });
      return;
    }
    for (auto& row : rows_) {
      for (Cell& cell : row) {
        for (CellAction& action : cell.actions) {
          if (action.word == CellWord::backward) action.word = CellWord::input_grad;
          if (action.word == CellWord::old_backward) action.word = CellWord::backward;
        }
      }
    }
    notes_.push_back(
        "the schedule is spelled as older files are: its B was read as the input gradient (I), and "
        "BW as the full backward (B)");
  }

  // Each stage's gradients are reduced once, when they are complete.
  void check_reductions() {
    std::map<int, const Cell*> reduced;
    int sharding = 0;
    each_action(rows_, [&](const Cell& cell, const CellAction& action) {
      sharding += action.word == CellWord::unshard || action.word == CellWord::reshard ? 1 : 0;
      if (action.word == CellWord::reduce_grad) {
        const auto [before, first] = reduced.try_emplace(action.stage, &cell);
        if (!first) {
          refuse(cell, fmt::format("{} appears a second time (the first is cell {})", print(action),
                                   before->second->column));
        }
      }
      if (action.word != CellWord::backward && action.word != CellWord::weight_grad) return;
      const auto found = reduced.find(action.stage);
      if (found == reduced.end()) return;
      refuse(*found->second,
             fmt::format("{}REDUCE_GRAD comes before {} (cell {}), whose gradient it is to reduce",
                         action.stage, print(action), cell.column));
    });
    if (sharding > 0) {
      notes_.push_back(fmt::format(
          "{} UNSHARD and RESHARD were left out: weights are not sharded here", sharding));
    }
  }

  Program program() const {
    Program program;
    program.microbatches = static_cast<int>(table_.microbatches);
    program.placement.stage.resize(as_size(table_.stages));
    for (const auto& [stage, cell] : table_.home) {
      nth(program.placement.stage, stage).replicas = {cell->rank};
    }
    program.edges = chain_edges(table_.stages);
    program.independent_w.assign(as_size(table_.stages), false);
    for (const auto& row : rows_) {
      program.devices.push_back(fmt::format("gpu{}", program.devices.size()));
      std::vector<Op>& list = program.ops.emplace_back();
      for (const Cell& cell : row) {
        for (const CellAction& action : cell.actions) {
          if (action.word == CellWord::unshard || action.word == CellWord::reshard) continue;
          Op op;
          op.kind = kind_of(action.word);
          op.stage = static_cast<std::uint16_t>(action.stage);
          op.microbatch = action.microbatch;
          op.overlapped = cell.actions.size() == 2 && &action == cell.actions.data() ? 1 : 0;
          list.push_back(op);
        }
      }
    }
    return program;
  }

  static OpKind kind_of(CellWord word) {
    switch (word) {
      case CellWord::forward:
        return OpKind::forward;
      case CellWord::input_grad:
        return OpKind::input_grad;
      case CellWord::weight_grad:
        return OpKind::weight_grad;
      case CellWord::backward:
      case CellWord::old_backward:
        return OpKind::backward;
      case CellWord::send_forward:
        return OpKind::send_forward;
      case CellWord::receive_forward:
        return OpKind::receive_forward;
      case CellWord::send_backward:
        return OpKind::send_backward;
      case CellWord::receive_backward:
        return OpKind::receive_backward;
      case CellWord::unshard:
      case CellWord::reshard:
      case CellWord::reduce_grad:
        break;
    }
    return OpKind::update;  // of the single step, where its gradients are complete
  }

  CellRows rows_;
  CellTable table_;
  std::vector<std::string> notes_;
};

}  // namespace

bool looks_like_pytorch_schedule(std::string_view text) {
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  const char c = text[first];
  return (c >= '0' && c <= '9') || c == ',' || c == '(' || c == '"';
}

ReadProgram read_pytorch_schedule(std::string_view text) { return Reader(text).read(); }

}  // namespace stageline
