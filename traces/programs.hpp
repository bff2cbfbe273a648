// Programs and partitions in the formats of other tools; traces/README.md lists what each can hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/costs.hpp"
#include "sim/model.hpp"
#include "sim/placement.hpp"
#include "sim/program.hpp"
#include "traces/timelines.hpp"

namespace stageline {

/// A program read from a file, and the assumptions and omissions of its reader, a sentence each.
struct ReadProgram {
  Program program;
  std::vector<std::string> notes;
};

/// Whether the text looks like a schedule CSV: it begins with a digit, a comma or a parenthesis, as
/// no program text of ours does.
bool looks_like_pytorch_schedule(std::string_view text);

/// A schedule CSV of torch.distributed.pipelining, with messages or without: one step, flushed,
/// rank r is device gpu<r>. The schedule's name is left empty. Throws ProgramError with rank, line
/// and cell ("rank 1 (line 2), cell 3: ...") where a rule of the format is violated.
ReadProgram read_pytorch_schedule(std::string_view text);

/// compute_only: each cell is a time slot with F, I, W, B or an overlapped pair, or empty where the
/// rank idles. compute_comms: no empty cells, with SEND, RECV and REDUCE_GRAD.
enum class PytorchForm : std::uint8_t { compute_only, compute_comms };

/// The program as such a CSV. With messages: in the program's own order; where it has none, or an
/// order that PyTorch's runtime mishandles (traces/pytorch/lowering.hpp), as PyTorch's own lowering
/// places them (each RECV as soon as its SEND is issued, so that any two ranks see their messages
/// in one order). An update becomes the stage's REDUCE_GRAD. Throws UsageError for a program that
/// the CSV cannot express, ProgramError and Deadlock for one that cannot run.
std::string write_pytorch_schedule(const Program& program, PytorchForm form);

/// The properties that the CSV does not record and a reader will assume otherwise, and whether its
/// messages are reordered; one sentence each. The program must be one that can be written.
std::vector<std::string> lost_in_pytorch(const Program& program, PytorchForm form);

/// PipeDream's runtime configuration as JSON: module_to_stage_map (one module per stage, and the
/// loss as one more in the last stage), stage_to_rank_map, stage_to_depth_map (forwards before the
/// first backward). Throws UsageError unless every device has one stage and runs that many
/// forwards, then alternates one forward and one backward.
std::string write_pipedream_runtime(const Program& program);

/// What that configuration does not record of the program; one sentence each.
std::vector<std::string> lost_in_pipedream(const Program& program);

/// torchgpipe's `balance`, "[3, 3, 2]": the number of layers of each partition. Throws UsageError
/// unless stages are runs of one layer at least, stage k on device k.
std::string write_torchgpipe_balance(const Partition& partition, const Placement& placement);

/// One Chakra execution trace per device: varint32-delimited protobuf messages, a GlobalMetadata
/// and then a Node for every op in the order of the device's list. `groups` is ASTRA-sim's
/// communicator groups as JSON, empty where no gradients are reduced between replicas.
struct ChakraTraces {
  std::vector<std::string> ranks;  // bytes
  std::string groups;
};

/// Messages, reductions and updates are added where the program has none. Durations and sizes are
/// those of compile() on these costs. Throws UsageError where one device waits for another without
/// a message, which the format cannot express, and where this build has no protobuf.
ChakraTraces write_chakra(const Program& program, const Costs& costs);

/// The program of Chakra execution traces, a file a rank in order: of write_chakra()'s the program
/// with its messages, reductions and updates; of others what the messages between ranks say, one
/// stage a rank. Throws TraceError for files that are damaged or say no pipeline, ProgramError, and
/// UsageError where this build has no protobuf.
ReadProgram read_chakra(const std::vector<NamedText>& ranks);

}  // namespace stageline
