// Is every program refused that does not do each thing once and in its place?
#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "sim/program.hpp"
#include "tests/random_program.hpp"
#include "tests/text.hpp"

namespace stageline::validate_tests {
namespace {

using test::straight_text;

std::string refusal(const std::string& text) {
  return test::complaint<ProgramError>([&] { validate(parse_program(text)); });
}
std::string one_stage(const std::string& ops, const std::string& header = "") {
  return refusal(straight_text(1, 2, "gpu0: " + ops + "\n", header));
}
std::string two_stages(const std::string& gpu0, const std::string& gpu1,
                       const std::string& header = "") {
  return refusal(straight_text(2, 1, "gpu0: " + gpu0 + "\ngpu1: " + gpu1 + "\n", header));
}

TEST_CASE("valid programs pass") {
  CHECK(one_stage("0F0 0F1 0B0 0B1") == "");
  CHECK(one_stage("0F0 0F1 0B0 0I1 0W1 0U0") == "");
  CHECK(one_stage("0F0 0F1 0W0 0B1") == "");  // a first stage may skip I
  CHECK(one_stage("0B1 0F0 0F1 0B0") == "");  // the order is compile's business
  CHECK(one_stage("0F0 0OFFLOAD0 0PREFETCH0 0F1 0R1 0B0 0B1") == "");
  CHECK(two_stages("0F0 0B0", "1F0 1I0 1W0") == "");
  CHECK(two_stages("0F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0") == "");
}

TEST_CASE("missing work is named") {
  const std::string rule =
      "; every stage needs, for each of the 2 micro-batches, one F and either one B or I and W";
  CHECK(one_stage("0F0 0B0 0B1") == "no device does 0F1" + rule);
  CHECK(one_stage("0F0 0F1 0B1") == "no device does 0B0" + rule);
  CHECK(one_stage("0F0 0F1 0B0 0I1") == "no device does 0B1" + rule);
  CHECK(test::contains(two_stages("0F0 0B0", "1F0 1W0"), "no device does 1I0"));
  CHECK(test::contains(two_stages("0F0 0B0", "1F0 1I0"), "no device does 1B0"));
}

TEST_CASE("a program far too short is refused before room is made for what it lacks") {
  CHECK(refusal("stageline-program 1\nmicrobatches: 67108864\nstage 0: a\nstage 1: a\n"
                "a: 0F0 0B0 1F0 1B0\n") ==
        "the program has 4 ops, too few for 2 stages and 67108864 micro-batches, of which each "
        "needs one F and either one B or I and W");
}

TEST_CASE("work done twice is refused, with its device, place and neighbours") {
  CHECK(one_stage("0F0 0F1 0F0 0B0 0B1") == "gpu0, op 2 (0F0): this work is done twice");
  CHECK(one_stage("0F0 0F1 0B0 0B1 0B1") == "gpu0, op 4 (0B1): this work is done twice");
  CHECK(one_stage("0F0 0F1 0B0 0B1 0W1") == "gpu0, op 4 (0W1): this work is done twice");
  CHECK(one_stage("0F0 0F1 0B0 0B1 0I1") == "gpu0, op 4 (0I1): this work is done twice");
  CHECK(one_stage("0F0 0F1 0R0 0R0 0B0 0B1") == "gpu0, op 3 (0R0): this work is done twice");
  CHECK(one_stage("0F0 0F1 0B0 0B1 0U0 0U0") == "gpu0, op 5 (0U0): this work is done twice");
  try {
    validate(parse_program(straight_text(1, 2, "gpu0: 0F0 0F1 0F0 0B0 0B1\n")));
    FAIL("was accepted");
  } catch (const ProgramError& error) {
    CHECK(error.device == 0);
    CHECK(error.position == 2);
    CHECK(error.figure == "gpu0 | >0F0< 0F1 >0F0< 0B0 0B1\n");
  }
}

TEST_CASE("numbers out of range are refused") {
  CHECK(one_stage("0F0 0F1 0F2 0B0 0B1") ==
        "gpu0, op 2 (0F2): there are micro-batches 0 to 1 only (2 a step, 1 steps)");
  CHECK(one_stage("0F0 0F1 1F0 0B0 0B1") == "gpu0, op 2 (1F0): there are stages 0 to 0 only");
  CHECK(one_stage("0F0 0F1 0B0 0B1 0U1") == "gpu0, op 4 (0U1): the stage has updates 0 to 0 only");
  CHECK(one_stage("0F0 0F1 0B0 0B1 0U0 0U1", "weights: stash\n") == "");
  CHECK(one_stage("0F0 0F1 0B0 0B1 0U2", "weights: stash\n") ==
        "gpu0, op 4 (0U2): the stage has updates 0 to 1 only");
}

TEST_CASE("an op stands on the device it is placed on") {
  CHECK(two_stages("0F0 1F0 0B0", "1B0") ==
        "gpu0, op 1 (1F0): the op belongs on gpu1, where its stage is placed");
  CHECK(refusal("stageline-program 1\nmicrobatches: 2\nstage 0: a+b\n"
                "a: 0F0 0F1 0B0\nb: 0B1\n") ==
        "a, op 1 (0F1): the op belongs on b, where its stage is placed");
  CHECK(one_stage("0F0 0F1 0B0 0I1.1 0W1") == "gpu0, op 3 (0I1.1): the stage has no such part");
  CHECK(one_stage("0F0 0F1 0B0 0B1 0U0.1") == "gpu0, op 4 (0U0.1): the stage has no such part");
}

TEST_CASE("a stage's replicas are different devices, and only they reduce") {
  CHECK(refusal("stageline-program 1\nmicrobatches: 2\nstage 0: a+a\na: 0F0 0F1 0B0 0B1\n") ==
        "stage 0 must live on 1 to 127 different devices of the 1 there are");
  CHECK(one_stage("0F0 0F1 0B0 0B1 0REDUCE_GRAD0") ==
        "gpu0, op 4 (0REDUCE_GRAD0): only a stage with replicas reduces gradients between them");
  const std::string replicated = "stageline-program 1\nmicrobatches: 2\nstage 0: a+b\n";
  CHECK(refusal(replicated + "a: 0F0 0B0 0REDUCE_GRAD0 0U0\nb: 0F1 0B1 0REDUCE_GRAD0.1 0U0.1\n") ==
        "");
  CHECK(refusal(replicated + "a: 0F0 0B0 0REDUCE_GRAD0 0U0\nb: 0F1 0B1 0REDUCE_GRAD0 0U0.1\n") ==
        "b, op 2 (0REDUCE_GRAD0): the op belongs on a, where its stage is placed");
}

TEST_CASE("updates are written all or not at all") {
  CHECK(one_stage("0F0 0F1 0B0 0U0 0B1", "weights: stash\n") ==
        "no device does 0U1; write all updates of a stage or none");
  CHECK(refusal("stageline-program 1\nmicrobatches: 2\nstage 0: a+b\n"
                "a: 0F0 0B0 0U0\nb: 0F1 0B1\n") ==
        "no device does 0U0.1; write all updates of a stage or none");
}

TEST_CASE("what is offloaded comes back") {
  CHECK(one_stage("0F0 0OFFLOAD0 0F1 0B0 0B1") ==
        "no device does 0PREFETCH0; what an OFFLOAD takes away must come back");
}

TEST_CASE("a send has its receive, a receive its send, and no message is forgotten") {
  const std::string gpu0 = "0F0 0SEND_F0 0RECV_B0 0B0";
  CHECK(two_stages(gpu0, "1F0 1B0 1SEND_B0") ==
        "gpu0, op 1 (0SEND_F0): nobody receives this message");
  CHECK(two_stages("0F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0") ==
        "gpu1, op 0 (1RECV_F0): nobody sends this message");
  CHECK(two_stages(gpu0, "1RECV_F0 1F0 1B0") == "gpu0, op 2 (0RECV_B0): nobody sends this message");
  CHECK(two_stages(gpu0, "1RECV_F0 1RECV_F0 1F0 1B0 1SEND_B0") ==
        "gpu1, op 1 (1RECV_F0): this message is received twice");
  CHECK(two_stages("0F0 0SEND_F0 0SEND_F0 0RECV_B0 0B0", "1RECV_F0 1F0 1B0 1SEND_B0") ==
        "gpu0, op 2 (0SEND_F0): this work is done twice");
  const std::string forgotten =
      ": no message brings what stage {} makes for it, though the program writes its messages out; "
      "write all of them or none";
  CHECK(two_stages("0F0 0SEND_F0 0B0", "1RECV_F0 1F0 1B0") ==
        "gpu0, op 2 (0B0)" + std::string(forgotten).replace(forgotten.find("{}"), 2, "1"));
  CHECK(two_stages("0F0 0RECV_B0 0B0", "1F0 1B0 1SEND_B0") ==
        "gpu1, op 0 (1F0)" + std::string(forgotten).replace(forgotten.find("{}"), 2, "0"));
  CHECK(test::contains(two_stages("0F0 0SEND_F0 0W0", "1RECV_F0 1F0 1B0"),
                       "gpu0, op 2 (0W0): no message brings what stage 1 makes"));
}

TEST_CASE("a message needs an edge and two devices") {
  CHECK(two_stages("0F0 0SEND_F0.1 0B0", "1F0 1B0") ==
        "gpu0, op 1 (0SEND_F0.1): the stage has no such edge for a message");
  CHECK(two_stages("0F0 0B0", "1F0 1SEND_F0 1B0") ==
        "gpu1, op 1 (1SEND_F0): the stage has no such edge for a message");
  CHECK(refusal("stageline-program 1\nmicrobatches: 1\nstage 0: a\nstage 1: a\n"
                "a: 0F0 0SEND_F0 1RECV_F0 1F0 1B0 0B0\n") ==
        "a, op 1 (0SEND_F0): both ends of the message are on the same device");
}

TEST_CASE("an overlapped op has a second one behind it") {
  const auto with_mark = [](const std::string& text, std::size_t at) {
    Program program = parse_program(text);
    program.ops[0][at].overlapped = 1;
    return test::complaint<ProgramError>([&] { validate(program); });
  };
  const std::string text = straight_text(1, 2, "gpu0: 0F0 0F1 0B0 0B1\n");
  CHECK(with_mark(text, 1) == "");
  CHECK(with_mark(text, 3) ==
        "gpu0, op 3 (0B1): an overlapped op needs a second compute op right behind it");
  const std::string copies = straight_text(1, 2, "gpu0: 0F0 0OFFLOAD0 0PREFETCH0 0F1 0B0 0B1\n");
  CHECK(with_mark(copies, 0) ==
        "gpu0, op 0 (0F0): an overlapped op needs a second compute op right behind it");
}

TEST_CASE("a program without micro-batches is refused") {
  Program program = parse_program(straight_text(1, 1, "gpu0: 0F0 0B0\n"));
  program.microbatches = 0;
  CHECK(test::complaint<ProgramError>([&] { validate(program); }) ==
        "a program needs at least one micro-batch and one step");
}

TEST_CASE("random programs are valid, and without any one of their ops are not") {
  test::RandomPrograms random(31);
  for (int i = 0; i < 60; ++i) {
    const test::RandomProgram made = random.make(false);
    Program program = complete(made.program, made.costs);
    REQUIRE_NOTHROW(validate(program));
    for (auto& list : program.ops) {
      for (std::size_t at = 0; at < list.size(); ++at) {
        const Op one = list[at];
        // A recomputation may stay away; so may what is not refused alone: reductions.
        if (one.kind == OpKind::recompute || one.kind == OpKind::reduce_grad) continue;
        // A first stage may do without its I, when a W is there too.
        if (one.kind == OpKind::input_grad) continue;
        // What an OFFLOAD took must come back, but a PREFETCH alone is compile's business.
        if (one.kind == OpKind::offload) continue;
        // The only update of a stage may go: then it has none written out.
        if (one.kind == OpKind::update) continue;
        if (one.overlapped || (at > 0 && list[at - 1].overlapped)) continue;
        CAPTURE(print(one));
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
        CHECK_THROWS_AS(validate(program), ProgramError);
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(at), one);
      }
    }
  }
}

}  // namespace
}  // namespace stageline::validate_tests
