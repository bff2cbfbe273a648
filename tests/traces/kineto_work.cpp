// Do the times of a profile hold the work that was done: on accelerators of any kind, by operators
// that autograd does not know, in ranges with several names, by several optimizers?
#include <cstdlib>
#include <filesystem>

#include "tests/traces/kineto_runs.hpp"
#include "traces/kineto/model.hpp"
#include "traces/kineto/names.hpp"

namespace stageline::kineto_work_tests {
namespace {

using profiles::error_of;
using profiles::Form;
using profiles::noted;
using profiles::profile_text;
using profiles::Range;

constexpr std::int64_t ms = 1'000'000;
constexpr const char* engine = "autograd::engine::evaluate_function: AddmmBackward0";

KinetoRun run_of(const std::vector<Range>& ranges) {
  Form form;
  form.rank = 0;
  return read_kineto({NamedText{"rank0.json", profile_text(ranges, form)}});
}

// Two steps of one micro-batch; add(step, start) adds to each.
template <class Add>
std::vector<Range> two_steps(Add&& add) {
  std::vector<Range> ranges;
  for (int step = 0; step < 2; ++step) {
    const std::int64_t start = ms + 50 * ms * step;
    ranges.push_back({fmt::format("ProfilerStep#{}", step), start, start + 45 * ms});
    add(ranges, step, start);
  }
  return ranges;
}

void add_passes(std::vector<Range>& ranges, int step, std::int64_t start, std::int64_t forward,
                std::int64_t backward) {
  const int id = 10 * step;
  ranges.push_back({"aten::linear", start, start + forward, "cpu_op", 1, id + 1, step + 1});
  const std::int64_t then = start + forward + ms / 10;
  ranges.push_back({engine, then, then + backward, "cpu_op", 2, id + 2, step + 1});
  ranges.push_back(
      {"AddmmBackward0", then + 1, then + backward - 1, "cpu_op", 2, id + 3, step + 1});
}

std::int64_t length(const KinetoRun& run, const char* op) {
  const Span span = profiles::spans_of(run.timeline).at(*parse_op(op));
  return profiles::nanoseconds(span.end - span.start);
}

TEST_CASE("device events of any category are kernels where they name the operator") {
  for (const std::string category : {"kernel", "mtia_ccp_events", "hpu_op", "npu"}) {
    const KinetoRun run = run_of(two_steps([&](auto& ranges, int step, std::int64_t start) {
      add_passes(ranges, step, start, 3 * ms / 10, 3 * ms / 10);
      const int id = 10 * step;
      ranges.push_back({"gemm", start + ms, start + 10 * ms, category, 7, id + 1});
      ranges.push_back({"gemm", start + 11 * ms, start + 29 * ms, category, 7, id + 3});
    }));
    CAPTURE(category);
    CHECK(run.source == RangeSource::gpu);
    CHECK(length(run, "0F0") == 9 * ms);
    CHECK(length(run, "0B1") == 18 * ms);
  }
}

TEST_CASE(
    "kernels without External id are of the range in which the call begins that launched them") {
  const KinetoRun run = run_of(two_steps([&](auto& ranges, int step, std::int64_t start) {
    add_passes(ranges, step, start, 3 * ms / 10, 3 * ms / 10);
    const int id = 10 * step + 1;
    ranges.push_back({"cudaLaunchKernel", start + ms / 10, start + ms / 9, "cuda_runtime", 1});
    ranges.back().correlation = id;
    ranges.push_back({"gemm", start + ms, start + 10 * ms, "kernel", 7});
    ranges.back().correlation = id;
    ranges.push_back({"hipLaunchKernel", start + ms / 2, start + ms / 2 + 9, "hip_runtime", 2});
    ranges.back().correlation = id + 1;
    ranges.push_back({"gemm", start + 11 * ms, start + 29 * ms, "privateuse1_kernels", 7});
    ranges.back().correlation = id + 1;
  }));
  CHECK(run.source == RangeSource::gpu);
  CHECK(length(run, "0F0") == 9 * ms);
  CHECK(length(run, "0B1") == 18 * ms);
}

TEST_CASE("times of launches are called so, on an accelerator that records no kernels") {
  const auto with = [](const Range& range) {
    return run_of(two_steps([&](auto& ranges, int step, std::int64_t start) {
      add_passes(ranges, step, start, 3 * ms / 10, 3 * ms / 10);
      ranges.push_back(range);
      ranges.back().start += start;
      ranges.back().end += start;
    }));
  };
  const std::vector<Range> launches{{"cudaLaunchKernel", 10, 20, "cuda_runtime", 1, 1},
                                    {"hipExtLaunchKernel", 10, 20, "cuda_runtime", 1, 1},
                                    {"urEnqueueKernelLaunch", 10, 20, "xpu_runtime", 1, 1},
                                    {"cuLaunchKernelEx", 10, 20, "cuda_driver", 1, 1},
                                    {"nccl:all_reduce", 10, 20},
                                    {"gemm", 10, 20, "kernel", 7}};
  for (const Range& launch : launches) {
    CAPTURE(launch.name);
    const KinetoRun run = with(launch);
    CHECK(run.source == RangeSource::launches);
    CHECK(noted(run, "LAUNCHING the work from the CPU, not of the work"));
  }
  // The profiler itself calls the runtime, on a machine whose work is on the CPU.
  for (const Range& other :
       {Range{"cudaDeviceSynchronize", 10, 20, "cuda_runtime"}, Range{"gloo:all_reduce", 10, 20}}) {
    CHECK(with(other).source == RangeSource::cpu);
  }
}

TEST_CASE("work that autograd's operators do not hold is said, and refused where it is most") {
  const auto steps = [](std::int64_t extension) {
    return two_steps([extension](auto& ranges, int step, std::int64_t start) {
      add_passes(ranges, step, start, 4 * ms, 8 * ms);
      ranges.push_back({"my_ext::experts", start + 20 * ms, start + 20 * ms + extension, "cpu_op"});
    });
  };
  CHECK(contains(error_of(steps(13 * ms)).what(),
                 "the forwards and backwards of autograd's operators have 24.00 ms of operators, "
                 "and 26.00 ms of operators are in neither"));
  const KinetoRun some = run_of(steps(3 * ms));
  CHECK(noted(some,
              "6.000 ms of operators on rank 0 are in no forward or backward of autograd's "
              "operators (24.00 ms are), and are left out"));
  CHECK(noted(some, "forwards, backwards and updates take 12.00 ms of a ProfilerStep of 45.00 ms"));
  CHECK(!noted(run_of(steps(ms / 10)), "are left out"));
  // The same of kernels.
  const auto kernels = [](std::int64_t extension) {
    return two_steps([extension](auto& ranges, int step, std::int64_t start) {
      add_passes(ranges, step, start, 3 * ms / 10, 3 * ms / 10);
      const int id = 10 * step;
      ranges.push_back({"gemm", start + ms, start + 5 * ms, "kernel", 7, id + 1});
      ranges.push_back({"gemm", start + 6 * ms, start + 14 * ms, "kernel", 7, id + 3});
      ranges.push_back({"experts", start + 15 * ms, start + 15 * ms + extension, "kernel", 7, 99});
    });
  };
  CHECK(contains(error_of(kernels(13 * ms)).what(), "26.00 ms of kernels are in neither"));
  CHECK(noted(run_of(kernels(3 * ms)), "6.000 ms of kernels on rank 0 are in no forward"));
}

TEST_CASE("a reduction that outlasts its backward is no part of it, a collective between is") {
  const std::string collective = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL";
  const KinetoRun run = run_of(two_steps([&](auto& ranges, int step, std::int64_t start) {
    add_passes(ranges, step, start, 3 * ms / 10, 3 * ms / 10);
    const int id = 10 * step;
    // Of tensor parallelism, between two products of the forward.
    ranges.push_back({"gemm", start + ms, start + 3 * ms, "kernel", 7, id + 1});
    ranges.push_back({collective, start + 3 * ms, start + 4 * ms, "kernel", 20, id + 1});
    ranges.push_back({"gemm", start + 4 * ms, start + 5 * ms, "kernel", 7, id + 1});
    // Of gradients, as DDP launches it from inside of the backward.
    ranges.push_back({"gemm", start + 6 * ms, start + 14 * ms, "kernel", 7, id + 3});
    ranges.push_back({collective, start + 10 * ms, start + 17 * ms, "kernel", 20, id + 3});
  }));
  CHECK(length(run, "0F0") == 4 * ms);
  CHECK(length(run, "0B0") == 8 * ms);
  CHECK(noted(run, "as reductions of gradients do, are left out there (6.000 ms in all ranks)"));
}

TEST_CASE("a range is one op of its lane") {
  const auto rule = [](const std::string& is) {
    return trace_error_of([&] {
      read_range_names(
          R"({"format": "stageline-names 1", "rules": [{"pattern": "^both$", "is": [)" + is +
              "]}]}",
          "names.json");
    });
  };
  const TraceError both = rule(R"("forward", "backward")");
  CHECK(both.where == "/rules/0/is");
  CHECK(contains(both.what(),
                 "one range cannot be forward and backward: its time would count "
                 "twice"));
  CHECK(contains(rule(R"("input_grad", "weight_grad")").what(), "input_grad and weight_grad"));
  CHECK(contains(rule(R"("backward", "send_backward", "optimizer")").what(),
                 "cannot be backward and optimizer"));
  CHECK(
      contains(rule(R"("send_forward", "send_forward")").what(), "send_forward and send_forward"));
  // Messages have lanes of their own.
  read_range_names(R"({"format": "stageline-names 1", "rules": [
      {"pattern": "^a$", "is": ["send_forward", "receive_backward"]},
      {"pattern": "^b$", "is": ["receive_forward", "forward", "send_forward"]}]})",
                   "names.json");
}

