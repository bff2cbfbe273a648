// The table of settings, and the schema that is made of it.
#include "tools/inputs/settings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>

#include "cost_models/state_bytes.hpp"
#include "sim/base/names.hpp"
#include "tools/base/json.hpp"
#include "tools/inputs/degrees.hpp"
#include "tools/inputs/weight_rule.hpp"

namespace stageline {
namespace {

using Value = const SettingValue&;
using Asked = SettingRequest&;

constexpr std::int64_t most_samples_set = std::int64_t{1} << 26;
constexpr std::int64_t most_ranks_set = std::int64_t{1} << 16;

template <int Degrees::*degree>
void set_degree(Value value, Asked asked) {
  asked.degrees.*degree = value.count();
}

template <std::optional<Bytes> ClusterRequest::*member>
void set_bytes(Value value, Asked asked) {
  asked.cluster.*member = parse_bytes(value.text());
}

template <std::optional<LinkSpec> ClusterRequest::*member>
void set_link(Value value, Asked asked) {
  asked.cluster.*member = parse_link(value.text(), value.what);
}

template <int SettingRequest::*member>
void set_count(Value value, Asked asked) {
  asked.*member = value.count();
}

template <std::string SettingRequest::*member>
void set_text(Value value, Asked asked) {
  asked.*member = value.text();
}

template <bool SettingRequest::*member>
void set_yes(Value value, Asked asked) {
  asked.*member = value.yes;
}

void set_partitions(Value value, Asked asked) {
  asked.partition = value.text();
  asked.partitions.clear();
  if (value.texts.size() > 1) asked.partitions = value.texts;
}

using Form = SettingForm;
using Opens = SettingOpens;
using Of = SettingOf;

// How the flags of a command say it, where it is not for all of them: case_flags.cpp.
constexpr std::array rows{
    SettingRow{
        "trace", Form::file, Opens::trace, Of::schedule,
        "a trace file, model:NAME@DEVICE[,batch=N…] (a shape, a language model such as llama3-8b, or a "
        "config.json), uniform:…, or a bundled trace",
        "", 0, set_text<&SettingRequest::trace>, "TRACE"},
    SettingRow{"schedule", Form::text, Opens::nothing, Of::schedule,
               "NAME[:knob=value,…]; default: 1f1b"},
    SettingRow{"schedules", Form::texts, Opens::nothing, Of::schedule,
               "several to compare, or all"},
    SettingRow{"program", Form::text, Opens::nothing, Of::schedule,
               "run this program instead of a schedule: our own text or PyTorch's schedule CSV"},
    SettingRow{
        "devices", Form::counts, Opens::cluster, Of::schedule,
        "number of devices, or a sweep such as 2..16 or 2,4,8; default: all of the cluster, or 4",
        "", 4096, [](Value value, Asked asked) { asked.devices = value.counts; }},
    SettingRow{
        "cluster", Form::file, Opens::trace, Of::question,
        "a cluster file or a bundled cluster, h100x8*4 for four such machines; default: that of "
        "model:NAME@DEVICE",
        "", 0, [](Value value, Asked asked) { asked.cluster.cluster = value.text(); }},
    SettingRow{"link", Form::text, Opens::cluster, Of::question,
               "equal devices with one full-duplex port each: 12GB/s,5us", "", 0,
               set_link<&ClusterRequest::link>},
    SettingRow{"memory", Form::text, Opens::cluster, Of::question,
               "memory of each device, with its unit: 16GB; default: as the cluster says", "", 0,
               set_bytes<&ClusterRequest::memory>},
    SettingRow{
        "reserve", Form::text, Opens::cluster, Of::question,
        "memory of each device that training cannot use, for its context and communication buffers: "
        "2GB; default: as the cluster says",
        "", 0, set_bytes<&ClusterRequest::reserve>},
    SettingRow{"host_link", Form::text, Opens::cluster, Of::question,
               "a full-duplex link of each equal device to one host, for offloading: 16GB/s,5us",
               "", 0, set_link<&ClusterRequest::host_link>},
    SettingRow{"host_memory", Form::text, Opens::cluster, Of::question,
               "memory of that host: 256GB", "", 0, set_bytes<&ClusterRequest::host_memory>},
    SettingRow{"pair_overlap", Form::number, Opens::cluster, Of::question,
               "hidden share of the shorter op of an overlapped pair: 0 (default) to 1", "", 1,
               [](Value value, Asked asked) { asked.cluster.pair_overlap = value.number; }},
    SettingRow{
        "microbatches", Form::count, Opens::nothing, Of::row,
        "micro-batches per step and pipeline (mini-batches where updates are asynchronous); default: 4 "
        "per device",
        "", most_samples_set, set_count<&SettingRequest::microbatches>},
    SettingRow{
        "microbatch_size", Form::count, Opens::trace, Of::row,
        "samples in a micro-batch; costs are scaled or interpolated to it; default: as in the trace",
        "", most_samples_set, set_count<&SettingRequest::microbatch_size>},
    SettingRow{"profile_batch", Form::count, Opens::trace, Of::question,
               "samples in a mini-batch of a PipeDream profile, which does not record it", "",
               std::numeric_limits<int>::max(), set_count<&SettingRequest::profile_batch>, "batch"},
    SettingRow{
        "steps", Form::count, Opens::nothing, Of::row,
        "steps to simulate; default: 1, or enough to reach a steady pace where updates are asynchronous",
        "", std::int64_t{1} << 20, set_count<&SettingRequest::steps>},
    SettingRow{
        "partition", Form::texts, Opens::trace, Of::schedule,
        "balanced, by_device, uniform, blocks[:…], pipedream[:…], ppv:7[,…], "
        "simulated[:most=400][,blocks] (the best found by simulating as many cuts for each schedule), "
        "ranges 0-5,6-11,12-, last layers' names, or a Megatron layout or a file of one; default: "
        "balanced",
        "", 0, set_partitions},
    SettingRow{
        "weights", Form::word, Opens::nothing, Of::row,
        "weight rule, instead of the schedule's: flush, stash, vertical_sync, double_buffer, latest",
        "flush stash vertical_sync double_buffer latest", 0,
        [](Value value, Asked asked) {
          asked.weights = parse_weight_rule(value.text(), value.what);
        }},
    SettingRow{
        "messages", Form::word, Opens::nothing, Of::question,
        "async: SEND and RECV overlap with compute; blocking: they occupy the compute lane until both "
        "ends are done; batched: adjacent ones in the list start together; default: async, or as the "
        "program text says",
        "async blocking batched", 0,
        [](Value value, Asked asked) {
          asked.messages = parse_messages(value.text(), value.what);
        }},
    SettingRow{
        "within", Form::text, Opens::nothing, Of::answer,
        "recommend the least memory among schedules at most this much slower than the fastest; "
        "default: 1%"},
    SettingRow{"timeline", Form::yes, Opens::nothing, Of::answer, "every span, too"},
    SettingRow{"tp", Form::count, Opens::trace, Of::ranks,
               "tensor-parallel ranks that share each layer", "", most_ranks_set,
               set_degree<&Degrees::tensor>},
    SettingRow{"cp", Form::count, Opens::trace, Of::ranks,
               "context-parallel ranks that share each sequence", "", most_ranks_set,
               set_degree<&Degrees::context>},
    SettingRow{"ep", Form::count, Opens::trace, Of::ranks,
               "expert-parallel ranks, among the context- and data-parallel ones", "",
               most_ranks_set, set_degree<&Degrees::expert>},
    SettingRow{"dp", Form::count, Opens::trace, Of::ranks, "data-parallel replicas of the pipeline",
               "", most_ranks_set, set_degree<&Degrees::data>},
    SettingRow{"pp", Form::count, Opens::trace, Of::ranks,
               "pipeline ranks; default: the number of devices over the other degrees", "",
               most_ranks_set, set_degree<&Degrees::pipeline>},
    SettingRow{"order", Form::text, Opens::trace, Of::ranks,
               "nesting of the ranks on the devices, neighbours first; default: tp-cp-ep-dp-pp", "",
               0,
               [](Value value, Asked asked) { asked.degrees.order = parse_order(value.text()); }},
    SettingRow{
        "zero", Form::word, Opens::trace, Of::ranks,
        "state divided among data-parallel ranks: 0 none, 1 optimizer, 2 gradients, too, which are then "
        "reduced in every backward, 3 weights, too (FSDP); default: 0",
        "0 1 2 3", 0,
        [](Value value, Asked asked) {
          asked.degrees.zero = parse_zero(value.text(), value.what);
        }},
    SettingRow{
        "precision", Form::text, Opens::trace, Of::ranks,
        "bytes of weights, gradients and optimizer state for each parameter; default: as the trace says",
        "", 0,
        [](Value value, Asked asked) { asked.degrees.precision = find_precision(value.text()); }},
    SettingRow{
        "sharing", Form::word, Opens::nothing, Of::question,
        "how transfers share a link: fifo, one after another, or fair, at once at max-min fair rates; "
        "default: fair with degrees, else fifo",
        "fifo fair", 0,
        [](Value value, Asked asked) { asked.sharing = parse_sharing(value.text(), value.what); }},
    SettingRow{
        "collectives", Form::text, Opens::cluster, Of::question,
        "algorithm of collectives: of all, or by group, such as tp=nvls,dp=ring; default: best, the one "
        "with the least time for the bytes and ranks",
        "", 0, set_text<&SettingRequest::collectives>},
    SettingRow{
        "buckets", Form::text, Opens::cluster, Of::question,
        "gradients that are reduced together while the last backward runs: ddp, megatron, or none, all "
        "of a stage behind it; default: megatron",
        "", 0, set_text<&SettingRequest::buckets>},
    SettingRow{"sequence_parallel", Form::yes, Opens::trace, Of::ranks,
               "tensor-parallel ranks share the norms' and dropouts' activations, too", "", 0,
               set_yes<&SettingRequest::sequence_parallel>},
    SettingRow{"all_pipelines", Form::yes, Opens::cluster, Of::question,
               "simulate every data-parallel replica, also where they are alike", "", 0,
               set_yes<&SettingRequest::all_pipelines>},
    SettingRow{
        "calibration", Form::text, Opens::trace, Of::question,
        "a file of rates that `stageline calibrate` fitted to measured steps, for language models and "
        "the links; default: the built-in rates of the chip",
        "", 0, set_text<&SettingRequest::calibration>},
    SettingRow{
        "slow", Form::text, Opens::cluster, Of::question,
        "what if devices or machines were slower: NAME:FACTOR[,…], such as gpu2:1.2 or host3:1.1 "
        "(compute there takes as many times as long), or gpu*:1.05; the model is cut anew for them: "
        "--partition keeps a cut",
        "", 0, [](Value value, Asked asked) { asked.slow = parse_slow(value.text(), value.what); }},
    SettingRow{
        "device_order", Form::word, Opens::cluster, Of::question,
        "given: stages on the devices in the order of the cluster; search: in the order of unequal "
        "devices (with degrees, of machines) with the fastest step, by simulating up to 720 orders a "
        "schedule; default: given",
        "given search", 0,
        [](Value value, Asked asked) {
          asked.device_order = one_of(all_device_orderings, value.text(), value.what);
        }},
    SettingRow{
        "recompute", Form::text, Opens::nothing, Of::row,
        "what each backward has computed again, by any schedule: none, selective (attention's scores), "
        "every:N (blocks of N layers; every:1 is what Megatron calls full) or full (the stage as one "
        "block), for all stages or after @ for some, or for some layers of the model: "
        "every:2@0,2-3,full@1 or full@layers:3-7; layers:3-7 is every:1@layers:3-7; default: as the "
        "schedule does",
        "", 0,
        [](Value value, Asked asked) {
          const auto start = asked.recomputation.start;
          asked.recomputation = parse_recomputation(value.text(), value.what);
          asked.recomputation.start = start;
        }},
    SettingRow{
        "recompute_start", Form::word, Opens::nothing, Of::row,
        "early: recompute while the output gradient is on its way; late: when it is there (default: "
        "early, or as the program text says)",
        "early late", 0,
        [](Value value, Asked asked) {
          asked.recomputation.start = parse_recompute_start(value.text(), value.what);
        }},
    SettingRow{
        "offload", Form::text, Opens::nothing, Of::row,
        "copy stashes to the host until their backward, by any schedule: none, all, or stages such as "
        "@0,2-3; default: as the schedule does",
        "", 0,
        [](Value value, Asked asked) {
          const int ahead = asked.offloading.ahead;
          asked.offloading = parse_offloading(value.text(), value.what);
          asked.offloading.ahead = ahead;
        }},
    SettingRow{
        "prefetch", Form::count, Opens::nothing, Of::row,
        "how many compute ops before its backward an offloaded stash is copied back; default: 2",
        "", most_samples_set,
        [](Value value, Asked asked) { asked.offloading.ahead = value.count(); }},
    SettingRow{
        "tokens", Form::amount, Opens::nothing, Of::training,
        "of a language model: GPU-hours, days and cost of training on so many tokens: 15T, 300B, 1e12"},
    SettingRow{"price", Form::number, Opens::nothing, Of::training,
               "US dollars for an hour of one device; default: as the cluster says", "", 1'000'000},
    SettingRow{"perturb", Form::text, Opens::cluster, Of::chance,
               "a file of perturbations (stageline-perturbation 1)"},
    SettingRow{
        "jitter", Form::text, Opens::cluster, Of::chance,
        "every op takes a random multiple of its time: the coefficient of variation (5%), or \"measured\"; "
        "\",transfers\" behind it: messages, too"},
    SettingRow{
        "sometimes_slow", Form::text, Opens::cluster, Of::chance,
        "a device or link that is slower in a share of the scenarios: gpu2:1.2@0.1, links:1.5@0.05; "
        "whatif takes a device also by --slow"},
    SettingRow{"pause", Form::text, Opens::cluster, Of::chance,
               "STEPS:TIME: in one of so many steps of a device a pause of TIME (100:50ms)"},
    SettingRow{"scenarios", Form::count, Opens::nothing, Of::chance, "how many", "",
               std::numeric_limits<int>::max()},
    SettingRow{"seed", Form::text, Opens::nothing, Of::chance, "of the random numbers; default: 1"},
    SettingRow{
        "freeze", Form::yes, Opens::nothing, Of::chance,
        "where links are shared, keep the order in which they serve transfers: faster, and the error is "
        "reported"},
    SettingRow{"scenario", Form::count, Opens::nothing, Of::chance,
               "the number of one scenario of a sweep, from 0", "",
               std::numeric_limits<int>::max()},
};

// Those between blanks.
std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

Json list_or_one(const Json& one) {
  return {{"anyOf", Json::array({one, Json{{"type", "array"}, {"items", one}, {"minItems", 1}}})}};
}

Json whole_from_one(std::int64_t most) {
  return {{"type", "integer"}, {"minimum", 1}, {"maximum", most}};
}

Json type_of(const SettingRow& row) {
  Json some_text{{"type", "string"}, {"minLength", 1}};
  switch (row.form) {
    case Form::text:
      return some_text;
    case Form::word:
      return {{"enum", words_in(row.words)}};
    case Form::file:
      return {{"anyOf", Json::array({some_text, Json{{"type", "object"}}})}};
    case Form::texts:
      return list_or_one(some_text);
    case Form::count:
      return whole_from_one(row.most);
    case Form::counts:
      return list_or_one(whole_from_one(row.most));
    case Form::number:
      return {{"type", "number"}, {"minimum", 0}, {"maximum", row.most}};
    case Form::yes:
      return {{"type", "boolean"}};
    case Form::amount:
      return {{"anyOf", Json::array({Json{{"type", "number"}}, some_text})}};
  }
  return {};
}

}  // namespace

std::string SettingRow::flag() const {
  if (flag_name == "TRACE") return "TRACE";
  std::string name = "--" + std::string(flag_name.empty() ? key : flag_name);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::span<const SettingRow> setting_rows() { return rows; }

const SettingRow* find_setting(std::string_view key) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const SettingRow& row) { return row.key == key; });
  return found == rows.end() ? nullptr : &*found;
}

std::string request_schema() {
  Json properties = Json::object();
  for (const SettingRow& row : rows) {
    if (row.of == Of::chance) continue;
    Json rule{{"description", row.help}};
    rule.update(type_of(row));
    properties[row.key] = std::move(rule);
  }
  const Json schema{
      {"$schema", "https://json-schema.org/draft/2020-12/schema"},
      {"title", "Stageline request"},
      {"description",
       "What answer() of the library takes. The keys are the flags of `stageline simulate` and `stageline compare`, "
       "with the same values and defaults; but `program` is the text itself."},
      {"type", "object"},
      {"additionalProperties", false},
      {"required", Json::array({"trace"})},
      {"properties", std::move(properties)}};
  return schema.text();
}

}  // namespace stageline
