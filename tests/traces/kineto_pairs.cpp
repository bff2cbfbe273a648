// Is the time of an overlapped pair divided between its two ops?
#include "tests/traces/kineto_runs.hpp"

namespace stageline::kineto_pairs_tests {
namespace {

using profiles::Form;
using profiles::noted;
using profiles::profile_text;
using profiles::Range;

TEST_CASE("an overlapped pair is one range and two ops, divided as they are outside of pairs") {
  const std::vector<Range> ranges{{"PP:0F0", 1000, 2000},
                                  {"PP:(0F1;0B0)OVERLAP_F_B", 2000, 4000},
                                  {"PP:0I1", 4000, 5000},
                                  {"PP:0W1", 5000, 6000}};
  Form form;
  form.rank = 0;
  const KinetoRun run = read_kineto({{"rank0.json", profile_text(ranges, form)}});
  REQUIRE(run.program.ops[0].size() == 5);
  CHECK(run.program.ops[0][1].overlapped == 1);
  CHECK(contains(print(run.program), "0F0 (0F1;0B0)OVERLAP_F_B 0I1 0W1"));
  // F takes 1 µs, and B, like I and W, 2 µs: of the 2 µs of the pair F has a third.
  const auto& lane = run.timeline.lane(0, LaneKind::compute);
  CHECK(lane[1].op == *parse_op("0F1"));
  CHECK(lane[1].end - lane[1].start == Time{666'000});
  CHECK(lane[2].start == lane[1].end);
  CHECK(lane[2].end == Time{3'000'000});
  CHECK(run.estimated == std::set<Op>{*parse_op("0F1"), *parse_op("0B0")});
}

// Two ranks, four micro-batches. Rank 0 runs its backwards in pairs, or as I and W: F takes 1 µs
// and the others 3 µs together. In the first pair the backward waits 2 µs for its message, which is
// there at 5 µs.
//
//   rank 0  |0F0|0F1|(0F2;  wait  0B0      )|(0F3;0B1       )|0I2  |0W2  |0I3  |0W3  |
//   µs      0   1   2   3       5           8   9           12   13.5   15   16.5   18
std::vector<NamedText> pairs_of_two_ranks(bool operators) {
  const std::vector<Range> first{{"PP:0F0", 0, 1000},
                                 {"PP:0SEND_F0", 1000, 1000},
                                 {"PP:0F1", 1000, 2000},
                                 {"PP:0SEND_F1", 2000, 2000},
                                 {"PP:0RECV_B0", 2000, 2000},
                                 {"gloo:recv", 2000, 5000},
                                 {"PP:(0F2;0B0)OVERLAP_F_B", 2000, 8000},
                                 {"PP:0SEND_F2", 8000, 8000},
                                 {"PP:0RECV_B1", 8000, 8000},
                                 {"gloo:recv", 8000, 8000},
                                 {"PP:(0F3;0B1)OVERLAP_F_B", 8000, 12000},
                                 {"PP:0SEND_F3", 12000, 12000},
                                 {"PP:0RECV_B2", 12000, 12000},
                                 {"gloo:recv", 12000, 12000},
                                 {"PP:0I2", 12000, 13500},
                                 {"PP:0W2", 13500, 15000},
                                 {"PP:0RECV_B3", 15000, 15000},
                                 {"gloo:recv", 15000, 15000},
                                 {"PP:0I3", 15000, 16500},
                                 {"PP:0W3", 16500, 18000}};
  const std::vector<Range> inside{
      {"aten::linear", 2000, 2900, "cpu_op"},
      {"aten::relu", 2900, 3000, "cpu_op"},
      {"autograd::engine::evaluate_function: ReluBackward0", 5000, 5500, "cpu_op"},
      {"aten::threshold_backward", 5100, 5400, "cpu_op"},
      {"autograd::engine::evaluate_function: AddmmBackward0", 5500, 8000, "cpu_op"},
      {"aten::linear", 8000, 9000, "cpu_op"},
      {"autograd::engine::evaluate_function: ReluBackward0", 9000, 12000, "cpu_op"}};
  std::vector<Range> second;
  const std::vector<std::int64_t> there{1100, 4900, 8100, 12100};
  const std::vector<std::int64_t> backward{2900, 2100, 2000, 2000};
  for (int m = 0; m < 4; ++m) {
    const auto at = as_size(m);
    const std::int64_t start = there[at];
    const std::int64_t end = start + 900 + backward[at];
    second.push_back({fmt::format("PP:1RECV_F{}", m), start, start});
    second.push_back({"gloo:recv", start, start});
    second.push_back({fmt::format("PP:1F{}", m), start, start + 900});
    second.push_back({fmt::format("PP:1B{}", m), start + 900, end});
    second.push_back({fmt::format("PP:1SEND_B{}", m), end, end});
  }
  std::vector<Range> all = first;
  if (operators) all.insert(all.end(), inside.begin(), inside.end());
  Form form;
  form.rank = 0;
  std::vector<NamedText> files{{"rank0.json", profile_text(all, form)}};
  form.rank = 1;
  files.push_back({"rank1.json", profile_text(second, form)});
  return files;
}

TEST_CASE("in an overlapped pair the wait for the second op's message is of neither op") {
  for (const bool operators : {true, false}) {
    CAPTURE(operators);
    const KinetoRun run = read_kineto(pairs_of_two_ranks(operators));
    CHECK(contains(print(run.program), "(0F2;0B0)OVERLAP_F_B"));
    const auto spans = profiles::spans_of(run.timeline);
    const Time us{1'000'000};
    for (const char* const op : {"0F0", "0F1", "0F2", "0F3"}) {
      CHECK(spans.at(*parse_op(op)).end - spans.at(*parse_op(op)).start == us);
    }
    for (const char* const op : {"0B0", "0B1"}) {
      CHECK(spans.at(*parse_op(op)).end - spans.at(*parse_op(op)).start == 3 * us);
    }
    CHECK(spans.at(*parse_op("0B0")).start == 5 * us);
    CHECK(noted(run, "2.000 µs of overlapped pairs passed between their two ops"));
    CHECK(noted(run,
                operators
                    ? "2 overlapped pairs are divided where the backward's first"
                    : "2 overlapped pairs are divided by the times of their ops outside of pairs"));
    CHECK(run.estimated.size() == (operators ? 0 : 4));
  }
}

TEST_CASE("in a real profile of DualPipeV no op is counted in the time of another") {
  std::vector<NamedText> files;
  for (int d = 0; d < 2; ++d) {
    const std::string name = fmt::format("tests/traces/kineto/dualpipe_v/rank{}.json.gz", d);
    files.push_back({name, source_text(name)});
  }
  const KinetoRun run = read_kineto(files);
  CHECK(run.program.microbatches == 8);
  CHECK(contains(print(run.program), "(0F3;3B1)OVERLAP_F_B"));
  // Nothing is counted twice: each device's ops follow each other, and none is longer than its
  // range.
  for (int d = 0; d < 2; ++d) {
    Time until{};
    for (const Span& span : run.timeline.lane(d, LaneKind::compute)) {
      CHECK(span.op.overlapped == 0);
      CHECK(span.start >= until);
      until = span.end;
    }
  }
  CHECK(run.estimated.empty());
  CHECK(noted(run, "overlapped pairs are divided where the backward's first operator begins"));
}

}  // namespace
}  // namespace stageline::kineto_pairs_tests
