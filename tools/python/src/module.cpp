// The extension module stageline._core.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include "tools/base/version.hpp"
#include "tools/python/src/errors.hpp"
#include "tools/python/src/inputs.hpp"
#include "tools/python/src/outputs.hpp"
#include "tools/python/src/result.hpp"
#include "tools/python/src/sweep.hpp"
#include "tools/python/src/timeline.hpp"

NB_MODULE(_core, module) {
  using namespace stageline::python;  // NOLINT(google-build-using-namespace)
  module.doc() = "The engine of Stageline, as the package stageline uses it.";
  module.def("version", &stageline::version, "The release, and the commit it was built from.");
  register_errors();
  bind_outputs(module);
  bind_inputs(module);
  bind_program(module);
  bind_timeline(module);
  bind_result(module);
  bind_question(module);
  bind_sweep(module);
  bind_phase(module);
}
