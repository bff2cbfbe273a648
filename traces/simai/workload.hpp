// The workload text of SimAI and of ASTRA-sim 1.0, which AICB makes: a row a layer, with the
// compute and the collective of its forward, its input gradient and its weight gradient.
//
//   HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 2 ga: 1 …
//   2
//   attention_column  -1  1200000  ALLGATHER  16777216  2400000  REDUCESCATTER  16777216  0  NONE
//   0  100
//
// Source: aliyun/SimAI, example/*.txt, and aliyun/aicb, workload_generator (read 2026-11-30); times
// are cycles of 1 GHz, nanoseconds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/model.hpp"

namespace stageline {

/// Whether the text begins as such a workload.
bool is_workload(std::string_view text);

/// One micro-batch of the rank that the file describes: a layer a row between what AICB puts before
/// and behind the micro-batches, with its collectives. Bytes of layers are unknown. Throws
/// TraceError with the line where a row is none, the micro-batches differ, or no row has a time.
Model read_workload(const std::string& text, const std::string& file);

/// The layers as such a text, one micro-batch of one rank; a further collective of a layer is a row
/// without compute. Throws UsageError for collectives of groups that the text cannot name.
std::string write_workload(const Model& model);

/// What it does not record; one sentence each.
std::vector<std::string> lost_in_workload(const Model& model);

}  // namespace stageline
