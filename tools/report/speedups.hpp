// Speed-ups over one device by number of devices, and steps by schedule.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"
#include "tools/inputs/setting.hpp"
#include "tools/report/charts/chart.hpp"

namespace stageline::report {

/// The cuts of the rows as they were asked for: "balanced and simulated".
std::string cuts_of(const std::vector<Row>& rows);

/// One series per schedule, and per cut where they differ, in the order of the rows. Infeasible
/// points are gaps; points that do not fit into memory are hollow.
Chart speedup_chart(const Setting& setting, const std::vector<Row>& rows);

/// The steps of schedules on one number of devices, the shortest first, each with the range in
/// which its class of runs lies; those that do not fit into memory are hollow.
Chart step_chart(const Setting& setting, const std::vector<Row>& rows);

/// Adds what a reader of the picture alone must know: problem, costs, cluster, notes. `link`: as
/// given on the command line.
Chart with_problem(Chart chart, const Setting& setting, const std::vector<Row>& rows,
                   const std::string& link);

/// Adds the dashed line of a speed-up that equals the number of devices, as far as it is at most
/// half as high again as the highest point; for a picture that has room for it.
void add_ideal(Chart& chart);

}  // namespace stageline::report
