// Does an op print and parse as PyTorch spells it?
#include "sim/op.hpp"

#include <doctest/doctest.h>

#include <set>

#include "tests/schedules/needs_table.hpp"

namespace stageline::op_tests {
namespace {

TEST_CASE("an op prints as stage, kind, number and part") {
  CHECK(print(test::op(OpKind::forward, 0, 3)) == "0F3");
  CHECK(print(test::op(OpKind::input_grad, 12, 0, 1)) == "12I0.1");
  CHECK(print(test::op(OpKind::send_forward, 1, 0)) == "1SEND_F0");
  CHECK(print(test::op(OpKind::reduce_grad, 2, 7, 3)) == "2REDUCE_GRAD7.3");
}

TEST_CASE("every kind, with and without a part, is read as it prints") {
  std::set<std::string> spelled;
  for (int kind = 0; kind < op_kinds; ++kind) {
    for (const int part : {0, 1, max_parts}) {
      for (const int stage : {0, 7, max_stages - 1}) {
        for (const std::uint32_t number : {0U, 8U, 0x7fffffffU}) {
          const Op one = test::op(static_cast<OpKind>(kind), stage, number, part);
          REQUIRE(parse_op(print(one)) == one);
          spelled.insert(print(one));
        }
      }
    }
  }
  CHECK(spelled.size() == op_kinds * 27);
}

TEST_CASE("what is not an op is nothing") {
  for (const char* const text : {"",
                                 "0",
                                 "F",
                                 "F0",
                                 "0F",
                                 "0F-1",
                                 "-1F0",
                                 "0G0",
                                 "0f0",
                                 "0F0.",
                                 "0F0.x",
                                 "0F0.128",
                                 "0F0.1.2",
                                 "0 F0",
                                 " 0F0",
                                 "0F0 ",
                                 "65535F0",
                                 "0F2147483648",
                                 "0F99999999999",
                                 "99999999999F0",
                                 "0SEND0",
                                 "0SEND_F",
                                 "0SENDF0",
                                 "0REDUCE0",
                                 "0FF0",
                                 "0F0F0",
                                 "+0F0",
                                 "0x1F0",
                                 "0F0,",
                                 "0.1F0"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_op(text).has_value());
  }
}

TEST_CASE("leading zeros are allowed") {
  CHECK(parse_op("007F08") == test::op(OpKind::forward, 7, 8));
}

TEST_CASE("the overlapped mark is not printed") {
  Op one = test::op(OpKind::forward, 0, 0);
  one.overlapped = 1;
  CHECK(print(one) == "0F0");
  CHECK(parse_op("0F0") != one);
}

TEST_CASE("ops are told apart by every field") {
  const Op one = test::op(OpKind::input_grad, 1, 2, 3);
  CHECK(one == test::op(OpKind::input_grad, 1, 2, 3));
  CHECK(one != test::op(OpKind::backward, 1, 2, 3));
  CHECK(one != test::op(OpKind::input_grad, 2, 2, 3));
  CHECK(one != test::op(OpKind::input_grad, 1, 3, 3));
  CHECK(one != test::op(OpKind::input_grad, 1, 2, 4));
}

TEST_CASE("each kind has its lane") {
  std::string text;
  for (int kind = 0; kind < op_kinds; ++kind) {
    text += std::string(symbol(static_cast<OpKind>(kind))) + " " +
            std::string(name(lane_of(static_cast<OpKind>(kind)))) + "\n";
  }
  CHECK(text ==
        "F compute\nI compute\nW compute\nB compute\nR compute\nU compute\nREDUCE_GRAD send\n"
        "SEND_F send\nRECV_F receive\nSEND_B send\nRECV_B receive\nOFFLOAD copy-out\n"
        "PREFETCH copy-in\nSEND_STASH send\nRECV_STASH receive\nSEND_WEIGHTS send\n"
        "RECV_WEIGHTS receive\n");
}

TEST_CASE("only U, REDUCE_GRAD and the messages of weights count updates") {
  for (int kind = 0; kind < op_kinds; ++kind) {
    const auto one = static_cast<OpKind>(kind);
    const bool update = one == OpKind::update || one == OpKind::reduce_grad ||
                        one == OpKind::send_weights || one == OpKind::receive_weights;
    CHECK(counts_microbatches(one) != update);
  }
}

}  // namespace
}  // namespace stageline::op_tests
