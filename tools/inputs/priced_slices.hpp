// The slices of a trace's sequences, each number of them priced once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "sim/model.hpp"

namespace stageline {

/// Threads may call it at the same time.
class PricedSlices {
 public:
  /// `open`: the model of one of so many slices.
  explicit PricedSlices(std::function<Model(int)> open) : open_(std::move(open)) {}

  /// Throws what `open` throws.
  std::shared_ptr<const Model> of(int slices) {
    const std::lock_guard<std::mutex> lock(access_);
    std::shared_ptr<const Model>& known = known_[slices];
    if (!known) known = std::make_shared<const Model>(open_(slices));
    return known;
  }

 private:
  std::function<Model(int)> open_;
  std::mutex access_;
  std::map<int, std::shared_ptr<const Model>> known_;
};

}  // namespace stageline
