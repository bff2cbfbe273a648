// Does every fault of a program text get its line, its column and its reason?
#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "sim/program.hpp"
#include "tests/text.hpp"

namespace stageline::program_errors_tests {
namespace {

std::string refusal(const std::string& text) {
  return test::complaint<ProgramError>([&] { parse_program(text); });
}

// A good program of one stage, with line 5 replaced or more lines behind it.
std::string with(const std::string& line) {
  return refusal("stageline-program 1\nmicrobatches: 2\nstage 0: gpu0\n" + line +
                 "\ngpu0: 0F0 0B0 0F1 0B1\n");
}
std::string with_ops(const std::string& ops) {
  return refusal("stageline-program 1\nmicrobatches: 2\nstage 0: gpu0\ngpu0: " + ops + "\n");
}

TEST_CASE("a name in Latin-1 is refused where it stands") {
  const std::string text = "stageline-program 1\nschedule: caf\xe9\n";
  CHECK_THROWS_WITH_AS(parse_program(text),
                       doctest::Contains("line 2, column 1: this is not in UTF-8"), ProgramError);
}

TEST_CASE("the good text these faults are put into has none") { CHECK(with("steps: 1") == ""); }

TEST_CASE("a program begins with its first line") {
  const std::string rule = "a program begins with the line \"stageline-program 1\"";
  CHECK(refusal("") == "line 1, column 1: " + rule);
  CHECK(refusal("\n\n") == "line 1, column 1: " + rule);
  CHECK(refusal("microbatches: 2\n") == "line 1, column 1: " + rule);
  CHECK(refusal("\n# comment\n\nstageline-program 2\n") == "line 4, column 1: " + rule);
  CHECK(refusal("stageline-program 1 2\n") == "line 1, column 1: " + rule);
  CHECK(refusal("stageline-program\n1\n") == "line 1, column 1: " + rule);
}

TEST_CASE("numbers must be whole and in range") {
  CHECK(with("steps: 0") ==
        "line 4, column 8: steps must be a whole number from 1 to 67108864 (it is \"0\")");
  CHECK(with("steps: -3") ==
        "line 4, column 8: steps must be a whole number from 1 to 67108864 (it is \"-3\")");
  CHECK(with("steps:   2x") ==
        "line 4, column 10: steps must be a whole number from 1 to 67108864 (it is \"2x\")");
  CHECK(with("steps: 1.0") != "");
  CHECK(with("steps: 99999999999999999999") != "");
  CHECK(with("steps: 67108864") ==
        "line 5, column 1: 2 micro-batches × 67108864 steps are more than 2^26");
  CHECK(refusal("stageline-program 1\nmicrobatches: none\n") ==
        "line 2, column 15: microbatches must be a whole "
        "number from 1 to 67108864 (it is \"none\")");
  CHECK(with("stage -1: gpu0") ==
        "line 4, column 7: a stage must be a whole number from 0 to 65534 (it is \"-1\")");
  CHECK(with("stage 65535: gpu0") ==
        "line 4, column 7: a stage must be a whole number from 0 to 65534 (it is \"65535\")");
  CHECK(with("independent_w: 0 1") ==
        "line 4, column 18: a stage must be a whole number from 0 to 0 (it is \"1\")");
}

TEST_CASE("tokens are whole numbers, those of packed documents joined by a plus") {
  CHECK(with("lengths: 4096 1024+3072") == "");
  CHECK(
      with("lengths: 4096 1024+0") ==
      "line 4, column 20: tokens of a sequence must be a whole number from 1 to 1073741824 (it is "
      "\"0\")");
  CHECK(with("lengths: 4096 1024+") != "");
  CHECK(with("slices: 1.5") != "");
}

TEST_CASE("a key stands once, with one value") {
  CHECK(with("microbatches: 3") == "line 4, column 1: \"microbatches:\" appears a second time");
  CHECK(with("gpu0: 0F0") == "line 5, column 1: \"gpu0:\" appears a second time");
  CHECK(with("schedule: a\nschedule: b") ==
        "line 5, column 1: \"schedule:\" appears a second time");
  CHECK(with("  weights:") == "line 4, column 3: \"weights:\" takes one value (there are 0)");
  CHECK(with("steps: 1 2") == "line 4, column 1: \"steps:\" takes one value (there are 2)");
  CHECK(with("correction: a b") ==
        "line 4, column 1: \"correction:\" takes one value (there are 2)");
  CHECK(with("edges: \nedges: ") == "line 5, column 1: \"edges:\" appears a second time");
  CHECK(with("independent_w: 0\nindependent_w: 0") ==
        "line 5, column 1: \"independent_w:\" appears a second time");
}

TEST_CASE("a line is a key with values, or goes on with a device's list") {
  CHECK(with("two words: 1") == "line 4, column 1: expected \"key: value\" or \"device: ops\"");
  CHECK(with(": 0F0") == "line 4, column 1: expected \"key: value\" or \"device: ops\"");
  CHECK(with("stage 0 1: gpu0") == "line 4, column 1: expected \"key: value\" or \"device: ops\"");
  CHECK(with("0F0 0B0") ==
        "line 4, column 1: \"0F0\" is neither a \"key: value\" nor belongs to a device's list");
}

TEST_CASE("weights have one of five rules") {
  CHECK(with("weights: stashed") ==
        "line 4, column 10: weights are one of flush, stash, vertical_sync, double_buffer, "
        "latest (not \"stashed\"" +
            did_you_mean("stashed", {"stash"}) + ")");
  CHECK(with("weights: everything") ==
        "line 4, column 10: weights are one of flush, stash, vertical_sync, double_buffer, "
        "latest (not \"everything\")");
}

TEST_CASE("an op that is none says what one looks like") {
  CHECK(with_ops("0F0 0Q0 0B0") ==
        "line 4, column 11: \"0Q0\" is not an op; write <stage><kind><micro-batch>[.part] with "
        "kind F, I, W, B, R, U, SEND_F, RECV_F, SEND_B, RECV_B, OFFLOAD, PREFETCH, SEND_STASH, "
        "RECV_STASH, SEND_WEIGHTS, RECV_WEIGHTS or REDUCE_GRAD, such as 0F3");
  CHECK(test::contains(with_ops("0F0\n   0F0,0B0"), "line 5, column 4: \"0F0,0B0\" is not an op"));
}

TEST_CASE("an overlapped pair has its own spelling") {
  const std::string spelling = "an overlapped pair is written (7F3;0B2)OVERLAP_F_B, without blanks";
  CHECK(with_ops("(0F0;0B0)") == "line 4, column 7: " + spelling);
  CHECK(with_ops("0F1 (0F0; 0B0)OVERLAP_F_B") == "line 4, column 11: " + spelling);
  CHECK(with_ops("(0F0;0B0)overlap_f_b") == "line 4, column 7: " + spelling);
  CHECK(with_ops("(0F0)OVERLAP_F_B") == "line 4, column 7: an overlapped pair has two ops");
  CHECK(with_ops("(0F0;0B0;0F1)OVERLAP_F_B") == "line 4, column 7: an overlapped pair has two ops");
  CHECK(test::contains(with_ops("(0F0;)OVERLAP_F_B"), "line 4, column 12: \"\" is not an op"));
  CHECK(test::contains(with_ops("(0F0;0B)OVERLAP_F_B"), "line 4, column 12: \"0B\" is not an op"));
  CHECK(with_ops("(0F0;0U0)OVERLAP_F_B") ==
        "line 4, column 7: 0U0 cannot be overlapped; only F, I, W, B and R can");
  CHECK(with_ops("(0SEND_F0;0B0)OVERLAP_F_B") ==
        "line 4, column 7: 0SEND_F0 cannot be overlapped; only F, I, W, B and R can");
}

TEST_CASE("stages are placed, each once, on devices that have a list") {
  CHECK(with("stage 1:") == "line 4, column 1: a stage line names the stage's device");
  CHECK(with("stage 1: gpu1") == "line 4, column 10: there is no device \"gpu1\"" +
                                     did_you_mean("gpu1", {"gpu0"}) +
                                     "; give it a list, even an empty one (\"gpu1:\")");
  CHECK(test::contains(with("stage 1: gpu0+gpu7"), "line 4, column 15: there is no device"));
  CHECK(test::contains(with("stage 1: gpu0+"), "line 4, column 15: there is no device \"\""));
  CHECK(with("stage 0: gpu0") == "line 4, column 10: stage 0 is placed a second time");
  CHECK(with("stage 2: gpu0") == "line 5, column 1: stage 1 is not placed, but stage 2 is");
  CHECK(refusal("stageline-program 1\nmicrobatches: 1\ngpu0: 0F0\n") ==
        "line 3, column 1: no stage is placed (\"stage 0: gpu0\")");
  CHECK(refusal("stageline-program 1\nstage 0: gpu0\ngpu0: 0F0\n") ==
        "line 3, column 1: the line \"microbatches: N\" is missing");
}

TEST_CASE("roles have names, devices and shares") {
  CHECK(with("stage 1: F=gpu0 G=gpu0") ==
        "line 4, column 17: \"G\" is not a role; a stage has F=, I=, W=, share= and stash=");
  CHECK(with("stage 1: I=gpu0") == "line 4, column 10: the stage's forward has no device");
  CHECK(test::contains(with("stage 1: F=gpu0 I=gpux"), "line 4, column 19: there is no device"));
  CHECK(with("stage 1: F=gpu0 I=gpu0 share=0") ==
        "line 4, column 30: a share is a number above 0 and at most 1 (not \"0\")");
  CHECK(with("stage 1: F=gpu0 I=gpu0+gpu0 share=0.5+x") ==
        "line 4, column 39: a share is a number above 0 and at most 1 (not \"x\")");
  CHECK(with("stage 1: F=gpu0 share=nan") != "");
  CHECK(with("stage 1: F=gpu0 share=1.5") != "");
}

TEST_CASE("edges lead to later stages, each once") {
  CHECK(with("stage 1: gpu0\nedges: 0-1") == "line 5, column 8: an edge is written 0>1");
  CHECK(with("stage 1: gpu0\nedges: 0>1>2") == "line 5, column 8: an edge is written 0>1");
  CHECK(with("stage 1: gpu0\nedges: 0>2") ==
        "line 5, column 10: a stage must be a whole number from 0 to 1 (it is \"2\")");
  CHECK(with("stage 1: gpu0\nedges: 0>1 1>0") ==
        "line 5, column 12: a stage feeds later stages only");
  CHECK(with("stage 1: gpu0\nedges: 1>1") == "line 5, column 8: a stage feeds later stages only");
  CHECK(with("stage 1: gpu0\nedges: 0>1 0>1") == "line 5, column 8: an edge appears twice");
}

}  // namespace
}  // namespace stageline::program_errors_tests
