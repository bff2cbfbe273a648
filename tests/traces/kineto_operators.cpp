// Is a profile read in which no range is named as one of a pipeline: from autograd's operators?
#include <random>

#include "tests/traces/kineto_runs.hpp"

namespace stageline::kineto_operators_tests {
namespace {

using profiles::each_rank;
using profiles::Form;
using profiles::noted;
using profiles::profile_text;
using profiles::Range;
using profiles::small_run;

constexpr const char* engine = "autograd::engine::evaluate_function: ";

// small_run() as operators: two to a forward, with numbers; their backwards and the accumulation of
// gradients. `thread`: of the engine. Others are there that belong to no op of the pipeline. 100 ns
// at both ends of an op are for these, and for messages.
std::vector<Range> operator_ranges(std::size_t device, int thread) {
  const auto spans = profiles::spans_of(small_run().timeline);
  std::vector<Range> ranges;
  std::map<std::uint32_t, int> first_of;  // by micro-batch
  int next = 5;
  std::int64_t now = 1000;
  const auto cpu_op = [&](const std::string& name, std::int64_t start, std::int64_t end, int tid,
                          int sequence) {
    ranges.push_back({name, start, end, "cpu_op", tid, 0, sequence});
  };
  for (const Op op : small_run().program.ops[device]) {
    if (lane_of(op.kind) != LaneKind::compute) continue;
    const std::int64_t start = profiles::nanoseconds(spans.at(op).start) + 1000 + 100;
    const std::int64_t end = profiles::nanoseconds(spans.at(op).end) + 1000 - 100;
    const std::int64_t middle = (start + end) / 2;
    if (op.kind == OpKind::update) {  // it takes no time in small_run()
      ranges.push_back({"Optimizer.step#SGD.step", start, start + 50, "user_annotation", 1});
      cpu_op("aten::add_", start + 10, start + 40, 1, next);
      continue;
    }
    const bool forward = op.kind == OpKind::forward;
    if (forward ? op.stage > 0 : op.stage < 2) {
      cpu_op("c10d::recv_", now + 20, now + 30, 1, -1);
      ranges.push_back({"gloo:recv", now + 25, start - 10, "user_annotation", 1});
    }
    if (forward) {
      first_of[op.microbatch] = next;
      cpu_op("aten::chunk", start - 8, start - 4, 1, next);  // a view: it has the next one's number
      cpu_op("aten::linear", start, middle, 1, next);
      cpu_op("aten::addmm", start + 5, middle - 5, 1, next);  // inside
      cpu_op("aten::relu", middle + 3, end, 1, next + 1);
      next += 2;
    } else {
      const int first = first_of.at(op.microbatch);
      cpu_op("aten::ones_like", start - 5, start - 2, 1, next);
      cpu_op(engine + std::string("ReluBackward0"), start, middle, thread, first + 1);
      cpu_op("aten::threshold_backward", start + 1, middle - 1, thread, -1);
      cpu_op(engine + std::string("AddmmBackward0"), middle + 1, end - 30, thread, first);
      cpu_op(engine + std::string("torch::autograd::AccumulateGrad"), end - 20, end, thread, -1);
    }
    if (forward ? op.stage < 2 : op.stage > 0) cpu_op("c10d::send", end + 50, end + 80, 1, -1);
    now = end + 100;
  }
  return ranges;
}

TEST_CASE("forwards and backwards are found by autograd's numbers") {
  for (const int thread : {1, 9}) {  // on the CPU the engine runs in the thread that calls it
    const KinetoRun run = read_kineto(
        each_rank([&](int rank, Form&) { return operator_ranges(as_size(rank), thread); }));
    CHECK(noted(run, "forwards and backwards are read from autograd's operators"));
    CHECK(run.program.microbatches == 4);
    CHECK(run.program.steps == 1);
    const auto read = profiles::spans_of(run.timeline);
    const auto simulated = profiles::spans_of(small_run().timeline);
    for (std::size_t d = 0; d < 3; ++d) {
      std::vector<Op> computed;
      for (const Op op : small_run().program.ops[d]) {
        if (lane_of(op.kind) == LaneKind::compute) computed.push_back(op);
      }
      CHECK(run.program.ops[d] == computed);
      for (const Op op : computed) {
        if (op.kind == OpKind::update) continue;
        CAPTURE(print(op));
        CHECK(read.at(op).start == simulated.at(op).start);
        CHECK(read.at(op).end == simulated.at(op).end - Time{200'000});
      }
    }
    // The receives of the backend show when messages arrived.
    CHECK(run.transit.size() == 2 * 2 * 4);
    const Time transfer = profiles::millisecond / 8;
    CHECK(run.transit.at(*parse_op("1F0")) == transfer + Time{190'000});
  }
}

TEST_CASE("kernels that the operators launched time them on the GPU") {
  std::vector<NamedText> files = each_rank([](int rank, Form&) {
    std::vector<Range> ranges = operator_ranges(as_size(rank), 9);
    const std::size_t operators = ranges.size();
    for (std::size_t i = 0; i < operators; ++i) {
      Range& range = ranges[i];
      range.id = static_cast<int>(i) + 1;
      if (range.category != "cpu_op" || range.name.starts_with("c10d")) continue;
      ranges.push_back({"gemm", ranges[i].start + 2'000'000, ranges[i].end + 2'000'000, "kernel", 7,
                        ranges[i].id});
    }
    return ranges;
  });
  const KinetoRun run = read_kineto(files);
  CHECK(run.source == RangeSource::gpu);
  const auto read = profiles::spans_of(run.timeline);
  const auto simulated = profiles::spans_of(small_run().timeline);
  CHECK(read.at(*parse_op("2B3")).start - read.at(*parse_op("0F0")).start ==
        simulated.at(*parse_op("2B3")).start);
}

TEST_CASE("operators without numbers, or without an engine, are no pipeline") {
  const auto refused = [](const std::vector<Range>& ranges) { return profiles::error_of(ranges); };
  const Range forward{"aten::linear", 100, 200, "cpu_op", 1, 0, 3};
  CHECK(contains(refused({forward}).what(), "operators of autograd with their sequence numbers"));
  CHECK(contains(refused({forward, {engine, 300, 400, "cpu_op", 1, 0, -1}}).what(),
                 "it has no annotations of its own"));
  CHECK(
      contains(refused({forward, {engine, 50, 90, "cpu_op", 1, 0, 3}}).what(), "it has no range"));
}

TEST_CASE("a profile of operators that is cut off or changed is read or refused") {
  Form form;
  form.rank = 0;
  const std::string whole = profile_text(operator_ranges(0, 1), form);
  std::mt19937 random(11);
  for (int round = 0; round < 400; ++round) {
    std::string text = whole;
    if (round % 2 == 0) {
      text.resize(random() % text.size());
    } else {
      for (int k = 0; k < 3; ++k)
        text[random() % text.size()] = static_cast<char>(32 + random() % 95);
    }
    try {
      read_kineto({NamedText{"rank0.json", text}});
    } catch (const TraceError&) {
    }
  }
}

TEST_CASE("a recorded run of Schedule1F1B without ranges is read") {
  const KinetoRun run = read_kineto(profiles::recorded("plain_1f1b"));
  CHECK(run.program.microbatches == 4);
  CHECK(run.program.steps == 3);
  CHECK(contains(print(run.program), "rank0: 0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3"));
  CHECK(contains(print(run.program), "rank1: 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"));
  // Every op reads what was made before it, by the clocks of both processes.
  const auto spans = profiles::spans_of(run.timeline);
  for (std::uint32_t m = 0; m < 12; ++m) {
    CHECK(spans.at(op_of(OpKind::forward, 0, m)).end <=
          spans.at(op_of(OpKind::forward, 1, m)).start);
    CHECK(spans.at(op_of(OpKind::backward, 1, m)).end <=
          spans.at(op_of(OpKind::backward, 0, m)).start);
  }
}

TEST_CASE("a recorded run of ScheduleGPipe is read") {
  const KinetoRun run = read_kineto(profiles::recorded("plain_gpipe"));
  CHECK(run.program.microbatches == 4);
  CHECK(contains(print(run.program), "rank0: 0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3"));
}

}  // namespace
}  // namespace stageline::kineto_operators_tests
