// Scans Chrome's Trace Event format (Google, "Trace Event Format") one event at a time: a profile
// may hold millions, of which few matter here. The keys that PyTorch's profiler (Kineto) adds go
// into the head.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace stageline {

/// Numbers are kept as digits, so that a time is rounded only once; empty where a field is absent.
struct TraceEvent {
  std::size_t index = 0;    // in traceEvents
  std::string phase;        // ph: "X", "M", ...
  std::string category;     // cat
  std::string name;         // name
  std::string pid;          // digits, or a text
  std::string tid;          // digits, or a text
  std::string start;        // ts, microseconds
  std::string duration;     // dur, microseconds
  std::string label;        // args.name of metadata events
  std::string external_id;  // args["External id"]: joins a GPU range to its launch
  std::string correlation;  // args["correlation"]: joins a kernel to the call that launched it
  std::string sequence;     // args["Sequence number"]: joins a backward op to its forward op
  std::string device_type;  // args["Device Type"] of "[memory]": "0" is the host
  std::string allocated;    // args["Total Allocated"], bytes
  std::string reserved;     // args["Total Reserved"], bytes
  std::string collective;   // args["Collective name"] of NCCL: "send", "allreduce"
  std::string elements;     // args["In msg nelems"] of NCCL
  std::string data_type;    // args["dtype"] of NCCL: "BFloat16"
  bool overlapped = false;  // args.overlapped
};

/// The fields beside the events, as texts; empty where the file lacks them.
struct TraceHead {
  std::string title;         // otherData.title
  std::string schedule;      // otherData.schedule
  std::string steps;         // otherData.steps
  std::string microbatches;  // otherData.microbatches
  std::string step_time;     // otherData.step_time_ps
  bool kineto = false;       // whether any key of PyTorch's profiler is present
  std::string base_ns;       // baseTimeNanoseconds
  std::string rank;          // distributedInfo.rank
  std::string world_size;    // distributedInfo.world_size
  std::string host;          // host_name
  std::string device;        // name of the first entry of deviceProperties
};

/// Calls `seen` for every event in file order; the head is complete only once this returns. Throws
/// TraceError with line and column where the text is not JSON, and with the JSON pointer where an
/// event is not an object, a field has the wrong type, or traceEvents is missing.
TraceHead scan_trace_events(const std::string& text, const std::string& file,
                            const std::function<void(const TraceEvent&)>& seen);

/// "/traceEvents/17/ts"
std::string event_pointer(const TraceEvent& event, const char* key);

}  // namespace stageline
