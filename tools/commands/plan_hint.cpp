#include "tools/commands/plan_hint.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "tools/base/table.hpp"

namespace stageline::cli {
namespace {

constexpr double much_idle = 0.1;    // of the step
constexpr double nearly_full = 0.9;  // of a memory

// What the row leaves to gain, as a clause; empty: little.
std::string left_to_gain(const Row& row) {
  const std::optional<MemoryNeed> need = tightest(*row.outcome);
  const bool full = need && static_cast<double>(need->peak.count) >=
                                nearly_full * static_cast<double>(need->limit.count);
  if (full)
    return fmt::format("{} has {} of {} in use", need->place, print(need->peak),
                       print(need->limit));
  if (row.outcome->bubble_fraction < much_idle) return "";
  return fmt::format("the devices idle {} of the step", percent(row.outcome->bubble_fraction));
}

}  // namespace

std::string plan_hint(const SettingRequest& request, const Setting& setting,
                      const std::vector<Row>& rows, const RankedRows& order,
                      const std::string& typed) {
  const Model& model = setting.model;
  if (setting.device_counts.size() > 1 || order.rows.empty()) return "";
  if (model.batch < 1 || model.provenance.origin == Origin::synthetic) return "";
  if (request.trace == "-" || request.cluster.cluster == "-") return "";
  if (!request.lengths.empty()) return "";  // plan has to be told the --samples of them
  const auto is_given = [](const Row& one) { return one.asked.spec().given != nullptr; };
  if (std::any_of(rows.begin(), rows.end(), is_given)) return "";  // it says devices for all
  const Row& row = rows[order.recommended.value_or(order.rows.front())];
  const std::string gain = order.recommended ? left_to_gain(row) : "none of these fits";
  if (gain.empty()) return "";
  const std::int64_t samples =
      std::int64_t{row.outcome->microbatches} * row.outcome->copies * model.batch;
  return fmt::format(
      "{}: other micro-batches of the same update, recomputation and cuts were not tried; they are "
      "by `stageline plan {} --samples {}`",
      gain, typed, samples);
}

}  // namespace stageline::cli
