// Reads torchrun's environment variables.
#include "tools/executor/processes/place.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string>

#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"

namespace stageline::executor {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int number(const char* name, int least, int most) {
  const std::string text = variable(name);
  const auto value = parse_number<int>(text);
  if (!value || *value < least || *value > most) {
    throw UsageError(
        fmt::format("{} is \"{}\", not a whole number from {} to {}", name, text, least, most));
  }
  return *value;
}

}  // namespace

std::optional<Place> place_from_environment() {
  constexpr std::array names = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
  if (variable("RANK").empty() && variable("WORLD_SIZE").empty()) return {};
  for (const char* const name : names) {
    if (!variable(name).empty()) continue;
    throw UsageError(
        fmt::format("{} is set and {} is not, but a process among several needs RANK, "
                    "WORLD_SIZE, MASTER_ADDR and MASTER_PORT; start it with torchrun, "
                    "which sets all four, or unset them",
                    variable("RANK").empty() ? "WORLD_SIZE" : "RANK", name));
  }
  constexpr int most = 1 << 16;  // processes
  Place place;
  place.size = number("WORLD_SIZE", 1, most);
  place.rank = number("RANK", 0, place.size - 1);
  place.master = variable("MASTER_ADDR");
  place.port = number("MASTER_PORT", 1, 65535);
  if (!variable("LOCAL_WORLD_SIZE").empty())
    place.local_size = number("LOCAL_WORLD_SIZE", 1, place.size);
  if (!variable("LOCAL_RANK").empty()) {
    const bool known = !variable("LOCAL_WORLD_SIZE").empty();
    place.local_rank = number("LOCAL_RANK", 0, (known ? place.local_size : place.size) - 1);
  }
  if (variable("TORCHELASTIC_USE_AGENT_STORE") == "True")
    place.agent = "/worker/attempt_" + variable("TORCHELASTIC_RESTART_COUNT");
  return place;
}

}  // namespace stageline::executor
