// Advice on a whole comparison: whether to leave the pipeline out, and how to fit into memory.
#pragma once

#include <string>
#include <vector>

#include "tools/compare/comparison.hpp"

namespace stageline {

/// That one device does the same step in less time than every row that fits, or every synchronous
/// one, with its time and memory as simulated. Empty where a synchronous row is faster, where no
/// row fits, and of given programs.
std::string one_device_advice(const SettingRequest& request, const Setting& setting,
                              const std::vector<Row>& rows);

/// Where no row fits: the changes after which one does, one sentence each with its flags, step and
/// memory; where none was found, the change that lacks least memory. Tried, by simulation, are
/// recomputing by the schedules that have a knob for it, and for the rows that lack least
/// recomputing by any schedule, smaller micro-batches of the same step, more devices and then both.
/// Empty where a row fits, and of given programs. `workers` as in compare().
std::vector<std::string> ways_to_fit(const SettingRequest& request, const Setting& setting,
                                     const std::vector<Row>& rows, int workers = 0);

}  // namespace stageline
