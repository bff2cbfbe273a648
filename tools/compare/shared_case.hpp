// The case of a row, which shares the model and the cluster with other rows.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "tools/study/case.hpp"

namespace stageline {

/// Converts from and to a Case, which copies the model and the cluster: thousands of rows of a
/// sweep hold them once.
class SharedCase {
 public:
  SharedCase(Case asked)  // NOLINT(google-explicit-constructor): a Case stands for it
      : model_(std::make_shared<const Model>(std::move(asked.model))),
        cluster_(std::make_shared<const Cluster>(std::move(asked.cluster))),
        rest_(std::move(asked)) {
    rest_.model = {};
    rest_.cluster = {};
  }
  operator Case() const {  // NOLINT(google-explicit-constructor)
    Case whole = rest_;
    whole.model = *model_;
    whole.cluster = *cluster_;
    return whole;
  }

  /// Takes over what is equal.
  void share_with(const SharedCase& other) {
    if (*model_ == *other.model_) model_ = other.model_;
    if (*cluster_ == *other.cluster_) cluster_ = other.cluster_;
  }

  const Model& model() const { return *model_; }
  const Cluster& cluster() const { return *cluster_; }
  const ScheduleSpec& spec() const { return rest_.spec; }
  int microbatches() const { return rest_.microbatches; }
  bool is_ranked() const { return rest_.ranked != nullptr; }
  const RankedCluster* ranked() const { return rest_.ranked.get(); }  // null without degrees
  const std::string& partition() const { return rest_.partition; }
  const std::string& cut_asked() const { return rest_.cut_asked(); }
  const Recomputation& recomputation() const { return rest_.recomputation; }
  int device_count() const {
    return static_cast<int>((rest_.ranked ? rest_.ranked->devices() : *cluster_).devices.size());
  }

 private:
  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Cluster> cluster_;
  Case rest_;
};

}  // namespace stageline
