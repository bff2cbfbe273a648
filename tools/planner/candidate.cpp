// Turns a candidate into the request that asks for it, and into the flags that a user types.
#include "tools/planner/candidate.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "sim/base/names.hpp"
#include "sim/degrees.hpp"
#include "tools/base/text.hpp"
#include "tools/inputs/settings.hpp"

namespace stageline::planner {
namespace {

// Whether the command asks for it without a flag of a degree.
bool is_pipeline_alone(const Shape& shape) {
  Degrees beside = shape.degrees;
  beside.pipeline = 0;
  return beside.plain() && !shape.as_ranks;
}

// The settings that begin the flags of a candidate. Others that have a text follow in the order of
// the table.
constexpr std::array<std::string_view, 16> said_first{"devices",
                                                      "pp",
                                                      "tp",
                                                      "cp",
                                                      "cp_comm_type",
                                                      "ep",
                                                      "etp",
                                                      "dp",
                                                      "order",
                                                      "zero",
                                                      "zero_every",
                                                      "shard_group",
                                                      "precision",
                                                      "sequence_parallel",
                                                      "microbatch_size",
                                                      "microbatches"};

// The rows of the table that have a text, in the order of the flags.
std::vector<const SettingRow*> printed_rows() {
  std::vector<const SettingRow*> rows;
  for (const SettingRow& row : setting_rows()) {
    if (row.print != nullptr) rows.push_back(&row);
  }
  const auto place = [](const SettingRow* row) {
    return std::find(said_first.begin(), said_first.end(), row->key) - said_first.begin();
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const SettingRow* a, const SettingRow* b) { return place(a) < place(b); });
  return rows;
}

}  // namespace

std::optional<ZeroEvery> every_that_divides(const Degrees& given, int pipeline) {
  if (given.zero_every || pipeline == 1) return given.zero_every;
  return ZeroEvery::microbatch;
}

SettingRequest request_of(const SettingRequest& base, const Candidate& candidate) {
  SettingRequest request = base;
  const Shape& shape = candidate.shape;
  request.degrees = shape.degrees;
  request.degrees_are_searched = false;
  request.devices = {shape.devices()};
  if (is_pipeline_alone(shape)) request.degrees = Degrees{};
  request.sequence_parallel = shape.sequence_parallel;
  if (!shape.cp_comm_type.empty()) request.cp_comm_type = shape.cp_comm_type;
  if (shape.degrees.context == 1) request.cp_comm_type.clear();
  if (!shape.placement.empty()) request.cluster.placement = shape.placement;
  request.microbatch_size = shape.microbatch_size;
  request.microbatches = shape.microbatches;
  request.recomputation = candidate.recomputation;
  request.offloading = candidate.offloading;
  request.partition = candidate.partition;
  if (candidate.lengths_order) request.lengths_order = candidate.lengths_order;
  request.schedules.clear();
  return request;
}

namespace {

// All but the schedule.
std::string settings_of(const SettingRequest& base, const Candidate& candidate) {
  static const std::vector<const SettingRow*> rows = printed_rows();
  SettingRequest request = request_of(SettingRequest{}, candidate);
  // A part of a named cluster is used only where --devices says so.
  const bool part = !base.devices.empty() && !base.cluster.cluster.empty();
  if (!part && !is_pipeline_alone(candidate.shape)) request.devices.clear();
  std::string text;
  for (const SettingRow* const row : rows) {
    const std::string value = row->print(request);
    if (value.empty()) continue;
    text += (text.empty() ? "" : " ") + row->flag();
    if (row->form != SettingForm::yes) text += " " + shell_word(value);
  }
  return text;
}

}  // namespace

std::string flags_of(const SettingRequest& base, const Candidate& candidate) {
  const std::string settings = settings_of(base, candidate);
  return "--schedule " + shell_word(spelled(candidate.spec)) + (settings.empty() ? "" : " ") +
         settings;
}

std::string flags_of(const SettingRequest& base, const Shape& shape) {
  Candidate candidate;
  candidate.shape = shape;
  return settings_of(base, candidate);
}

}  // namespace stageline::planner
