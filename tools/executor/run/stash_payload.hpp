// The stash of a micro-batch in a stage as a list of tensors, for sending and offloading.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <functional>
#include <vector>

#include "tools/executor/run/exchange.hpp"
#include "tools/executor/tensors/tensor_model.hpp"

namespace stageline::executor {

/// Every storage once: `copy` is called for the first tensor of each and views are made alike.
using CopyTensor = std::function<at::Tensor(const at::Tensor&)>;

/// The stash of these layers and the version of the weights it was made with. The tensors
/// themselves, not copies.
Tensors pack_stash(const MicroBatch& batch, const std::vector<std::size_t>& layers,
                   std::uint32_t version);
/// Into a micro-batch without one; returns the version.
std::uint32_t unpack_stash(const Tensors& payload, const std::vector<std::size_t>& layers,
                           MicroBatch& batch);

/// Copies of all, where tensors that share a storage share one again.
Tensors copied(const Tensors& tensors, const CopyTensor& copy);

/// Bytes of their storages, each once; undefined and empty tensors have none.
std::int64_t storage_bytes(const Tensors& tensors);

}  // namespace stageline::executor
