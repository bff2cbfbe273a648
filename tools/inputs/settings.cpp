// The table of settings.
#include "tools/inputs/settings.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "cost_models/state_bytes.hpp"
#include "cost_models/transformers/kernels.hpp"
#include "sim/base/names.hpp"
#include "tools/inputs/degrees.hpp"
#include "tools/inputs/setting_values.hpp"
#include "tools/inputs/weight_rule.hpp"

namespace stageline::setting_values {
namespace {

constexpr std::int64_t most_samples_set = std::int64_t{1} << 26;
constexpr std::int64_t most_ranks_set = std::int64_t{1} << 16;

using Group = SettingGroup;
using Form = SettingForm;
using Opens = SettingOpens;
using Of = SettingOf;

template <int Degrees::*degree>
constexpr SettingRow degree_row(std::string_view key, std::string_view help, bool common = true) {
  return {.key = key,
          .group = Group::parallelism,
          .common = common,
          .form = Form::count,
          .opens = Opens::trace,
          .of = Of::ranks,
          .help = help,
          .most = most_ranks_set,
          .set = set_degree<degree>,
          .print = print_degree<degree>,
          .searched = true};
}

// How the flags of a command say it, where it is not for all of them: case_flags.cpp.
constexpr std::array rows{
    SettingRow{
        .key = "trace",
        .group = Group::model,
        .common = true,
        .form = Form::file,
        .opens = Opens::trace,
        .of = Of::schedule,
        .help =
            "a trace file, model:NAME@DEVICE[,batch=N…] (a shape, a language model such as llama3-8b, or a "
            "config.json), uniform:…, or a bundled trace",
        .set = set_text<&SettingRequest::trace>,
        .flag_name = "TRACE"},
    SettingRow{.key = "schedule",
               .group = Group::schedule,
               .common = true,
               .of = Of::schedule,
               .help = "NAME[:knob=value,…], or a program, FILE.slp; default: 1f1b",
               .searched = true},
    SettingRow{.key = "schedules",
               .group = Group::schedule,
               .form = Form::texts,
               .of = Of::schedule,
               .help = "several to compare, programs' files and texts among them, or all"},
    SettingRow{
        .key = "program",
        .group = Group::schedule,
        .common = true,
        .of = Of::schedule,
        .help =
            "run this program instead of a schedule, whatever its file is called: our own text or PyTorch's schedule CSV"},
    SettingRow{
        .key = "devices",
        .group = Group::cluster,
        .common = true,
        .form = Form::counts,
        .opens = Opens::cluster,
        .of = Of::schedule,
        .help =
            "number of devices, or a sweep such as 2..16 or 2,4,8; default: all of the cluster, or 4",
        .most = 65536,
        .set = [](Value value, Asked asked) { asked.devices = value.counts; },
        .print = print_devices,
        .searched = true},
    SettingRow{
        .key = "cluster",
        .group = Group::cluster,
        .common = true,
        .form = Form::file,
        .opens = Opens::trace,
        .help =
            "a cluster file or a bundled cluster, h100x8*4 for four such machines; default: that of "
            "model:NAME@DEVICE",
        .set = [](Value value, Asked asked) { asked.cluster.cluster = value.text(); }},
    SettingRow{.key = "link",
               .group = Group::cluster,
               .common = true,
               .opens = Opens::cluster,
               .help = "equal devices with one full-duplex port each: 12GB/s,5us",
               .set = set_link<&ClusterRequest::link>},
    SettingRow{.key = "memory",
               .group = Group::memory,
               .common = true,
               .opens = Opens::cluster,
               .help = "memory of each device, with its unit: 16GB; default: as the cluster says",
               .set = set_bytes<&ClusterRequest::memory>},
    SettingRow{
        .key = "reserve",
        .group = Group::memory,
        .opens = Opens::cluster,
        .help =
            "memory of each device that training cannot use, for its context and communication buffers: "
            "2GB; default: as the cluster says",
        .set = set_bytes<&ClusterRequest::reserve>},
    SettingRow{
        .key = "host_link",
        .group = Group::memory,
        .opens = Opens::cluster,
        .help = "a full-duplex link of each equal device to one host, for offloading: 16GB/s,5us",
        .set = set_link<&ClusterRequest::host_link>},
    SettingRow{.key = "host_memory",
               .group = Group::memory,
               .opens = Opens::cluster,
               .help = "memory of that host: 256GB",
               .set = set_bytes<&ClusterRequest::host_memory>},
    SettingRow{
        .key = "pair_overlap",
        .group = Group::cluster,
        .form = Form::number,
        .opens = Opens::cluster,
        .help =
            "hidden share of the shorter op of an overlapped pair: 0 to 1; without it, the experts' "
            "exchange of each op hides under the compute of the other",
        .most = 1,
        .set = [](Value value, Asked asked) { asked.cluster.pair_overlap = value.number; }},
    SettingRow{
        .key = "microbatches",
        .group = Group::schedule,
        .common = true,
        .form = Form::count,
        .of = Of::row,
        .help =
            "micro-batches per step and pipeline (mini-batches where updates are asynchronous); default: 4 "
            "per device",
        .most = most_samples_set,
        .set = set_count<&SettingRequest::microbatches>,
        .print = print_count<&SettingRequest::microbatches>},
    SettingRow{
        .key = "microbatch_size",
        .group = Group::schedule,
        .common = true,
        .form = Form::count,
        .opens = Opens::trace,
        .of = Of::row,
        .help =
            "samples in a micro-batch; costs are scaled or interpolated to it; default: as in the trace",
        .most = most_samples_set,
        .set = set_count<&SettingRequest::microbatch_size>,
        .print = print_count<&SettingRequest::microbatch_size>,
        .searched = true},
    SettingRow{
        .key = "lengths",
        .group = Group::schedule,
        .opens = Opens::trace,
        .help =
            "tokens of the sequences of each micro-batch of a step: 2048,4096,512+1536 (+ joins documents "
            "that one sequence packs), a file of such numbers, lognormal(MEAN,SIGMA) to draw them, or "
            "packed:N: before one of these to pack its documents; default: all as long as the trace says",
        .set = set_text<&SettingRequest::lengths>},
    SettingRow{
        .key = "lengths_order",
        .group = Group::schedule,
        .form = Form::word,
        .opens = Opens::trace,
        .of = Of::row,
        .help =
            "order of the micro-batches of --lengths: given, ascending or descending by what they cost, snake "
            "(the cheapest first and last, and so inwards), or balanced (documents dealt anew so that all cost "
            "about the same, then as snake); default: given, and plan searches it",
        .words = "given ascending descending snake balanced",
        .set =
            [](Value value, Asked asked) {
              asked.lengths_order = one_of(all_lengths_orders, value.text(), value.what);
            },
        .print = print_named<LengthsOrder, &SettingRequest::lengths_order>},
    SettingRow{
        .key = "encoder",
        .group = Group::model,
        .form = Form::file,
        .opens = Opens::trace,
        .help =
            "a trace, as TRACE, of an encoder without its head, whose batch stands before every micro-batch "
            "on pipeline ranks of its own",
        .set = set_encoder},
    SettingRow{
        .key = "frozen_encoder",
        .group = Group::model,
        .form = Form::yes,
        .opens = Opens::trace,
        .help = "the encoder is not trained: it has no backward, gradients or optimizer state",
        .set = set_yes<&SettingRequest::frozen_encoder>},
    SettingRow{.key = "profile_batch",
               .group = Group::model,
               .form = Form::count,
               .opens = Opens::trace,
               .help = "samples in a mini-batch of a PipeDream profile, which does not record it",
               .most = std::numeric_limits<int>::max(),
               .set = set_count<&SettingRequest::profile_batch>,
               .flag_name = "batch"},
    SettingRow{
        .key = "steps",
        .group = Group::schedule,
        .form = Form::count,
        .of = Of::row,
        .help =
            "steps to simulate; default: 1, or enough to reach a steady pace where updates are asynchronous",
        .most = std::int64_t{1} << 20,
        .set = set_count<&SettingRequest::steps>,
        .print = print_count<&SettingRequest::steps>},
    SettingRow{
        .key = "partition",
        .group = Group::schedule,
        .common = true,
        .form = Form::texts,
        .opens = Opens::trace,
        .of = Of::schedule,
        .help =
            "balanced, by_device, uniform, blocks[:…], parameters, type:REGEX, pipedream[:…], ppv:7[,…], "
            "simulated[:most=400][,blocks] (the best found by simulating as many cuts for each schedule), "
            "ranges 0-5,6-11,12-, last layers' names, or a Megatron layout or a file of one; default: "
            "balanced",
        .set = set_partitions,
        .print = print_partition,
        .searched = true},
    SettingRow{
        .key = "weights",
        .group = Group::schedule,
        .form = Form::word,
        .of = Of::row,
        .help =
            "weight rule, instead of the schedule's: flush, stash, vertical_sync, double_buffer, latest",
        .words = "flush stash vertical_sync double_buffer latest",
        .set = [](Value value,
                  Asked asked) { asked.weights = parse_weight_rule(value.text(), value.what); },
        .print = print_named<WeightRule, &SettingRequest::weights>},
    SettingRow{
        .key = "messages",
        .group = Group::communication,
        .form = Form::word,
        .help =
            "async: SEND and RECV overlap with compute; blocking: they occupy the compute lane until both "
            "ends are done; batched: adjacent ones in the list start together; default: async, or as the "
            "program text says",
        .words = "async blocking batched",
        .set = [](Value value,
                  Asked asked) { asked.messages = parse_messages(value.text(), value.what); }},
    SettingRow{
        .key = "within",
        .group = Group::output,
        .of = Of::answer,
        .help =
            "recommend the least memory among schedules at most this much slower than the fastest; "
            "default: 1%, or where language models tie that with the least time × memory"},
    SettingRow{.key = "timeline",
               .group = Group::output,
               .form = Form::yes,
               .of = Of::answer,
               .help = "every span, too"},
    degree_row<&Degrees::tensor>("tp", "tensor-parallel ranks that share each layer"),
    degree_row<&Degrees::context>("cp", "context-parallel ranks that share each sequence"),
    degree_row<&Degrees::expert>(
        "ep", "expert-parallel ranks, which share the experts; ep × etp divides tp × cp × dp"),
    degree_row<&Degrees::expert_tensor>(
        "etp", "tensor-parallel ranks that share each expert; default: as --tp", false),
    degree_row<&Degrees::data>("dp", "data-parallel replicas of the pipeline"),
    degree_row<&Degrees::pipeline>(
        "pp", "pipeline ranks; default: the number of devices over the other degrees"),
    SettingRow{.key = "encoder_pp",
               .group = Group::parallelism,
               .form = Form::count,
               .opens = Opens::trace,
               .of = Of::ranks,
               .help = "pipeline ranks of --pp that are the encoder's; default: 1",
               .most = most_ranks_set,
               .set = set_encoder_degree<&EncoderDegrees::pipeline>,
               .print = print_encoder_ranks},
    SettingRow{
        .key = "encoder_tp",
        .group = Group::parallelism,
        .form = Form::count,
        .opens = Opens::trace,
        .of = Of::ranks,
        .help = "tensor-parallel ranks that share each of the encoder's layers; default: as --tp",
        .most = most_ranks_set,
        .set = set_encoder_degree<&EncoderDegrees::tensor>,
        .print = [](Given given) { return printed_unless(given.degrees.encoder.tensor, 0); }},
    SettingRow{
        .key = "order",
        .group = Group::parallelism,
        .opens = Opens::trace,
        .of = Of::ranks,
        .help = "nesting of the ranks on the devices, neighbours first; default: tp-cp-ep-dp-pp",
        .set = [](Value value, Asked asked) { asked.degrees.order = parse_order(value.text()); },
        .print = print_order},
    SettingRow{
        .key = "zero",
        .group = Group::parallelism,
        .common = true,
        .form = Form::word,
        .opens = Opens::trace,
        .of = Of::ranks,
        .help =
            "state divided among data-parallel ranks: 0 none, 1 optimizer, 2 gradients, too, 3 weights, too "
            "(FSDP); how often they are exchanged: --zero-every; default: 0",
        .words = "0 1 2 3",
        .set = [](Value value,
                  Asked asked) { asked.degrees.zero = parse_zero(value.text(), value.what); },
        .print = print_zero,
        .searched = true},
    SettingRow{
        .key = "zero_every",
        .group = Group::parallelism,
        .form = Form::word,
        .opens = Opens::trace,
        .of = Of::ranks,
        .help =
            "how often --zero 2 and 3 gather weights and reduce gradients: step, which holds both whole, as "
            "Llama 3 and MegaScale, or microbatch, in every F and B, as FSDP; default: step with --pp above "
            "1, else microbatch",
        .words = "step microbatch",
        .set =
            [](Value value, Asked asked) {
              asked.degrees.zero_every = one_of(all_zero_everys, value.text(), value.what);
            },
        .print =
            [](Given given) {
              const auto every = given.degrees.zero_every;
              return every ? std::string(name(*every)) : "";
            }},
    SettingRow{
        .key = "shard_group",
        .group = Group::parallelism,
        .opens = Opens::cluster,
        .of = Of::ranks,
        .help =
            "ranks that divide what --zero says, of those that hold the same weights: so many neighbours, or "
            "those of a machine or an NVLink domain; the groups add up gradients once a step (HSDP); default: "
            "all",
        .set =
            [](Value value, Asked asked) {
              asked.degrees.shard_group = parse_shard_group(value.text(), value.what);
            },
        .print = [](Given given) { return print(given.degrees.shard_group); }},
    SettingRow{
        .key = "precision",
        .group = Group::model,
        .opens = Opens::trace,
        .of = Of::ranks,
        .help =
            "bytes of weights, gradients and optimizer state for each parameter; default: as the trace says",
        .set = [](Value value,
                  Asked asked) { asked.degrees.precision = find_precision(value.text()); },
        .print = [](Given given) { return std::string(given.degrees.precision.name); }},
    SettingRow{
        .key = "sharing",
        .group = Group::communication,
        .form = Form::word,
        .help =
            "how transfers share a link: fifo, one after another, or fair, at once at max-min fair rates; "
            "default: fair with degrees, else fifo",
        .words = "fifo fair",
        .set = [](Value value,
                  Asked asked) { asked.sharing = parse_sharing(value.text(), value.what); }},
    SettingRow{
        .key = "collectives",
        .group = Group::communication,
        .opens = Opens::cluster,
        .help =
            "algorithm of collectives: of all, or by group, such as tp=nvls,dp=ring; default: best, the one "
            "with the least time for the bytes and ranks",
        .set = set_text<&SettingRequest::collectives>},
    SettingRow{
        .key = "buckets",
        .group = Group::communication,
        .opens = Opens::cluster,
        .help =
            "gradients that are reduced together while the last backward runs: ddp, megatron, or none, all "
            "of a stage behind it; default: megatron",
        .set = set_text<&SettingRequest::buckets>},
    SettingRow{.key = "sequence_parallel",
               .group = Group::parallelism,
               .common = true,
               .form = Form::yes,
               .opens = Opens::trace,
               .of = Of::ranks,
               .help = "tensor-parallel ranks share the norms' and dropouts' activations, too",
               .set = set_yes<&SettingRequest::sequence_parallel>,
               .print = print_yes<&SettingRequest::sequence_parallel>,
               .searched = true},
    SettingRow{.key = "all_pipelines",
               .group = Group::parallelism,
               .form = Form::yes,
               .opens = Opens::cluster,
               .help = "simulate every data-parallel replica, also where they are alike",
               .set = set_yes<&SettingRequest::all_pipelines>},
    SettingRow{
        .key = "calibration",
        .group = Group::model,
        .opens = Opens::trace,
        .help =
            "a file of rates that `stageline calibrate` fitted to measured steps, for language models and "
            "the links; default: the built-in rates of the chip",
        .set = set_text<&SettingRequest::calibration>},
    SettingRow{
        .key = "software",
        .group = Group::model,
        .opens = Opens::trace,
        .help =
            "generation of the software that trains a language model, such as megatron-core-2024: what its "
            "kernels are where the model's own options do not say it; `stageline list` names them; "
            "default: fused attention and kernels",
        .set = set_text<&SettingRequest::software>},
    SettingRow{
        .key = "cuda_graphs",
        .group = Group::model,
        .form = Form::word,
        .opens = Opens::trace,
        .help =
            "what of a language model's step is recorded as CUDA graphs, for which the CPU need not issue "
            "kernels one by one: none, partial (attention and router) or full; default: as the software",
        .words = "none partial full",
        .set =
            [](Value value, Asked asked) {
              asked.cuda_graphs = name(one_of(all_cuda_graphs, value.text(), value.what));
            }},
    SettingRow{
        .key = "cp_comm_type",
        .group = Group::model,
        .opens = Opens::trace,
        .help =
            "how context-parallel ranks of a language model exchange what attention reads: all_gather, "
            "p2p (a ring beside attention), a2a (heads for parts of the sequence) or a2a+p2p:N (that "
            "among N neighbours, and rings across); default: as the model's cp_exchange or the software",
        .set = set_text<&SettingRequest::cp_comm_type>,
        .print = [](const SettingRequest& request) { return request.cp_comm_type; },
        .searched = true},
    SettingRow{
        .key = "slow",
        .group = Group::cluster,
        .opens = Opens::cluster,
        .help =
            "what if devices, machines or links were slower: NAME:FACTOR[,…], such as gpu2:1.2 or host3:1.1 "
            "(compute there takes as many times as long), gpu*:1.05, or links:2, nvlink, pcie, network or nic; "
            "the model is cut anew for them: --partition keeps a cut",
        .set = [](Value value, Asked asked) { asked.slow = parse_slow(value.text(), value.what); }},
    SettingRow{
        .key = "device_order",
        .group = Group::cluster,
        .form = Form::word,
        .opens = Opens::cluster,
        .help =
            "given: stages on the devices in the order of the cluster; search: in the order of unequal "
            "devices (with degrees, of machines) with the fastest step, by simulating up to 720 orders a "
            "schedule; default: given",
        .words = "given search",
        .set =
            [](Value value, Asked asked) {
              asked.device_order = one_of(all_device_orderings, value.text(), value.what);
            }},
    SettingRow{
        .key = "placement",
        .group = Group::cluster,
        .opens = Opens::cluster,
        .help =
            "where a job that is larger than a rack stands: segment, as many machines of each rack, as "
            "schedulers of jobs place it; fill, all of a rack before the next; or a file with the names of "
            "devices by rank; default: segment",
        .set = [](Value value, Asked asked) { asked.cluster.placement = value.text(); },
        .print = [](const SettingRequest& request) { return request.cluster.placement; }},
    SettingRow{
        .key = "recompute",
        .group = Group::memory,
        .common = true,
        .of = Of::row,
        .help =
            "what each backward has computed again, by any schedule: none, selective (attention's scores), "
            "modules:NAME+… (as Megatron-Core names them: core_attn, layernorm, mla_up_proj, mlp, moe_act, "
            "moe, shared_experts), ops (torch's policy by ops), every:N (blocks of N layers; every:1 is what "
            "Megatron calls full), block:N (the first N blocks of each stage) or full (the stage as one "
            "block), for all stages or after @ for some, or for some layers of the model: "
            "every:2@0,2-3,full@1 or full@layers:3-7; layers:3-7 is every:1@layers:3-7; default: as the "
            "schedule does",
        .set =
            [](Value value, Asked asked) {
              const auto start = asked.recomputation.start;
              asked.recomputations.clear();
              for (const std::string& text : value.texts) {
                asked.recomputations.push_back(parse_recomputation(text, value.what));
                asked.recomputations.back().start = start;
              }
              asked.recomputation = asked.recomputations.front();
              if (asked.recomputations.size() == 1) asked.recomputations.clear();
            },
        .print = print_recomputation,
        .searched = true},
    SettingRow{
        .key = "recompute_start",
        .group = Group::memory,
        .form = Form::word,
        .of = Of::row,
        .help =
            "early: recompute while the output gradient is on its way; late: when it is there (default: "
            "early, or as the program text says)",
        .words = "early late",
        .set =
            [](Value value, Asked asked) {
              asked.recomputation.start = parse_recompute_start(value.text(), value.what);
              for (Recomputation& one : asked.recomputations) {
                one.start = asked.recomputation.start;
              }
            },
        .print =
            [](Given given) {
              const std::optional<RecomputeStart>& start = given.recomputation.start;
              return start ? std::string(name(*start)) : std::string();
            }},
    SettingRow{
        .key = "offload",
        .group = Group::memory,
        .of = Of::row,
        .help =
            "copy stashes to the host until their backward, by any schedule: none, all, stages such as "
            "@0,2-3, or block:N, those of the first N blocks of each stage, beside the other blocks (as Megatron's "
            "cpu_offloading_num_layers); default: as the schedule does",
        .set =
            [](Value value, Asked asked) {
              const int ahead = asked.offloading.ahead;
              asked.offloading = parse_offloading(value.text(), value.what);
              asked.offloading.ahead = ahead;
            },
        .print = print_offloading,
        .searched = true},
    SettingRow{
        .key = "prefetch",
        .group = Group::memory,
        .form = Form::count,
        .of = Of::row,
        .help =
            "how many compute ops before its backward an offloaded stash is copied back; default: 2",
        .most = most_samples_set,
        .set = [](Value value, Asked asked) { asked.offloading.ahead = value.count(); },
        .print = print_prefetch},
    SettingRow{
        .key = "tokens",
        .group = Group::training,
        .common = true,
        .form = Form::amount,
        .of = Of::training,
        .help =
            "of a language model: GPU-hours, days and cost of training on so many tokens: 15T, 300B, 1e12"},
    SettingRow{.key = "price",
               .group = Group::training,
               .form = Form::number,
               .of = Of::training,
               .help = "US dollars for an hour of one device; default: as the cluster says",
               .most = 1'000'000},
    SettingRow{.key = "perturb",
               .group = Group::uncertainty,
               .opens = Opens::cluster,
               .of = Of::chance,
               .help = "a file of perturbations (stageline-perturbation 1)"},
    SettingRow{
        .key = "jitter",
        .group = Group::uncertainty,
        .common = true,
        .opens = Opens::cluster,
        .of = Of::chance,
        .help =
            "every op takes a random multiple of its time: the coefficient of variation (5%), or \"measured\"; "
            "\",transfers\" behind it: messages, too"},
    SettingRow{
        .key = "sometimes_slow",
        .group = Group::uncertainty,
        .opens = Opens::cluster,
        .of = Of::chance,
        .help =
            "a device or link that is slower in a share of the scenarios: gpu2:1.2@0.1, links:1.5@0.05; "
            "whatif takes a device also by --slow"},
    SettingRow{
        .key = "pause",
        .group = Group::uncertainty,
        .opens = Opens::cluster,
        .of = Of::chance,
        .help = "STEPS:TIME: in one of so many steps of a device a pause of TIME (100:50ms)"},
    SettingRow{.key = "scenarios",
               .group = Group::uncertainty,
               .form = Form::count,
               .of = Of::chance,
               .help = "how many",
               .most = std::numeric_limits<int>::max()},
    SettingRow{.key = "seed",
               .group = Group::uncertainty,
               .of = Of::chance,
               .help = "of the random numbers; default: 1"},
    SettingRow{
        .key = "freeze",
        .group = Group::uncertainty,
        .form = Form::yes,
        .of = Of::chance,
        .help =
            "where links are shared, keep the order in which they serve transfers: faster, and the error is "
            "reported"},
    SettingRow{.key = "scenario",
               .group = Group::uncertainty,
               .form = Form::count,
               .of = Of::chance,
               .help = "the number of one scenario of a sweep, from 0",
               .most = std::numeric_limits<int>::max()},
};

}  // namespace
}  // namespace stageline::setting_values

namespace stageline {

std::string SettingRow::flag() const {
  if (flag_name == "TRACE") return "TRACE";
  std::string name = "--" + std::string(flag_name.empty() ? key : flag_name);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string_view name(SettingGroup group) {
  static constexpr std::array<std::string_view, all_setting_groups.size()> headings{
      "Model",       "Schedule", "Cluster", "Parallelism", "Memory", "Communication",
      "Uncertainty", "Training", "Search",  "Output",      "Options"};
  return headings.at(static_cast<std::size_t>(group));
}

std::span<const SettingRow> setting_rows() { return setting_values::rows; }

const SettingRow* find_setting(std::string_view key) {
  const std::span<const SettingRow> rows = setting_rows();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const SettingRow& row) { return row.key == key; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace stageline
