#include "schedulers/parts/placement_knobs.hpp"

#include <fmt/core.h>

#include "schedulers/parts/chunks.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

int chunks_of(const std::string& schedule, const Knobs& knobs) {
  const bool straight = knobs.at("placement") == "straight";
  const std::string& text = knobs.at("chunks");
  if (text == "auto") return straight ? 1 : 2;
  const int chunks = parse_number<int>(text).value_or(0);
  if (chunks < 1 || chunks > max_stages) {
    throw UsageError(fmt::format("{}: chunks is auto or a whole number from 1 to {} (it is \"{}\")",
                                 schedule, max_stages, text));
  }
  if (straight && chunks != 1) {
    throw UsageError(
        fmt::format("{}: placement=straight has 1 stage a device (chunks is {}); take chunks=1, or "
                    "placement=looped or v",
                    schedule, chunks));
  }
  return chunks;
}

}  // namespace

Placement placement_by_knobs(const std::string& schedule, const Knobs& knobs, int devices) {
  const int chunks = chunks_of(schedule, knobs);
  if (std::int64_t{devices} * chunks > max_stages) {
    throw UsageError(
        fmt::format("{}: {} chunks on {} devices are more than {} stages; the most "
                    "is chunks={}",
                    schedule, chunks, devices, max_stages, max_stages / devices));
  }
  return knobs.at("placement") == "v" ? zigzag_placement(devices, chunks)
                                      : looped_placement(devices, chunks);
}

}  // namespace stageline
