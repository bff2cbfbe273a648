// Does reality follow the program? A run's weights and losses against sequential training, its
// order against the program, its messages against what the simulator charges for them.
#include "tools/executor/run/execute.hpp"
#include "sim/base/index.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/base/errors.hpp"
#include "sim/lower/passes.hpp"
#include "tests/executor/sequential.hpp"
#include "tests/executor/trials.hpp"
#include "tests/specs.hpp"
#include "tools/executor/run/stash_payload.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/study/study.hpp"

namespace stageline::executor {
namespace {

using trials::anywhere;
using trials::case_of;
using trials::gpt;
using trials::resnet;
using trials::training_of;
using trials::Trial;
using trials::trial;

void check_against_training(const std::string& shape, const Case& asked) {
  trials::check_against_training(trial(shape, asked));
}

const LinkSpec quick{parse_bandwidth("2GB/s"), std::chrono::microseconds(30)};

}  // namespace

TEST_CASE("a synchronous step is plain training, a stale one is sequential training as stale") {
  int tried = 0;
  std::set<std::string> names;
  for (int devices = 1; devices <= 4; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      const std::string name = spelled(spec);
      const bool linked = tried % 2 == 1;  // free links, or such that take time
      CAPTURE(name);
      CAPTURE(devices);
      CAPTURE(linked);
      try {
        const Case asked =
            case_of(gpt, spec, devices, 4, 2, linked ? std::optional(quick) : std::nullopt);
        check_against_training(gpt, asked);
        ++tried;
        names.insert(std::string(spec.scheduler->name));
      } catch (const UsageError&) {  // it does not go on so many devices
      }
    }
  }
  MESSAGE(tried << " programs");
  CHECK(names.size() == schedulers().size());
}

TEST_CASE(
    "what any schedule is asked to recompute or to offload leaves the gradients as they are") {
  for (const std::string text : {"zb_h1", "interleaved_1f1b", "dualpipe"}) {
    CAPTURE(text);
    const int devices = text == "zb_h1" ? 3 : 2;
    Case asked = case_of(gpt, parse_schedules(text).at(0), devices, 4, 2, quick);
    asked.recomputation = parse_recomputation("full", "--recompute");
    check_against_training(gpt, asked);
    asked.recomputation.start = RecomputeStart::late;
    check_against_training(gpt, asked);
    asked.recomputation = {};
    asked.offloading = parse_offloading("all", "--offload");
    asked.offloading.ahead = 1;
    check_against_training(gpt, asked);
  }
}

TEST_CASE("skips across stages") {
  for (const std::string text :
       {"gpipe:recompute=always", "1f1b", "pipedream:replicas=2-1-1", "stale_weights"}) {
    CAPTURE(text);
    const ScheduleSpec spec = parse_schedules(text).at(0);
    const int devices = text == "stale_weights" ? 3 : 4;
    Case asked = case_of(resnet, spec, devices, 3, 2, quick);
    check_against_training(resnet, asked);
  }
}

TEST_CASE("a run does what each list says, in its order, and nothing before what it needs") {
  for (const std::string text : {"gpipe:recompute=always", "1f1b", "pipedream:replicas=2-1",
                                 "pipefb", "pipedream:transfer=half"}) {
    CAPTURE(text);
    const Case asked = case_of(gpt, parse_schedules(text).at(0), 3, 4, 2, quick);
    const Trial tried = trial(gpt, asked);
    Executor executor(tried.job, tried.outcome.costs, anywhere(3));
    const Execution run = executor.run();
    const TaskGraph& graph = run.graph;
    CHECK((graph.op == tried.outcome.graph.op));
    CHECK((graph.lane_task == tried.outcome.graph.lane_task));
    bool right = true;
    std::uint32_t copies = 0;
    for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
      const LaneKind kind = graph.lanes[lane].kind;
      const bool copy = kind == LaneKind::copy_out || kind == LaneKind::copy_in;
      if (copy) copies += graph.lane_begin[lane + 1] - graph.lane_begin[lane];
      Time free{};
      for (std::uint32_t i = graph.lane_begin[lane]; i != graph.lane_begin[lane + 1]; ++i) {
        const std::uint32_t task = graph.lane_task[i];
        const Time start = start_of(graph, run.times, task);
        right = right && start >= free;
        free = end_of(graph, run.times, task);
        for (std::uint32_t n = graph.need_begin[task]; n != graph.need_begin[task + 1]; ++n) {
          right = right && start >= run.times.available[graph.need[n]];
        }
        // A link that is imitated takes what the cluster says, to the picosecond; also that to the
        // host.
        if (kind == LaneKind::compute) continue;
        right = right && free - start == tried.outcome.graph.duration[task];
        right = right && (!copy || run.times.available[task] - free == quick.latency);
      }
    }
    CHECK(right);
    CHECK((copies > 0) == (text == "pipefb" || text == "pipedream:transfer=half"));
  }
}

