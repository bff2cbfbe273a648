// The case that a question asks about, with what is to be searched for found.
#pragma once

#include "tools/inputs/setting.hpp"

namespace stageline::planner {

/// make_case(), with the order of its devices searched where the request asks for it, and then with
/// its cut, where that is one that a search finds. Throws what make_case(), with_searched_order()
/// and with_searched_cut() do.
Case searched_case(const SettingRequest& request, const Setting& setting, const ScheduleSpec& spec,
                   int devices);

}  // namespace stageline::planner
