// Measures the layers of a profile of one device: each kernel (or operator, on a CPU) lasts from
// the end of the one before it, so that the layers of a pass take together as long as the pass.
#include "traces/kineto/layers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "sim/analysis/statistics.hpp"
#include "sim/base/errors.hpp"
#include "traces/gzip.hpp"
#include "traces/kineto/layer_parts.hpp"

namespace stageline {
namespace {

// What one layer takes in one micro-batch, nanoseconds.
struct LayerTimes {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  std::int64_t recompute = 0;
};

struct Item {
  KinetoStretch time;
  LayerWork work;
  std::int64_t recomputed = 0;
};

class LayerMeter {
 public:
  LayerMeter(const LayerEvents& events, const LayerMap& map) : events_(events), map_(map) {
    for (const LayerPass& pass : map.passes()) times_.emplace_back(pass.calls.size());
    walk(events.has_kernels ? kernels() : operators());
  }

  const std::vector<std::vector<LayerTimes>>& times() const { return times_; }
  std::int64_t work() const { return work_; }
  std::int64_t other_work() const { return other_work_; }
  /// By update: those without a forward in between are one.
  const std::vector<Time>& updates() const { return updates_; }

 private:
  std::vector<Item> kernels() const {
    std::vector<Item> items;
    for (const LaunchedKernel& kernel : events_.kernels) {
      Item item{kernel.time, {}, 0};
      const auto call = events_.by_call.find(kernel.correlation);
      const auto op = events_.by_operator.find(kernel.external_id);
      if (!kernel.correlation.empty() && call != events_.by_call.end()) {
        item.work = map_.at(call->second);
      } else if (op != events_.by_operator.end()) {
        item.work = map_.at(op->second);
      }
      items.push_back(item);
    }
    return items;
  }

  std::vector<Item> operators() const {
    std::vector<Item> items;
    for (const OuterOperator& one : map_.operators()) {
      if (one.work.phase == LayerPhase::update) continue;  // the range has all of it
      items.push_back({one.op.time, one.work, one.recomputed});
    }
    for (const KinetoStretch& update : events_.updates) {
      items.push_back({update, {LayerPhase::update, 0, 0}, 0});
    }
    std::stable_sort(items.begin(), items.end(),
                     [](const Item& a, const Item& b) { return a.time.start < b.time.start; });
    return items;
  }

  void walk(const std::vector<Item>& items) {
    LayerWork before;
    std::int64_t until = 0;
    bool updating = false;
    for (const Item& item : items) {
      const std::int64_t own =
          std::max<std::int64_t>(0, item.time.end - std::max(item.time.start, until));
      const bool goes_on = before.phase != LayerPhase::other &&
                           before.phase != LayerPhase::update && before.pass == item.work.pass;
      const std::int64_t since = goes_on ? std::max<std::int64_t>(0, item.time.end - until) : own;
      switch (item.work.phase) {
        case LayerPhase::other:
          other_work_ += own;
          break;
        case LayerPhase::update:
          if (!updating) updates_.emplace_back();
          updates_.back() += kineto_time(own);
          break;
        case LayerPhase::forward:
        case LayerPhase::backward:
        case LayerPhase::recompute:
          work_ += own;
          add(item, since);
          break;
      }
      if (item.work.phase == LayerPhase::update) updating = true;
      if (item.work.phase == LayerPhase::forward) updating = false;
      before = item.work;
      until = std::max(until, item.time.end);
    }
  }

  void add(const Item& item, std::int64_t time) {
    LayerTimes& layer = times_[item.work.pass][item.work.layer];
    if (item.work.phase == LayerPhase::forward) {
      layer.forward += time;
    } else if (item.work.phase == LayerPhase::recompute) {
      layer.recompute += time;
    } else {
      const std::int64_t again = std::min(item.recomputed, time);
      layer.recompute += again;
      layer.backward += time - again;
    }
  }