TEST_CASE("several optimizers of one step are one update, their total") {
  const auto steps = [](const std::vector<Range>& updates) {
    return two_steps([&](auto& ranges, int step, std::int64_t start) {
      add_passes(ranges, step, start, 4 * ms, 8 * ms);
      for (Range update : updates) {
        update.start += start;
        update.end += start;
        ranges.push_back(update);
      }
    });
  };
  const Range first{"Optimizer.step#Shampoo.step", 32 * ms, 35 * ms};
  const KinetoRun two =
      run_of(steps({first, {"Optimizer.step#EMA.step", 35 * ms + 50'000, 36 * ms + 50'000}}));
  CHECK(length(two, "0U0") == 4 * ms);
  CHECK(length(two, "0U1") == 4 * ms);
  CHECK(noted(two, "rank 0 has 2 Optimizer.step ranges a step: its update is their total"));
  // One that calls another has the time of both.
  const KinetoRun inside = run_of(steps({first, {"Optimizer.step#Adam.step", 33 * ms, 34 * ms}}));
  CHECK(length(inside, "0U0") == 3 * ms);
  CHECK(!noted(inside, "Optimizer.step ranges"));
  // Updates inside of the backward are none of their own time.
  const KinetoRun apart = run_of(steps({{"Optimizer.step#SGD.step", 100'000, 200'000}, first}));
  CHECK(noted(apart, "2 Optimizer.step ranges in a step with ops between them and 1 stages"));
}

