// Stands in for traces/chakra/writer.cpp in a build without protobuf.
#include "sim/base/errors.hpp"
#include "traces/programs.hpp"

namespace stageline {

ChakraTraces write_chakra(const Program&, const Costs&) {
  throw UsageError(
      "this build writes no Chakra traces because protobuf was not found when it was configured; "
      "install libprotobuf-dev and protobuf-compiler and configure with -Dchakra=enabled");
}

}  // namespace stageline
