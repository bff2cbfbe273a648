// PyTorch's schedule CSV, read: one row a rank (pytorch/pytorch, torch/distributed/pipelining/
// schedules.py). Stricter than its own loader, which takes the beginning of a cell for the whole
// and leaves messages unchecked.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "sim/errors.hpp"
#include "traces/programs.hpp"
#include "traces/schedule_cells.hpp"

namespace stageline {
namespace {

using Rows = std::vector<std::vector<Cell>>;
using Key = std::pair<int, std::uint32_t>;  // stage, micro-batch

template <class Visit>
void each_action(const Rows& rows, Visit&& visit) {
  for (const auto& row : rows) {
    for (const Cell& cell : row) {
      for (const CellAction& action : cell.actions) visit(cell, action);
    }
  }
}

std::string at(const Cell& cell) { return fmt::format("rank {}, cell {}", cell.rank, cell.column); }

std::string list_of_ranks(std::size_t ranks) {
  return ranks == 1 ? "rank 0" : fmt::format("ranks 0 to {}", ranks - 1);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rows_(schedule_cells(text)) {}

  ReadProgram read() {
    modernize();
    each_action(rows_, [&](const Cell& cell, const CellAction& action) {
      messages_ = messages_ || is_message(action.word);
      settle(cell, action);
      if (is_compute(action.word)) work(cell, action);
    });
    count();
    if (messages_) check_messages();
    check_reductions();
    return {program(), std::move(notes_)};
  }

 private:
  // The cells in which a stage's work on a micro-batch stands.
  struct Work {
    const Cell* forward = nullptr;
    const Cell* input_grad = nullptr;
    const Cell* weight_grad = nullptr;
    const Cell* backward = nullptr;

    const Cell*& of(CellWord word) {
      switch (word) {
        case CellWord::forward:
          return forward;
        case CellWord::input_grad:
          return input_grad;
        case CellWord::weight_grad:
          return weight_grad;
        case CellWord::backward:
        case CellWord::old_backward:
        case CellWord::send_forward:
        case CellWord::receive_forward:
        case CellWord::send_backward:
        case CellWord::receive_backward:
        case CellWord::unshard:
        case CellWord::reshard:
        case CellWord::reduce_grad:
          break;
      }
      return backward;
    }
    const Cell* gradient() const { return backward != nullptr ? backward : input_grad; }
  };

  // Older files write BW for what is B now, and B for what is I. Without any BW they tell
  // themselves by a B and a W of the same work.
  void modernize() {
    const Cell* old = nullptr;
    const Cell* modern = nullptr;
    std::map<Key, int> seen;  // bits: B, W
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
      // With an I about, only a BW is of the other spelling; B and W together are plain wrong.
      each_action(rows_, [&](const Cell& cell, const CellAction& action) {
        if (action.word != CellWord::old_backward) return;
        refuse(cell, fmt::format("{} is the older spelling of a full backward, but {} has an I, "
                                 "which is of the newer one, where it is {}B{}",
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

  void settle(const Cell& cell, const CellAction& action) {
    const auto [home, first] = home_.try_emplace(action.stage, &cell);
    if (first || home->second->rank == cell.rank) return;
    refuse(cell, fmt::format("stage {} is on rank {} too (cell {}); each stage lives on one rank",
                             action.stage, home->second->rank, home->second->column));
  }

  void work(const Cell& cell, const CellAction& action) {
    Work& done = work_[{action.stage, action.microbatch}];
    const Cell*& place = done.of(action.word);
    if (place != nullptr) {
      refuse(cell,
             fmt::format("{} is done a second time (the first is {})", print(action), at(*place)));
    }
    const auto behind = [&](const Cell* before, CellWord word) {
      const std::string first = print(CellAction{word, action.stage, action.microbatch});
      if (before == nullptr) {
        refuse(cell, fmt::format("{} needs {} before it", print(action), first));
      }
      if (before == &cell) {
        refuse(cell, fmt::format("{} and {} are one overlapped pair, but the one needs the other",
                                 first, print(action)));
      }
    };
    if (action.word == CellWord::backward || action.word == CellWord::input_grad) {
      behind(done.forward, CellWord::forward);
    }
    if (action.word == CellWord::weight_grad && done.backward == nullptr)
      behind(done.input_grad, CellWord::input_grad);
    place = &cell;
    const Cell* const half = done.input_grad != nullptr ? done.input_grad : done.weight_grad;
    if (done.backward != nullptr && half != nullptr) {
      refuse(
          cell,
          fmt::format("{}B{} is the whole backward, and {} is part of it; a micro-batch has "
                      "either B or I and W",
                      action.stage, action.microbatch, at(&cell == half ? *done.backward : *half)));
    }
  }

  // Every stage there is does each micro-batch.
  void count() {
    for (const auto& row : rows_) {
      const bool works = std::any_of(row.begin(), row.end(),
                                     [](const Cell& cell) { return !cell.actions.empty(); });
      if (!works) {
        refuse(row.front(),
               fmt::format("the rank has no action; a schedule of {} has a stage on each "
                           "of them",
                           list_of_ranks(rows_.size())));
      }
    }
    stages_ = home_.rbegin()->first + 1;
    for (int s = 0; s < stages_; ++s) {
      if (home_.count(s) > 0) continue;
      throw ProgramError(
          fmt::format("no rank has an action of stage {}, but {} has one of stage {}", s,
                      at(*home_.rbegin()->second), stages_ - 1));
    }
    for (const auto& [key, done] : work_) microbatches_ = std::max(microbatches_, key.second + 1);
    for (int s = 0; s < stages_; ++s) {
      const int rank = home_.at(s)->rank;
      const auto missing = [&](const std::string& what) {
        throw ProgramError(
            fmt::format("rank {} (line {}) does no {}; a stage needs, for each of the {} "
                        "micro-batches, one F and either one B or I and W",
                        rank, rank + 1, what, microbatches_),
            rank);
      };
      for (std::uint32_t m = 0; m < microbatches_; ++m) {
        const auto found = work_.find({s, m});
        const Work done = found == work_.end() ? Work{} : found->second;
        if (done.forward == nullptr) missing(fmt::format("{}F{}", s, m));
        if (done.backward != nullptr) continue;
        if (done.input_grad == nullptr) missing(fmt::format("{0}B{1}, nor {0}I{1}", s, m));
        if (done.weight_grad == nullptr) {
          missing(fmt::format("{0}W{1}, though it does {0}I{1}", s, m));
        }
      }
    }
  }

  // A SEND behind what it carries, a RECV before what reads it, and the two of each message; where
  // there is one message, all are there.
  void check_messages() {
    std::array<std::map<Key, const Cell*>, cell_words> place;
    for (const auto& row : rows_) {
      for (const Cell& cell : row) {
        if (cell.actions.empty()) {
          refuse(cell,
                 "the cell is empty, which is an idle slot, and a schedule with messages has "
                 "none");
        }
        for (const CellAction& action : cell.actions) {
          if (!is_message(action.word)) continue;
          const Key key{action.stage, action.microbatch};
          const Cell*& here = place[static_cast<std::size_t>(action.word)][key];
          if (here != nullptr) {
            refuse(cell, fmt::format("{} stands a second time (the first is cell {})",
                                     print(action), here->column));
          }
          here = &cell;
          check_message(cell, action);
        }
      }
    }
    const auto find = [&](CellWord word, int stage, std::uint32_t m) {
      const auto& all = place[static_cast<std::size_t>(word)];
      return all.count({stage, m}) > 0;
    };
    each_action(rows_, [&](const Cell& cell, const CellAction& action) {
      const int s = action.stage;
      const std::uint32_t m = action.microbatch;
      const auto partner = [&](CellWord word, int stage, std::string_view does) {
        if (find(word, stage, m)) return;
        refuse(cell, fmt::format("nobody {} {}: rank {} has no {}", does, print(action),
                                 home_.at(stage)->rank, print(CellAction{word, stage, m})));
      };
      const auto brought = [&](CellWord word, int from) {
        if (from < 0 || from >= stages_ || home_.at(from)->rank == cell.rank) return;
        if (find(word, s, m)) return;
        refuse(cell, fmt::format(
                         "{} reads what stage {} makes on rank {}, but there is no {} before "
                         "it; write all messages or none",
                         print(action), from, home_.at(from)->rank, print(CellAction{word, s, m})));
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

  void check_message(const Cell& cell, const CellAction& action) const {
    const bool forward =
        action.word == CellWord::send_forward || action.word == CellWord::receive_forward;
    const bool sends =
        action.word == CellWord::send_forward || action.word == CellWord::send_backward;
    const int other = action.stage + (forward == sends ? 1 : -1);
    if (other < 0 || other >= stages_) {
      refuse(cell, fmt::format("stage {} is the {} of {}: it has no one to {} {} {}", action.stage,
                               other < 0 ? "first" : "last", stages_, sends ? "send" : "receive",
                               forward ? "an activation" : "a gradient", sends ? "to" : "from"));
    }
    if (home_.at(other)->rank == cell.rank) {
      refuse(cell, fmt::format("{}: stages {} and {} are both on rank {} and need no message",
                               print(action), action.stage, other, cell.rank));
    }
    const auto found = work_.find({action.stage, action.microbatch});
    const Cell* const end = found == work_.end() ? nullptr
                            : forward            ? found->second.forward
                                                 : found->second.gradient();
    if (end == nullptr) {
      refuse(cell, fmt::format("{}: there are micro-batches 0 to {} only", print(action),
                               microbatches_ - 1));
    }
    if ((end->column < cell.column) == sends) return;
    refuse(cell, sends ? fmt::format("{} stands before what it sends, which cell {} makes",
                                     print(action), end->column)
                       : fmt::format("{} stands behind what reads it, cell {}", print(action),
                                     end->column));
  }

  // Each stage's gradients are reduced once, when they are whole.
  void check_reductions() {
    std::map<int, const Cell*> reduced;
    int sharding = 0;
    each_action(rows_, [&](const Cell& cell, const CellAction& action) {
      sharding += action.word == CellWord::unshard || action.word == CellWord::reshard ? 1 : 0;
      if (action.word == CellWord::reduce_grad) {
        const auto [before, first] = reduced.try_emplace(action.stage, &cell);
        if (!first) {
          refuse(cell, fmt::format("{} stands a second time (the first is cell {})", print(action),
                                   before->second->column));
        }
      }
      if (action.word != CellWord::backward && action.word != CellWord::weight_grad) return;
      const auto found = reduced.find(action.stage);
      if (found == reduced.end()) return;
      refuse(*found->second,
             fmt::format("{}REDUCE_GRAD stands before {} (cell {}), whose gradient it "
                         "is to reduce",
                         action.stage, print(action), cell.column));
    });
    if (sharding > 0) {
      notes_.push_back(fmt::format(
          "{} UNSHARD and RESHARD were left out: weights are not sharded here", sharding));
    }
  }

  Program program() const {
    Program program;
    program.microbatches = static_cast<int>(microbatches_);
    program.placement.stage.resize(static_cast<std::size_t>(stages_));
    for (const auto& [stage, cell] : home_) {
      program.placement.stage[static_cast<std::size_t>(stage)].replicas = {cell->rank};
    }
    program.edges = chain_edges(stages_);
    program.independent_w.assign(static_cast<std::size_t>(stages_), false);
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
    return OpKind::update;  // of the one step, where its gradients are whole
  }

  Rows rows_;
  std::map<int, const Cell*> home_;  // by stage: the first cell that names it
  std::map<Key, Work> work_;
  bool messages_ = false;
  int stages_ = 0;
  std::uint32_t microbatches_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace

bool looks_like_pytorch_schedule(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  const char c = text[first];
  return (c >= '0' && c <= '9') || c == ',' || c == '(';
}

ReadProgram read_pytorch_schedule(std::string_view text) { return Reader(text).read(); }

}  // namespace stageline
