// Are replicas read as what they are, and mixtures of them and stages refused?
#include "tests/traces/kineto_runs.hpp"
#include "traces/kineto/model.hpp"
#include "traces/kineto/names.hpp"

namespace stageline::kineto_replicas_tests {
namespace {

using profiles::error_of;
using profiles::Form;
using profiles::profile_text;
using profiles::Range;

constexpr std::int64_t ms = 1'000'000;
constexpr const char* engine = "autograd::engine::evaluate_function: AddmmBackward0";

struct Replica {
  int rank = 0;
  std::int64_t late = 0;     // ns, that each of its ops begins later than on rank 0
  std::string collective{};  // of its gradients; empty: none is recorded
  bool on_gpu = false;       // kernels, and the collective as one
  bool named = false;        // ranges "forward" and "backward" instead of operators
};

// Two steps of F 4 ms, B 8 ms and U 1 ms, of a process that holds all layers.
std::vector<Range> replica_ranges(const Replica& one) {
  std::vector<Range> ranges;
  for (int step = 0; step < 2; ++step) {
    const std::int64_t start = ms + 20 * ms * step + one.late * (step + 1);
    const int id = 10 * step + 1;
    ranges.push_back({fmt::format("ProfilerStep#{}", step), start, start + 19 * ms});
    const auto op = [&](const std::string& name, std::int64_t from, std::int64_t to, int tid,
                        int number, int sequence) {
      // On a GPU the operator is over when its kernel is launched.
      const std::int64_t until = one.on_gpu ? from + ms / 10 : to;
      ranges.push_back({name, start + from, start + until, "cpu_op", tid, number, sequence});
      if (!one.on_gpu) return;
      ranges.push_back({"gemm", start + from + ms / 20, start + to + ms / 20, "kernel", 7, number});
    };
    if (one.named) {
      ranges.push_back({"forward", start + ms / 10, start + ms / 10 + 4 * ms});
      ranges.push_back({"backward", start + 5 * ms, start + 13 * ms});
    }
    op("aten::linear", ms / 10, ms / 10 + 4 * ms, 1, id, step + 1);
    op(engine, 5 * ms, 13 * ms, 2, id + 1, step + 1);
    if (one.on_gpu && !one.collective.empty()) {
      ranges.push_back({one.collective, start + 13 * ms + ms / 20, start + 14 * ms, "kernel", 20});
    } else if (!one.collective.empty()) {
      ranges.push_back({one.collective, start + 13 * ms, start + 15 * ms, "user_annotation", 3});
    }
    ranges.push_back({"Optimizer.step#SGD.step", start + 15 * ms, start + 16 * ms});
  }
  return ranges;
}

NamedText profile_of(const std::vector<Range>& ranges, int rank) {
  Form form;
  form.rank = rank;
  return {profiles::file_name(rank), profile_text(ranges, form)};
}

NamedText replica(const Replica& one) { return profile_of(replica_ranges(one), one.rank); }

void check_replica(const KinetoRun& run) {
  REQUIRE(run.program.stages() == 1);
  const auto spans = profiles::spans_of(run.timeline);
  for (const auto& [op, length] :
       {std::pair("0F0", 4 * ms), {"0B0", 8 * ms}, {"0F1", 4 * ms}, {"0B1", 8 * ms}}) {
    const Span& span = spans.at(*parse_op(op));
    CHECK(profiles::nanoseconds(span.end - span.start) == length);
  }
}

const RangeNames& own_names() {
  static const RangeNames names = read_range_names(
      R"({"format": "stageline-names 1", "rules": [{"pattern": "^forward$", "is": "forward"},
          {"pattern": "^backward$", "is": "backward"}]})",
      "names.json");
  return names;
}

TEST_CASE("replicas are no stages, whatever reduces their gradients") {
  for (const Replica& kind :
       {Replica{}, Replica{.collective = "gloo:all_reduce"}, Replica{.collective = "mpi:broadcast"},
        Replica{.collective = "nccl:all_reduce"},
        Replica{.collective = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", .on_gpu = true},
        Replica{.collective = "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", .on_gpu = true}}) {
    for (const std::int64_t late : {std::int64_t{0}, ms / 50, 2 * ms}) {
      for (const int ranks : {2, 3}) {
        CAPTURE(kind.collective);
        CAPTURE(late);
        CAPTURE(ranks);
        std::vector<NamedText> files;
        for (int rank = 0; rank < ranks; ++rank) {
          Replica one = kind;
          one.rank = rank;
          one.late = rank * late;
          files.push_back(replica(one));
        }
        const KinetoRun run = read_kineto(files);
        check_replica(run);
        CHECK(run.replicas.size() == files.size() - 1);
        CHECK(profiles::noted(
            run,
            fmt::format("the {} ranks send each other no message, so they are replicas", ranks)));
        const Model model = kineto_model(run, "mine", 0, "a.json");
        REQUIRE(model.layers.size() == 1);
        CHECK(contains(model.provenance.notes.back(), "--layers divides it"));
        CHECK(profiles::nanoseconds(model.layers[0].forward) == 4 * ms);
        CHECK(profiles::nanoseconds(model.layers[0].backward) == 8 * ms);
        CHECK(profiles::nanoseconds(model.layers[0].update) == ms);
      }
    }
    // Each of them is a run of its own, too.
    check_replica(read_kineto({replica(kind)}));
  }
}

TEST_CASE("an all-to-all runs kernels of sends and receives, and is no message") {
  for (const bool known : {true, false}) {
    std::vector<NamedText> files;
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<Range> ranges = replica_ranges({.rank = rank, .on_gpu = true});
      ranges.push_back({"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 3 * ms, 4 * ms,
                        "kernel", 20});
      ranges.push_back({known ? "nccl:all_to_all" : "c10d::alltoall_base_", 2 * ms, 3 * ms,
                        known ? "user_annotation" : "cpu_op", 1});
      files.push_back(profile_of(ranges, rank));
    }
    CHECK(read_kineto(files).replicas.size() == 1);
  }
}

