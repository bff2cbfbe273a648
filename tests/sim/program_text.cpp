// Does the program text say what it means, both ways?
#include <doctest/doctest.h>

#include "sim/base/errors.hpp"
#include "sim/program.hpp"
#include "tests/random_program.hpp"
#include "tests/text.hpp"

namespace stageline::program_text_tests {
namespace {

const std::string full_text =
    "stageline-program 1\n"
    "schedule: by hand, for a test\n"
    "microbatches: 4\n"
    "steps: 2\n"
    "weights: double_buffer\n"
    "correction: moving_average\n"
    "stage 0: gpu0+gpu1\n"
    "stage 1: gpu2\n"
    "stage 2: F=gpu0 I=gpu1+gpu2 share=0.25+0.75 W=gpu3\n"
    "edges: 0>1 0>2 1>2\n"
    "independent_w: 1 2\n"
    "gpu0: 0F0 0SEND_F0 0SEND_F0.1 (2F1;0B2)OVERLAP_F_B 0OFFLOAD2 0PREFETCH2\n"
    "gpu1: 0F1 0U1.1 0REDUCE_GRAD1.1\n"
    "gpu2: 1RECV_F0 1F0 1R0 1I0 1W0\n"
    "gpu3:\n";

TEST_CASE("every part of the text is read") {
  const Program program = parse_program(full_text);
  CHECK(program.schedule == "by hand, for a test");
  CHECK(program.microbatches == 4);
  CHECK(program.steps == 2);
  CHECK(program.settings.weights == WeightRule::double_buffer);
  CHECK(program.settings.correction == "moving_average");
  CHECK(program.devices == std::vector<std::string>{"gpu0", "gpu1", "gpu2", "gpu3"});
  CHECK(program.placement.stage[0].replicas == std::vector<int>{0, 1});
  CHECK(program.placement.stage[1].replicas == std::vector<int>{2});
  CHECK(program.placement.stage[2].replicas == std::vector<int>{0});
  CHECK(program.placement.stage[2].input_grad == std::vector<int>{1, 2});
  CHECK(program.placement.stage[2].share == std::vector<double>{0.25, 0.75});
  CHECK(program.placement.stage[2].weight_grad == std::vector<int>{3});
  CHECK(program.edges == std::vector<StageEdge>{{0, 1}, {0, 2}, {1, 2}});
  CHECK(program.independent_w == std::vector<bool>{false, true, true});
  CHECK(test::lists(program) ==
        "gpu0: 0F0 0SEND_F0 0SEND_F0.1 2F1 0B2 0OFFLOAD2 0PREFETCH2\n"
        "gpu1: 0F1 0U1.1 0REDUCE_GRAD1.1\n"
        "gpu2: 1RECV_F0 1F0 1R0 1I0 1W0\n"
        "gpu3:\n");
  CHECK(program.ops[0][3].overlapped == 1);
  CHECK(program.ops[0][4].overlapped == 0);
}

TEST_CASE("the text prints as it was written") {
  CHECK(print(parse_program(full_text)) == full_text);
}

TEST_CASE("tokens of micro-batches and of slices are read and printed") {
  const std::string lengths =
      "stageline-program 1\nmicrobatches: 2\nstage 0: a\nlengths: 4096 1024+3072\n"
      "a: 0F0 0B0 0F1 0B1\n";
  const Program unequal = parse_program(lengths);
  CHECK(unequal.settings.lengths == std::vector<Documents>{{4096}, {1024, 3072}});
  CHECK(print(unequal).find("\nlengths: 4096 1024+3072\n") != std::string::npos);
  CHECK(parse_program(print(unequal)) == unequal);
  const std::string slices =
      "stageline-program 1\nmicrobatches: 2\nstage 0: a\nsequence_chunks: 2\nslices: 3072 1024\n"
      "a: 0F0 0F1 0B1 0B0\n";
  const Program cut = parse_program(slices);
  CHECK(cut.settings.slices == std::vector<std::int64_t>{3072, 1024});
  CHECK(print(cut).find("\nslices: 3072 1024\n") != std::string::npos);
  CHECK(parse_program(print(cut)) == cut);
}

TEST_CASE("what is left out has its usual value") {
  const Program program = parse_program(
      "stageline-program 1\nmicrobatches: 1\nstage 0: a\nstage 1: b\na: 0F0 0B0\nb: 1F0 1B0\n");
  CHECK(program.schedule == "");
  CHECK(program.steps == 1);
  CHECK(program.settings.weights == WeightRule::flush);
  CHECK(program.settings.correction == "none");
  CHECK(program.edges == chain_edges(2));
  CHECK(program.independent_w == std::vector<bool>{false, false});
}

TEST_CASE("comments, blank lines, blanks and line breaks do not count") {
  const Program tidy =
      parse_program("stageline-program 1\nmicrobatches: 2\nstage 0: a\na: 0F0 0F1 0B0 0B1\n");
  const Program loose = parse_program(
      "\n# a comment first\n\n  stageline-program\t1  # version\r\n\n"
      "a:   # the list begins\n  0F0\t0F1\r\n\n  # between\n0B0\n\t0B1   # done\n"
      "stage   0 :  a\n   microbatches:2\n");
  CHECK(loose == tidy);
}

TEST_CASE("a stage graph without edges is not a chain, and says so") {
  const std::string text =
      "stageline-program 1\nschedule: \nmicrobatches: 1\nsteps: 1\nweights: flush\n"
      "correction: none\nstage 0: a\nstage 1: a\nedges:\na: 0F0 1F0 0B0 1B0\n";
  const Program program = parse_program(text);
  CHECK(program.edges.empty());
  CHECK(print(program) == text);
}

TEST_CASE("long lists are broken before a hundred columns") {
  Program program = parse_program("stageline-program 1\nmicrobatches: 99\nstage 0: a\na:\n");
  for (std::uint32_t m = 0; m < 99; ++m) program.ops[0].push_back(test::op(OpKind::forward, 0, m));
  const std::string text = print(program);
  std::size_t at = 0;
  for (std::size_t end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    CHECK(end - at <= 100);
  }
  CHECK(test::contains(text, "\n  0F"));
  CHECK(parse_program(text) == program);
}

TEST_CASE("every weight rule is read by its name") {
  for (int rule = 0; rule < 5; ++rule) {
    const std::string word(name(static_cast<WeightRule>(rule)));
    const Program program = parse_program("stageline-program 1\nmicrobatches: 1\nweights: " + word +
                                          "\nstage 0: a\na: 0F0 0B0\n");
    CHECK(program.settings.weights == static_cast<WeightRule>(rule));
    CHECK(test::contains(print(program), "weights: " + word + "\n"));
  }
}

TEST_CASE("random programs print and parse back, before and after the passes") {
  test::RandomPrograms random(11);
  for (int i = 0; i < 300; ++i) {
    test::RandomProgram made = random.make(false);
    REQUIRE(parse_program(print(made.program)) == made.program);
    const Program whole = complete(made.program, made.costs);
    REQUIRE(parse_program(print(whole)) == whole);
    REQUIRE(print(parse_program(print(whole))) == print(whole));
  }
}

}  // namespace
}  // namespace stageline::program_text_tests
