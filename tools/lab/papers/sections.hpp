// The tables of the three papers, one function each. A section computes all its text from the
// published numbers, the model shapes and the bundled traces; the same input gives the same bytes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/lab/papers/finding.hpp"

namespace stageline::lab {

struct SectionEntry {
  std::string_view name;  // as in --only
  std::string_view title;
  Section (*make)();
};
/// In the order of the report.
std::span<const SectionEntry> reproduction_sections();

/// The section, with its name and title.
Section section_of(const SectionEntry& entry);

/// The section of that name; throws UsageError with the nearest name.
const SectionEntry& reproduction_section(const std::string& name);

/// The rows of the tables; tools/report/json/README.md lists the keys.
std::string sections_json(const std::vector<Section>& sections);

// Zhang & Abdelrahman: stale weights.
Section stale_shares();
Section stale_speedups();
Section hybrid_training();
Section stale_memory();
// LayerPipe and PipeFB.
Section layerpipe_gains();
Section pipefb_window();

}  // namespace stageline::lab
