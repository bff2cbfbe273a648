// The table of sections, and look-up by name.
#include "tools/lab/papers/sections.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "sim/base/errors.hpp"

namespace stageline::lab {
namespace {

constexpr std::array<SectionEntry, 6> all_sections = {{
    {"shares", "Stale weights: which share of the weights is stale", stale_shares},
    {"speedups", "Stale weights, table 5: speed-ups on two devices", stale_speedups},
    {"hybrid", "Stale weights, table 5: first pipelined, then not", hybrid_training},
    {"memory", "Stale weights, table 9: memory", stale_memory},
    {"layerpipe", "LayerPipe: faster than PipeDream, against processors", layerpipe_gains},
    {"pipefb", "PipeFB: where it is 1.48 to 2.27 times as fast", pipefb_window},
}};

}  // namespace

std::span<const SectionEntry> reproduction_sections() { return all_sections; }

Section section_of(const SectionEntry& entry) {
  Section section = entry.make();
  section.name = entry.name;
  section.title = entry.title;
  return section;
}

const SectionEntry& reproduction_section(const std::string& name) {
  std::vector<std::string> known;
  for (const SectionEntry& entry : all_sections) {
    if (entry.name == name) return entry;
    known.emplace_back(entry.name);
  }
  throw UsageError(fmt::format("--only: there is no section \"{}\"{}; they are {}", name,
                               did_you_mean(name, known), fmt::join(known, ", ")));
}

}  // namespace stageline::lab
