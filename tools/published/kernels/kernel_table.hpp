// A table of kernels timed on one device, as tools/executor/gpu/kernels.py writes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stageline {

/// A row. What it does not have is 0, false or empty.
struct TimedKernel {
  std::string id;
  std::string what;       // product, grouped, attention, elementwise, optimizer, launch, …
  std::string precision;  // bf16, fp8
  std::string pass;       // forward, backward; of a grouped product forward, data, weight
  std::string how;        // the kernel: flash, cudnn, grouped_mm, eager, graph, …
  std::string side;       // of a launch: cpu or device
  std::int64_t rows = 0;  // m of a product of m × k by k × n; of one expert of a grouped one
  std::int64_t columns = 0;
  std::int64_t inner = 0;
  std::int64_t experts = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;  // of a head
  std::int64_t size_bytes = 0;
  std::int64_t parameters = 0;
  bool cast = false;        // of both operands comes with it
  bool accumulate = false;  // into an fp32 buffer comes with it
  bool fast_accum = false;  // partial sums in less than fp32
  bool per_launch = false;  // of a graph, not per kernel
  double flops = 0;         // of useful products; causal attention: of the pairs below the diagonal
  double bytes = 0;         // that must at least be moved
  double seconds = 0;       // median
  double low = 0;           // seconds; 16th percentile
  double high = 0;          // seconds; 84th percentile
};

struct KernelTable {
  std::string device;  // "NVIDIA H200"
  std::string kind;    // "h200"; empty: unknown
  std::string torch;   // its version
  std::string date;    // ISO 8601
  std::vector<TimedKernel> rows;
  std::size_t left_out = 0;  // rows that the clock left out, or that failed
};

/// {"format": "stageline-kernels 1", …}. Throws TraceError, which begins with `file`, with the JSON
/// pointer of what is wrong.
KernelTable read_kernel_table(const std::string& text, const std::string& file);

}  // namespace stageline
