// The library's errors as Python exceptions.
#pragma once

namespace stageline::python {

/// From here on errors of the library become those of stageline._errors, with their data.
void register_errors();

}  // namespace stageline::python
