// Layers of a large model in groups, for a search that cannot look at every cut between them.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "cost_models/slices.hpp"
#include "sim/model.hpp"

namespace stageline {

/// Group g of `groups` has the layers from layer g · layers / groups on: as many as the others, or
/// one more.
int first_of_group(int layers, int groups, int group);

/// The model with at most so many layers, each a group of neighbours of the given ones: it takes
/// what they take one behind the other, and hands on what the layers behind it read. A model with
/// no more layers than that is returned as it is.
///
/// Approximate where a group ends in the middle of what belongs together: recomputation keeps the
/// inputs of groups, gathers of divided weights wait for whole ones, workspaces are the largest.
Model in_groups(Model model, int most);

/// A cut behind these groups, of every stage but the last, as --partition takes it ("0-194,195-").
std::string in_layers(const std::vector<int>& last_groups, int layers, int groups);

/// Models of one trace, in groups: each is opened once, since reading so many layers takes long.
/// Threads may call it at the same time.
class GroupedModels {
 public:
  explicit GroupedModels(int most) : most_(most) {}

  /// in_groups() of the model with that micro-batch and sharding, which `open` gives; of so many
  /// slices of sequences, that one.
  Model model(int batch, const Sharding& sharding, const std::function<Model()>& open,
              const SequenceSlice& slice = {});

 private:
  using Key = std::tuple<int, int, int, int, bool, int, SequenceSlice>;
  int most_;
  std::mutex access_;
  std::map<Key, Model> known_;
};

}  // namespace stageline
