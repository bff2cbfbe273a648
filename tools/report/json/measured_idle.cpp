// The idle time of a measured run as JSON. The keys are documented in tools/report/json/README.md
// and stable.
#include "tools/report/text/measured_idle.hpp"
#include "sim/base/index.hpp"
#include "tools/base/json.hpp"

namespace stageline::report {
namespace {

std::string_view source_word(RangeSource source) {
  switch (source) {
    case RangeSource::gpu:
      return "gpu";
    case RangeSource::cpu:
      return "cpu";
    case RangeSource::launches:
      return "launches";
  }
  return "";
}

}  // namespace

std::string measured_idle_json(const KinetoRun& run, const MeasuredIdle& idle) {
  Json result;
  result["times_of"] = source_word(run.source);
  result["steps"] = run.program.steps;
  result["microbatches"] = run.program.microbatches;
  put_time(result, "makespan", idle.metrics.makespan);
  result["per_device"] = Json::array();
  for (std::size_t d = 0; d < idle.metrics.device.size(); ++d) {
    const DeviceMetrics& metrics = idle.metrics.device[d];
    Json device;
    device["name"] = run.program.devices[d];
    put_time(device, "busy", metrics.busy);
    put_time(device, "idle", metrics.idle);
    put_time(device, "late", idle.late[d]);
    Json by;
    for (int kind = 0; kind < idle_kinds; ++kind) {
      put_time(by, std::string(name(static_cast<IdleKind>(kind))), nth(metrics.idle_by, kind));
    }
    put_time(by, "other", idle.other[d]);
    device["idle_by"] = by;
    result["per_device"].push_back(std::move(device));
  }
  result["messages_timed"] = run.transit.size();
  result["notes"] = run.notes;
  return result.text();
}

}  // namespace stageline::report
