// Does Philox give the numbers of its authors?
#include "sim/batch/philox.hpp"

#include <doctest/doctest.h>

namespace stageline::philox_tests {

TEST_CASE("the known answers of Random123 1.14 (kat_vectors, philox4x32 10)") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) ==
        PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniform numbers are inside of (0, 1)") {
  CHECK(uniform_of(0) > 0);
  CHECK(uniform_of(0xffffffff) < 1);
  CHECK(uniform_of(0x80000000) == doctest::Approx(0.5));
}

}  // namespace stageline::philox_tests
