// Are a program's devices what their names say? Where there is a GPU: do its parts compute, each on
// SMs of its own, and does a program on them do what it does on cores?
#include "tools/executor/devices/accelerators.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "tools/executor/devices/device.hpp"
#include "tools/executor/devices/green_contexts.hpp"
#include "tools/executor/processes/process.hpp"
#include "tools/executor/run/execute.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/study/study.hpp"

namespace stageline::executor {
namespace {

template <typename Work>
std::string refusal(const Work& work) {
  try {
    work();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

std::string refusal_of(const std::string& name) {
  return refusal([&] { accelerators_called(name); });
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// ---- a driver that answers as one does, for a GPU of this many SMs, parted by this many

unsigned all_processors = 132;
unsigned step = 8;
bool tells_step = true;  // since CUDA 13
int made = 0;            // contexts

DeviceResource of(unsigned processors) {
  DeviceResource resource;
  resource.type = 1;
  resource.processors = processors;
  resource.least = tells_step ? step : 0;
  resource.step = tells_step ? step : 0;
  return resource;
}

GreenDriver imitation() {
  made = 0;
  GreenDriver driver;
  driver.device = [](int* handle, int ordinal) { return (*handle = ordinal + 10) == 10 ? 0 : 101; };
  driver.resource = [](int device, DeviceResource* all, int type) {
    *all = of(all_processors);
    return device == 10 && type == 1 ? 0 : 914;
  };
  driver.split = [](DeviceResource* parts, unsigned* count, const DeviceResource* all,
                    DeviceResource*, unsigned, unsigned processors) {
    const unsigned each = (std::max(processors, 1U) + step - 1) / step * step;
    const unsigned go = all->processors / each;
    *count = parts == nullptr ? go : std::min(go, *count);
    for (unsigned i = 0; parts != nullptr && i < *count; ++i) parts[i] = of(each);
    return 0;
  };
  driver.describe = [](void** description, DeviceResource* part, unsigned count) {
    *description = part;
    return count == 1 ? 0 : 1;
  };
  driver.create = [](void** context, void* description, int, unsigned flags) {
    ++made;
    *context = description;
    return flags == 1 ? 0 : 1;
  };
  driver.resource_of = [](void* context, DeviceResource* has, int) {
    *has = *static_cast<DeviceResource*>(context);
    return 0;
  };
  driver.create_stream = [](void** stream, void* context, unsigned flags, int) {
    *stream = context;
    return flags == 1 ? 0 : 1;
  };
  driver.name_of_error = [](int, const char** name) {
    *name = "CUDA_ERROR_OUT_OF_MEMORY";
    return 0;
  };
  return driver;
}

const c10::Device first_gpu(c10::kCUDA, 0);

std::vector<int> cut(int count, int each = 0, const GreenDriver& driver = imitation()) {
  std::vector<int> processors;
  for (const GreenContext& part : cut_gpu(driver, first_gpu, "A GPU", count, each)) {
    CHECK(part.stream.device() == first_gpu);
    processors.push_back(part.processors);
  }
  return processors;
}

std::string no_cut(int count, int each = 0, const GreenDriver& driver = imitation()) {
  return refusal([&] { cut(count, each, driver); });
}

// ---- a real one

// None, with a message that says why, where there is none.
std::vector<Accelerator> if_there(const std::string& name) {
  std::vector<Accelerator> accelerators;
  if (const std::string why = refusal([&] { accelerators = accelerators_called(name); });
      !why.empty()) {
    MESSAGE("skipped: " << why);
  }
  return accelerators;
}

// As a worker of the accelerator.
template <typename Work>
void work_on(const Accelerator& accelerator, const Work& work) {
  std::thread([&] {
    enter(accelerator, LaneKind::compute);
    work();
  }).join();
}

// Of one product of square matrices, the best of a few.
double seconds_of_product(const Accelerator& accelerator) {
  double best = 1e9;
  work_on(accelerator, [&] {
    const at::Tensor a = at::ones({4096, 4096}, at::device(accelerator.where));
    for (int i = 0; i < 6; ++i) {
      synchronize(accelerator.where);
      const auto start = std::chrono::steady_clock::now();
      const at::Tensor product = at::mm(a, a);
      synchronize(accelerator.where);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      best = std::min(best, taken.count());
    }
  });
  return best;
}

// ---- programs

constexpr int devices = 2;
const std::string gpt = "gpt,layers=3,hidden=16,heads=2,seq=4,vocab=11";

// Stashes of all stages go to the host and come back.
void offload_all(Program& program) {
  for (auto& ops : program.ops) {
    std::vector<Op> with_copies;
    for (const Op op : ops) {
      const auto copy = [&](OpKind kind) {
        with_copies.push_back({kind, 0, 0, op.stage, op.microbatch});
      };
      if (op.kind == OpKind::backward) copy(OpKind::prefetch);
      with_copies.push_back(op);
      if (op.kind == OpKind::forward) copy(OpKind::offload);
    }
    ops = with_copies;
  }
}

struct Trained {
  std::vector<double> losses;
  std::vector<std::vector<at::Tensor>> weights;  // by layer
  std::vector<HeldBytes> held;
};

Trained train(const std::string& schedule, bool offloaded,
              const std::vector<Accelerator>& accelerators) {
  Case asked;
  TraceRequest request;
  request.text = "model:gpt@h100,batch=2" + gpt.substr(3);
  asked.model = open_trace(request);
  const LinkSpec link{parse_bandwidth("20GB/s"), std::chrono::microseconds(5)};
  asked.cluster = uniform_cluster(devices, link, std::nullopt, link);
  asked.spec = parse_schedules(schedule).at(0);
  asked.microbatches = 4;
  asked.steps = 2;
  Outcome outcome = study(asked);
  if (offloaded) {
    offload_all(outcome.program);
    asked.program = outcome.program;
    outcome = study(asked);
  }
  Job job{outcome.program, stage_graph(outcome.program), outcome.plan.partition, {}, false};
  job.training.shape = parse_shape(gpt);
  job.training.batch = 2;
  job.training.dtype = at::kDouble;
  job.training.recipe.rate = 0.02;
  Executor executor(job, outcome.costs, accelerators);
  Trained trained;
  trained.held = executor.run_counted();
  for (int i = 0; i < 8; ++i) trained.losses = executor.run().losses;
  for (std::size_t layer = 0; layer < job.partition.stage_of.size(); ++layer) {
    auto& values = trained.weights.emplace_back();
    for (const at::Tensor& value : executor.weights(layer).values) {
      values.push_back(value.detach().to(at::kCPU));
    }
  }
  return trained;
}

// The largest difference of a loss or a weight.
double apart(const Trained& some, const Trained& others) {
  double worst = 0;
  for (std::size_t m = 0; m < some.losses.size(); ++m) {
    worst = std::max(worst, std::abs(some.losses[m] - others.losses.at(m)));
  }
  for (std::size_t l = 0; l < some.weights.size(); ++l) {
    for (std::size_t i = 0; i < some.weights[l].size(); ++i) {
      const at::Tensor difference = some.weights[l][i] - others.weights.at(l).at(i);
      const double largest = difference.abs().max().item<double>();
      worst = std::isfinite(largest) ? std::max(worst, largest) : largest;
    }
  }
  return worst;
}

const std::vector<Accelerator> cores(devices);  // whichever

}  // namespace

TEST_CASE("accelerators are cores, GPUs or parts of a GPU") {
  const std::vector<Accelerator> one = accelerators_called("cpu:1");
  REQUIRE(one.size() == 1);
  CHECK(one[0].where == at::kCPU);
  CHECK(one[0].cores == std::vector<int>{allowed_cores()[0]});
  CHECK_FALSE(one[0].streams);
  CHECK(title_of(one) == "");
}

TEST_CASE("a name that is none, and more cores than there are, are refused") {
  for (const std::string name :
       {"", "2", "cpu", "cuda", "cpu:", "cuda:0", "cpu:0", "cuda:-1", "cuda:2x", "cuda:2@",
        "cuda:2@0", "cuda:@8", "cuda:2@8@8", "cpu:2@8", "gpu:2", "cuda:99999999999"}) {
    CAPTURE(name);
    CHECK(has(refusal_of(name), "no accelerators are called '" + name + "' (write cpu:2 "));
  }
  CHECK(has(refusal_of("cpu:4096"), "cpu:4096 wants 4096 cores of its own, but"));
  CHECK(has(refusal_of("cuda:2@7"), "cuda:2@7 wants 7 SMs for each accelerator, but a GPU is"));
}

TEST_CASE("without a GPU the refusal says so") {
  if (refusal([] { device_called("cuda"); }).empty()) return;
  for (const std::string name : {"cuda:1", "cuda:2", "cuda:2@8"}) {
    CAPTURE(name);
    CHECK(has(refusal_of(name), "there is no cuda"));
  }
}

TEST_CASE("a GPU is cut in equal parts, as large as go") {
  CHECK(cut(1) == std::vector<int>{128});
  CHECK(cut(2) == std::vector<int>{64, 64});
  CHECK(cut(3) == std::vector<int>(3, 40));
  CHECK(cut(8) == std::vector<int>(8, 16));
  CHECK(cut(16) == std::vector<int>(16, 8));
  CHECK(cut(2, 24) == std::vector<int>{24, 24});
  tells_step = false;
  CHECK(cut(4) == std::vector<int>(4, 32));
  tells_step = true;
  step = 2;
  CHECK(cut(4) == std::vector<int>(4, 32));
  CHECK(cut(2) == std::vector<int>{66, 66});
  step = 8;
}

TEST_CASE("parts that do not go are refused with the GPU's numbers, and nothing is made") {
  const std::string rule = "A GPU has 132 SMs, parted by 8, 8 at least";
  CHECK(no_cut(17) == "17 accelerators do not go into one GPU: " + rule + "; 16 go");
  CHECK(no_cut(200) == "200 accelerators do not go into one GPU: " + rule + "; 16 go");
  CHECK(no_cut(2, 12) == "an accelerator cannot have 12 SMs: " + rule);
  CHECK(no_cut(1, 136) == "an accelerator cannot have 136 SMs: " + rule);
  CHECK(no_cut(3, 64) == "3 accelerators of 64 SMs do not go into one GPU: " + rule + "; 2 go");
  CHECK(made == 0);
  GreenDriver poor = imitation();
  poor.create = [](void**, void*, int, unsigned) { return 2; };
  CHECK(no_cut(2, 0, poor) ==
        "CUDA's driver could not make a green context: CUDA_ERROR_OUT_OF_MEMORY");
}

TEST_CASE("a stash that goes to the host and comes back changes nothing") {
  CHECK(apart(train("1f1b", true, cores), train("1f1b", false, cores)) < 1e-9);
}

TEST_CASE("the parts of a GPU have SMs of their own, and compute") {
  for (const int count : {2, 4, 8}) {
    CAPTURE(count);
    const std::vector<Accelerator> parts = if_there("cuda:" + std::to_string(count));
    if (parts.empty()) return;
    MESSAGE(title_of(parts));
    if (parts[0].processors == 0) continue;  // so many GPUs
    DeviceResource all;
    int gpu = 0;
    REQUIRE(green_driver().device(&gpu, parts[0].where.index()) == 0);
    REQUIRE(green_driver().resource(gpu, &all, 1) == 0);
    const at::Tensor numbers = at::arange(64 * 64, at::kDouble).view({64, 64});
    int together = 0;
    for (const Accelerator& part : parts) {
      CHECK(part.processors == parts[0].processors);
      together += part.processors;
      work_on(part, [&] {
        const at::Tensor there = numbers.to(part.where);
        CHECK(at::allclose(at::mm(there, there).to(at::kCPU), at::mm(numbers, numbers)));
      });
    }
    CHECK(together <= static_cast<int>(all.processors));
    CHECK(together > static_cast<int>(all.processors) * 3 / 4);
  }
}

TEST_CASE("a part of a GPU is as much slower as it is smaller") {
  const std::vector<Accelerator> whole = if_there("cuda:1");
  if (whole.empty()) return;
  const double all = seconds_of_product(whole[0]);
  for (const int count : {2, 8}) {
    const std::vector<Accelerator> parts = if_there("cuda:" + std::to_string(count));
    if (parts.empty() || parts[0].processors == 0) return;
    const double of_part = seconds_of_product(parts[0]);
    double together = 0;
    std::vector<std::thread> threads;
    std::vector<double> times(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      threads.emplace_back([&, i] { times[i] = seconds_of_product(parts[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const double time : times) together = std::max(together, time);
    MESSAGE(count << " parts: a product takes " << of_part / all << " times the whole GPU's time, "
                  << together / all << " with all at work");
    CHECK(of_part / all > count * 0.6);
    WARN(of_part / all < count * 1.6);
    WARN(together / of_part < 1.5);
  }
}

TEST_CASE("a program on GPUs or parts of one trains as on cores") {
  for (const std::string name : {"cuda:2", "cuda:2@16"}) {
    const std::vector<Accelerator> parts = if_there(name);
    if (parts.empty()) return;
    CAPTURE(name);
    for (const std::string schedule : {"gpipe", "gpipe:recompute=always", "1f1b", "pipedream"}) {
      CAPTURE(schedule);
      const Trained expected = train(schedule, false, cores);
      const Trained got = train(schedule, false, parts);
      CHECK(apart(got, expected) < 1e-9);
      for (std::size_t d = 0; d < got.held.size(); ++d) {
        CHECK(got.held[d].peak > got.held[d].stash);
        CHECK(got.held[d].stash > 0);
        WARN(got.held[d].stash == expected.held[d].stash);
        WARN(got.held[d].peak >= expected.held[d].peak);  // an allocator's blocks are larger
      }
    }
    CHECK(apart(train("1f1b", true, parts), train("1f1b", false, cores)) < 1e-9);
    for (const std::string schedule : {"pipefb", "stale_weights:mapping=paired", "layerpipe"}) {
      CAPTURE(schedule);
      for (const double loss : train(schedule, false, parts).losses) CHECK(std::isfinite(loss));
    }
  }
}

}  // namespace stageline::executor
