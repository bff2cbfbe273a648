// From a model's shape and a device's data sheet to a trace: what a layer takes if nothing but
// arithmetic and memory bandwidth limits it (Williams, Waterman and Patterson 2009,
// doi 10.1145/1498765.1498785).
#pragma once

#include <string>
#include <vector>

#include "cost_models/shapes/shapes.hpp"
#include "cost_models/slices.hpp"
#include "sim/base/units.hpp"
#include "sim/cluster.hpp"
#include "sim/model.hpp"

namespace stageline {

struct Calibration;

/// Muon is trained with (tools/executor); no price says what its products take.
enum class Optimizer : std::uint8_t { sgd, momentum, adam, muon };
std::string_view name(Optimizer optimizer);

struct RooflineOptions {
  int batch = 0;        // samples in a micro-batch; 0: the model's usual one
  std::string dtype{};  // fp32, tf32, fp16, bf16; empty: bf16 where the device has it, else fp32
  std::string optimizer{};  // sgd, momentum, adam; empty: the model's usual one
  double efficiency = 1;    // fraction of both peaks that is reached, above 0 and at most 1
  Time overhead{};          // added for each primitive op of a pass (its launch)
  std::vector<std::int64_t> documents{};  // LanguageForm::documents, of a language model
  SequenceSlice slice{};  // is priced; where the model is no language model, the mean one
};

/// Each pass of each layer: the sum over its primitive ops of
///   max(FLOPs / (peak · efficiency), bytes / (memory bandwidth · efficiency)) + overhead,
/// rounded once. The update: the optimizer's bytes likewise. With fp16 and bf16 a master copy of
/// the weights is kept in 4 bytes and counted as optimizer state, as is the optimizer's own
/// (momentum 4 bytes a weight, adam 8); fp32 and tf32 need no copy. Workspace is 0. A layer is
/// `memory_bound` where memory bounds more than half of its time. Collectives take bytes, not time.
/// The provenance is `estimated`. Throws UsageError when an option is unknown, out of range, not on
/// the device's data sheet, or when a number does not fit in 64 bits or a time is longer than
/// `longest_input`. A slice of sequences does its share of the FLOPs and moves its share of the
/// activations, but reads the weights once, as a micro-batch does, and writes their gradients;
/// throws as check_slices().
Model roofline(const ModelShape& shape, const DeviceKind& device, const RooflineOptions& options);

/// What the spelling of a language model may refer to.
struct LanguageInputs {
  std::string config;                        // content of the config.json that it names
  const Calibration* calibration = nullptr;  // instead of the built-in rates of its kind of device
  std::vector<std::int64_t> documents{};     // RooflineOptions
};

/// "model:resnet50@h100,batch=32,dtype=bf16,optimizer=adam,efficiency=0.5,overhead=5us", and the
/// model's own options, as in "model:gpt@a100,layers=24,hidden=1024"; "model:" may be left out. A
/// transformer also takes tp=, cp= (the degrees that divide its layers), sp=yes (sequence
/// parallelism) and dropout=yes. `sharding`: the degrees that other flags state; 1 and false: none.
/// A language model (a name of families(), a config.json, or "transformer" with its sizes) is
/// priced by language_model(); it takes the options of transformer_options() and seq=, tp=, cp=,
/// ep=, sp=, attention=flash|plain, fused=, dropout=, alignment=, imbalance=, tp_overlap=,
/// cp_exchange=. Throws UsageError that names the offending word and the nearest one that would do,
/// and where `spec` and `sharding` state different degrees. `slice`: RooflineOptions.
Model priced_model(const std::string& spec, const std::vector<DeviceKind>& kinds,
                   const Sharding& sharding = {}, const LanguageInputs& language = {},
                   const SequenceSlice& slice = {});

/// The file in "model:path/config.json@h100,tp=8"; empty where the spelling names a model.
std::string config_file_of(const std::string& spec);

/// A shape alone: "resnet50", "gpt,layers=24,seq=256". Throws as above.
ModelShape parse_shape(const std::string& spec);

/// The shape that a priced model's spelling names: "model:resnet20@h100,width=4,batch=8" is of
/// "resnet20,width=4".
std::string shape_of_spec(const std::string& spec);

/// "sgd", "momentum", "adam": those with a price. Throws UsageError with the nearest.
Optimizer optimizer_called(const std::string& name);
/// The same, and "muon".
Optimizer trained_optimizer_called(const std::string& name);

}  // namespace stageline
