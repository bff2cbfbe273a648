#include "tools/planner/space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "schedulers/partition/transformer_blocks.hpp"
#include "schedulers/parts/spread_vocabulary.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"

namespace stageline::planner {
namespace {

// Knob values beside the defaults that change what is held, or how many stages there are.
struct KnobValues {
  std::string_view scheduler;
  std::string_view knob;
  int stages_each;  // stages a device by one of the knob's value; 0: it does not count stages
  std::vector<std::string_view> values;
};

const std::array<KnobValues, 13>& knob_values() {
  static const std::array<KnobValues, 13> table{{
      {"gpipe", "recompute", 0, {"except_last"}},
      {"dapple", "policy", 0, {"B"}},
      {"chimera", "concat", 0, {"doubling"}},
      {"interleaved_1f1b", "chunks", 1, {"3", "4", "5", "6", "8", "10", "12", "16"}},
      {"interleaved_zb", "chunks", 1, {"3", "4", "5", "6", "8", "10", "12", "16"}},
      {"looped_bfs", "chunks", 1, {"3", "4", "6", "8"}},
      {"seq1f1b", "sequence_chunks", 0, {"4", "8"}},
      {"hanayo", "waves", 2, {"2", "3", "4"}},
      {"zb_auto", "limit", 0, {"2p", "memory"}},
      {"zb_auto", "placement", 0, {"v"}},
      {"list", "priority", 0, {"forward_first", "critical_path"}},
      {"list", "placement", 0, {"v"}},
      {"cyclic", "limit", 0, {"2p", "memory"}},
  }};
  return table;
}

// Knobs of the schedules that order their ops by their costs: every value with every other.
struct KnobProduct {
  std::string_view scheduler;
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> knobs;
};

const std::array<KnobProduct, 4>& knob_products() {
  static const std::array<KnobProduct, 4> table{{
      {"zb_auto", {{"limit", {"p", "2p", "memory"}}, {"placement", {"straight", "looped", "v"}}}},
      {"zb_auto",
       {{"limit", {"memory"}}, {"goal", {"makespan"}}, {"placement", {"straight", "looped", "v"}}}},
      {"list",
       {{"priority", {"backward_first", "forward_first", "critical_path"}},
        {"placement", {"straight", "looped", "v"}}}},
      {"cyclic", {{"limit", {"p", "2p", "memory"}}, {"placement", {"straight", "looped", "v"}}}},
  }};
  return table;
}

// Adds those that are not there yet and have a layer for each stage.
void add_products(const ScheduleSpec& plain, int pipeline, int layers,
                  std::vector<ScheduleSpec>& specs) {
  for (const KnobProduct& product : knob_products()) {
    if (product.scheduler != plain.scheduler->name) continue;
    std::vector<ScheduleSpec> all{plain};
    for (const auto& [knob, values] : product.knobs) {
      std::vector<ScheduleSpec> more;
      for (const ScheduleSpec& spec : all) {
        for (const std::string_view value : values) {
          more.push_back(spec);
          more.back().knobs[std::string(knob)] = std::string(value);
        }
      }
      all = std::move(more);
    }
    for (ScheduleSpec& spec : all) {
      if (stages_of(spec, pipeline) > layers) continue;
      if (std::find(specs.begin(), specs.end(), spec) == specs.end()) {
        specs.push_back(std::move(spec));
      }
    }
  }
}

// Whether the slices that a schedule cuts sequences into are whole, and long enough to be tried.
bool cuts_well(const ScheduleSpec& spec, const Model& model) {
  const auto knob = spec.knobs.find("sequence_chunks");
  if (knob == spec.knobs.end()) return true;
  const int slices = parse_number<int>(knob->second).value_or(1);
  const std::int64_t each = model.tokens / slices / std::max(model.sharding.context, 1);
  return model.tokens % slices == 0 && each >= least_slice_tokens;
}

// Every scheduler with its defaults, and with each of the values above. `cuts`: whether slices of
// sequences have a price of their own; else none that cuts them, nor one of rebuilt order.
std::vector<ScheduleSpec> default_specs(bool asynchronous, const Model& model, int pipeline,
                                        bool cuts, KnobReach reach) {
  const int layers = static_cast<int>(model.layers.size());
  std::vector<ScheduleSpec> specs;
  for (const Scheduler* const scheduler : schedulers()) {
    if (scheduler->synchrony == Synchrony::asynchronous && !asynchronous) continue;
    const ScheduleSpec plain = parse_schedules(std::string(scheduler->name)).front();
    const bool in_slices = cuts && pipeline > 1 && scheduler->rebuilt.empty();
    if (cuts_sequences(plain) && !(in_slices && cuts_well(plain, model))) continue;
    if (const int stages = stages_of(plain, pipeline); stages > layers) continue;
    specs.push_back(plain);
    for (const KnobValues& row : knob_values()) {
      if (row.scheduler != scheduler->name) continue;
      for (const std::string_view value : row.values) {
        const int each = row.stages_each * parse_number<int>(value).value_or(0);
        if (std::int64_t{each} * pipeline > layers) continue;
        ScheduleSpec spec = plain;
        spec.knobs[std::string(row.knob)] = std::string(value);
        if (cuts_well(spec, model)) specs.push_back(std::move(spec));
      }
    }
    if (reach == KnobReach::all) add_products(plain, pipeline, layers, specs);
  }
  return specs;
}

std::vector<Recomputation> default_recomputation(const Model& model) {
  std::vector<Recomputation> all{{}};
  const bool selective =
      std::any_of(model.layers.begin(), model.layers.end(),
                  [](const Layer& layer) { return layer.selective_stash > Bytes{}; });
  if (!model.bytes_known) return all;  // there is nothing to win
  if (selective) all.push_back({{{{Rebuild::selective, 1}, {}}}, {}});
  all.push_back({{{{Rebuild::every, 1}, {}}}, {}});
  all.push_back({{{{Rebuild::full, 1}, {}}}, {}});
  return all;
}

bool recomputes_itself(const ScheduleSpec& spec) {
  const auto knob = spec.knobs.find("recompute");
  return knob != spec.knobs.end() && knob->second != "never";
}

// The bounds of a search are those of models with whole ends.
void check_vocabulary(const ScheduleSpec& spec) {
  if (vocabulary_barriers(spec.knobs) == VocabularyBarriers::whole) return;
  throw UsageError(fmt::format(
      "{}: plans are searched with the vocabulary whole; take vocabulary=whole, or give the "
      "schedule to `stageline simulate` or `stageline compare`",
      spelled(spec)));
}

}  // namespace

bool cuts_sequences(const ScheduleSpec& spec) {
  if (spec.given) return spec.given->program.settings.sequence_chunks > 1;
  return spec.knobs.count("sequence_chunks") > 0;
}

bool suits(const ScheduleSpec& spec, int pipeline) {
  return !spec.given || spec.given->program.devices.size() == as_size(pipeline);
}

int stages_of(const ScheduleSpec& spec, int devices) {
  if (spec.scheduler->place == nullptr) return 0;
  try {
    return spec.scheduler->place(devices, spec.knobs).stages();
  } catch (const UsageError&) {
    return 0;
  }
}

std::vector<Family> families_of(const PlanSpace& space, const Model& model, int pipeline, bool cuts,
                                KnobReach reach) {
  const std::vector<ScheduleSpec> specs =
      space.schedules.empty() ? default_specs(space.asynchronous, model, pipeline, cuts, reach)
                              : space.schedules;
  const std::vector<Recomputation> recomputation =
      space.recomputation.empty() ? default_recomputation(model) : space.recomputation;
  const std::vector<Offloading> offloading =
      space.offloading.empty() ? std::vector<Offloading>{{}} : space.offloading;
  std::vector<Family> families;
  const bool plain_alone = space.plain_alone || space.schedules.empty();
  for (const ScheduleSpec& spec : specs) {
    check_vocabulary(spec);
    if (plain_alone && pipeline == 1 && spec.scheduler->synchrony == Synchrony::synchronous &&
        spec.scheduler->name != "1f1b") {
      continue;  // one device runs every order in the same time, and holds least under 1F1B
    }
    for (const Recomputation& rebuilt : recomputation) {
      const bool twice = recomputes_itself(spec) && !rebuilt.parts.empty();
      if (twice && space.recomputation.empty()) continue;
      for (const Offloading& copied : offloading) {
        const bool both = (copied.all || !copied.stages.empty()) && !rebuilt.parts.empty();
        if (both && space.recomputation.empty()) continue;
        families.push_back({spec, rebuilt, copied});
      }
    }
  }
  return families;
}

std::vector<ScheduleSpec> neighbours_of(const ScheduleSpec& spec) {
  std::vector<ScheduleSpec> near;
  for (const Knob& knob : spec.scheduler->knobs) {
    const auto at = spec.knobs.find(std::string(knob.name));
    if (at == spec.knobs.end()) continue;
    const std::optional<int> value = parse_number<int>(at->second);
    if (!value) continue;
    for (const int other : {*value - 1, *value + 1}) {
      if (other < 1) continue;
      ScheduleSpec& changed = near.emplace_back(spec);
      changed.knobs[std::string(knob.name)] = fmt::format("{}", other);
    }
  }
  return near;
}

std::vector<std::string> first_cuts(const PlanSpace& space, const Model& model) {
  if (!space.partitions.empty()) return space.partitions;
  std::vector<std::string> cuts{"balanced"};
  if (model.edges.empty() && blocks_of(model).size() > 1) cuts.emplace_back("blocks");
  return cuts;
}

std::vector<std::string> own_cuts(const PlanSpace& space, const Scheduler& scheduler,
                                  const Degrees& degrees) {
  if (!space.partitions.empty() || degrees.data > 1 || degrees.pipeline == 1) return {};
  if (scheduler.name != "pipedream") return {};
  return {"pipedream"};
}

std::int64_t count_cuts(int layers, int stages, std::int64_t most) {
  if (stages < 1 || stages > layers) return 0;
  // The cut chooses stages - 1 of n - 1 places between layers.
  std::int64_t count = 1;
  const int chosen = std::min(stages - 1, layers - stages);
  for (int i = 1; i <= chosen; ++i) {
    count = count * (layers - 1 - chosen + i) / i;
    if (count > most) return most + 1;
  }
  return count;
}

std::vector<std::string> all_cuts(int layers, int stages) {
  std::vector<std::string> cuts;
  std::vector<int> last(as_size(stages));  // layers, ascending
  for (int s = 0; s < stages; ++s) nth(last, s) = s;
  nth(last, stages - 1) = layers - 1;
  while (true) {
    std::string text;
    for (int s = 0; s < stages; ++s) {
      const int first = s == 0 ? 0 : nth(last, s - 1) + 1;
      if (s + 1 < stages) {
        text += fmt::format("{}-{},", first, nth(last, s));
      } else {
        text += fmt::format("{}-", first);
      }
    }
    cuts.push_back(std::move(text));
    int s = stages - 2;
    while (s >= 0 && nth(last, s) + 1 == nth(last, s + 1)) --s;
    if (s < 0) return cuts;
    ++nth(last, s);
    for (int t = s + 1; t + 1 < stages; ++t) nth(last, t) = nth(last, t - 1) + 1;
  }
}

}  // namespace stageline::planner
