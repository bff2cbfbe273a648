// Megatron-LM's --pipeline-model-parallel-layout: "Et*3|(tt|)*29,m|L" as a cut of a transformer.
//
//     E  what stands before the first block (the embedding)        | ends a stage; stage k is on
//     t  a block: a layer of kind attention to the next of kind      device k mod p, its chunk
//        mlp, or one layer of kind block                             k div p
//     m  a layer of kind mtp (multi-token prediction)              , means nothing
//     L  what stands behind the last t or m (norm, head, loss)     x*n, (xyz)*n repeat
//
// A layer between the last block and the first m belongs to that block, where Megatron has its
// final norm too. Source: NVIDIA/Megatron-LM, megatron/core/transformer/
// pipeline_parallel_layer_layout.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/model.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// Whether the text is meant as a layout: it has a |, or a layout's letters alone and begins with
/// E.
bool looks_like_megatron(std::string_view text);

/// The stages, written out: "Et*2|tL" is "Ett", "tL". Throws UsageError, with the column, unless it
/// is one E, then t, then m, then one L, and no stage is empty.
std::vector<std::string> parse_megatron(std::string_view text);

/// The last layer of every stage but the last. Throws UsageError where the model is no transformer,
/// or has other numbers of blocks than the layout.
std::vector<int> cuts_from_megatron(const std::string& text, const Model& model);

/// The partition as a layout, equal stages that follow each other as (x|)*n. Throws UsageError
/// where a stage is cut inside a block or stage k is not on device k mod p, p the devices in use.
std::string write_megatron(const Partition& partition, const Placement& placement,
                           const Model& model);

}  // namespace stageline
