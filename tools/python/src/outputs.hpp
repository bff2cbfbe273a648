// What is read, written and shown, by the rules of the command.
#pragma once

#include <nanobind/nanobind.h>

namespace stageline::python {

void bind_outputs(nanobind::module_& module);

}  // namespace stageline::python
