// The page of a comparison, as compare and report write it.
#pragma once

#include <string>

#include "tools/commands/compared.hpp"
#include "tools/report/page/page.hpp"

namespace stageline {

/// What the page shows beside the rows.
struct PageBeside {
  std::string alone;      // one_device_advice()
  const WaysToFit& ways;  // of the rows
  bool all = false;       // waterfalls and sensitivities of the recommended row, and the runner-up
};

/// The heading of the comparison: the lines above its tables.
std::string compare_heading(const Compared& compared);

/// Simulates the recommended row and the runner-up again, to draw them; with --why the two rows.
Page compare_page(const CompareFlags& flags, const Compared& compared, const PageBeside& beside);

}  // namespace stageline