TEST_CASE("named ranges without a stage need messages, or times in the order of stages") {
  // On the CPU a range may wait inside, so that its times say nothing.
  std::vector<NamedText> files;
  for (int rank = 0; rank < 2; ++rank) files.push_back(replica({.rank = rank, .named = true}));
  const auto refused = [&] {
    return std::string(trace_error_of([&] { read_kineto(files, &own_names()); }).what());
  };
  CHECK(contains(refused(), "sends no message to another and receives none"));
  // Ranges on the GPU, as of Nsight Systems, without any operator or message.
  files.clear();
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<Range> ranges;
    for (int step = 0; step < 2; ++step) {
      const std::int64_t start = 20 * ms * step + rank * ms / 2;
      ranges.push_back({fmt::format("ProfilerStep#{}", step), start, start + 19 * ms});
      for (const std::string category : {"nvtx", "nvtx-kernel"}) {
        ranges.push_back({"forward", start + ms, start + 5 * ms, category});
        ranges.push_back({"backward", start + 5 * ms, start + 13 * ms, category});
      }
    }
    files.push_back(profile_of(ranges, rank));
  }
  CHECK(contains(refused(),
                 "rank1.json: 2 of its 2 forwards are done, or half done, before rank0.json has "
                 "made their input, and no message is recorded"));
  // As are those of PyTorch's schedule for one stage, on two replicas of it.
  files.clear();
  for (int rank = 0; rank < 2; ++rank) {
    files.push_back(profile_of({{"Forward 0", ms, 5 * ms + 1000 * rank},
                                {"Backward 0", 5 * ms + 2000, 13 * ms - 1000 * rank}},
                               rank));
  }
  CHECK(contains(error_of(files).what(), "rank1.json: 1 of its 1 forwards are done, or half done"));
}

// A stage of a pipeline of two, with backends' annotations: rank 0 sends first.
std::vector<Range> stage_ranges(bool first, std::int64_t late) {
  std::vector<Range> ranges;
  for (int step = 0; step < 2; ++step) {
    const std::int64_t start = ms + 40 * ms * step + late;
    const int sequence = 2 * step + 1;
    ranges.push_back({fmt::format("ProfilerStep#{}", step), start, start + 39 * ms});
    const std::int64_t f = start + (first ? 1 : 6) * ms;
    const std::int64_t b = start + (first ? 21 : 11) * ms;
    if (!first) ranges.push_back({"gloo:recv", start + ms, f - ms / 2});
    ranges.push_back({"aten::linear", f, f + 4 * ms, "cpu_op", 1, 0, sequence});
    if (first) ranges.push_back({"gloo:send", f + 4 * ms, f + 4 * ms + 1000});
    if (first) ranges.push_back({"gloo:recv", f + 4 * ms + 2000, b - ms / 2});
    ranges.push_back({engine, b, b + 8 * ms, "cpu_op", 2, 0, sequence});
    if (!first) ranges.push_back({"gloo:send", b + 8 * ms, b + 8 * ms + 1000});
    ranges.push_back({"Optimizer.step#SGD.step", b + 9 * ms, b + 10 * ms});
  }
  return ranges;
}

TEST_CASE("the ranks of two pipelines are no pipeline of four, in any order") {
  for (const bool pipelines_first : {true, false}) {  // (0, 1) and (2, 3), or (0, 2) and (1, 3)
    std::vector<NamedText> files;
    for (int rank = 0; rank < 4; ++rank) {
      const bool first = pipelines_first ? rank % 2 == 0 : rank < 2;
      files.push_back(profile_of(stage_ranges(first, 1000 * rank), rank));
    }
    const TraceError refused = error_of(files);
    CHECK(refused.file == (pipelines_first ? "rank2.json" : "rank1.json"));
    CHECK(contains(refused.what(),
                   "its rank begins by sending a message and ends by receiving "
                   "one, as the first stage of a pipeline does, but is number"));
    // Two last stages, and both in the wrong order.
    const int last = pipelines_first ? 1 : 2;
    CHECK(contains(error_of({files[static_cast<std::size_t>(last)], files[3]}).what(),
                   "begins by receiving a message and ends by sending one, as a later stage"));
    // One pipeline of them is read, of stages 0 and 1.
    const KinetoRun run = read_kineto({files[0], files[pipelines_first ? 1 : 2]});
    CHECK(run.program.stages() == 2);
    const auto spans = profiles::spans_of(run.timeline);
    for (const char* const op : {"0F0", "1F0", "0F1", "1F1"}) {
      const Span& span = spans.at(*parse_op(op));
      CHECK(profiles::nanoseconds(span.end - span.start) == 4 * ms);
    }
  }
}

TEST_CASE("a replica beside a pipeline is refused") {
  const std::vector<NamedText> files{profile_of(stage_ranges(true, 0), 0),
                                     profile_of(stage_ranges(false, 0), 1), replica({.rank = 2})};
  CHECK(error_of(files).file == "rank2.json");
}

}  // namespace
}  // namespace stageline::kineto_replicas_tests
