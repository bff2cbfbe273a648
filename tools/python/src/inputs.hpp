// Models, clusters and programs.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "sim/cluster.hpp"
#include "sim/model.hpp"
#include "sim/program.hpp"

namespace stageline::python {

/// A model with the text that asks for it: what TRACE may be on the command line.
struct Trace {
  std::string text;
  Model model;
  int microbatch_size = 0;  // that it was opened with; 0: none
  int profile_batch = 0;
};

void bind_inputs(nanobind::module_& module);
void bind_program(nanobind::module_& module);

}  // namespace stageline::python
