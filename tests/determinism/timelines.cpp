// Prints a hash of what every schedule with every knob gives on seeded costs: program, timeline,
// memory, drawn durations, and cuts on unequal devices. tests/scripts/aarch64.py holds the words of
// another processor against ours.
#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "cost_models/perturbation/perturbation.hpp"
#include "schedulers/partition/partitioner.hpp"
#include "sim/analysis/memory.hpp"
#include "sim/base/errors.hpp"
#include "tests/make.hpp"
#include "tests/specs.hpp"

namespace stageline {
namespace {

class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) mix(static_cast<unsigned char>(c));
  }
  void add(std::int64_t number) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      mix(static_cast<unsigned char>(static_cast<std::uint64_t>(number) >> shift));
    }
  }
  std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  void mix(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3U; }  // Fowler, Noll and Vo

  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

Hash hash_of(const ScheduleSpec& spec, int devices, bool transfer) {
  Hash hash;
  std::mt19937 random(static_cast<unsigned>(devices));
  const Costs costs =
      test::random_costs(random, test::stages_for(spec, devices), devices, transfer);
  const test::Ran ran = test::run_program(
      spec.scheduler->schedule(test::problem_for(spec, devices, costs, 2 * devices, 2)), costs);
  hash.add(print(ran.program));
  for (const auto& lane : ran.timeline.lanes) {
    for (const Span& span : lane) {
      hash.add(print(span.op));
      hash.add(span.start.count());
      hash.add(span.end.count());
    }
  }
  for (const int peak : memory_of(ran.program, ran.costs, ran.timeline).device_stash_peak) {
    hash.add(std::int64_t{peak});
  }
  Perturbation perturbation;
  perturbation.jitter = {Jitter::Law::log_normal, 0.1, {}, true};
  perturbation.pauses = {{3, Time{1'000'000}}};
  constexpr std::size_t scenarios = 16;
  std::vector<std::int64_t> drawn(ran.graph.tasks() * scenarios);
  Scenarios(ran.graph, perturbation, static_cast<std::uint32_t>(ran.program.microbatches))
      .draw(0, scenarios, drawn);
  for (const std::int64_t time : drawn) hash.add(time);
  return hash;
}

void print_schedules() {
  for (const int devices : {2, 4}) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      for (const bool transfer : {false, true}) {
        std::string said;
        try {
          said = hash_of(spec, devices, transfer).text();
        } catch (const UsageError& error) {
          said = error.what();
        } catch (const ProgramError& error) {
          said = error.what();
        }
        fmt::print("{} {} {}: {}\n", spelled(spec), devices, transfer ? "links" : "free", said);
      }
    }
  }
}

Model random_model(std::mt19937& random, int layers, bool skips) {
  Model model;
  model.name = "random";
  const auto below = [&](unsigned most) { return static_cast<std::int64_t>(random() % most); };
  for (int i = 0; i < layers; ++i) {
    Layer layer;
    layer.name = fmt::format("layer{}", i);
    layer.forward = Time{below(1000)};
    layer.backward = Time{below(2000)};
    layer.weights = Bytes{below(400)};
    layer.output = Bytes{below(400)};
    model.layers.push_back(layer);
    if (skips && i > 0)
      model.edges.push_back({static_cast<int>(below(static_cast<unsigned>(i))), i});
  }
  return model;
}

void print_cuts() {
  std::mt19937 random(3);
  for (int model = 0; model < 20; ++model) {
    const Model layers = random_model(random, 20 + model, model % 2 == 1);
    Cluster cluster = uniform_cluster(4, std::nullopt, std::nullopt);
    for (std::size_t d = 0; d < cluster.devices.size(); ++d) {
      cluster.devices[d].rate = 1 + 0.37 * static_cast<double>(d);
    }
    for (const char* const cut : {"balanced", "pipedream:replicate=no", "uniform"}) {
      fmt::print("{} {}: {}\n", cut, model,
                 print(partition(cut, {layers, cluster, 4, false, ""}).partition));
    }
  }
}

}  // namespace
}  // namespace stageline

int main() {
  stageline::print_schedules();
  stageline::print_cuts();
}
