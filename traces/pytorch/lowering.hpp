// Messages in an order that PyTorch's pipelining runtime gets right.
#pragma once

#include <string>

#include "sim/program.hpp"

namespace stageline {

/// Messages as PyTorch's lowering puts them (torch/distributed/pipelining/schedules.py,
/// _add_send_recv): those that are there are dropped. For a program of one step that can finish, a
/// chain of stages on one device each, without recompute and copies.
Program lowered_as_pytorch(Program program);

/// Why its runtime would get the messages of this program wrong; empty where it gets them right, or
/// where there are none. A rank posts its messages in the order of its list and names none of them:
/// Gloo and NCCL match the k-th from a rank with the k-th posted for it, and NCCL may hold what a
/// pair of ranks posts later, either way, until the earlier is through. So the messages have to
/// come through when every device takes one at a time (Messages::blocking); any two devices then
/// see those between them in one order. Throws what compile() throws, but no Deadlock.
std::string misread_by_pytorch(const Program& program);

}  // namespace stageline