TEST_CASE("several micro-batches that one process accumulates are told apart") {
  std::vector<Range> ranges;
  for (int step = 0; step < 2; ++step) {
    const std::int64_t start = ms + 50 * ms * step;
    ranges.push_back({fmt::format("ProfilerStep#{}", step), start, start + 45 * ms});
    for (int i = 0; i < 3; ++i) {
      add_passes(ranges, 10 * step + i, start + 13 * ms * i, 4 * ms, 8 * ms);
    }
    ranges.push_back({"Optimizer.step#SGD.step", start + 42 * ms, start + 43 * ms});
  }
  const KinetoRun run = run_of(ranges);
  CHECK(run.program.microbatches == 3);
  CHECK(run.program.steps == 2);
  for (const char* const op : {"0F0", "0F2", "0F5"}) CHECK(length(run, op) == 4 * ms);
  for (const char* const op : {"0B0", "0B2", "0B5"}) CHECK(length(run, op) == 8 * ms);
}

TEST_CASE("a forward that runs again is a part of its backward, never a forward, and said") {
  const KinetoRun run = run_of(two_steps([&](auto& ranges, int step, std::int64_t start) {
    const int sequence = 10 * step;
    ranges.push_back({"aten::linear", start, start + 4 * ms, "cpu_op", 1, 0, sequence});
    const std::int64_t then = start + 5 * ms;
    ranges.push_back({engine, then, then + 12 * ms, "cpu_op", 1, 0, sequence});
    ranges.push_back({"aten::linear", then, then + 4 * ms, "cpu_op", 1, 0, sequence + 1});
  }));
  CHECK(run.program.microbatches == 1);
  CHECK(length(run, "0F0") == 4 * ms);
  CHECK(length(run, "0B1") == 12 * ms);
  CHECK(profiles::noted(run, "forwards ran again inside of backwards (checkpointing; 8.000 ms"));
}

