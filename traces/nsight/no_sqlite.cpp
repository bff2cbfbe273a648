// Where libsqlite3 is not built in: exports of Nsight Systems are refused.
#include "sim/base/errors.hpp"
#include "traces/nsight/nsight.hpp"

namespace stageline {

bool is_sqlite(std::string_view bytes) { return bytes.starts_with("SQLite format 3"); }

std::vector<NamedText> nsight_profiles(const std::string& /*bytes*/, const std::string& file) {
  throw TraceError(file, "",
                   "this is a SQLite database, as Nsight Systems exports, and this build has no "
                   "libsqlite3; install libsqlite3-dev and build again");
}

}  // namespace stageline
