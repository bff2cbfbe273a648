// Tensors that the devices of one run pass to each other, in slots: one for each message of the
// program. Writer and reader never touch a slot at the same time: the reader has seen on the
// completion board that the writer is done.
//
// Includes ATen: for the files of this folder only.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "sim/base/index.hpp"
#include "sim/program.hpp"
#include "sim/rules.hpp"
#include "tools/executor/tensors/tensor_model.hpp"

namespace stageline::executor {

using Tensors = std::vector<at::Tensor>;

/// The weights of a stage after an update, and what a correction remembers beside them.
struct StageVersion {
  std::vector<Tensors> values;  // by layer of the stage
  std::vector<Tensors> memory;  // the same; a layer's is empty where nothing is remembered (yet)
};

/// The payloads of messages, by cargo, wire and number.
class Mailbox {
 public:
  Mailbox(const Program& program, const StageGraph& graph) {
    for (std::size_t cargo = 0; cargo < cargoes; ++cargo) {
      for (const Wire& wire : graph.wires[cargo]) {
        const bool weights = static_cast<Cargo>(cargo) == Cargo::weights;
        slots_[cargo].emplace_back(weights ? as_size(updates(program, wire.sender))
                                           : std::size_t{program.total_microbatches()});
      }
    }
  }
  Tensors& at(Cargo cargo, int wire, std::uint32_t number) {
    return nth(nth(slots_, cargo), wire)[number];
  }
  void clear() {
    for (auto& of_cargo : slots_) {
      for (auto& of_wire : of_cargo) {
        for (Tensors& slot : of_wire) slot.clear();
      }
    }
  }

 private:
  std::array<std::vector<std::vector<Tensors>>, cargoes> slots_;
};

/// Gradients of one update of one replicated stage, by replica. The first replica that wants them
/// puts their sum into the tensors of all.
struct Reduction {
  std::mutex mutex;
  bool is_summed = false;
  std::vector<Tensors> of_replica;  // all its layers' one after the other
};

/// The shards of one update of one stage with a sharded optimizer, by replica: copies of its
/// weights, until all other replicas have read them.
struct ShownShards {
  std::mutex mutex;
  std::vector<Tensors> of_replica;
  std::vector<std::size_t> times_read;  // by replica
};

/// Versions of a stage's weights, for devices that read them without a message. Never empty.
struct SharedWeights {
  std::mutex mutex;
  std::map<std::uint32_t, StageVersion> versions;
};

class StatesToShow;

struct Exchange {
  Exchange(const Program& program, const StageGraph& graph) : mailbox(program, graph) {
    const auto stages = as_size(program.stages());
    host.resize(stages);
    weights.resize(stages);
    entered.assign(program.total_microbatches(), 0);
    losses.resize(program.total_microbatches());
    reductions.resize(stages);
    shards.resize(stages);
    for (std::size_t d = 0; d < program.devices.size(); ++d) {
      returned.push_back(std::make_unique<Returned>());
    }
    for (std::size_t s = 0; s < stages; ++s) {
      host[s].resize(program.total_microbatches());
      weights[s] = std::make_unique<SharedWeights>();
      const std::size_t replicas = program.placement.stage[s].replicas.size();
      const int count = replicas > 1 ? updates(program, static_cast<int>(s)) : 0;
      for (int k = 0; k < count; ++k) {
        reductions[s].push_back(std::make_unique<Reduction>());
        reductions[s].back()->of_replica.resize(replicas);
        shards[s].push_back(std::make_unique<ShownShards>());
        shards[s].back()->of_replica.resize(replicas);
        shards[s].back()->times_read.resize(replicas);
      }
    }
  }

  /// Tensors whose receivers have copied them, by the device that sent them and frees them.
  struct Sent {
    at::Tensor tensor;
    std::chrono::steady_clock::time_point left;  // when the message had left the sender
  };
  struct Returned {
    std::mutex mutex;
    std::vector<Sent> tensors;
  };

  Mailbox mailbox;
  std::vector<std::vector<Tensors>> host;               // stages × micro-batches
  std::vector<std::unique_ptr<SharedWeights>> weights;  // by stage
  std::vector<std::uint32_t> entered;  // by micro-batch: the version its first forward read
  Tensors losses;                      // by micro-batch
  std::vector<std::vector<std::unique_ptr<Reduction>>> reductions;  // stages × updates
  std::vector<std::vector<std::unique_ptr<ShownShards>>> shards;    // stages × updates
  std::vector<std::unique_ptr<Returned>> returned;                  // by device
  bool in_one_process = true;                                       // of_replica is shared
  StatesToShow* states = nullptr;                                   // of a training
};

}  // namespace stageline::executor
