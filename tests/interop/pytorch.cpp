// Is PyTorch's schedule CSV written as our program says? (Its own loader:
// tests/interop/pytorch.py.)
#include <doctest/doctest.h>

#include "sim/base/index.hpp"
#include "sim/deadlock.hpp"
#include "sim/lower/passes.hpp"
#include "tests/interop/pytorch_text.hpp"
#include "tests/thorough.hpp"
#include "traces/pytorch/lowering.hpp"

namespace stageline::pytorch_tests {
namespace {

using pytorch_text::comms;
using pytorch_text::only;
using pytorch_text::parsed;
using pytorch_text::refusal;
using pytorch_text::v_shape;

TEST_CASE("the documented example is written to the letter") {
  const Program program = parsed(2, 2, "gpu0: 0F0 0F1 0B0 0B1\ngpu1: 1F0 1B0 1F1 1B1\n");
  CHECK(write_pytorch_schedule(program, only) == "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
  CHECK(write_pytorch_schedule(program, comms) ==
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD\n"
        "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD\n");
}

TEST_CASE("a V shape keeps its neighbours' messages off the wire") {
  const Program program = parse_program(v_shape);
  const std::string csv = write_pytorch_schedule(program, comms);
  CHECK(csv ==
        "0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,3F0,3I0,3SEND_B0,3RECV_F1,3F1,3I1,3SEND_B1,0RECV_B0,"
        "3W0,3W1,0RECV_B1,3REDUCE_GRAD,0B0,0B1,0REDUCE_GRAD\n"
        "1RECV_F0,1F0,1RECV_F1,2F0,2SEND_F0,1F1,2RECV_B0,2F1,2SEND_F1,2B0,2RECV_B1,1B0,1SEND_B0,"
        "2I1,1I1,1SEND_B1,2W1,2REDUCE_GRAD,1W1,1REDUCE_GRAD\n");
  CHECK(write_pytorch_schedule(read_pytorch_schedule(csv).program, comms) == csv);
}

TEST_CASE("what is written is read as the same program, for every schedule that fits") {
  std::mt19937 random(8);
  int fitting = 0;
  int others = 0;
  for (int devices = 1; devices <= 5; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      for (const int microbatches : {1, 2, 5, 8}) {
        if (!test::chosen(random, 3)) continue;
        Program program;
        try {
          program = test::written(spec, devices, microbatches);
        } catch (const UsageError&) {
          continue;  // so many devices do not suit the schedule
        }
        const std::string name = spelled(spec);
        CAPTURE(name);
        CAPTURE(devices);
        CAPTURE(microbatches);
        if (!test::fits_pytorch(program)) {
          ++others;
          CHECK(refusal(program) != "");
          CHECK(refusal(program, comms) != "");
          continue;
        }
        ++fitting;
        CHECK(read_pytorch_schedule(write_pytorch_schedule(program, only)).program ==
              test::as_read(program));
        // With messages and updates: as they stand where ranks that post them one after another get
        // them right, as with PyTorch's lowering; else as that would put them.
        const Program theirs =
            read_pytorch_schedule(write_pytorch_schedule(program, comms)).program;
        CHECK(misread_by_pytorch(theirs) == "");
        for (const Program& full : {add_transfers(add_updates(test::as_read(program))), theirs}) {
          const Program kept = misread_by_pytorch(full).empty() ? full : lowered_as_pytorch(full);
          CHECK(read_pytorch_schedule(write_pytorch_schedule(full, comms)).program == kept);
          validate(full);
        }
      }
    }
  }
  CHECK(fitting > (test::thorough ? 60 : 12));
  CHECK(others > (test::thorough ? 100 : 20));
}

TEST_CASE(
    "messages that ranks would match wrongly are put in PyTorch's own order, and it is said") {
  const auto note = [](const std::string& why) {
    return std::vector<std::string>{
        "the messages are put in the order of PyTorch's own lowering: its ranks match them by the "
        "order in which they post them, and " +
        why};
  };
  const char* const head = "gpu0: 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 0U0\n";
  const char* const in_order = "gpu1: 1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1 1U0\n";
  const std::string csv =
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD\n"
      "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD\n";
  Program program = parsed(2, 2, std::string(head) + in_order);
  CHECK(write_pytorch_schedule(program, comms) == csv);
  CHECK(lost_in_pytorch(program, comms).empty());
  // Each with the reason; the second is right on Gloo, but NCCL has one queue for both ways.
  const std::vector<std::pair<std::string, std::string>> others{
      {"gpu1: 1RECV_F1 1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1 1U0\n",
       "gpu0 has 0SEND_F0 ahead of 0SEND_F1, but gpu1 has 1RECV_F1 ahead of 1RECV_F0"},
      {"gpu1: 1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1 1U0\n",
       "gpu0 has 0SEND_F1 ahead of 0RECV_B0, but gpu1 has 1SEND_B0 ahead of 1RECV_F1"},
      // A RECV behind its reader, which async lets pass.
      {"gpu1: 1F0 1RECV_F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1 1U0\n",
       "the program cannot finish: 1F0 needs 1RECV_F0, which comes after 1F0"}};
  for (const auto& [list, why] : others) {
    program = parsed(2, 2, head + list);
    validate(program);
    CHECK(write_pytorch_schedule(program, comms) == csv);
    CHECK(lost_in_pytorch(program, comms) == note(why));
    CHECK(lost_in_pytorch(program, only).empty());
    // Whatever the text says of its own messages.
    program.settings.messages = Messages::batched;
    CHECK(misread_by_pytorch(program) == why);
  }
}

TEST_CASE("PyTorch's place for a message changes no time") {
  std::mt19937 random(7);
  for (const ScheduleSpec& spec : test::all_specs(4)) {
    Program program;
    try {
      program = test::written(spec, 4, 8);
    } catch (const UsageError&) {
      continue;  // knobs that do not suit four devices
    }
    if (!test::fits_pytorch(program)) continue;
    Costs costs = test::random_costs(random, program.stages(), 4, true);
    for (StageCosts& stage : costs.stage) stage.update = Time{};  // they stand elsewhere
    const Program theirs = read_pytorch_schedule(write_pytorch_schedule(program, comms)).program;
    const Program ours = add_transfers(add_updates(test::as_read(program)));
    CAPTURE(spelled(spec));
    CHECK(makespan(test::simulated(theirs, costs).timeline) ==
          makespan(test::simulated(ours, costs).timeline));
  }
}

TEST_CASE("an overlapped pair is one cell and one slot") {
  const char* const csv = "0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n,1F0,1B0,1F1,1B1,1F2,1B2\n";
  const Program program = read_pytorch_schedule(csv).program;
  CHECK(program.ops[0][2].overlapped == 1);
  CHECK(print(program).find("(0F2;0B0)OVERLAP_F_B") != std::string::npos);
  CHECK(write_pytorch_schedule(program, only) ==
        "0F0,0F1,,(0F2;0B0)OVERLAP_F_B,,0B1,,0B2\n,1F0,1B0,1F1,1B1,1F2,1B2\n");
  CHECK(read_pytorch_schedule(write_pytorch_schedule(program, only)).program == program);
}

TEST_CASE("what the CSV cannot express is refused") {
  const char* const lists = "gpu0: 0F0 0F1 0B0 0B1\ngpu1: 1F0 1B0 1F1 1B1\n";
  const std::string begin = "the schedule CSV of PyTorch cannot hold this program: ";
  const std::string end = "; write it as slp, our own text";
  const std::string head = "stageline-program 1\nmicrobatches: 2\n";
  CHECK(refusal(parsed(2, 2, lists)).empty());
  // DualPipe and Chimera have every stage twice.
  CHECK(refusal(parse_program(head + "stage 0: gpu0+gpu1\nstage 1: gpu1+gpu0\n"
                                     "gpu0: 0F0 1F1 1B1 0B0\ngpu1: 0F1 1F0 1B0 0B1\n")) ==
        begin + "each stage lives on one rank there, and stage 0 is on 2 devices (gpu0, gpu1)" +
            end);
  CHECK(refusal(parse_program(head + "stage 0: F=gpu0 I=gpu1 W=gpu1\n"
                                     "gpu0: 0F0 0F1\ngpu1: 0B0 0B1\n")) ==
        begin +
            "each stage lives on one rank there, "
            "and stage 0 has its forward and its backward on different devices" +
            end);
  CHECK(refusal(parsed(3, 1, "gpu0: 0F0 0B0\ngpu1: 1F0 1B0\ngpu2: 2F0 2B0\n",
                       "edges: 0>1 0>2 1>2\n")) ==
        begin + "there each stage feeds only the next one, and stage 0 feeds stage 2" + end);
  CHECK(refusal(parsed(2, 1, lists, "steps: 2\n")) ==
        begin + "it is of one step, and the program has 2 (--steps 1 makes one)" + end);
  CHECK(refusal(parsed(1, 1, "gpu0: 0F0 0R0 0B0\n")) ==
        begin + "it cannot express 0R0 (gpu0)" + end);
  CHECK(refusal(parsed(1, 1, "gpu0: 0F0 0W0\n")) ==
        begin + "it needs an I before every W, and 0W0 on gpu0 has none" + end);
  CHECK(refusal(parsed(2, 2, "gpu0: 0F1 0F0 0B1 0B0\ngpu1: 1F1 1B1 1F0 1B0\n")) ==
        begin +
            "its runtime numbers the losses as the last stage makes them, "
            "and 1F1 on gpu1 is where 1F0 has to be" +
            end);
  CHECK(refusal(parsed(2, 1, "gpu0: 0F0 0B0\ngpu1: 1F0 1B0\ngpu2:\n")) ==
        begin + "every rank has a stage there, and gpu2 does nothing" + end);
  CHECK(refusal(parsed(2, 2, lists, "windows: 2 1\n")) ==
        begin + "it cannot express \"windows:\"" + end);
  CHECK(refusal(parsed(2, 2, lists, "costs: 2 1\n")) ==
        begin + "it cannot express \"costs:\"" + end);
  CHECK(refusal(parsed(2, 2, lists, "delays: 2 1\n")) ==
        begin + "it cannot express \"delays:\"" + end);
  CHECK(refusal(parsed(2, 2, lists, "clock: lockstep\n")) ==
        begin + "it cannot express \"clock: lockstep\"" + end);
}

TEST_CASE("what the CSV is silent on is said") {
  Program program = parsed(1, 1, "gpu0: 0F0 0B0\n");
  CHECK(lost_in_pytorch(program, comms).empty());
  program.settings.weights = WeightRule::stash;
  program.settings.correction = "prediction";
  program.devices[0] = "left";
  program.independent_w[0] = true;
  CHECK(lost_in_pytorch(program, only) ==
        std::vector<std::string>{
            "the CSV does not record \"weights: stash\"; its reader updates once, "
            "at the end of the step",
            "the CSV does not record \"correction: prediction\"",
            "the CSV does not name devices; left is rank 0",
            "the CSV does not record \"independent_w:\"; there every W waits for its I"});
}

TEST_CASE("a program that cannot finish is not written") {
  const Program program = parsed(2, 2, "gpu0: 0F0 0B0 0F1 0B1\ngpu1: 1F0 1F1 1B0 1B1\n");
  CHECK_THROWS_AS(write_pytorch_schedule(program, only), Deadlock);
  CHECK_THROWS_AS(write_pytorch_schedule(program, comms), Deadlock);
}

}  // namespace
}  // namespace stageline::pytorch_tests
