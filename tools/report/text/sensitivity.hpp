// What the step hangs on: table, tornado and JSON.
#pragma once

#include <cstddef>
#include <string>

#include "tools/answers/sensitivities.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/report/charts/tornado.hpp"
#include "tools/report/svg/options.hpp"
#include "tools/report/text/sheet.hpp"
#include "tools/study/whatif/sensitivity.hpp"

namespace stageline::report {

/// A row a lever: its share of the critical cycle, the change of the step where it is 10 % faster,
/// twice as fast, free and 10 % slower, and how far that goes. The first `most` rows that change
/// anything; 0: all levers. `width`: the most columns of a line.
std::string sensitivity_table(const Sensitivity& found, std::size_t most, int width);

/// The same of all levers, with the figures behind the cells.
Sheet sensitivity_sheet(const Sensitivity& found);

/// The bars of the first `most` levers that change anything.
Tornado sensitivity_tornado(const Sensitivity& found, std::size_t most);

/// The tornado of the first `most` levers, with its title and notes, as SVG.
std::string sensitivity_svg(const answers::SensitivityAnswer& answered, std::size_t most,
                            const SvgOptions& options);

/// Heading (unless `quiet`), step, the table of the first `most` levers, and advice; wrapped.
std::string sensitivity_text(const answers::SensitivityAnswer& answered, std::size_t most,
                             int width, bool quiet);

/// Keys in tools/report/json/README.md.
std::string sensitivity_json(const Setting& setting, const Case& asked, const Outcome& outcome,
                             const Sensitivity& found);

}  // namespace stageline::report