  const LayerEvents& events_;
  const LayerMap& map_;
  std::vector<std::vector<LayerTimes>> times_;  // by pass and layer
  std::vector<Time> updates_;
  std::int64_t work_ = 0;
  std::int64_t other_work_ = 0;
};

// "Block_0", or "Block_0 #2" where a module is called twice.
std::vector<std::string> names_of(const LayerPass& pass) {
  std::vector<std::string> names;
  std::map<std::string, int> count;
  for (const ModuleCall& call : pass.calls) {
    const int number = ++count[call.name];
    names.push_back(number == 1 ? call.name : fmt::format("{} #{}", call.name, number));
  }
  return names;
}

// The passes that most are like: as many layers of the same names, and as many with a backward.
class Alike {
 public:
  Alike(const std::vector<LayerPass>& passes, const LayerMeter& meter) {
    std::map<std::pair<std::vector<std::string>, std::size_t>, std::vector<std::size_t>> kinds;
    for (std::size_t i = 0; i < passes.size(); ++i) {
      const auto& times = meter.times()[i];
      const auto backwards = static_cast<std::size_t>(std::count_if(
          times.begin(), times.end(), [](const LayerTimes& one) { return one.backward > 0; }));
      if (backwards > 0) kinds[{names_of(passes[i]), backwards}].push_back(i);
    }
    for (const auto& [kind, list] : kinds) {
      if (list.size() <= chosen_.size()) continue;
      chosen_ = list;
      names_ = kind.first;
    }
  }

  const std::vector<std::size_t>& passes() const { return chosen_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::size_t> chosen_;
  std::vector<std::string> names_;
};

std::string where_measured(const LayerEvents& events) {
  if (events.has_kernels) return "of the kernels";
  return events.rank.traffic.accelerator() ? "of LAUNCHING the work, not of the work itself"
                                           : "of the operators on the CPU";
}

void check_layers(const LayerEvents& events, const LayerMap& map, const Alike& alike,
                  const RangeNames* names) {
  const std::string& file = events.rank.file;
  if (events.rank.traffic.messages()) {
    throw TraceError(file, "",
                     "its rank sends or receives messages, as a stage of a pipeline does, and has "
                     "not all layers; leave --layers out, and give the profiles of all ranks");
  }
  if (map.passes().empty()) {
    throw TraceError(
        file, "",
        names == nullptr
            ? std::string("it has no ranges of modules (\"nn.Module: Block_0\"), which "
                          "torch.profiler records with with_stack=True; profile with it, or name "
                          "the ranges of layers by a mapping file (\"is\": \"layer\", --names)")
            : fmt::format("{} calls none of its ranges a layer (\"is\": \"layer\")",
                          names->title()));
  }
  if (alike.passes().empty()) {
    throw TraceError(file, "",
                     "none of its forwards has a backward by autograd's sequence numbers, so these "
                     "are no layers of a training run; profile whole steps of training");
  }
}

void check_share(const LayerEvents& events, const LayerMeter& meter,
                 std::vector<std::string>& notes) {
  const char* const what = events.has_kernels ? "kernels" : "operators";
  const std::int64_t other = meter.other_work();
  if (other > meter.work()) {
    throw TraceError(
        events.rank.file, "",
        fmt::format("its layers have {} of {}, and {} are in none, so these are not "
                    "the layers of the model; name their ranges (record_function, "
                    "--names FILE)",
                    print(kineto_time(meter.work())), what, print(kineto_time(other))));
  }
  if (const std::string memory = memory_text(events.rank.traffic.memory()); !memory.empty()) {
    notes.push_back(memory);
  }
  constexpr double mentioned = 0.05;
  if (static_cast<double>(other) >= mentioned * static_cast<double>(meter.work())) {
    notes.push_back(fmt::format("{} of {} are of no layer and no update ({} are), and are left out",
                                print(kineto_time(other)), what, print(kineto_time(meter.work()))));
  }
}

// How much of the steps the layers and updates take.
void note_steps(const LayerEvents& events, const LayerMap& map, const LayerMeter& meter,
                std::vector<std::string>& notes) {
  if (events.steps.empty()) return;
  std::int64_t length = 0;
  for (const KinetoStretch& step : events.steps) length += step.end - step.start;
  std::int64_t busy = 0;
  for (const auto& pass : meter.times()) {
    for (const LayerTimes& one : pass) busy += one.forward + one.backward + one.recompute;
  }
  Time all = kineto_time(busy);
  for (const Time update : meter.updates()) all += update;
  const auto count = static_cast<std::int64_t>(events.steps.size());
  notes.push_back(fmt::format(
      "layers and updates take {} of a ProfilerStep of {}, in {} forwards over {} steps; the rest is "
      "waiting, and work of no layer",
      print(all / count), print(kineto_time(length / count)), map.passes().size(), count));
}

class LayerModel {
 public:
  LayerModel(const LayerMeter& meter, const Alike& alike) : meter_(meter), alike_(alike) {}

