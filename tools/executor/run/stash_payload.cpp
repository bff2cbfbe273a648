// Packs a stash into a list of tensors and unpacks it.
#include "tools/executor/run/stash_payload.hpp"

#include <map>
#include <set>

#include "sim/base/index.hpp"

namespace stageline::executor {

using at::Tensor;

// By op: how many are kept, then for each whether W reads it, then the sizes.
Tensors pack_stash(const MicroBatch& batch, const std::vector<std::size_t>& layers,
                   std::uint32_t version) {
  std::vector<int64_t> words{static_cast<int64_t>(version)};
  Tensors payload(1);
  for (const std::size_t layer : layers) {
    words.push_back(static_cast<int64_t>(batch.stash[layer].size()));
    for (const OpStash& op : batch.stash[layer]) {
      words.push_back(static_cast<int64_t>(op.kept.size()));
      for (const KeptTensor& kept : op.kept) {
        words.push_back(kept.for_weight_grad ? 1 : 0);
        payload.push_back(kept.tensor);
      }
      words.push_back(static_cast<int64_t>(op.size.size()));
      words.insert(words.end(), op.size.begin(), op.size.end());
    }
  }
  payload[0] = at::tensor(words, at::kLong);
  return payload;
}

std::uint32_t unpack_stash(const Tensors& payload, const std::vector<std::size_t>& layers,
                           MicroBatch& batch) {
  const int64_t* word = payload[0].data_ptr<int64_t>();
  const auto version = static_cast<std::uint32_t>(*word++);
  std::size_t next = 1;
  for (const std::size_t layer : layers) {
    batch.stash[layer].assign(as_size(*word++), {});
    for (OpStash& op : batch.stash[layer]) {
      const int64_t kept = *word++;
      for (int64_t i = 0; i < kept; ++i) op.kept.push_back({payload[next++], *word++ != 0});
      const int64_t sizes = *word++;
      op.size.assign(word, word + sizes);
      word += sizes;
    }
  }
  return version;
}

Tensors copied(const Tensors& tensors, const CopyTensor& copy) {
  std::map<const void*, Tensor> made;
  Tensors result;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.numel() == 0) {
      result.push_back(tensor);
      continue;
    }
    const auto [at, fresh] = made.try_emplace(tensor.storage().data());
    if (fresh) at->second = copy(tensor);
    const bool same = fresh || at->second.sizes() == tensor.sizes();
    const bool alike = at->second.numel() == tensor.numel() && tensor.is_contiguous();
    result.push_back(same ? at->second : alike ? at->second.view(tensor.sizes()) : copy(tensor));
  }
  return result;
}

std::int64_t storage_bytes(const Tensors& tensors) {
  std::set<const void*> seen;
  std::int64_t sum = 0;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.numel() == 0) continue;
    if (seen.insert(tensor.storage().data()).second) {
      sum += static_cast<std::int64_t>(tensor.storage().nbytes());
    }
  }
  return sum;
}

}  // namespace stageline::executor
