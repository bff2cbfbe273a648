// What PyTorch's schedule CSV must keep to, checked cell by cell.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "traces/pytorch/cells.hpp"

namespace stageline {

/// The cells in which a stage's work on a micro-batch stands; null where it is not done.
struct CellWork {
  const Cell* forward = nullptr;
  const Cell* input_grad = nullptr;
  const Cell* weight_grad = nullptr;
  const Cell* backward = nullptr;

  const Cell* gradient() const { return backward != nullptr ? backward : input_grad; }
};

/// Where everything stands. Points into the rows.
struct CellTable {
  std::map<int, const Cell*> home;                         // by stage: the first cell that names it
  std::map<std::pair<int, std::uint32_t>, CellWork> work;  // by stage and micro-batch
  int stages = 0;
  std::uint32_t microbatches = 0;
  bool messages = false;  // there are any
};

/// Throws ProgramError unless each stage lives on one rank and does each micro-batch's F, and then
/// its B, or its I and W, once; and each rank works.
CellTable table_of(const CellRows& rows);

/// Throws ProgramError unless a SEND stands behind what it carries and a RECV before what reads it,
/// the two of each message are there, all that are needed are there, and no cell is empty.
void check_messages(const CellRows& rows, const CellTable& table);

}  // namespace stageline
