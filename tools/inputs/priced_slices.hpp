// Slices of a trace's sequences, and sequences of other lengths, each priced once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "cost_models/slices.hpp"
#include "sim/model.hpp"
#include "sim/program.hpp"

namespace stageline {

/// Models by what makes them differ. Threads may call it at the same time.
template <class Key>
class PricedModels {
 public:
  explicit PricedModels(std::function<Model(const Key&)> open) : open_(std::move(open)) {}

  /// Throws what `open` throws.
  std::shared_ptr<const Model> of(const Key& key) {
    const std::lock_guard<std::mutex> lock(access_);
    std::shared_ptr<const Model>& known = known_[key];
    if (!known) known = std::make_shared<const Model>(open_(key));
    return known;
  }

 private:
  std::function<Model(const Key&)> open_;
  std::mutex access_;
  std::map<Key, std::shared_ptr<const Model>> known_;
};

class PricedSlices : public PricedModels<SequenceSlice> {
 public:
  using PricedModels::PricedModels;
};

/// By documents of a sequence.
class PricedLengths : public PricedModels<Documents> {
 public:
  using PricedModels::PricedModels;
};

}  // namespace stageline
