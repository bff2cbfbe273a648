// Megatron-LM's --pipeline-model-parallel-layout: "Et*3|(tt|)*29,m|L" as a cut of a transformer.
//
//     E  the layers before the first block (the embedding)         | ends a stage; stage k is on
//     t  a block: a layer of kind attention to the next of kind      device k mod p, its chunk
//        mlp, or one layer of kind block                             k div p
//     m  a layer of kind mtp (multi-token prediction)              , means nothing
//     L  the layers after the last t or m (norm, head, loss)       x*n, (xyz)*n repeat
//
// A stage between others may have no letter: it passes on what it gets. Here that is a layer of
// kind pass, which takes no time and keeps nothing; its op may have the overhead of the device.
//
// A layer between the last block and the first m belongs to that block, where Megatron has its
// final norm too. Source: NVIDIA/Megatron-LM, megatron/core/transformer/
// pipeline_parallel_layer_layout.py.
#pragma once

#include <string>
#include <vector>

#include "schedulers/partition/megatron_layout.hpp"
#include "sim/model.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// The kind of a layer that represents a stage without layers.
inline constexpr const char* pass_kind = "pass";

/// The model with a layer of that kind for each empty stage of the layout: what it puts out is all
/// that crosses the cut there. Throws UsageError as parse_megatron does, and where the model is no
/// transformer.
Model with_empty_stages(const std::string& text, Model model);

/// The last layer of every stage but the last. Throws UsageError where the model is no transformer,
/// has other numbers of blocks than the layout, or no layer of kind pass for an empty stage.
std::vector<int> cuts_from_megatron(const std::string& text, const Model& model);

/// The partition as a layout, equal stages that follow each other as (x|)*n. Throws UsageError
/// where a stage is cut inside a block or stage k is not on device k mod p, p the devices in use.
std::string write_megatron(const Partition& partition, const Placement& placement,
                           const Model& model);

}  // namespace stageline
