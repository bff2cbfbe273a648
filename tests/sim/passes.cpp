// What do the passes add, and do they leave alone what is there?
#include "sim/lower/passes.hpp"

#include <doctest/doctest.h>

#include "tests/random_program.hpp"
#include "tests/text.hpp"

namespace stageline::passes_tests {
namespace {

using test::lists;
using test::straight_text;

const std::string two_stages = straight_text(2, 2,
                                             "gpu0: 0F0 0F1 0B0 0B1\n"
                                             "gpu1: 1F0 1B0 1F1 1B1\n");

TEST_CASE("an update comes after the last gradient of its step") {
  const std::string text =
      straight_text(1, 2, "gpu0: 0F0 0B0 0F1 0B1 0F2 0F3 0B3 0B2\n", "steps: 2\n");
  CHECK(lists(add_updates(parse_program(text))) ==
        "gpu0: 0F0 0B0 0F1 0B1 0U0 0F2 0F3 0B3 0B2 0U1\n");
}

TEST_CASE("where updates follow every backward, each backward has one") {
  for (const char* const rule : {"stash", "vertical_sync", "latest"}) {
    const std::string text =
        straight_text(1, 2, "gpu0: 0F0 0F1 0B0 0B1\n", "weights: " + std::string(rule) + "\n");
    CHECK(lists(add_updates(parse_program(text))) == "gpu0: 0F0 0F1 0B0 0U0 0B1 0U1\n");
  }
}

TEST_CASE("with a W of its own, the update waits for W and not for I") {
  const std::string text = straight_text(2, 1, "gpu0: 0F0 0W0 \ngpu1: 1F0 1I0 1W0\n");
  CHECK(lists(add_updates(parse_program(text))) == "gpu0: 0F0 0W0 0U0\ngpu1: 1F0 1I0 1W0 1U0\n");
}

TEST_CASE("replicas update once a round, each of them") {
  const Program program = parse_program(
      "stageline-program 1\nmicrobatches: 5\nweights: stash\nstage 0: a+b\n"
      "a: 0F0 0B0 0F2 0B2 0F4 0B4\nb: 0F1 0B1 0F3 0B3\n");
  CHECK(lists(add_updates(program)) ==
        "a: 0F0 0B0 0U0 0F2 0B2 0U1 0F4 0B4 0U2\n"
        "b: 0F1 0B1 0U0.1 0F3 0B3 0U1.1 0U2.1\n");
  CHECK(lists(add_reductions(add_updates(program))) ==
        "a: 0F0 0B0 0REDUCE_GRAD0 0U0 0F2 0B2 0REDUCE_GRAD1 0U1 0F4 0B4 0REDUCE_GRAD2 0U2\n"
        "b: 0F1 0B1 0REDUCE_GRAD0.1 0U0.1 0F3 0B3 0REDUCE_GRAD1.1 0U1.1 0REDUCE_GRAD2.1 0U2.1\n");
}

TEST_CASE("a replica without a gradient in some step still updates before its next work") {
  // One micro-batch a step, so that steps 0 and 2 are a's and step 1 is b's.
  const Program program = parse_program(
      "stageline-program 1\nmicrobatches: 1\nsteps: 3\nstage 0: a+b\n"
      "a: 0F0 0B0 0F2 0B2\nb: 0F1 0B1\n");
  CHECK(lists(add_updates(program)) ==
        "a: 0F0 0B0 0U0 0U1 0F2 0B2 0U2\n"
        "b: 0U0.1 0F1 0B1 0U1.1 0U2.1\n");
}

TEST_CASE("a stage that has updates keeps them as they are") {
  const std::string text =
      straight_text(2, 1, "gpu0: 0F0 0B0\ngpu1: 1F0 1B0 1U0\n", "weights: stash\n");
  CHECK(lists(add_updates(parse_program(text))) == "gpu0: 0F0 0B0 0U0\ngpu1: 1F0 1B0 1U0\n");
}

TEST_CASE("transfers stand behind what they send and before who reads it") {
  CHECK(lists(add_transfers(parse_program(two_stages))) ==
        "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
        "gpu1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n");
}

TEST_CASE("with I and W apart, the gradient leaves behind I") {
  const std::string text = straight_text(2, 1, "gpu0: 0F0 0I0 0W0\ngpu1: 1F0 1I0 1W0\n");
  CHECK(lists(add_transfers(parse_program(text))) ==
        "gpu0: 0F0 0SEND_F0 0RECV_B0 0I0 0W0\ngpu1: 1RECV_F0 1F0 1I0 1SEND_B0 1W0\n");
}

TEST_CASE("a first stage without I receives the gradient for its W") {
  const std::string text = straight_text(2, 1, "gpu0: 0F0 0W0\ngpu1: 1F0 1I0 1W0\n");
  const Program program = add_transfers(parse_program(text));
  CHECK(lists(program) == "gpu0: 0F0 0SEND_F0 0RECV_B0 0W0\ngpu1: 1RECV_F0 1F0 1I0 1SEND_B0 1W0\n");
  CHECK_NOTHROW(validate(program));
}

TEST_CASE("stages on one device send each other nothing, replicas to the one in charge") {
  const Program program = parse_program(
      "stageline-program 1\nmicrobatches: 2\nstage 0: a+b\nstage 1: b\n"
      "a: 0F0 0B0\nb: 0F1 1F0 1F1 1B0 1B1 0B1\n");
  CHECK(lists(add_transfers(program)) ==
        "a: 0F0 0SEND_F0 0RECV_B0 0B0\n"
        "b: 0F1 1RECV_F0 1F0 1F1 1B0 1SEND_B0 1B1 0B1\n");
}

TEST_CASE("what a device sends to another is received in that order") {
  // gpu1 reads the gradient of stage 3 first, but gpu0 has sent the activation before it.
  const Program program = parse_program(
      "stageline-program 1\nmicrobatches: 2\nstage 0: gpu0\nstage 1: gpu1\nstage 2: gpu1\n"
      "stage 3: gpu0\ngpu0: 0F0 0F1 3F0 3B0 3F1 3B1 0B0 0B1\n"
      "gpu1: 1F0 2F0 2B0 1F1 1B0 2F1 2B1 1B1\n");
  CHECK(lists(add_transfers(program)) ==
        "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 3RECV_F0 3F0 3B0 3SEND_B0 0RECV_B0 3RECV_F1 3F1 3B1 "
        "3SEND_B1 0B0 0RECV_B1 0B1\n"
        "gpu1: 1RECV_F0 1F0 2F0 2SEND_F0 1RECV_F1 2RECV_B0 2B0 1F1 1B0 1SEND_B0 2F1 2SEND_F1 "
        "2RECV_B1 2B1 1B1 1SEND_B1\n");
}

TEST_CASE("messages count the edges of their own stage") {
  const Program program = parse_program(
      straight_text(3, 1, "gpu0: 0F0 0B0\ngpu1: 1F0 1B0\ngpu2: 2F0 2B0\n", "edges: 0>1 0>2 1>2\n"));
  CHECK(lists(add_transfers(program)) ==
        "gpu0: 0F0 0SEND_F0 0SEND_F0.1 0RECV_B0 0RECV_B0.1 0B0\n"
        "gpu1: 1RECV_F0 1F0 1SEND_F0 1RECV_B0 1B0 1SEND_B0\n"
        "gpu2: 2RECV_F0 2RECV_F0.1 2F0 2B0 2SEND_B0 2SEND_B0.1\n");
}

TEST_CASE("nothing is put inside an overlapped pair") {
  const Program program = parse_program(straight_text(
      2, 2, "gpu0: 0F0 (0F1;0B0)OVERLAP_F_B 0B1\ngpu1: 1F0 1B0 1F1 1B1\n", "weights: stash\n"));
  CHECK(lists(add_transfers(add_updates(program))) ==
        "gpu0: 0F0 0SEND_F0 0RECV_B0 0F1 0B0 0SEND_F1 0U0 0RECV_B1 0B1 0U1\n"
        "gpu1: 1RECV_F0 1F0 1B0 1SEND_B0 1U0 1RECV_F1 1F1 1B1 1SEND_B1 1U1\n");
}

TEST_CASE("I directly followed by its W becomes B, and nothing else does") {
  const auto merged = [](const std::string& ops) {
    return lists(merge_backward(parse_program(straight_text(1, 2, "gpu0: " + ops + "\n"))));
  };
  CHECK(merged("0F0 0I0 0W0") == "gpu0: 0F0 0B0\n");
  CHECK(merged("0I0 0W0 0I1 0W1") == "gpu0: 0B0 0B1\n");
  CHECK(merged("0I0 0W1") == "gpu0: 0I0 0W1\n");
  CHECK(merged("0I0 0F1 0W0") == "gpu0: 0I0 0F1 0W0\n");
  CHECK(merged("0W0 0I0") == "gpu0: 0W0 0I0\n");
  CHECK(merged("(0F1;0I0)OVERLAP_F_B 0W0") == "gpu0: 0F1 0I0 0W0\n");
  CHECK(merged("0I0 (0W0;0F1)OVERLAP_F_B") == "gpu0: 0I0 0W0 0F1\n");
  CHECK(merged("(0I0;0W0)OVERLAP_F_B") == "gpu0: 0I0 0W0\n");
}

TEST_CASE("complete adds transfers where a route in use costs time, and only there") {
  const Program program = parse_program(two_stages);
  const Costs free = uniform_costs(2, 2, Time{1}, Time{1}, Time{1});
  CHECK(lists(complete(program, free)) == "gpu0: 0F0 0F1 0B0 0B1 0U0\ngpu1: 1F0 1B0 1F1 1B1 1U0\n");
  CHECK(complete(program, uniform_costs(2, 2, Time{1}, Time{1}, Time{1}, Time{1})) ==
        add_transfers(add_updates(program)));
  Costs late = free;
  late.network.routes[1].latency = Time{1};  // gpu0 to gpu1
  CHECK(complete(program, late) == add_transfers(add_updates(program)));
}

TEST_CASE("every pass does nothing the second time, on random programs") {
  test::RandomPrograms random(21);
  for (int i = 0; i < 300; ++i) {
    const test::RandomProgram made = random.make(i % 2 == 0);
    const Program updated = add_updates(made.program);
    REQUIRE(add_updates(updated) == updated);
    const Program reduced = add_reductions(updated);
    REQUIRE(add_reductions(reduced) == reduced);
    const Program sent = add_transfers(reduced);
    REQUIRE(add_transfers(sent) == sent);
    const Program whole = complete(made.program, made.costs);
    REQUIRE(complete(whole, made.costs) == whole);
    REQUIRE(merge_backward(merge_backward(made.program)) == merge_backward(made.program));
    REQUIRE_NOTHROW(validate(made.program));
    REQUIRE_NOTHROW(validate(sent));
  }
}

TEST_CASE("without its additions, a completed random program is what it was") {
  test::RandomPrograms random(22);
  for (int i = 0; i < 200; ++i) {
    const test::RandomProgram made = random.make(false);
    Program stripped = complete(made.program, made.costs);
    for (std::size_t device = 0; device < stripped.ops.size(); ++device) {
      const auto& before = made.program.ops[device];
      std::erase_if(stripped.ops[device], [&](Op one) {
        return std::find(before.begin(), before.end(), one) == before.end();
      });
    }
    REQUIRE(stripped == made.program);
  }
}

}  // namespace
}  // namespace stageline::passes_tests
