// A validation's evidence, as a value and as a JSON file: the real runs, and all that a simulator
// needs to predict them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/model.hpp"
#include "sim/timeline.hpp"

namespace stageline::lab {

/// One accelerator in all runs of a case. Times are one per run, in the order of the runs.
struct MeasuredDevice {
  std::vector<Time> busy;      // compute lane
  std::vector<Time> transfer;  // send lane: sum of its messages' spans
  /// The peak of its tensors, one per counted run (runs of their own). Runs differ, since messages
  /// meet an op now early and now late. Empty: neither this nor the stashes were measured.
  std::vector<Bytes> peaks;
  /// The most that its stashes held at once, likewise; or one for all counted runs.
  std::vector<Bytes> stashes;
  friend bool operator==(const MeasuredDevice&, const MeasuredDevice&) = default;
};

/// One program and its measured times. Names are spelled as on the command line, so that a reader
/// can simulate the same case: `stageline simulate TRACE --schedule … --partition … --link …`.
struct MeasuredCase {
  std::string model;      // name of a trace in the evidence
  int batch = 0;          // samples in a micro-batch
  std::string schedule;   // "pipedream:vertical_sync=on"
  std::string partition;  // "balanced", "0-4,5-9"
  int microbatches = 0;   // per step
  int steps = 1;
  std::string link;                     // "200MB/s,1ms"; empty: free
  std::string host_link;                // of each device, likewise; empty: free
  bool held_out = true;                 // false: the calibration has seen it
  std::vector<Time> makespan;           // of the whole program, one per run; at least one
  std::vector<MeasuredDevice> devices;  // the first devices of the evidence's cluster
  std::optional<Timeline> timeline;     // of the run of median makespan; kept for few cases
  std::string program;                  // the text of what ran; empty: what the schedule makes of
                                        // the evidence's traces and cluster
  std::optional<Timeline> counted{};    // of the first counted run; kept where its memory is not as
                                        // predicted
  bool whole = false;                   // priced with whole_traces
  /// Tokens of each sequence of micro-batch n of a step, or of slice n of a sequence where the
  /// schedule cuts it, by n % size. Each is priced by the trace of its part. Empty: all are alike.
  std::vector<std::int64_t> lengths{};
  friend bool operator==(const MeasuredCase&, const MeasuredCase&) = default;
};

/// The measurements of one machine in one session.
struct Evidence {
  std::string device;     // "Intel Xeon, 2 lanes of one core each"
  std::string date;       // ISO 8601
  std::string software;   // "LibTorch 2.13.0+cpu, oneDNN …"
  std::string settings;   // "fp32, momentum, cpu:2, …"
  std::string command;    // that reproduces it
  bool imitated = false;  // ops waited for their predicted times instead of computing
  std::vector<std::string> notes;
  std::vector<Model> traces;  // of every model and batch in the cases; measured between the runs
  // The same as a device that has the whole model runs it, whose caches hold less of an op's data.
  std::vector<Model> whole_traces{};
  Cluster cluster;  // the lanes, calibrated; without the cases' links
  std::vector<MeasuredCase> cases;
  friend bool operator==(const Evidence&, const Evidence&) = default;
};

/// Tokens of a sequence, from `begin` on: a whole one of its length, or a slice.
struct TokenPart {
  std::int64_t begin = 0;
  std::int64_t tokens = 0;
  friend auto operator<=>(const TokenPart&, const TokenPart&) = default;
};
/// The parts that MeasuredCase::lengths are of, in their order.
std::vector<TokenPart> parts_of(const MeasuredCase& measured);
/// The name of that part's trace: "gpt, tokens 16 to 31".
std::string part_name(const std::string& model, TokenPart part);
/// Whether the case's schedule cuts sequences.
bool cuts_sequences(const MeasuredCase& measured);

/// The trace of the case's model and batch, or the whole one. Throws UsageError when there is none.
const Model& trace_of(const Evidence& evidence, const MeasuredCase& measured);
/// The trace of one of its parts, likewise.
const Model& trace_of(const Evidence& evidence, const MeasuredCase& measured, TokenPart part);

/// JSON, format "stageline-evidence 1" (tools/lab/evidence/README.md);
/// read_evidence(write_evidence(e))
/// == e. `file` is for messages. The reader throws TraceError with the JSON pointer of the fault:
/// unknown keys, cases without a trace, lists whose length is not the number of runs. The writer
/// throws as write_trace and write_cluster do.
std::string write_evidence(const Evidence& evidence);
Evidence read_evidence(const std::string& text, const std::string& file);

}  // namespace stageline::lab
