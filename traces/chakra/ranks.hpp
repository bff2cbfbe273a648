// Chakra execution traces as nodes, whichever library read them. For the files of this folder only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/programs.hpp"

namespace stageline {

enum class ChakraWork : std::uint8_t { compute, send, receive, collective, other };

/// A node. Dependencies are indices of nodes of the same rank; those on nodes that the file lacks
/// are left out.
struct ChakraNode {
  std::string name;
  ChakraWork work = ChakraWork::other;
  std::vector<std::size_t> needs;
  std::int64_t peer = -1;  // of a message: the rank at its other end
  std::int64_t tag = 0;
};

/// A rank's file, in the file's order.
struct ChakraRank {
  std::string file;
  std::string header;  // of our own text, where we wrote the file; else empty
  std::string device;  // the beginning of its line there, "gpu0:"
  std::string ranks;   // how many there are, in digits
  std::vector<ChakraNode> nodes;
};

/// The program of a pipeline by the messages between its ranks: the nodes' names say nothing. Each
/// rank is a stage; a forward is at the first node that needs its message from the stage before, or
/// at the last that the first stage's message needs; backwards alike. Throws TraceError where the
/// ranks form no chain, or their messages are not one each way for each micro-batch.
ReadProgram program_of_messages(const std::vector<ChakraRank>& ranks);

}  // namespace stageline
