// Is everything found that is wrong with a program, and in the right place?
#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "sim/check/lint.hpp"
#include "tests/random_program.hpp"
#include "tests/text.hpp"

namespace stageline::lint_tests {
namespace {

using test::straight_text;

// "5:13 error order: 0B0 stands ...", a line each.
std::string told(const std::string& text, const Costs* costs = nullptr) {
  TextPlaces places;
  const Program program = parse_program(text, places);
  std::string all;
  for (const LintFinding& finding : lint(program, {&places, costs}).findings) {
    all += std::to_string(finding.line) + ":" + std::to_string(finding.column) + " ";
    all += name(finding.severity);
    all += " ";
    all += name(finding.rule);
    all += ": " + finding.message + "\n";
  }
  return all;
}
std::string two_stages(int microbatches, const std::string& gpu0, const std::string& gpu1,
                       const std::string& header = "") {
  return told(straight_text(2, microbatches, "gpu0: " + gpu0 + "\ngpu1: " + gpu1 + "\n", header));
}

TEST_CASE("a program knows where its ops stood") {
  TextPlaces places;
  const Program program = parse_program(
      "stageline-program 1\nmicrobatches: 2  # two\nstage 0: gpu0\n"
      "gpu0: 0F0 # first\n   0F1 (0R0;0R1)OVERLAP_F_B\n\n 0B0 0B1\n",
      places);
  REQUIRE(program.ops[0].size() == 6);
  CHECK(places.stage[0] == TextPlace{3, 1});
  CHECK(places.device[0] == TextPlace{4, 1});
  const std::vector<TextPlace> expected{{4, 7}, {5, 4}, {5, 9}, {5, 13}, {7, 2}, {7, 6}};
  CHECK(places.op[0] == expected);
}

TEST_CASE("nothing is said against a good program") {
  CHECK(two_stages(2, "0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1") == "");
  CHECK(two_stages(2, "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
                   "1RECV_F0 1F0 1B0 1RECV_F1 1SEND_B0 1F1 1B1 1SEND_B1",
                   "messages: blocking\n") == "");
}

TEST_CASE("all errors are told, not the first") {
  CHECK(two_stages(2, "0F0 0F0 0F9 3F1 0F1 1B1 0B0 0B1", "1B0 1F0 1F1") ==
        "5:11 error done-twice: this work is done twice\n"
        "5:15 error range: there are micro-batches 0 to 1 only (2 a step, 1 steps)\n"
        "5:19 error range: there are stages 0 to 1 only\n"
        "5:27 error placement: the op belongs on gpu1, where its stage is placed\n"
        "6:7 error order: 1B0 comes before 1F0, which it needs, in the list of gpu1\n");
}

TEST_CASE("missing work and updates are told by their stage") {
  const std::string rule =
      "; every stage needs, for each of the 2 micro-batches, one F and either one B or I and W\n";
  CHECK(two_stages(2, "0F0 0F1 0B0 0U0", "1F0 1B0 1F1 1I1") ==
        "3:1 error missing: no device does 0B1" + rule + "4:1 error missing: no device does 1B1" +
            rule +
            "4:1 warning updates: stage 1 has no update, though stage 0 has: one is put behind its "
            "last gradient\n");
  CHECK(two_stages(1, "0F0 0B0 0U0", "1F0 1B0 1U0") == "");
}

TEST_CASE("messages without their other end are told, each") {
  CHECK(
      two_stages(1, "0F0 0SEND_F0 0RECV_B0 0RECV_B0 0B0", "1F0 1B0") ==
      "5:11 error unmatched-message: nobody receives this message\n"
      "5:20 error unmatched-message: nobody sends this message\n"
      "5:29 error done-twice: this message is received twice\n"
      "5:38 error missing-message: no message brings what stage 1 makes for it, though the program "
      "writes its messages out; write all of them or none\n");
}

TEST_CASE("each deadlock is told, in spite of errors elsewhere") {
  const std::string knot =
      "1B0 needs 2B0, which comes after 2F1, which needs 1F1, which comes after 1B0\n";
  const std::string text = straight_text(3, 2,
                                         "gpu0: 0F0 0F1 0B0 0B1 0B1\n"
                                         "gpu1: 1F0 1B0 1F1 1B1\n"
                                         "gpu2: 2F0 2F1 2B0 2B1\n");
  CHECK(told(text) ==
        "6:23 error done-twice: this work is done twice\n"
        "7:11 error deadlock: the program cannot finish: " +
            knot);
  // Two pairs of devices, a knot each.
  CHECK(
      told("stageline-program 1\nmicrobatches: 2\nstage 0: a\nstage 1: b\nstage 2: c\nstage 3: d\n"
           "edges: 0>1 2>3\n"
           "a: 0F0 0B0 0F1 0B1\nb: 1F0 1F1 1B0 1B1\nc: 2F0 2B0 2F1 2B1\nd: 3F0 3F1 3B0 3B1\n") ==
      "8:8 error deadlock: the program cannot finish: 0B0 needs 1B0, which comes after 1F1, "
      "which needs 0F1, which comes after 0B0\n"
      "10:8 error deadlock: the program cannot finish: 2B0 needs 3B0, which comes after 3F1, "
      "which needs 2F1, which comes after 2B0\n");
}

TEST_CASE("an order that only stricter messages cannot keep is a note") {
  const std::string gpu0 = "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1";
  const std::string gpu1 = "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1";
  const std::string cycle =
      "the program cannot finish: 0SEND_F1 waits for 1RECV_F1, which comes after 1SEND_B0, which "
      "waits for 0RECV_B0, which comes after 0SEND_F1\n";
  CHECK(two_stages(2, gpu0, gpu1) ==
        "5:24 note deadlock: would deadlock under messages: blocking: " + cycle);
  CHECK(two_stages(2, gpu0, gpu1, "messages: blocking\n") == "6:24 error deadlock: " + cycle);
  CHECK(two_stages(2, gpu0, gpu1, "messages: batched\n") == "");
}

TEST_CASE("a channel whose ends disagree about the order is told") {
  CHECK(
      two_stages(2, "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
                 "1RECV_F1 1F1 1RECV_F0 1F0 1B0 1SEND_B0 1B1 1SEND_B1") ==
      "6:7 warning message-order: the 1st message that gpu0 sends to gpu1 is 0SEND_F0, but the 1st "
      "that gpu1 receives from gpu0 is 1RECV_F1: on a channel that keeps their order, as NCCL's "
      "do, each gets the other's bytes\n"
      "5:11 note deadlock: would deadlock under messages: blocking: the program cannot finish: "
      "0SEND_F0 waits for 1RECV_F0, which comes after 1RECV_F1, which waits for 0SEND_F1, which "
      "comes after 0SEND_F0\n"
      "5:11 note deadlock: would deadlock under messages: batched: the program cannot finish: "
      "0SEND_F0 waits for 1RECV_F0, which comes after 1RECV_F1, which waits for 0SEND_F1, which "
      "comes after 0SEND_F0\n");
}

//             0         1
//             0123456789012345678
//   gpu0      01 2                    1RECV_F1 ahead of 1F0: gpu1 waits for F1, to 2 instead of 1
//   gpu1      ..0aa1bb                without it: .0aa1bb
TEST_CASE("a receive ahead of other work is told, with its cost") {
  const std::string gpu0 = "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1";
  const std::string gpu1 = "1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1";
  // Steps of 10 and 9 ps: 1F0 at 2, 1B0 3-5, 1F1 5, 1B1 6-8, 0B0 5-7, 0B1 8-10.
  const std::string found =
      "1RECV_F1 comes before 1F0, which does not wait for it; that costs 10 % of the step on "
      "unit "
      "costs\n";
  CHECK(two_stages(2, gpu0, gpu1, "messages: blocking\n") ==
        "7:16 warning early-receive: " + found);
  const std::string note = two_stages(2, gpu0, gpu1);
  CHECK(note ==
        "6:16 note early-receive: 1RECV_F1 comes before 1F0, which does not wait for it; under "
        "messages: blocking that costs 10 % of the step on unit costs\n");
  // F 4, B 2: 1F0 at 8, …, 0B1 ends at 22 instead of 18.
  const Costs costs = uniform_costs(2, 2, Time{4}, Time{1}, Time{1});
  CHECK(test::contains(
      told(straight_text(2, 2, "gpu0: " + gpu0 + "\ngpu1: " + gpu1 + "\n", "messages: blocking\n"),
           &costs),
      "that costs 18.2 % of the step\n"));
}

TEST_CASE("a send behind other work is told, with its cost") {
  // 0SEND_F0 at 2 instead of 1.
  CHECK(two_stages(2, "0F0 0F1 0SEND_F0 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
                   "1RECV_F0 1F0 1B0 1RECV_F1 1SEND_B0 1F1 1B1 1SEND_B1", "messages: blocking\n") ==
        "6:15 warning late-send: 0SEND_F0 comes after 0F1, though what it sends is ready sooner; "
        "that costs 10 % of the step on unit costs\n");
}

TEST_CASE("of many findings of a rule some are told, the others counted") {
  std::string gpu0;
  for (int m = 0; m < 60; ++m) gpu0 += " 0F" + std::to_string(m) + " 0B" + std::to_string(m);
  const Program program = parse_program(straight_text(1, 60, "gpu0:" + gpu0 + gpu0 + "\n"));
  const Lint found = lint(program, {nullptr, nullptr, 5});
  CHECK(found.findings.size() == 5);
  CHECK(found.count(Severity::error) == 5);
  CHECK(found.left_out.at(LintRule::twice) == 115);
}

// One set of rules: what validate() throws is the first of what check() finds.
TEST_CASE("validate throws the first finding, and nothing where there is none") {
  test::RandomPrograms random(81);
  std::mt19937 places(82);
  int wrong = 0;
  int several = 0;
  for (int i = 0; i < 800; ++i) {
    const test::RandomProgram made = random.make(false);
    Program program = complete(made.program, made.costs);
    for (std::size_t edits = places() % 4; edits > 0; --edits) {
      auto& list = program.ops[places() % program.ops.size()];
      if (list.empty()) continue;
      Op& one = list[places() % list.size()];
      switch (places() % 5) {
        case 0:
          one.microbatch += places() % 2;
          break;
        case 1:
          one.stage = static_cast<std::uint16_t>(places() % 6);
          break;
        case 2:
          one.kind = static_cast<OpKind>(places() % op_kinds);
          break;
        case 3:
          one.part = static_cast<std::uint8_t>(places() % 2);
          break;
        default:
          list.erase(list.begin() + (&one - list.data()));
      }
    }
    std::vector<std::string> found;
    check(program,
          [&](const LintFinding& finding) { found.push_back(with_place(program, finding)); });
    const std::string thrown = test::complaint<ProgramError>([&] { validate(program); });
    CHECK(thrown == (found.empty() ? "" : found.front()));
    wrong += found.empty() ? 0 : 1;
    several += found.size() > 1 ? 1 : 0;
    CAPTURE(print(program));
    int errors = 0;
    REQUIRE_NOTHROW(errors = lint(program).count(Severity::error));
    CHECK((errors > 0 || found.empty()));
  }
  CHECK(wrong > 300);
  CHECK(several > 150);
}

}  // namespace
}  // namespace stageline::lint_tests
