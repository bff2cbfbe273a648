// The rules of PyTorch's schedule CSV, checked cell by cell.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "traces/pytorch/cells.hpp"

namespace stageline {

/// The cells of a stage's work on a micro-batch; null where an op is absent.
struct CellWork {
  const Cell* forward = nullptr;
  const Cell* input_grad = nullptr;
  const Cell* weight_grad = nullptr;
  const Cell* backward = nullptr;

  const Cell* gradient() const { return backward != nullptr ? backward : input_grad; }
};

/// The location of everything. Points into the rows.
struct CellTable {
  std::map<int, const Cell*> home;                         // by stage: the first cell that names it
  std::map<std::pair<int, std::uint32_t>, CellWork> work;  // by stage and micro-batch
  int stages = 0;
  std::uint32_t microbatches = 0;
  bool messages = false;  // whether there are any
};

/// Throws ProgramError unless each stage lives on one rank and runs each micro-batch's F, and then
/// its B, or its I and W, once; and each rank has work.
CellTable table_of(const CellRows& rows);

/// Throws ProgramError unless a SEND follows its producer and a RECV precedes its reader, both ends
/// of each message and all required messages are there, and no cell is empty.
void check_messages(const CellRows& rows, const CellTable& table);

}  // namespace stageline
