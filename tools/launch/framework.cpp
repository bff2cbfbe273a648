#include "tools/launch/framework.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

enum class Chunks : std::uint8_t { none, any };

// A schedule under the names that the frameworks give it.
struct SharedSchedule {
  std::string_view ours;  // name and knobs, but the chunks
  Chunks chunks;
  bool megatron;
  bool deepspeed;
  std::string_view torch;  // empty: not there
};

// Megatron-LM, core/pipeline_parallel/schedules.py: two functions with a pipeline. PyTorch,
// torch/distributed/pipelining/schedules.py: get_schedule_class. DeepSpeed,
// runtime/pipe/schedule.py: TrainSchedule. Read 2026-11-29.
constexpr std::array shared_schedules{
    SharedSchedule{"1f1b", Chunks::none, true, true, "1F1B"},
    SharedSchedule{"interleaved_1f1b", Chunks::any, true, false, "Interleaved1F1B"},
    SharedSchedule{"gpipe", Chunks::none, false, false, "GPipe"},
    SharedSchedule{"looped_bfs:reverse=yes", Chunks::any, false, false, "LoopedBFS"},
    SharedSchedule{"interleaved_zb", Chunks::any, false, false, "InterleavedZeroBubble"},
    SharedSchedule{"zb_v", Chunks::none, false, false, "ZBVZeroBubble"},
    SharedSchedule{"dualpipe_v", Chunks::none, false, false, "DualPipeV"},
};

bool has(Framework framework, const SharedSchedule& row) {
  if (framework == Framework::torchtitan) return !row.torch.empty();
  return framework == Framework::deepspeed ? row.deepspeed : row.megatron;
}

// Chunks and their groups are numbers that each has flags for.
bool is_free(const std::string& knob, Framework framework) {
  return knob == "chunks" || (is_megatron(framework) && (knob == "group" || knob == "overlap"));
}

bool is_as(const ScheduleSpec& spec, const SharedSchedule& row, Framework framework) {
  const ScheduleSpec plain = parse_schedules(std::string(row.ours)).front();
  if (plain.scheduler != spec.scheduler) return false;
  return std::all_of(spec.knobs.begin(), spec.knobs.end(), [&](const auto& knob) {
    if (is_free(knob.first, framework)) return true;
    const auto other = plain.knobs.find(knob.first);
    return other != plain.knobs.end() && other->second == knob.second;
  });
}

}  // namespace

std::string_view name(Framework framework) {
  static constexpr std::array<std::string_view, all_frameworks.size()> names{
      "megatron", "megatron-bridge", "torchtitan", "deepspeed", "nemo"};
  return names.at(static_cast<std::size_t>(framework));
}

bool is_megatron(Framework framework) {
  return framework != Framework::torchtitan && framework != Framework::deepspeed;
}

std::vector<ScheduleSpec> schedules_of(Framework framework) {
  constexpr std::array chunks{2, 3, 4, 5, 6, 8, 10, 12, 16};
  std::vector<ScheduleSpec> specs;
  for (const SharedSchedule& row : shared_schedules) {
    if (!has(framework, row)) continue;
    const ScheduleSpec plain = parse_schedules(std::string(row.ours)).front();
    if (row.chunks == Chunks::none) {
      specs.push_back(plain);
      continue;
    }
    for (const int number : chunks) {
      ScheduleSpec& spec = specs.emplace_back(plain);
      spec.knobs["chunks"] = fmt::format("{}", number);
    }
  }
  return specs;
}

std::string_view schedule_name(Framework framework, const ScheduleSpec& spec) {
  for (const SharedSchedule& row : shared_schedules) {
    if (!has(framework, row) || !is_as(spec, row, framework)) continue;
    return framework == Framework::torchtitan ? row.torch : std::string_view();
  }
  std::vector<std::string_view> known;
  for (const SharedSchedule& row : shared_schedules) {
    if (has(framework, row)) known.push_back(row.ours);
  }
  throw UsageError(fmt::format("{} has no schedule {}; it has {}", name(framework), spelled(spec),
                               fmt::join(known, ", ")));
}

void check_runs_in(Framework framework, const std::vector<ScheduleSpec>& specs) {
  for (const ScheduleSpec& spec : specs) schedule_name(framework, spec);
}

}  // namespace stageline
