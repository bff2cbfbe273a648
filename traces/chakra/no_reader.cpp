// Stands in for traces/chakra/reader.cpp in a build without protobuf.
#include "sim/base/errors.hpp"
#include "traces/programs.hpp"

namespace stageline {

ReadProgram read_chakra(const std::vector<NamedText>&) {
  throw UsageError(
      "this build reads no Chakra traces because protobuf was not found when it was configured; "
      "install libprotobuf-dev and protobuf-compiler and configure with -Dchakra=enabled");
}

}  // namespace stageline
