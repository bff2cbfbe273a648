// The page of a comparison, made of its answer.
#pragma once

#include <string>
#include <vector>

#include "tools/answers/compared.hpp"
#include "tools/report/page/page.hpp"
#include "tools/report/text/comparison.hpp"

namespace stageline::report {

/// `view`: that of with_rows(). `commands`: by row, that reproduce it. `said`: the notes. Rows were
/// redrawn.
Page compared_page(const answers::Comparison& found, const ComparisonView& view,
                   std::vector<std::string> commands, std::vector<std::string> said);

}  // namespace stageline::report
