// In place of traces/chakra/writer.cpp where Meson found no protobuf.
#include "sim/errors.hpp"
#include "traces/programs.hpp"

namespace stageline {

ChakraTraces write_chakra(const Program&, const Costs&) {
  throw UsageError(
      "this build writes no Chakra traces, because there was no protobuf when it was configured; "
      "install libprotobuf-dev and protobuf-compiler and configure with -Dchakra=enabled");
}

}  // namespace stageline
