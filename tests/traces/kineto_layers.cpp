// Is a profile of one device divided into the layers of its model, on the CPU and by kernels?
#include "traces/kineto/layers.hpp"

#include "sim/analysis/statistics.hpp"
#include "tests/traces/kineto_runs.hpp"

namespace stageline::kineto_layers_tests {
namespace {

using profiles::Form;
using profiles::profile_text;
using profiles::Range;

constexpr std::int64_t ms = 1'000'000;
constexpr const char* engine = "autograd::engine::evaluate_function: AddmmBackward0";

constexpr const char* second_forward = "aten::addmm";

struct Kind {
  bool on_gpu = false;
  bool by_correlation = false;  // kernels without External id
  bool recomputed = false;      // the blocks' forwards run again in their backwards
};

// Ranges of a run, times in ms since its first step began.
class Writer {
 public:
  explicit Writer(Kind kind) : kind_(kind) {}

  void range(const std::string& name, std::int64_t from, std::int64_t to,
             const std::string& category = "python_function", int tid = 1) {
    ranges_.push_back({name, ms * from, ms * to, category, tid});
  }

  // An operator on the CPU; or its launch, and half a millisecond later its kernel, which begins
  // behind what an operator inside of it launched before.
  void op(const std::string& name, std::int64_t from, std::int64_t to, int tid, int sequence,
          std::int64_t behind = 0) {
    ++id_;
    const bool inside = name == second_forward;
    const std::int64_t until = !kind_.on_gpu ? ms * to : ms * from + (inside ? ms / 20 : ms / 10);
    const std::int64_t since = ms * from + (kind_.on_gpu && inside ? ms / 100 : 0);
    ranges_.push_back({name, since, until, "cpu_op", tid, id_, sequence});
    if (!kind_.on_gpu) return;
    const std::int64_t start = ms * from + (inside ? ms / 50 : ms / 12);
    Range call{"cudaLaunchKernel", start, start + 1000, "cuda_runtime", tid};
    Range kernel{"gemm", ms * (from + behind) + ms / 2, ms * to + ms / 2, "kernel", 7};
    if (kind_.by_correlation) {
      call.correlation = kernel.correlation = 1000 + id_;
    } else {
      kernel.id = id_;
    }
    ranges_.push_back(call);
    ranges_.push_back(kernel);
  }