TEST_CASE("weights go on from run to run") {
  const Case asked = case_of(gpt, parse_schedules("1f1b").at(0), 2, 4, 1, std::nullopt);
  const Trial tried = trial(gpt, asked);
  Executor executor(tried.job, tried.outcome.costs, anywhere(2));
  const double first = executor.run().losses.at(0);
  for (int i = 0; i < 20; ++i) executor.run();
  CHECK(executor.run().losses.at(0) < first);
}

TEST_CASE("a run that is told to stop stops, and the next one is whole") {
  const Case asked = case_of(gpt, parse_schedules("1f1b").at(0), 2, 4, 1, std::nullopt);
  const Trial tried = trial(gpt, asked);
  Executor executor(tried.job, tried.outcome.costs, anywhere(2));
  const std::atomic<bool> stop{true};
  CHECK_THROWS_AS(executor.run(&stop), Stopped);
  CHECK(executor.run().losses.size() == 4);
}

TEST_CASE("a worker that fails ends the run with its message") {
  const Case asked = case_of(gpt, parse_schedules("1f1b").at(0), 2, 4, 1, std::nullopt);
  const Trial tried = trial(gpt, asked);
  std::vector<Accelerator> devices = anywhere(2);
  devices[1].cores = {4095};
  CHECK_THROWS_WITH_AS(Executor(tried.job, tried.outcome.costs, devices),
                       doctest::Contains("core 4095 cannot be used"), UsageError);
  CHECK_THROWS_WITH_AS(Executor(tried.job, tried.outcome.costs, anywhere(1)),
                       doctest::Contains("runs on 2 devices, but there are 1"), UsageError);
}

TEST_CASE("messages that block are refused, for they would not") {
  Case asked = case_of(gpt, parse_schedules("1f1b").at(0), 2, 4, 1, std::nullopt);
  asked.messages = Messages::batched;
  const Trial tried = trial(gpt, asked);
  CHECK_THROWS_WITH_AS(Executor(tried.job, tried.outcome.costs, anywhere(2)),
                       doctest::Contains("messages: batched can be simulated, but only messages: "
                                         "async can be executed"),
                       UsageError);
}

TEST_CASE("what a stage keeps is what the trace of its tensors says, to the byte") {
  // The trace counts the tensors of the model run whole; the run counts what its stages hold.
  for (const std::string text : {"gpipe", "1f1b", "pipedream:vertical_sync=yes"}) {
    CAPTURE(text);
    Case asked = case_of(resnet, parse_schedules(text).at(0), 2, 4, 1, std::nullopt);
    Training training = training_of(resnet);
    training.dtype = at::kFloat;
    TensorModel model = tensor_model(training.shape, training.optimizer,
                                     at::TensorOptions(at::kFloat), training.seed);
    const std::vector<LayerBytes> bytes =
        count_bytes(model, random_micro_batch(model, training.batch, 1));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      asked.model.layers[i].stash_input_grad = bytes[i].stash_input_grad;
      asked.model.layers[i].stash_weight_grad = bytes[i].stash_weight_grad;
      asked.model.layers[i].input_kept = bytes[i].input_kept;
      asked.model.layers[i].output_kept = bytes[i].output_kept;
    }
    for (const std::string cut : {"0-7,8-20", "0-8,9-20", "0-12,13-20"}) {
      CAPTURE(cut);
      asked.partition = cut;
      Trial tried = trial(resnet, asked);
      tried.job.training = training;
      Executor executor(tried.job, tried.outcome.costs, anywhere(2));
      const std::vector<HeldBytes> held = executor.run_counted();
      for (std::size_t d = 0; d < 2; ++d) {
        const Bytes stash = tried.outcome.costs.stage[d].stash();
        CHECK(held[d].stash == stash.count * tried.outcome.memory.device_stash_peak[d]);
        CHECK(held[d].peak > held[d].stash);
      }
    }
  }
}

}  // namespace stageline::executor
