// Opens the trace and the cluster of a question, and makes its cases.
#include "tools/inputs/setting.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cost_models/buckets.hpp"
#include "cost_models/network/collectives.hpp"
#include "cost_models/pricing.hpp"
#include "cost_models/sharding.hpp"
#include "cost_models/spread_vocabulary.hpp"
#include "cost_models/state_bytes.hpp"
#include "cost_models/transformers/kernel_rates.hpp"
#include "cost_models/transformers/language_spelling.hpp"
#include "cost_models/transformers/product_recipes.hpp"
#include "schedulers/parts/spread_vocabulary.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/names.hpp"
#include "sim/base/numbers.hpp"
#include "sim/checked.hpp"
#include "tools/inputs/case_lengths.hpp"
#include "tools/inputs/case_slices.hpp"
#include "tools/inputs/degrees.hpp"
#include "tools/inputs/encoder.hpp"
#include "tools/inputs/given_programs.hpp"
#include "tools/inputs/priced_slices.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/inputs/setting_alike.hpp"
#include "tools/inputs/traces.hpp"
#include "tools/study/whatif/slow_devices.hpp"

namespace stageline {
namespace {

int whole_number(const std::string& text, const std::string& flag) {
  const int value = parse_number<int>(text).value_or(0);
  if (value < 1 || value > 65536) {
    throw UsageError(
        fmt::format("{} must be a whole number from 1 to 65536 (it is \"{}\")", flag, text));
  }
  return value;
}

void check_pair_overlap(const std::optional<double>& share) {
  if (share && !(*share >= 0 && *share <= 1)) {
    throw UsageError(fmt::format("--pair-overlap is a share from 0 to 1 (it is {})", *share));
  }
}

std::string on_replicas(const Setting& setting, const Degrees& degrees, bool one_stands_for_all,
                        bool share_unequally) {
  if (one_stands_for_all) {
    return fmt::format(
        "the {} data-parallel replicas {}: one pipeline of {} is simulated, and its links {}{}",
        degrees.data,
        share_unequally ? "are alike but for what they share links with" : "are alike",
        degrees.pipeline,
        share_unequally ? "carry on every hop what the fullest do: --all-pipelines simulates each"
                        : "carry the load of all",
        setting.replicas_vary ? "; what is drawn hits all of them at once, so that no step waits "
                                "for the slowest: --all-pipelines draws each"
                              : "");
  }
  if (setting.replicas_vary) {
    return fmt::format(
        "all {} data-parallel replicas are simulated: each draws its own times, and reductions wait "
        "for the slowest{}",
        degrees.data,
        degrees.tensor * degrees.context > 1
            ? "; so does each GPU of a pipeline rank, whose ops wait for the slowest"
            : "");
  }
  if (setting.all_asked) {
    return fmt::format("all {} data-parallel replicas are simulated, as --all-pipelines asks",
                       degrees.data);
  }
  return fmt::format("the {} data-parallel replicas differ in {}: all are simulated", degrees.data,
                     share_unequally ? "what they share links with" : "a device or a route");
}

// The rates that follow from the kinds of devices, and what if some were slower.
void set_rates(const SettingRequest& request, Setting& setting) {
  if (setting.cluster.fixed) {
    KindRates rates = with_rates_of_kinds(*std::move(setting.cluster.fixed), request.trace);
    setting.cluster.fixed = std::move(rates.cluster);
    for (std::string& note : rates.notes) setting.notes.push_back(std::move(note));
    std::string other = other_kind_note(*setting.cluster.fixed, setting.model.provenance.device);
    if (!other.empty()) setting.notes.push_back(std::move(other));
  }
  if (request.slow.empty()) return;
  const auto most = std::max_element(setting.device_counts.begin(), setting.device_counts.end());
  check_slow(cluster_of(setting.cluster, *most), request.slow);
  for (const Slowdown& item : request.slow) {
    setting.notes.push_back(
        fmt::format("what if: {} takes {:g} times as long {} {}, and cuts weigh it",
                    names_links(item.name) ? "a byte" : "compute", item.factor,
                    names_links(item.name) ? "over" : "on", item.name));
  }
}

// Throws where devices of the cluster have kinds, and the calibration is of none of them.
void check_kinds_of_links(const Calibration& calibration, const Cluster& cluster) {
  std::vector<std::string> kinds;
  for (const Device& device : cluster.devices) {
    if (device.kind < 0) return;
    const std::string& kind = cluster.kinds[as_size(device.kind)].name;
    if (is_calibrated_for(calibration, kind)) return;
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  if (kinds.empty()) return;
  throw UsageError(fmt::format(
      "the calibration is of {0}, and the devices of {1} are of {2}, so its links are not this cluster's; take a calibration of this kind, or none",
      calibration.kind, cluster.name.empty() ? "the cluster" : cluster.name,
      fmt::join(kinds, ", ")));
}

// A rate of links that the cluster has none of.
void add_note_on_no_links(const Cluster& cluster, Tier tier, double rate, const char* name,
                          Setting& setting) {
  if (rate == 1) return;
  const bool any = std::any_of(cluster.links.begin(), cluster.links.end(),
                               [&](const Link& link) { return link.tier == tier; }) ||
                   std::any_of(cluster.collectives.begin(), cluster.collectives.end(),
                               [&](const MeasuredCollective& measured) {
                                 return (measured.machines == 1) == (tier == Tier::nvlink);
                               });
  if (any) return;
  setting.notes.push_back(
      fmt::format("the rate of {} has no effect: {} has no such links", name, cluster.name));
}

// The links with the rates of the calibration, or those that the model's spelling gives instead.
void calibrate_links(const SettingRequest& request, const Calibration* calibration,
                     Setting& setting) {
  KernelRates rates;
  if (calibration != nullptr) rates = calibration->rates;
  const bool calibrates = rates.nvlink != 1 || rates.network != 1;
  const bool spelled = take_link_rates(request.trace, rates);
  if (rates.nvlink == 1 && rates.network == 1) return;
  const std::string& file = request.calibration;
  const std::string said_by = spelled                 ? request.trace
                              : file.starts_with('{') ? "the calibration"
                                                      : file;
  if (!setting.cluster.fixed) {
    setting.notes.push_back(fmt::format(
        "the rates of NVLink and the network that {} says have no effect without --cluster",
        said_by));
    return;
  }
  if (calibrates) check_kinds_of_links(*calibration, *setting.cluster.fixed);
  if (spelled) {
    add_note_on_no_links(*setting.cluster.fixed, Tier::nvlink, rates.nvlink, "NVLink", setting);
    add_note_on_no_links(*setting.cluster.fixed, Tier::network, rates.network, "the network",
                         setting);
  }
  setting.cluster.fixed = calibrated(*std::move(setting.cluster.fixed), rates);
  setting.notes.push_back(
      fmt::format("links reach {:g} (NVLink) and {:g} (network) of their usual rates, as {} says",
                  rates.nvlink, rates.network, said_by));
}

// The ranks of a run on that many devices.
std::shared_ptr<RankedCluster> ranks_of(const SettingRequest& request, const Setting& setting,
                                        int devices) {
  const Degrees degrees = completed(request.degrees, devices);
  const bool vary = request.replicas_vary && degrees.data * degrees.pipeline <= most_varied_ranks;
  return std::make_shared<RankedCluster>(
      slowed(cluster_of(setting.cluster, devices, degrees), request.slow), degrees,
      request.collectives, request.buckets, request.all_pipelines || vary);
}

// A job that has an equal share of every rack leaves none out.
bool has_share_of_all(const ClusterChoice& choice, const Degrees& degrees, int devices) {
  const Racks& racks = choice.fixed->racks;
  if (racks.size() == 0 || devices <= racks.size()) return false;
  const Cluster job = cluster_of(choice, devices, degrees);
  return job.allocation && job.allocation->each > 0 &&
         as_size(job.allocation->racks) * as_size(racks.size()) == choice.fixed->devices.size();
}

void check_all_used(const ClusterChoice& choice, const Degrees& degrees, int devices) {
  const Cluster& cluster = *choice.fixed;
  const int have = static_cast<int>(cluster.devices.size());
  if (devices >= have || has_share_of_all(choice, degrees, devices)) return;
  throw UsageError(fmt::format(
      "{} are {} devices, and \"{}\" has {}: {} would be left out; change a degree, or give --devices {}",
      device_product(degrees), devices, cluster.name, have, have - devices, devices));
}

// With degrees and no --devices, --pp or a program says how many there are; else all devices of the
// cluster are taken.
void count_by_degrees(const SettingRequest& request, Setting& setting) {
  if (request.degrees.plain()) return;
  if (!request.devices.empty()) return;
  Degrees degrees = request.degrees;
  const int given = degrees.pipeline > 0 ? 0 : given_devices(request.schedules);
  if (given > 0) {
    degrees.pipeline = given;
    check_product(degrees);
    setting.device_counts = {degrees.devices_of(given)};
  } else if (degrees.pipeline > 0) {
    const int devices = degrees.devices_of(degrees.pipeline);
    if (request.whole_cluster && !request.cluster.cluster.empty()) {
      check_all_used(setting.cluster, degrees, devices);
    }
    setting.device_counts = {devices};
  }
}

// What is written wrong is refused also where it has no effect.
void check_collectives(const SettingRequest& request) {
  parse_algorithms(request.collectives);
  find_bucket_rule(request.buckets);
}

bool has_links(const ClusterChoice& cluster) {
  return cluster.fixed ? !cluster.fixed->links.empty() : cluster.link || cluster.host_link;
}

bool has_memory(const ClusterChoice& cluster) {
  if (!cluster.fixed) return cluster.memory.has_value();
  const std::vector<Device>& devices = cluster.fixed->devices;
  return std::any_of(devices.begin(), devices.end(),
                     [](const Device& one) { return one.memory.has_value(); });
}

// What is asked of ranks, links or memory that there are none of. What is asked of ops is in
// tools/study/figures/notes.cpp.
void add_notes_on_no_effect(const SettingRequest& request, Setting& setting) {
  const auto no_effect = [&](const char* flag, const char* needs) {
    setting.notes.push_back(fmt::format("{} has no effect without {}", flag, needs));
  };
  if (request.lengths_order && request.lengths.empty()) no_effect("--lengths-order", "--lengths");
  if (request.degrees_are_searched) return;
  const SettingRequest usual;
  const Degrees& degrees = request.degrees;
  const bool replicated = degrees.data > 1;
  const bool divided = std::max(degrees.tensor_at(0), degrees.tensor) > 1 || degrees.context > 1 ||
                       degrees.expert > 1 || degrees.folded();
  const bool ranks = replicated || divided;
  const bool reduced = ranks || degrees.pipeline > 0;  // tied weights are, then
  const bool sharing = replicated || degrees.context > 1 || degrees.folded();
  const struct {
    bool asked;
    const char* flag;
    bool has_effect;
    const char* needs;
  } each[] = {
      {request.collectives != usual.collectives, "--collectives", reduced, "--tp, --cp or --dp"},
      {request.buckets != usual.buckets, "--buckets", sharing,
       "--dp, --cp, or a schedule that has a stage on several devices"},
      {degrees.order != usual.degrees.order, "--order", ranks, "--tp, --cp, --ep or --dp"},
      {degrees.expert_tensor > 0, "--etp", degrees.folded(), "a --tp that differs from it"},
      {degrees.zero != usual.degrees.zero, "--zero", sharing, "--dp or --cp"},
      {degrees.shard_group != usual.degrees.shard_group, "--shard-group",
       degrees.zero != Zero::none, "--zero 1, 2 or 3"},
      {degrees.zero_every.has_value(), "--zero-every", degrees.zero >= Zero::gradients,
       "--zero 2 or 3"},
      {request.all_pipelines, "--all-pipelines", replicated, "--dp"},
      {request.sequence_parallel, "--sequence-parallel",
       std::max(degrees.tensor_at(0), degrees.tensor) > 1, "--tp"},
      {request.offloading.ahead != usual.offloading.ahead, "--prefetch",
       request.offloading.of_stages(), "--offload"},
      {request.cluster.placement != usual.cluster.placement, "--placement",
       setting.cluster.fixed &&
           (setting.cluster.fixed->racks.size() > 0 || !setting.cluster.allocation.devices.empty()),
       "a --cluster of racks"},
      {request.sharing.has_value(), "--sharing", has_links(setting.cluster), "--cluster or --link"},
      {request.cluster.reserve.has_value(), "--reserve", has_memory(setting.cluster),
       "--memory, or a cluster that states it"},
  };
  for (const auto& one : each) {
    if (one.asked && !one.has_effect) no_effect(one.flag, one.needs);
  }
}

// A recipe counts Adam's moments, whatever the trace's optimizer keeps: SGD's none, with momentum
// one of the two.
void check_moments(const Precision& precision, const Model& model, double weights,
                   Setting& setting) {
  constexpr double moments = 8;  // bytes a parameter
  constexpr double master = 4;   // a copy of 16-bit weights
  std::int64_t parameters = 0;
  double stated = 0;
  for (const Layer& layer : model.layers) {
    if (layer.parameters == 0 || layer.tied_weights != Bytes{}) continue;
    parameters += layer.parameters;
    stated += static_cast<double>(layer.optimizer_state.count);
  }
  if (parameters == 0) return;
  stated /= static_cast<double>(parameters);
  const bool has_master = weights < 3 && stated >= master;
  if (stated - (has_master ? master : 0) > 0.75 * moments) return;
  setting.notes.push_back(fmt::format(
      "--precision {} counts {:g} bytes a parameter for the optimizer, those of Adam; the trace's "
      "own takes {:.2g}",
      precision.name, precision.optimizer, stated));
}

// A recipe replaces the state that the trace states; times and activations stay as they are.
void check_precision(const Precision& precision, Setting& setting) {
  if (precision.name.empty()) return;
  Model& model = setting.model;
  std::erase(model.provenance.notes, master_copy_note);
  const double each = bytes_per_parameter(model);
  if (each == 0) return;  // which with_state() refuses
  check_moments(precision, model, each, setting);
  // A recipe of quantized products keeps copies of weights of 2 bytes, which are no other model's.
  std::string_view products;
  for (const ProductRecipe& recipe : product_recipes()) {
    if (precision.name.starts_with(recipe.name)) products = recipe.name;
  }
  const bool quantized_alike =
      model.provenance.method.find(products == "fp8" ? "fp8" : fmt::format(" {},", products)) !=
      std::string::npos;
  const double weights = products.empty() ? precision.weights : 2;
  const bool alike = each > 0.75 * weights && each < 1.5 * weights;
  if (alike && (products.empty() || quantized_alike)) return;
  setting.notes.push_back(fmt::format(
      "--precision {} counts the bytes of weights, gradients and optimizer alone: times and "
      "activations are those of the trace, whose weights take {:.2g} bytes a parameter (model:… "
      "is priced in its dtype=…)",
      precision.name, each));
}

// `alike`: has those of the same devices and degrees already; or null.
void add_ranks(const SettingRequest& request, const Setting* alike, Setting& setting) {
  if (request.degrees.plain()) return;
  for (const int devices : setting.device_counts) {
    const bool known = alike != nullptr && alike->ranked.count(devices) > 0;
    setting.ranked.emplace(devices,
                           known ? alike->ranked.at(devices) : ranks_of(request, setting, devices));
  }
}

TraceRequest trace_request(const SettingRequest& request, const Setting& setting) {
  TraceRequest trace;
  trace.text = request.trace;
  trace.batch = request.microbatch_size;
  trace.profile_batch = request.profile_batch;
  trace.all_sizes = request.degrees_are_searched;
  if (setting.cluster.fixed) trace.more_kinds = setting.cluster.fixed->kinds;
  trace.sharding = {request.degrees.tensor, request.degrees.context, request.degrees.expert,
                    request.sequence_parallel, request.degrees.expert_tensor};
  trace.software = request.software;
  trace.cuda_graphs = request.cuda_graphs;
  trace.cp_comm_type = request.cp_comm_type;
  trace.calibration = open_calibration(request.calibration);
  return trace;
}

// The trace, cut where the request has a layout.
Model opened_model(const SettingRequest& request, const TraceRequest& trace) {
  const auto open = [&] { return open_trace(trace); };
  if (!request.encoder.empty()) {
    Model model = open();
    check_sharding(model, request.degrees);
    return behind_opened_encoder(request, trace, std::move(model));
  }
  Model model = request.groups ? request.groups->model(trace.batch, trace.sharding, open) : open();
  return request.partitions.empty() ? cut_by_layout(std::move(model), request.partition)
                                    : std::move(model);
}

// make_case() cuts them.
std::shared_ptr<PricedSlices> slices_of(const SettingRequest& request, const TraceRequest& trace) {
  if (!prices_slices(trace)) return nullptr;
  return std::make_shared<PricedSlices>(
      [groups = request.groups, whole = trace](const SequenceSlice& cut) {
        TraceRequest one = whole;
        one.slice = cut;
        const auto open = [&] { return open_trace(one); };
        return groups ? groups->model(one.batch, one.sharding, open, cut) : open();
      });
}

std::shared_ptr<PricedLengths> lengths_of_model(const TraceRequest& trace) {
  if (!has_kernels(trace.text)) return nullptr;
  return std::make_shared<PricedLengths>([whole = trace](const Documents& documents) {
    TraceRequest one = whole;
    one.documents = documents;
    return open_trace(one);
  });
}

// What is asked for as the program says it anyway.
void leave_to_program(Case& asked) {
  if (!asked.spec.given) return;
  if (asked.steps == asked.program->steps) asked.steps = 0;
  if (asked.weights == asked.program->settings.weights) asked.weights.reset();
}

// lay_out() cuts what is between both ends of the vocabulary, or refuses it.
void spread_ends(int devices, Case& asked) {
  const VocabularyBarriers barriers =
      asked.program ? VocabularyBarriers::whole : vocabulary_barriers(asked.spec.knobs);
  if (barriers == VocabularyBarriers::whole) return;
  if (asked.encoder_stages > 0) {
    asked.shares_refused =
        "a vocabulary over the ranks of a model behind an encoder is not modelled";
    return;
  }
  const bool loss = barriers == VocabularyBarriers::two;
  try {
    asked.model = spread_vocabulary(asked.model, devices, loss);
    for (std::shared_ptr<const Model>& kind : asked.kinds) {
      kind = std::make_shared<const Model>(spread_vocabulary(*kind, devices, loss));
    }
  } catch (const UsageError& error) {
    asked.shares_refused = error.what();
  }
}

// What a job of so many devices gets of the cluster.
Cluster job_of(const Setting& setting, int devices) {
  const auto known = setting.ranked.find(devices);
  return known != setting.ranked.end() ? known->second->devices()
                                       : cluster_of(setting.cluster, devices);
}

// They are those of the most devices that are asked about.
void add_notes_on_placement(const SettingRequest& request, Setting& setting) {
  if (!setting.cluster.fixed || request.degrees_are_searched) return;
  const bool named = !setting.cluster.allocation.devices.empty();
  if (!named && setting.cluster.fixed->racks.size() == 0) return;
  const int most = *std::max_element(setting.device_counts.begin(), setting.device_counts.end());
  const auto add = [&](const Cluster& job, const std::string& before) {
    for (const std::string& note : allocation_notes(job)) setting.notes.push_back(before + note);
  };
  add(job_of(setting, most), setting.elsewhere ? "--placement segment: " : "");
  if (setting.elsewhere) add(job_of(*setting.elsewhere, most), "--placement fill: ");
}

// A language model on several machines is seldom one pipeline of all devices.
void add_note_on_no_degrees(const SettingRequest& request, Setting& setting) {
  const bool given = std::any_of(request.schedules.begin(), request.schedules.end(),
                                 [](const ScheduleSpec& spec) { return spec.given != nullptr; });
  const bool chosen = !request.degrees.plain() || request.degrees_are_searched || given;
  if (chosen || setting.model.tokens == 0 || !setting.cluster.fixed) return;
  if (setting.cluster.fixed->hosts.size() < 2 || setting.device_counts.size() > 1) return;
  const int devices = setting.device_counts.front();
  if (devices <= static_cast<int>(setting.cluster.fixed->devices.size() /
                                  setting.cluster.fixed->hosts.size())) {
    return;  // in one machine
  }
  setting.notes.push_back(
      fmt::format("no --tp, --cp, --dp or --pp was given, so each of the {} devices is a stage of "
                  "one pipeline; `stageline plan` searches degrees",
                  devices));
}

// Another placement that the request leaves open for some number of devices, where there is one.
std::shared_ptr<const Setting> placed_elsewhere(const SettingRequest& request,
                                                const Setting& setting) {
  if (!setting.cluster.fixed || setting.cluster.fixed->racks.size() == 0) return nullptr;
  for (const int devices : setting.device_counts) {
    SettingRequest other = request;
    other.cluster.placement = other_placement(request.cluster, job_of(setting, devices));
    if (other.cluster.placement.empty()) continue;
    return std::make_shared<const Setting>(read_setting_of(other, setting.model));
  }
  return nullptr;
}

// `alike` has the ranks, `model` is what the trace gives; or null.
Setting opened(const SettingRequest& request, const Setting* alike, const Model* model) {
  check_pair_overlap(request.cluster.pair_overlap);
  check_product(request.degrees);
  check_beside_encoder(request);
  Setting setting;
  check_collectives(request);
  ClusterRequest cluster = request.cluster;
  cluster.priced_for = priced_device(request.trace);
  cluster.groups = !request.degrees.plain();
  cluster.overlap = request.sharing == Sharing::fair;
  setting.cluster = choose_cluster(cluster);
  setting.cluster.allocation = parse_placement(cluster.placement);
  if (setting.cluster.fixed) setting.notes = transport_notes(*setting.cluster.fixed);
  add_notes_on_no_effect(request, setting);
  const TraceRequest trace = trace_request(request, setting);
  setting.model = model != nullptr ? *model : opened_model(request, trace);
  if (request.encoder.empty()) setting.slices = slices_of(request, trace);
  setting.lengths = lengths_of_model(trace);
  calibrate_links(request, trace.calibration ? &*trace.calibration : nullptr, setting);
  std::string no_effect = no_effect_on_kernels(trace, setting.model);
  if (!no_effect.empty()) setting.notes.push_back(std::move(no_effect));
  check_sharding(setting.model, request.degrees);
  check_precision(request.degrees.precision, setting);
  setting.orders_searched = request.device_order == DeviceOrdering::search;
  setting.all_asked = request.all_pipelines;
  setting.replicas_vary = request.replicas_vary;
  if (!request.devices.empty()) {
    setting.device_counts = request.devices;
  } else if (const int given = given_devices(request.schedules); given > 0) {
    setting.device_counts = {given};
  } else if (setting.cluster.fixed) {
    setting.device_counts = {static_cast<int>(setting.cluster.fixed->devices.size())};
  } else {
    setting.device_counts = {4};
  }
  count_by_degrees(request, setting);
  set_rates(request, setting);
  add_ranks(request, alike, setting);
  if (setting.orders_searched) setting.elsewhere = placed_elsewhere(request, setting);
  add_notes_on_placement(request, setting);
  add_note_on_no_degrees(request, setting);
  return setting;
}

}  // namespace

Setting read_setting(const SettingRequest& request) { return opened(request, nullptr, nullptr); }

Setting read_setting_of(const SettingRequest& request, const Model& model) {
  return opened(request, nullptr, &model);
}

Setting read_setting_alike(const SettingRequest& request, const Setting& alike) {
  return opened(request, &alike, nullptr);
}

std::vector<LayerKernelTimes> kernels_of(const SettingRequest& request, const Setting& setting) {
  return open_kernels(trace_request(request, setting));
}

Case make_case(const SettingRequest& request, const Setting& setting, const ScheduleSpec& spec,
               int devices) {
  Case asked;
  asked.model =
      request.partitions.empty() ? setting.model : cut_by_layout(setting.model, request.partition);
  if (request.degrees.plain()) {
    asked.cluster = slowed(cluster_of(setting.cluster, devices), request.slow);
  } else {
    const auto known = setting.ranked.find(devices);
    asked.ranked =
        known != setting.ranked.end() ? known->second : ranks_of(request, setting, devices);
    asked.cluster = asked.ranked->ranks();
    devices = static_cast<int>(asked.cluster.devices.size()) / asked.ranked->replicas();
  }
  asked.sharing = request.sharing.value_or(request.degrees.plain() ? Sharing::fifo : Sharing::fair);
  asked.spec = spec;
  if (spec.given) asked.program = spec.given->program;
  asked.partition = partition_text(request.partition);
  asked.weights = request.weights;
  asked.messages = request.messages;
  asked.recomputation = request.recomputation;
  asked.offloading = request.offloading;
  asked.microbatches =
      request.microbatches > 0 ? request.microbatches : given_microbatches(request.schedules);
  if (asked.microbatches == 0) asked.microbatches = 4 * devices;
  asked.steps = request.steps;
  if (request.encoder.empty()) {
    price_slices(request, setting, asked);
  } else {
    asked.slices_refused = "slices behind an encoder are not priced";
    asked.encoder_stages = request.degrees.encoder.pipeline;
  }
  take_lengths(request, setting, asked);
  leave_to_program(asked);
  spread_ends(devices, asked);
  return asked;
}

std::vector<std::string> notes(const Setting& setting) {
  std::vector<std::string> all = setting.model.provenance.notes;
  if (!setting.cluster.note.empty()) all.push_back(setting.cluster.note);
  for (const auto& [devices, ranked] : setting.ranked) {
    if (setting.orders_searched) break;  // replicas may be alike in one order, and not in another
    const Degrees& degrees = ranked->grid().degrees();
    if (degrees.data == 1) continue;
    all.push_back(
        on_replicas(setting, degrees, ranked->replicas() == 1, ranked->shares_unequally()));
    break;
  }
  all.insert(all.end(), setting.notes.begin(), setting.notes.end());
  if (!setting.model.bytes_known) {
    all.emplace_back(
        "the trace does not say bytes: what memory it takes is unknown, and so is whether it fits; "
        "messages take the latency of their links alone");
  }
  return all;
}

std::vector<int> parse_devices(const std::string& text) {
  std::vector<int> counts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, comma - begin);
    const std::size_t dots = part.find("..");
    const bool range = dots != std::string::npos;
    const int from = whole_number(part.substr(0, dots), range ? "--devices (from)" : "--devices");
    const int to = range ? whole_number(part.substr(dots + 2), "--devices (to)") : from;
    if (from > to) {
      throw UsageError(
          fmt::format("--devices {}: a sweep goes upwards; write {}..{}", text, to, from));
    }
    if (!counts.empty() && counts.back() >= from) {
      throw UsageError(fmt::format("--devices {}: a sweep goes upwards, and {} follows {}", text,
                                   from, counts.back()));
    }
    for (int count = from; count <= to; ++count) counts.push_back(count);
    begin = comma + 1;
  }
  return counts;
}

Messages parse_messages(const std::string& text, const std::string& what) {
  return one_of(all_messages, text, what);
}

}  // namespace stageline
