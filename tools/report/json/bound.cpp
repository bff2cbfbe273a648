#include <fmt/core.h>

#include <numeric>

#include "schedulers/aliases.hpp"
#include "sim/base/index.hpp"
#include "tools/base/json.hpp"
#include "tools/report/json/outcome.hpp"
#include "tools/report/json/row_parts.hpp"
#include "tools/report/text/bound.hpp"

namespace stageline::report {
namespace {

// period · microbatches / (rounds · round) in lowest terms.
Json exact_step(const Bound& bound) {
  std::int64_t time = bound.period.time.count();
  std::int64_t times = bound.in_step;
  std::int64_t parts = bound.period.rounds * bound.round;
  const std::int64_t common = std::gcd(times, parts);
  times /= common;
  parts /= common;
  const std::int64_t rest = std::gcd(time, parts);
  if (rest > 0) {
    time /= rest;
    parts /= rest;
  }
  std::int64_t numerator = 0;
  if (__builtin_mul_overflow(time, times, &numerator)) return nullptr;  // not in 64 bits
  return {{"numerator_ps", numerator}, {"denominator", parts}};
}

}  // namespace

std::string bound_json(const answers::BoundAnswer& answered) {
  const Setting& setting = answered.setting;
  const Case& asked = answered.asked;
  if (!answered.bound) return unanswered_json(asked, no_bound(asked));
  const Bound& bound = *answered.bound;
  Json result;
  result["schedule"] = title(asked.spec);
  result["model"] = setting.model.name;
  result["costs"] = name(setting.model.provenance.origin);
  result["cluster"] = asked.cluster.name;
  result["devices"] = asked.device_count();
  put_degrees(result, asked);
  result["microbatches"] = bound.microbatches;
  put_time(result, "period", bound.period.time);
  result["rounds"] = bound.period.rounds;
  result["round"] = bound.round;
  put_time(result, "step", bound.step);
  result["step_exact"] = exact_step(bound);
  result["bounds"] = Json::array();
  for (const LowerBound& one : bound.bounds) {
    Json row{{"name", one.name}};
    put_time(row, "step", one.step);
    row["why"] = one.why;
    result["bounds"].push_back(row);
  }
  result["largest_bound"] = bound.largest().name;
  result["above_largest_bound"] = bound.distance();
  if (bound.middle) {
    Json middle{{"stashes", bound.middle->stashes}};
    middle["microbatches"] = bound.middle->microbatches;
    put_time(middle, "period", bound.middle->period);
    put_time(middle, "least_period", bound.middle->bound);
    result["middle_round"] = middle;
  }
  result["cycle"] = Json::array();
  for (const Turn& turn : bound.period.cycle) {
    result["cycle"].push_back(
        {{"op", fmt::format("{}{}", turn.op.stage, symbol(turn.op.kind))},
         {"microbatch_in_round",
          counts_microbatches(turn.op.kind)
              ? Json(turn.op.microbatch % static_cast<std::uint32_t>(bound.round))
              : Json(nullptr)},
         {"device", nth(bound.devices, turn.lane.device)},
         {"lane", name(turn.lane.kind)},
         {"next_waits_for", name(turn.wait)},
         {"next_rounds_later", turn.rounds},
         {"next_after_ps", turn.time.count()}});
  }
  result["decided_by"] = bound.cycle;
  result["notes"] = notes(setting);
  return result.text();
}

}  // namespace stageline::report
