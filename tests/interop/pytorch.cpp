// Do our files and PyTorch's schedule CSV say the same? (Its own loader: tests/interop/pytorch.py.)
#include <doctest/doctest.h>

#include <random>

#include "sim/index.hpp"
#include "sim/lower/passes.hpp"
#include "tests/interop/csv.hpp"
#include "tests/text.hpp"
#include "traces/pytorch/lowering.hpp"

namespace stageline {
namespace {

constexpr PytorchForm only = PytorchForm::compute_only;
constexpr PytorchForm comms = PytorchForm::compute_comms;

std::string in_our_text(const std::string& csv) {
  return test::lists(read_pytorch_schedule(csv).program);
}
std::string complaint(const std::string& csv) {
  return test::complaint<ProgramError>([&] { read_pytorch_schedule(csv); });
}
std::string refusal(const Program& program, PytorchForm form = only) {
  return test::complaint<UsageError>([&] { write_pytorch_schedule(program, form); });
}

Program parsed(int stages, int microbatches, const std::string& lists,
               const std::string& header = "") {
  return parse_program(test::straight_text(stages, microbatches, lists, header));
}

// Two ranks in a V: stages 0 and 3 on the first, 1 and 2 on the second.
const char* const v_shape =
    "stageline-program 1\nmicrobatches: 2\nstage 0: gpu0\nstage 1: gpu1\nstage 2: gpu1\n"
    "stage 3: gpu0\n"
    "gpu0: 0F0 0F1 3F0 3I0 3F1 3I1 3W0 3W1 0B0 0B1\n"
    "gpu1: 1F0 2F0 1F1 2F1 2B0 1B0 2I1 1I1 2W1 1W1\n";

TEST_CASE("the documented example is written to the letter") {
  const Program program = parsed(2, 2, "gpu0: 0F0 0F1 0B0 0B1\ngpu1: 1F0 1B0 1F1 1B1\n");
  CHECK(write_pytorch_schedule(program, only) == "0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
  CHECK(write_pytorch_schedule(program, comms) ==
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD\n"
        "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD\n");
}

TEST_CASE("idle slots, blanks and line ends are read over") {
  const char* const same = "gpu0: 0F0 0F1 0B0 0B1\ngpu1: 1F0 1B0 1F1 1B1\n";
  CHECK(in_our_text("0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n") == same);
  CHECK(in_our_text("0F0, 0F1 ,,0B0,,0B1,,\r\n,1F0,1B0,1F1,1B1\r\n") == same);
  CHECK(in_our_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1") == same);
}

TEST_CASE("cells may be quoted, and a byte order mark may stand before the first") {
  const std::string same = in_our_text("0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1\n");
  const std::string mark = "\xEF\xBB\xBF";
  for (const std::string& csv :
       {mark + "0F0,0F1,,0B0,,0B1\r\n,1F0,1B0,1F1,1B1\r\n",
        std::string("\"0F0\",\"0F1\",\"\",\"0B0\",,\"0B1\"\r\n\"\",\"1F0\",\"1B0\",1F1,1B1\r\n"),
        mark + "\"0F0\" , \" 0F1\n\",,0B0,,0B1\n,1F0,1B0,1F1,1B1"}) {
    CAPTURE(csv);
    CHECK(looks_like_pytorch_schedule(csv));
    CHECK(in_our_text(csv) == same);
  }
  CHECK(in_our_text("\"0F0\",\"(0F1;0B0)OVERLAP_F_B\",0B1\n") ==
        in_our_text("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"));
  CHECK(complaint("0F0,\"0B0\n") ==
        "rank 0 (line 1), cell 2: it begins with a double quote, but no second one ends it");
  CHECK(complaint("\"0F0\"x,0B0\n") ==
        "rank 0 (line 1), cell 1: there is text behind its closing double quote");
  CHECK(test::contains(complaint("\"0F\"\"0\",0B0\n"), "cell 1: \"0F\"0\" is not an action"));
  CHECK(test::contains(complaint("\"0F0,0F1\",0B0\n"), "cell 1: \"0F0,0F1\" is not an action"));
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
  int fitting = 0;
  int others = 0;
  for (int devices = 1; devices <= 5; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      for (const int microbatches : {1, 2, 5, 8}) {
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
  CHECK(fitting > 60);
  CHECK(others > 100);
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

TEST_CASE("older spellings are read, with a note") {
  const char* const now = "gpu0: 0F0 0F1 0B0 0I1 0W1\n";
  for (const char* const csv : {"0F0,0F1,0BW0,0B1,0W1\n"}) {
    const ReadProgram read = read_pytorch_schedule(csv);
    CHECK(test::lists(read.program) == now);
    REQUIRE(read.notes.size() == 1);
    CHECK(test::contains(read.notes[0], "older files"));
  }
  // Nothing but B and W: a B with a W of its own is the input gradient.
  CHECK(in_our_text("0F0,0B0,0W0\n") == "gpu0: 0F0 0I0 0W0\n");
  CHECK(read_pytorch_schedule("0F0,0B0\n").notes.empty());
}

TEST_CASE("a reduction is the stage's update, and sharding is left out with a note") {
  const ReadProgram read = read_pytorch_schedule(
      "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
      "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n");
  CHECK(test::lists(read.program) ==
        "gpu0: 0F0 0SEND_F0 0RECV_B0 0B0 0U0\ngpu1: 1RECV_F0 1F0 1B0 1SEND_B0 1U0\n");
  REQUIRE(read.notes.size() == 1);
  CHECK(test::contains(read.notes[0], "4 UNSHARD and RESHARD were left out"));
}

TEST_CASE("a broken cell is named by rank, line and number") {
  CHECK(
      complaint("0F0,0X0\n") ==
      "rank 0 (line 1), cell 2: \"0X0\" is not an action; an action is <stage><word><micro-batch>, "
      "such as 1F0, and the words are F, B, I, W, SEND_F, RECV_F, SEND_B and RECV_B, and without a "
      "micro-batch UNSHARD, RESHARD and REDUCE_GRAD");
  // Each is more than PyTorch's own pattern sees, which takes the beginning of a cell.
  for (const char* const cell : {"0F0x", "0F0.1", "F0", "0F-1", "0 F0", "0SEND0", "'0F0'"}) {
    CAPTURE(cell);
    CHECK(test::contains(complaint(std::string("0F0,") + cell + ",0B0\n"), "is not an action"));
  }
  CHECK(complaint("0F0,0F\n") ==
        "rank 0 (line 1), cell 2: \"0F\" names no micro-batch; write 0F0 for the first");
  CHECK(complaint("0F0,0UNSHARD1\n") ==
        "rank 0 (line 1), cell 2: \"0UNSHARD1\" names a micro-batch, "
        "but UNSHARD is of the whole step");
  CHECK(complaint("70000F0\n") ==
        "rank 0 (line 1), cell 1: \"70000F0\": a stage is a number below 65535");
  CHECK(complaint("0F99999999999\n") ==
        "rank 0 (line 1), cell 1: \"0F99999999999\": a micro-batch is a number below 67108864");
  for (const char* const pair : {"(0F1;0B0)", "(0F1)OVERLAP_F_B", "(0F1;0B0;0F2)OVERLAP_F_B",
                                 "(0F1;0B0OVERLAP_F_B", "(0F1,0B0)OVERLAP_F_B"}) {
    CAPTURE(pair);
    CHECK(test::contains(complaint(std::string("0F0,") + pair + "\n"),
                         "an overlapped pair is written (7F3;0B2)OVERLAP_F_B"));
  }
  CHECK(test::contains(complaint("0F0,(0F1;0SEND_F0)OVERLAP_F_B\n"),
                       "0SEND_F0 cannot be overlapped; only F, B, I and W can"));
}

TEST_CASE("the rules of the format are checked") {
  CHECK(complaint("0F0,0B0\n1F0,1B0,0F1\n") ==
        "rank 1 (line 2), cell 3: stage 0 is on rank 0 too (cell 1); each stage lives on one rank");
  CHECK(complaint("0F0,0B0,0F0\n") ==
        "rank 0 (line 1), cell 3: 0F0 is done a second time (the first is rank 0, cell 1)");
  CHECK(complaint("0B0,0F0\n") == "rank 0 (line 1), cell 1: 0B0 needs 0F0 before it");
  CHECK(complaint("0F0,0I0,0W0,0F1,0W1,0I1\n") ==
        "rank 0 (line 1), cell 5: 0W1 needs 0I1 before it");
  CHECK(complaint("0F0,(0F1;0B1)OVERLAP_F_B,0B0\n") ==
        "rank 0 (line 1), cell 2: 0F1 and 0B1 are one overlapped pair, but one needs the other");
  CHECK(complaint("0F0,0I0,0W0,0B0\n") ==
        "rank 0 (line 1), cell 4: 0B0 is the whole backward, and rank 0, cell 2 is part of it; a "
        "micro-batch has either B or I and W");
  CHECK(
      complaint("0F0,0BW0,0F1,0I1,0W1\n") ==
      "rank 0 (line 1), cell 2: 0BW0 is the older spelling of a full backward, but rank 0, cell 4 "
      "has an I, which is of the newer one, where it is 0B0");
  CHECK(complaint("0F0,0B0,0F1,0B1\n1F0,1B0\n") ==
        "rank 1 (line 2) does no 1F1; a stage needs, for each of the 2 micro-batches, "
        "one F and either one B or I and W");
  CHECK(test::contains(complaint("0F0,0F1,0B0\n"), "does no 0B1, nor 0I1; "));
  CHECK(test::contains(complaint("0F0,0I0\n"), "does no 0W0, though it does 0I0; "));
  CHECK(complaint("0F0,0B0\n2F0,2B0\n") ==
        "no rank has an action of stage 1, but rank 1, cell 1 has one of stage 2");
  CHECK(complaint("0F0,0B0\n\n1F0,1B0\n") ==
        "rank 1 (line 2), cell 1: the rank has no action; "
        "a schedule of ranks 0 to 2 has a stage on each of them");
  CHECK(complaint("0F0,0B0,0REDUCE_GRAD,0F1,0B1\n") ==
        "rank 0 (line 1), cell 3: 0REDUCE_GRAD comes before 0B1 (cell 5), "
        "whose gradient it is to reduce");
  CHECK(test::contains(complaint("0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD\n"), "appears a second time"));
}

TEST_CASE("messages are checked") {
  const std::string first = "0F0,0SEND_F0,0RECV_B0,0B0\n";
  const std::string second = "1RECV_F0,1F0,1B0,1SEND_B0\n";
  CHECK(complaint(first + second).empty());
  CHECK(complaint("0F0,0SEND_F0,,0RECV_B0,0B0\n" + second) ==
        "rank 0 (line 1), cell 3: the cell is empty, which is an idle slot, "
        "and a schedule with messages has none");
  CHECK(complaint("0SEND_F0,0F0,0RECV_B0,0B0\n" + second) ==
        "rank 0 (line 1), cell 1: 0SEND_F0 comes before its payload, which cell 2 makes");
  CHECK(complaint("0F0,0SEND_F0,0B0,0RECV_B0\n" + second) ==
        "rank 0 (line 1), cell 4: 0RECV_B0 comes after its reader, cell 3");
  CHECK(complaint("0F0,0SEND_F0,0RECV_B0,0B0,0SEND_B0\n" + second) ==
        "rank 0 (line 1), cell 5: stage 0 is the first of 2: "
        "there is no stage to send a gradient to");
  CHECK(complaint(first + "1RECV_F0,1F0,1SEND_F0,1B0,1SEND_B0\n") ==
        "rank 1 (line 2), cell 3: stage 1 is the last of 2: "
        "there is no stage to send an activation to");
  CHECK(complaint(first + "1F0,1B0,1SEND_B0\n") ==
        "rank 0 (line 1), cell 2: no rank receives 0SEND_F0: rank 1 has no 1RECV_F0");
  CHECK(complaint("0F0,0RECV_B0,0B0\n" + second) ==
        "rank 1 (line 2), cell 1: no rank sends 1RECV_F0: rank 0 has no 0SEND_F0");
  CHECK(complaint("0F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n") ==
        "rank 1 (line 2), cell 1: 1F0 reads what stage 0 makes on rank 0, but there is no 1RECV_F0 "
        "before it; write all messages or none");
  CHECK(test::contains(complaint("0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n" + second),
                       "appears a second time (the first is cell 2)"));
  CHECK(test::contains(complaint("0F0,0SEND_F1,0SEND_F0,0RECV_B0,0B0\n" + second),
                       "0SEND_F1: there are micro-batches 0 to 0 only"));
  CHECK(test::contains(complaint("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n"),
                       "stages 0 and 1 are both on rank 0 and need no message"));
}

TEST_CASE("a damaged file is refused or is a valid program") {
  std::mt19937 random(5);
  const auto below = [&](std::size_t limit) { return as_size(random() % limit); };
  int refused = 0;
  int read = 0;
  for (int round = 0; round < 4000; ++round) {
    const auto program =
        round % 2 == 0 ? parse_program(v_shape) : test::written(test::spec("1f1b"), 3, 4);
    std::string csv = write_pytorch_schedule(program, round % 4 < 2 ? only : comms);
    for (std::size_t blow = 1 + below(3); blow > 0; --blow) {
      const std::size_t from = below(csv.size());
      const std::size_t size = 1 + below(6);
      const std::string piece = csv.substr(below(csv.size()), size);
      switch (below(4)) {
        case 0:
          csv.erase(from, size);
          break;
        case 1:
          csv.insert(from, piece);
          break;
        case 2:
          csv.replace(from, size, piece);
          break;
        case 3:
          csv[from] = ",;()0123FIWB\n\r "[below(15)];
          break;
      }
      if (csv.empty()) csv = ",";
    }
    CAPTURE(csv);
    try {
      const Program again = read_pytorch_schedule(csv).program;
      validate(again);
      CHECK(parse_program(print(again)) == again);
      ++read;
    } catch (const ProgramError& error) {
      const std::string said = error.what();
      CHECK((test::contains(said, "rank ") && said.size() > 20));
      // Those of validate() name a device of ours, which nobody wrote.
      CHECK(!test::contains(said, "gpu"));
      ++refused;
    }
  }
  CHECK(refused > 2000);
  CHECK(read > 20);
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
}  // namespace stageline
