#include "tools/report/drawing_view.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/base/errors.hpp"

namespace stageline::report {

OpNumbers op_numbers(const std::string& word, std::span<const Outcome> outcomes) {
  if (word.empty()) return OpNumbers::microbatches;
  if (word == "by-direction") return OpNumbers::by_direction;
  if (word == "versions") return OpNumbers::versions;
  if (word != "from-1") {
    throw UsageError(
        fmt::format("numbers: \"{}\" is none of from-1, by-direction and versions", word));
  }
  for (const Outcome& outcome : outcomes) {
    if (outcome.program.settings.sequence_chunks == 1) continue;
    throw UsageError(fmt::format(
        "--numbers from-1 counts micro-batches, and {} numbers chunks of their sequences; leave it out",
        outcome.schedule));
  }
  return OpNumbers::microbatches_from_one;
}

Drawing with_rows(Drawing drawing, const std::vector<std::string>& rows) {
  std::vector<std::string>& names = drawing.timeline.devices;
  const std::vector<std::string> devices = names;
  for (const std::string& row : rows) {
    const std::size_t equals = std::min(row.find('='), row.size());
    const std::string device = row.substr(0, equals);
    const auto at = std::find(devices.begin(), devices.end(), device);
    if (at == devices.end()) {
      throw UsageError(fmt::format("--rows: there is no device \"{}\"; the {} devices are {} to {}",
                                   device, devices.size(), devices.front(), devices.back()));
    }
    const auto place = static_cast<std::size_t>(at - devices.begin());
    if (std::find(drawing.rows.begin(), drawing.rows.end(), place) != drawing.rows.end()) {
      throw UsageError(fmt::format("--rows: {} is there twice; name it once", device));
    }
    drawing.rows.push_back(place);
    if (equals < row.size()) names[place] = row.substr(equals + 1);
  }
  if (!rows.empty() && rows.size() < devices.size()) {
    drawing.footnotes.push_back(
        fmt::format("Rows: {} of {} devices.", rows.size(), devices.size()));
  }
  return drawing;
}

}  // namespace stageline::report
