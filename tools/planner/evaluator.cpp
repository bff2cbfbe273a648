// Opens the setting of each shape once, and judges the candidates of all.
#include "tools/planner/evaluator.hpp"

#include <algorithm>
#include <exception>
#include <list>
#include <new>
#include <tuple>
#include <utility>

#include "schedulers/partition/megatron_layout.hpp"
#include "sim/base/errors.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/inputs/setting_alike.hpp"
#include "tools/planner/cuts/searched_case.hpp"

namespace stageline::planner {
namespace {

// What a setting depends on, of all that a shape says.
struct ShapeKey {
  Degrees degrees;
  bool sequence_parallel = false;
  std::string cp_comm_type;
  std::string placement;
  int microbatch_size = 0;

  explicit ShapeKey(const Shape& shape)
      : degrees(shape.degrees),
        sequence_parallel(shape.sequence_parallel),
        cp_comm_type(shape.cp_comm_type),
        placement(shape.placement),
        microbatch_size(shape.microbatch_size) {}

  auto tied() const {
    return std::tie(degrees.tensor, degrees.context, degrees.expert, degrees.data, degrees.pipeline,
                    degrees.expert_tensor, degrees.order, degrees.zero, degrees.zero_every,
                    degrees.shard_group.span, degrees.shard_group.ranks, degrees.precision.name,
                    degrees.precision.weights, degrees.precision.gradients,
                    degrees.precision.optimizer, sequence_parallel, cp_comm_type, placement,
                    microbatch_size);
  }
  friend bool operator<(const ShapeKey& a, const ShapeKey& b) { return a.tied() < b.tied(); }
};

bool same_stages(const Layout& one, const Layout& other) {
  return one.plan.partition == other.plan.partition && one.plan.replicas == other.plan.replicas &&
         one.plan.devices == other.plan.devices && one.placement == other.placement &&
         one.pipeline == other.pipeline && one.knobs == other.knobs &&
         one.one_layer == other.one_layer && one.sequence_chunks == other.sequence_chunks;
}

// What simulating it throws is its sentence, but that it was called off.
template <class Simulation>
Judgement judgement_of(const Simulation& simulation) {
  try {
    return {simulation(), {}};
  } catch (const std::bad_alloc&) {
    return {{}, "simulating it takes more memory than this machine has"};
  } catch (const std::exception& error) {  // of the input or not: the search goes on
    return {{}, error.what()};
  }
}

}  // namespace

// Opened settings and refusals. A thread that asks for what another is opening waits for it; those
// that ask for others do not.
struct Evaluator::Settings {
  struct Opened {
    std::once_flag once;
    std::shared_ptr<const Setting> setting;
    std::exception_ptr refused;
  };
  struct Place {
    std::shared_ptr<Opened> opened;
    std::list<const ShapeKey*>::iterator use;
  };

  explicit Settings(std::size_t most_open) : most(most_open) {}

  std::shared_ptr<Opened> find(const Shape& shape) {
    const std::lock_guard<std::mutex> lock(access);
    const auto [place, is_new] = places.try_emplace(ShapeKey(shape));
    if (is_new) {
      place->second.opened = std::make_shared<Opened>();
      place->second.use = uses.insert(uses.begin(), &place->first);
    } else {
      uses.splice(uses.begin(), uses, place->second.use);
    }
    std::shared_ptr<Opened> found = place->second.opened;
    while (places.size() > most && uses.size() > 1) {
      const auto oldest = places.find(*uses.back());
      uses.pop_back();
      places.erase(oldest);
    }
    return found;
  }

  // A setting with the same ranks that is still in use; or null.
  std::shared_ptr<const Setting> of_degrees(const Shape& shape) {
    const std::lock_guard<std::mutex> lock(access);
    const auto found = alike.find(key_of_degrees(shape));
    return found == alike.end() ? nullptr : found->second.lock();
  }

  void keep(const Shape& shape, const std::shared_ptr<const Setting>& setting) {
    const std::lock_guard<std::mutex> lock(access);
    if (alike.size() > 4 * most) {
      std::erase_if(alike, [](const auto& entry) { return entry.second.expired(); });
    }
    alike[key_of_degrees(shape)] = setting;
  }

  static ShapeKey key_of_degrees(Shape shape) {
    shape.sequence_parallel = false;
    shape.cp_comm_type.clear();
    shape.microbatch_size = 0;
    return ShapeKey(shape);
  }

  const std::size_t most;
  std::mutex access;
  std::map<ShapeKey, std::weak_ptr<const Setting>> alike;  // by degrees
  std::map<ShapeKey, Place> places;
  std::list<const ShapeKey*> uses;  // the latest first
};

Evaluator::Evaluator(SettingRequest base, std::size_t most_settings)
    : base_(std::move(base)), settings_(std::make_unique<Settings>(most_settings)) {}
Evaluator::~Evaluator() = default;

std::shared_ptr<const Setting> Evaluator::setting(const Shape& shape) {
  const std::shared_ptr<Settings::Opened> opened = settings_->find(shape);
  std::call_once(opened->once, [&] {
    try {
      // A layout in Megatron's notation changes the layers: case_of() applies it.
      Candidate any;
      any.shape = shape;
      const SettingRequest request = request_of(base_, any);
      const std::shared_ptr<const Setting> alike = settings_->of_degrees(shape);
      opened->setting = std::make_shared<const Setting>(alike ? read_setting_alike(request, *alike)
                                                              : read_setting(request));
      settings_->keep(shape, opened->setting);
    } catch (const UsageError&) {
      opened->refused = std::current_exception();
    } catch (const TraceError&) {
      opened->refused = std::current_exception();
    }
  });
  if (opened->refused) std::rethrow_exception(opened->refused);
  return opened->setting;
}

std::string Evaluator::other_placement(const Shape& shape) {
  if (!shape.placement.empty()) return "";
  const std::shared_ptr<const Setting> opened = setting(shape);
  if (!opened->cluster.fixed || opened->cluster.fixed->racks.size() == 0) return "";
  const auto ranked = opened->ranked.find(shape.devices());
  return stageline::other_placement(
      base_.cluster, ranked == opened->ranked.end()
                         ? cluster_of(opened->cluster, shape.devices(), shape.degrees)
                         : ranked->second->devices());
}

Case Evaluator::case_of(const Candidate& candidate) {
  const std::shared_ptr<const Setting> opened = setting(candidate.shape);
  const SettingRequest request = request_of(base_, candidate);
  const int devices = candidate.shape.devices();
  if (!looks_like_megatron(partition_text(candidate.partition))) {
    return searched_case(request, *opened, candidate.spec, devices);
  }
  Setting cut = *opened;
  cut.model = cut_by_layout(std::move(cut.model), candidate.partition);
  return searched_case(request, cut, candidate.spec, devices);
}

Judgement Evaluator::judge(const Candidate& candidate) {
  return judgement_of([&] { return judge_.verdict(case_of(candidate)); });
}

Judgement Evaluator::judge(const Candidate& candidate, std::vector<JudgedCut>& others) {
  const JudgedCut* known = nullptr;
  std::optional<Layout> layout;
  Judgement judged = judgement_of([&] {
    const Case asked = case_of(candidate);
    layout = checked_layout(asked);
    const auto same = std::find_if(others.begin(), others.end(), [&](const JudgedCut& other) {
      return same_stages(other.layout, *layout);
    });
    if (same == others.end()) return judge_.verdict(asked);
    known = &*same;
    return Verdict{};
  });
  if (known != nullptr) return known->judgement;
  if (layout) others.push_back({std::move(*layout), judged});
  return judged;
}

}  // namespace stageline::planner
