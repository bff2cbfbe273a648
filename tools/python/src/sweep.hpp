// Sweeps and phase maps.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "tools/report/svg/options.hpp"

namespace stageline::python {

/// "auto", "light" or "dark". Throws UsageError.
report::SvgOptions svg_options_of(int width, const std::string& theme);

void bind_sweep(nanobind::module_& module);
void bind_phase(nanobind::module_& module);

}  // namespace stageline::python
