// Checks stages, micro-batches and ranks of a schedule CSV.
#include "traces/pytorch/rules.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

std::string list_of_ranks(std::size_t ranks) {
  return ranks == 1 ? "rank 0" : fmt::format("ranks 0 to {}", ranks - 1);
}

const Cell*& place_of(CellWork& work, CellWord word) {
  switch (word) {
    case CellWord::forward:
      return work.forward;
    case CellWord::input_grad:
      return work.input_grad;
    case CellWord::weight_grad:
      return work.weight_grad;
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
  return work.backward;
}

class Counting {
 public:
  explicit Counting(const CellRows& rows) : rows_(rows) {}

  CellTable table() {
    each_action(rows_, [&](const Cell& cell, const CellAction& action) {
      table_.messages = table_.messages || is_message(action.word);
      settle(cell, action);
      if (is_compute(action.word)) work(cell, action);
    });
    count();
    return std::move(table_);
  }

 private:
  void settle(const Cell& cell, const CellAction& action) {
    const auto [home, first] = table_.home.try_emplace(action.stage, &cell);
    if (first || home->second->rank == cell.rank) return;
    refuse(cell, fmt::format("stage {} is on rank {} too (cell {}); each stage lives on one rank",
                             action.stage, home->second->rank, home->second->column));
  }

  void work(const Cell& cell, const CellAction& action) {
    CellWork& done = table_.work[{action.stage, action.microbatch}];
    const Cell*& place = place_of(done, action.word);
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
        refuse(cell, fmt::format("{} and {} are one overlapped pair, but one needs the other",
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
      refuse(cell, fmt::format("{}B{} is the whole backward, and {} is part of it; "
                               "a micro-batch has either B or I and W",
                               action.stage, action.microbatch,
                               at(&cell == half ? *done.backward : *half)));
    }
  }

  // Every stage must process each micro-batch.
  void count() {
    for (const auto& row : rows_) {
      const bool works = std::any_of(row.begin(), row.end(),
                                     [](const Cell& cell) { return !cell.actions.empty(); });
      if (!works) {
        refuse(row.front(),
               fmt::format("the rank has no action; a schedule of {} has a stage on each of them",
                           list_of_ranks(rows_.size())));
      }
    }
    table_.stages = table_.home.rbegin()->first + 1;
    for (int s = 0; s < table_.stages; ++s) {
      if (table_.home.count(s) > 0) continue;
      throw ProgramError(
          fmt::format("no rank has an action of stage {}, but {} has one of stage {}", s,
                      at(*table_.home.rbegin()->second), table_.stages - 1));
    }
    for (const auto& [key, done] : table_.work)
      table_.microbatches = std::max(table_.microbatches, key.second + 1);
    for (int s = 0; s < table_.stages; ++s) {
      const int rank = table_.home.at(s)->rank;
      const auto missing = [&](const std::string& what) {
        throw ProgramError(
            fmt::format("rank {} (line {}) does no {}; a stage needs, for each of the {} "
                        "micro-batches, one F and either one B or I and W",
                        rank, rank + 1, what, table_.microbatches),
            rank);
      };
      for (std::uint32_t m = 0; m < table_.microbatches; ++m) {
        const auto found = table_.work.find({s, m});
        const CellWork done = found == table_.work.end() ? CellWork{} : found->second;
        if (done.forward == nullptr) missing(fmt::format("{}F{}", s, m));
        if (done.backward != nullptr) continue;
        if (done.input_grad == nullptr) missing(fmt::format("{0}B{1}, nor {0}I{1}", s, m));
        if (done.weight_grad == nullptr) {
          missing(fmt::format("{0}W{1}, though it does {0}I{1}", s, m));
        }
      }
    }
  }

  const CellRows& rows_;
  CellTable table_;
};

}  // namespace

CellTable table_of(const CellRows& rows) { return Counting(rows).table(); }

}  // namespace stageline
