// Which Stageline this is.
#pragma once

#include <string_view>

namespace stageline {

/// "0.1.0 (1a2b3c4d5e)": the release, and the commit it was built from, with "-dirty" where files
/// differed from it. The release alone outside of a Git checkout.
std::string_view version();

}  // namespace stageline
