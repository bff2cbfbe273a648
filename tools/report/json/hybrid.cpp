// Hybrid training as JSON. The keys are documented in tools/report/json/README.md and stable.
#include "tools/report/text/hybrid.hpp"
#include "tools/base/json.hpp"

namespace stageline::report {
namespace {

Json point_json(const HybridPoint& point) {
  Json object;
  object["pipelined_iterations"] = point.share.pipelined;
  object["fraction"] = fraction(point.share);
  put_time(object, "total", point.hybrid.total);
  object["speedup_over_nonpipelined"] = point.hybrid.over_nonpipelined;
  object["speedup_over_pipelined"] = point.hybrid.over_pipelined;
  return object;
}

}  // namespace

std::string hybrid_json(const Case& asked, const HybridStudy& study) {
  Json object;
  object["model"] = asked.model.name;
  object["costs"] = name(asked.model.provenance.origin);
  object["schedule"] = spelled(asked.spec);
  object["partition"] = asked.partition;
  object["devices"] = asked.cluster.devices.size();
  object["iterations"] = study.asked.share.all;
  object["minibatch"] = study.minibatch;
  put_time(object, "nonpipelined_iteration", study.nonpipelined);
  put_time(object, "period", study.period.time);
  object["period_iterations"] = study.period.rounds;
  put_time(object, "fill", study.fill);
  put_time(object, "drain", study.drain);
  put_time(object, "fill_and_drain", study.fill_and_drain);
  object["hybrid"] = point_json(study.asked);
  for (const HybridPoint& point : study.curve) object["curve"].push_back(point_json(point));
  return object.text();
}

}  // namespace stageline::report
