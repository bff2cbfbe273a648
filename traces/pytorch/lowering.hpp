// Orders messages in a way that PyTorch's pipelining runtime handles correctly.
#pragma once

#include <string>

#include "sim/program.hpp"

namespace stageline {

/// Places messages as PyTorch's lowering does (torch/distributed/pipelining/schedules.py,
/// _add_send_recv); existing ones are dropped. For a program of one step that can finish, with a
/// chain of stages on one device each, without recompute and copies.
Program lowered_as_pytorch(Program program);

/// Why PyTorch's runtime would mishandle the messages of this program; empty where it handles them
/// correctly or there are none. A rank posts its messages in list order and does not name them:
/// Gloo and NCCL match the k-th from a rank with the k-th posted for it, and NCCL may hold back
/// later messages of a pair of ranks, in either direction, until the earlier ones complete. So the
/// messages must complete when every device takes one at a time (Messages::blocking); any two
/// devices then see the messages between them in one order. Throws as compile(), but no Deadlock.
std::string misread_by_pytorch(const Program& program);

}  // namespace stageline
