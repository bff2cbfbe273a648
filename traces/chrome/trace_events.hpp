// Chrome's Trace Event format, one event at a time: a profile may have millions, of which few
// matter here. Google's "Trace Event Format"; what PyTorch's profiler (Kineto) adds stands in the
// head.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace stageline {

/// Numbers as their digits, so that a time is rounded once; empty where the event has none.
struct TraceEvent {
  std::size_t index = 0;    // in traceEvents
  std::string phase;        // "X", "M", ...
  std::string category;     //
  std::string name;         //
  std::string pid;          // digits, or a text
  std::string tid;          //
  std::string start;        // ts, microseconds
  std::string duration;     // dur, microseconds
  std::string label;        // args.name, of metadata
  std::string external_id;  // args["External id"]: joins a range on the GPU to its launch
  bool overlapped = false;  // args.overlapped
};

/// What stands beside the events, as texts; empty where the file has none.
struct TraceHead {
  std::string title;       // otherData
  std::string schedule;    //
  bool kineto = false;     // any of the keys that PyTorch's profiler writes
  std::string base_ns;     // baseTimeNanoseconds
  std::string rank;        // distributedInfo
  std::string world_size;  //
  std::string host;        // host_name
  std::string device;      // name of the first of deviceProperties
};

/// Calls `seen` for every event in order; the head is whole only when this returns. Throws
/// TraceError with line and column where the text is not JSON, and with the JSON pointer where an
/// event is no object, a field that is read has another type, or traceEvents is missing.
TraceHead scan_trace_events(const std::string& text, const std::string& file,
                            const std::function<void(const TraceEvent&)>& seen);

/// "/traceEvents/17/ts"
std::string event_pointer(const TraceEvent& event, const char* key);

}  // namespace stageline