// Profiles as people bring them, with what is right for each: cases/files/README.md.
std::optional<NamedText> case_file(const std::string& name) {
  const char* const data = std::getenv("STAGELINE_DATA");
  if (data == nullptr) return {};
  std::optional<std::string> text = file_text(std::filesystem::path(data) / "cases/files" / name);
  if (!text) return {};
  return NamedText{name, std::move(*text)};
}

Layer only_layer(const std::vector<NamedText>& files) {
  const Model model = kineto_model(read_kineto(files), "mine", 0, "a.json");
  REQUIRE(model.layers.size() == 1);
  return model.layers[0];
}

TEST_CASE("profiles as people bring them are read as they are meant, or refused") {
  const auto rank0 = case_file("data_parallel.rank0.kineto.json");
  const auto rank1 = case_file("data_parallel.rank1.kineto.json");
  const auto optimizers = case_file("two_optimizers.kineto.json");
  const auto other = case_file("other_accelerator.kineto.json");
  const auto layerwise = case_file("layerwise_backward.kineto.json");
  const auto twice = case_file("one_range_twice.kineto.json");
  const auto names = case_file("one_range_twice.names.json");
  if (!rank0 || !rank1 || !optimizers || !other || !layerwise || !twice || !names) {
    MESSAGE("skipped: STAGELINE_DATA holds no cases/files/*.kineto.json");
    return;
  }
  const Layer replica = only_layer({*rank0, *rank1});
  CHECK(replica.forward == parse_time("4ms"));
  CHECK(replica.backward == parse_time("8ms"));
  CHECK(replica.update == parse_time("1ms"));
  const Layer summed = only_layer({*optimizers});
  CHECK(summed.forward == parse_time("4ms"));
  CHECK(summed.update == parse_time("4ms"));
  const Layer device = only_layer({*other});
  CHECK(device.forward == parse_time("9ms"));
  CHECK(device.backward == parse_time("18ms"));
  CHECK(contains(error_of({*layerwise}).what(), "are not the passes of the model"));
  CHECK(contains(trace_error_of([&] { read_range_names(names->text, names->file); }).what(),
                 "its time would count twice"));
}

}  // namespace
}  // namespace stageline::kineto_work_tests
