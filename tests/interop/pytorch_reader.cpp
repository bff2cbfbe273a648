// Is PyTorch's schedule CSV read as it is meant, and refused where it breaks a rule of the format?
#include <doctest/doctest.h>

#include <random>

#include "sim/base/index.hpp"
#include "sim/lower/passes.hpp"
#include "tests/interop/pytorch_text.hpp"

namespace stageline::pytorch_reader_tests {
namespace {

using pytorch_text::comms;
using pytorch_text::complaint;
using pytorch_text::in_our_text;
using pytorch_text::only;
using pytorch_text::v_shape;

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
      "rank 0 (line 1), cell 2: \"0X0\" is not an action <stage><word><micro-batch>, such as 1F0; "
      "the words are F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, and without a micro-batch UNSHARD, "
      "RESHARD, REDUCE_GRAD");
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

}  // namespace
}  // namespace stageline::pytorch_reader_tests
