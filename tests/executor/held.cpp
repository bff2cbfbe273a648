// Does each device hold what the simulator says? Every schedule with all its knobs, on two lanes:
// stashes to the byte, peaks as near as an allocator lets them be.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "sim/errors.hpp"
#include "tests/specs.hpp"
#include "tools/executor/execute.hpp"
#include "tools/executor/profile.hpp"
#include "tools/inputs.hpp"
#include "tools/study.hpp"

namespace stageline {
namespace {

Model profiled(const std::string& shape, int batch) {
  ProfileRequest request;
  request.shape = parse_shape(shape);
  request.batch = batch;
  request.optimizer = optimizer_called(request.shape.usual_optimizer);
  ProfileSession session(request);
  session.round();
  return session.result().model;
}

Bytes stash_of(const DeviceMemory& device) {
  Bytes most{};
  for (const MemoryPoint& point : device.curve) {
    most = std::max(most, point.use[static_cast<std::size_t>(MemoryKind::stash)]);
  }
  return most;
}

std::string kinds(const MemoryUse& use) {
  std::string text;
  for (int k = 0; k < memory_kinds; ++k) {
    text += fmt::format(" {}={:.3f}", name(static_cast<MemoryKind>(k)),
                        static_cast<double>(use[static_cast<std::size_t>(k)].count) / 1e6);
  }
  return text;
}

}  // namespace

TEST_CASE("every device holds what the simulator says") {
  const char* const only = std::getenv("ONLY");
  const char* const models = std::getenv("MODELS");
  const char* const cut = std::getenv("CUT");
  struct Subject {
    std::string shape;
    int batch;
  };
  std::vector<Subject> subjects;
  for (const std::string& word :
       test::split(models != nullptr ? models : "lenet5@16;resnet20,width=4@4", ';')) {
    const std::size_t at = word.find('@');
    subjects.push_back({word.substr(0, at), std::stoi(word.substr(at + 1))});
  }
  const char* const mb = std::getenv("MB");
  for (const Subject& subject : subjects) {
    const Model model = profiled(subject.shape, subject.batch);
    if (std::getenv("DUMP") != nullptr) {
      for (const Layer& l : model.layers) {
        fmt::print("{} out {} sI {} sW {} ik {} ok {} fw {} bw {} w {}\n", l.name, l.output.count,
                   l.stash_input_grad.count, l.stash_weight_grad.count, l.input_kept.count,
                   l.output_kept.count, l.forward_workspace.count, l.backward_workspace.count,
                   l.weights.count);
      }
    }
    for (const ScheduleSpec& spec : test::all_specs(2)) {
      const std::string name = spelled(spec);
      if (only != nullptr && name.find(only) != 0) continue;
      Case asked;
      asked.model = model;
      asked.cluster = uniform_cluster(2, std::nullopt, std::nullopt, std::nullopt);
      asked.spec = spec;
      asked.microbatches = mb != nullptr ? std::stoi(mb) : 6;
      asked.steps = 2;
      if (cut != nullptr) asked.partition = cut;
      try {
        Outcome outcome = study(asked, Curves::all);
        Job job{outcome.program, stage_graph(outcome.program), outcome.plan.partition, {}, false};
        job.training = {parse_shape(subject.shape), subject.batch,
                        optimizer_called(parse_shape(subject.shape).usual_optimizer), at::kFloat};
        job.training.recipe.rate = 0;
        job.training.distinct = 4;
        Executor executor(std::move(job), outcome.costs, std::vector<Accelerator>(2));
        const std::vector<HeldBytes> held = executor.run_counted();
        const Execution ran = executor.last_run();
        const Timeline timeline = timeline_of(outcome.program, ran.graph, ran.times);
        const MemoryProfile memory = std::getenv("PREDICTED") ? outcome.memory : memory_of(outcome.program, outcome.costs, timeline, Curves::all);
        for (std::size_t d = 0; d < 2; ++d) {
          const DeviceMemory& said = memory.device[d];
          const std::int64_t stash = stash_of(said).count;
          const double peak = held[d].peak == 0
                                  ? 0
                                  : static_cast<double>(said.peak.count - held[d].peak) /
                                        static_cast<double>(held[d].peak) * 100;
          fmt::print("{} {} dev{} stash {} said {} off {} | peak {:.3f} said {:.3f} {:+.1f}% |{}\n",
                     subject.shape, name, d, held[d].stash, stash, stash - held[d].stash,
                     static_cast<double>(held[d].peak) / 1e6,
                     static_cast<double>(said.peak.count) / 1e6, peak, kinds(said.at_peak));
        }
      } catch (const UsageError& e) {
        if (std::getenv("WHY") != nullptr)
          fmt::print("{} {} refused: {}\n", subject.shape, name, e.what());
      }
    }
  }
}

}  // namespace stageline