  void fill(Model& model) {
    for (std::size_t at = 0; at < alike_.names().size(); ++at) {
      const std::vector<Time> forward = each(at, &LayerTimes::forward);
      const std::vector<Time> backward = each(at, &LayerTimes::backward);
      const std::vector<Time> again = each(at, &LayerTimes::recompute);
      Layer layer;
      layer.name = alike_.names()[at];
      layer.kind = "module";
      layer.forward = median(forward);
      layer.forward_spread = half_interquartile(forward);
      layer.backward = median(backward);
      layer.backward_spread = half_interquartile(backward);
      layer.input_grad = layer.backward / 2;
      layer.weight_grad = layer.backward - layer.input_grad;
      layer.recompute = median(again);
      recomputed_ += layer.recompute;
      all_ += layer.backward;
      model.layers.push_back(std::move(layer));
    }
    share_update(model);
    Provenance& from = model.provenance;
    from.notes.emplace_back(
        "B is measured as one: half of it is taken for I and the rest for W, which is an estimate");
    if (recomputed_ > Time{}) {
      from.notes.push_back(fmt::format(
          "forwards that ran again in the backward ({} a micro-batch) are no part of B; ask for "
          "recomputation, as the run had it",
          print(recomputed_)));
    }
    from.notes.emplace_back(
        "a profile does not record bytes, so memory and messages' sizes are unknown");
  }

 private:
  std::vector<Time> each(std::size_t layer, std::int64_t LayerTimes::*part) const {
    std::vector<Time> times;
    for (const std::size_t pass : alike_.passes()) {
      times.push_back(kineto_time(meter_.times()[pass][layer].*part));
    }
    return times;
  }

  void share_update(Model& model) const {
    const Time update = median(meter_.updates());
    if (update == Time{} || all_ == Time{}) return;
    Time before{};
    Time given{};
    for (Layer& layer : model.layers) {
      before += layer.backward;
      const Time until = from_seconds(to_seconds(update) * fraction_of(before, all_));
      layer.update = until - given;
      given = until;
    }
    model.provenance.notes.push_back(fmt::format(
        "the update ({}) is divided among the layers as their backwards are, which is an "
        "estimate",
        print(update)));
  }

  const LayerMeter& meter_;
  const Alike& alike_;
  Time recomputed_{};
  Time all_{};
};

}  // namespace

Model kineto_layers(const NamedText& profile, const RangeNames* names, const std::string& name,
                    int batch, const std::string& source) {
  const std::string packed = is_gzip(profile.text) ? gunzip(profile.text, profile.file) : "";
  const LayerEvents events = packed.empty() ? read_layer_events(profile, names)
                                            : read_layer_events({profile.file, packed}, names);
  const LayerMap map(events);
  const LayerMeter meter(events, map);
  const Alike alike(map.passes(), meter);
  check_layers(events, map, alike, names);
  Model model;
  model.name = name;
  model.batch = batch;
  model.bytes_known = false;
  Provenance& from = model.provenance;
  from.origin = Origin::measured;
  from.device = events.rank.accelerator;
  from.method =
      fmt::format("Medians {} over {} micro-batches of a profile of one device, by layer.",
                  where_measured(events), alike.passes().size());
  from.software = "PyTorch";
  from.source = fmt::format("PyTorch profiler, {}", source);
  from.notes.push_back(
      names == nullptr
          ? "layers are the modules of the model (nn.Module); what runs behind a module, up to the "
            "next one, is of it"
          : fmt::format("layers are the ranges that {} calls so; what runs behind one, up to the "
                        "next, is of it",
                        names->title()));
  check_share(events, meter, from.notes);
  note_steps(events, map, meter, from.notes);
  if (alike.passes().size() < map.passes().size()) {
    from.notes.push_back(fmt::format(
        "{} of {} forwards are left out, whose layers or backwards are not those of the most",
        map.passes().size() - alike.passes().size(), map.passes().size()));
  }
  if (events.collectives > 0) {
    from.notes.push_back(
        fmt::format("collectives are left out ({} of NCCL's kernels in all), but for what kernels "
                    "behind them waited",
                    print(kineto_time(events.collectives))));
  }
  LayerModel(meter, alike).fill(model);
  return model;
}

}  // namespace stageline
