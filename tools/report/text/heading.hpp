// The lines above a report: which model was priced or measured, on which devices, cut how.
#pragma once

#include <string>

#include "tools/inputs/setting.hpp"

namespace stageline::report {

/// " of 32 images", with the word of the trace for its samples; empty where `batch` is unknown (0).
std::string of_samples(int batch, const std::string& sample);

/// One line for the model: name, parameters where they are known, layers, time of a micro-batch on
/// one device, origin of the costs.
std::string model_line(const Setting& setting);

/// " of a100_8" where the devices are those of a cluster with a name, else empty.
std::string of_cluster(const Setting& setting, const Case& asked);

/// model_line(), and a line for devices, micro-batches and cut.
std::string heading(const Setting& setting, const Case& asked);

/// The same of a sweep of devices, from its first case to its last. Micro-batches that follow the
/// number of devices are given for each device.
std::string sweep_heading(const Setting& setting, const Case& first, const Case& last);

}  // namespace stageline::report