  std::vector<Range> take() { return std::move(ranges_); }
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
  int id_ = 0;
  std::vector<Range> ranges_;
};

// Of GPT_0: Embedding_0 1 ms, Block_0 4, Block_1 5 and Linear_9 2, then a loss of 1 that belongs to
// it; backwards 3 (with the loss), 10, 8 and 1; each block's second forward takes as long as its
// first.
void add_microbatch(Writer& writer, std::int64_t at, int sequence) {
  const bool again = writer.kind().recomputed;
  writer.range("nn.Module: GPT_0", at, at + 12);
  std::int64_t now = at;
  const auto module = [&](const char* name, std::int64_t length, int number) {
    writer.range(fmt::format("nn.Module: {}", name), now, now + length);
    writer.op("aten::linear", now, now + length, 1, number);
    now += length;
  };
  module("Embedding_0", 1, sequence);
  module("Block_0", 4, sequence + 1);
  writer.range("nn.Module: Linear_3", at + 2, at + 4);
  module("Block_1", 5, sequence + 2);
  module("Linear_9", 2, sequence + 3);
  writer.op("aten::cross_entropy_loss", now, now + 1, 1, sequence + 4);
  ++now;
  const auto backward = [&](std::int64_t length, int number, std::int64_t recomputed) {
    const std::int64_t whole = length + (again ? recomputed : 0);
    if (again && recomputed > 0) {
      writer.op(second_forward, now, now + recomputed, 2, sequence + 20);
    }
    writer.op(engine, now, now + whole, 2, number, again ? recomputed : 0);
    now += whole;
  };
  backward(1, sequence + 4, 0);
  backward(2, sequence + 3, 0);
  backward(10, sequence + 2, 5);
  backward(8, sequence + 1, 4);
  backward(1, sequence, 0);
}

// Two steps of two micro-batches and an update of 3 ms, by two optimizers.
std::vector<Range> run_ranges(Kind kind) {
  Writer writer(kind);
  for (int step = 0; step < 2; ++step) {
    const std::int64_t start = 1 + 200 * step;
    writer.range(fmt::format("ProfilerStep#{}", step), start, start + 150, "user_annotation");
    for (int i = 0; i < 2; ++i) {
      add_microbatch(writer, start + 1 + 60 * i, 1000 * step + 100 * i);
    }
    for (const auto& [from, to] : {std::pair(130, 132), std::pair(133, 134)}) {
      writer.range("Optimizer.step#AdamW.step", start + from, start + to, "user_annotation");
      writer.op("aten::_foreach_add_", start + from, start + to, 1, -1);
    }
  }
  return writer.take();
}

NamedText profile_of(const std::vector<Range>& ranges) {
  Form form;
  form.rank = 0;
  return {"one.json", profile_text(ranges, form)};
}

Model layers_of(const std::vector<Range>& ranges, const RangeNames* names = nullptr) {
  return kineto_layers(profile_of(ranges), names, "mine", 4, "one.json");
}

std::string refused(const std::vector<Range>& ranges, const RangeNames* names = nullptr) {
  return trace_error_of([&] { layers_of(ranges, names); }).what();
}

std::int64_t in_ms(Time time) { return profiles::nanoseconds(time) / ms; }

void check_layers(const Model& model) {
  REQUIRE(model.layers.size() == 4);
  CHECK(model.batch == 4);
  CHECK_FALSE(model.bytes_known);
  const std::vector<const char*> names{"Embedding_0", "Block_0", "Block_1", "Linear_9"};
  const std::vector<std::int64_t> forward{1, 4, 5, 3};
  const std::vector<std::int64_t> backward{1, 8, 10, 3};
  Time update{};
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(model.layers[i].name == names[i]);
    CHECK(in_ms(model.layers[i].forward) == forward[i]);
    CHECK(in_ms(model.layers[i].backward) == backward[i]);
    update += model.layers[i].update;
  }
  CHECK(in_ms(update) == 3);
}

TEST_CASE("modules become layers, with what runs behind them, on the CPU and by kernels") {
  for (const Kind kind : {Kind{}, {.on_gpu = true}, {.on_gpu = true, .by_correlation = true}}) {
    CAPTURE(kind.on_gpu);
    CAPTURE(kind.by_correlation);
    const Model model = layers_of(run_ranges(kind));
    check_layers(model);
    CHECK(contains(model.provenance.method, "over 4 micro-batches"));
    CHECK(contains(model.provenance.method, kind.on_gpu ? "of the kernels" : "on the CPU"));
    for (const Layer& layer : model.layers) CHECK(layer.recompute == Time{});
  }
}

TEST_CASE("a forward that runs again in the backward is no part of it") {
  for (const Kind kind : {Kind{.recomputed = true},
                          {.on_gpu = true, .by_correlation = true, .recomputed = true},
                          {.on_gpu = true, .recomputed = true}}) {
    CAPTURE(kind.on_gpu);
    CAPTURE(kind.by_correlation);
    const Model model = layers_of(run_ranges(kind));
    check_layers(model);
    CHECK(in_ms(model.layers[1].recompute) == 4);
    CHECK(in_ms(model.layers[2].recompute) == 5);
    CHECK(contains(model.provenance.notes.back() + model.provenance.notes.rbegin()[1],
                   "forwards that ran again in the backward (9.000 ms a micro-batch)"));
  }
}

TEST_CASE("two forwards before the backward of their sum are two micro-batches") {
  Writer writer({});
  for (int i = 0; i < 2; ++i) {
    for (int layer = 0; layer < 3; ++layer) {
      const std::int64_t at = 10 * i + 2 * layer;
      writer.range(fmt::format("nn.Module: Block_{}", layer), at, at + 2);
      writer.op("aten::linear", at, at + 2, 1, 10 * i + layer);
    }
  }
  std::int64_t at = 16;
  for (const int sequence : {12, 11, 10, 2, 1, 0}) {
    writer.op(engine, at, at + 4, 2, sequence);
    at += 4;
  }
  const Model model = layers_of(writer.take());
  REQUIRE(model.layers.size() == 3);
  CHECK(contains(model.provenance.method, "over 2 micro-batches"));
  for (const Layer& layer : model.layers) {
    CHECK(in_ms(layer.forward) == 2);
    CHECK(in_ms(layer.backward) == 4);
  }
}

TEST_CASE("layers may be ranges that a mapping file calls so") {
  const RangeNames names = read_range_names(
      R"({"format": "stageline-names 1", "rules": [{"pattern": "^part \\d$", "is": "layer"}]})",
      "names.json");
  std::vector<Range> ranges = run_ranges({});
  for (Range& range : ranges) {
    if (range.category != "python_function") continue;
    const std::string name = range.name.substr(11);
    range.category = "user_annotation";
    range.name = name == "Embedding_0" ? "part 0" : name == "Block_1" ? "part 1" : "else";
  }
  const Model model = layers_of(ranges, &names);
  REQUIRE(model.layers.size() == 2);
  CHECK(model.layers[0].name == "part 0");
  CHECK(in_ms(model.layers[0].forward) == 5);
  CHECK(in_ms(model.layers[0].backward) == 9);
  CHECK(in_ms(model.layers[1].forward) == 8);
  CHECK(in_ms(model.layers[1].backward) == 13);
  CHECK(contains(refused(ranges), "it has no ranges of modules"));
}

TEST_CASE("what is no training of all layers on one device is refused") {
  std::vector<Range> forwards = run_ranges({});
  std::erase_if(forwards, [](const Range& range) { return range.tid == 2; });
  CHECK(contains(refused(forwards), "none of its forwards has a backward"));
  std::vector<Range> stage = run_ranges({});
  stage.push_back({"gloo:send", 2 * ms, 3 * ms});
  CHECK(contains(refused(stage), "its rank sends or receives messages"));
  std::vector<Range> other = run_ranges({});
  other.push_back({"my_ext::work", 500 * ms, 900 * ms, "cpu_op", 5});
  CHECK(contains(refused(other), "are in none, so these are not the layers of the model"));
  other.back().end = 512 * ms;
  const Model model = layers_of(other);
  CHECK(contains(model.provenance.notes[1], "12.00 ms of operators are of no layer"));
}

// Recorded runs of an embedding, six blocks and a linear layer: tests/traces/kineto/README.md.
Model recorded_layers(const std::string& name) {
  const std::string file = "tests/traces/kineto/one_device/" + name;
  return kineto_layers({file, source_text(file)}, nullptr, "mine", 0, name);
}

TEST_CASE("recorded runs of one device have the layers of their models") {
  const Model plain = recorded_layers("plain.json.gz");
  const Model again = recorded_layers("checkpoint.json.gz");
  const Model reentrant = recorded_layers("checkpoint_reentrant.json.gz");
  for (const Model* const model : {&plain, &again, &reentrant}) {
    REQUIRE(model->layers.size() == 8);
    CHECK(model->layers.front().name == "Embedding_0");
    CHECK(model->layers[6].name == "Block_5");
    for (const Layer& layer : model->layers) {
      CAPTURE(layer.name);
      CHECK(layer.forward > Time{});
      CHECK(layer.backward > Time{});
      CHECK(layer.update > Time{});
      const bool block = layer.name.starts_with("Block_");
      CHECK((layer.recompute > Time{}) == (block && model != &plain));
      // A second forward is about as long as the first, on a core that is busy otherwise.
      if (layer.recompute > Time{}) {
        CHECK(fraction_of(layer.recompute, layer.forward) == doctest::Approx(1).epsilon(0.9));
      }
    }
  }
}

TEST_CASE("modules are divided while one has most of the time, and sequences always") {
  const std::vector<ModuleCall> calls{
      {"GPT_0", 0, 100},    {"Block_0", 10, 40}, {"Attn_0", 10, 20},    {"Sequential_0", 40, 60},
      {"Conv_0", 40, 50},   {"Conv_1", 50, 60},  {"Block_1", 60, 90},   {"Linear_0", 90, 100},
      {"Loss_0", 100, 110}, {"GPT_0", 200, 300}, {"Block_0", 200, 220}, {"Block_1", 220, 240}};
  std::vector<std::string> names;
  for (const ModuleCall& call : layer_calls(calls)) names.push_back(call.name);
  CHECK(names == std::vector<std::string>{"Block_0", "Conv_0", "Conv_1", "Block_1", "Linear_0",
                                          "Loss_0", "Block_0", "Block_1"});
}

}  // namespace
}  // namespace stageline::kineto_layers_tests
