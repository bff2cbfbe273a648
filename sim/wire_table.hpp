// One value per message of a stage, looked up without following the stage graph.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/base/index.hpp"
#include "sim/op.hpp"
#include "sim/rules.hpp"

namespace stageline {

/// A value for every SEND and RECV that the stage graph allows, by kind, stage and part; the same
/// for all micro-batches.
template <class T>
class WireTable {
 public:
  /// Takes value(message) for each message of micro-batch 0.
  template <class Value>
  WireTable(const StageGraph& graph, Value&& value) {
    for (std::size_t cargo = 0; cargo < cargoes; ++cargo) {
      add(send_of(static_cast<Cargo>(cargo)), graph.sends[cargo], value);
      add(receive_of(static_cast<Cargo>(cargo)), graph.receives[cargo], value);
    }
  }

  const T& operator[](Op message) const {
    return values_[nth(first_, message.kind)[message.stage] + message.part];
  }

 private:
  template <class Value>
  void add(OpKind kind, const std::vector<std::vector<int>>& wires_of_stage, Value&& value) {
    for (std::size_t stage = 0; stage < wires_of_stage.size(); ++stage) {
      nth(first_, kind).push_back(values_.size());
      for (std::size_t part = 0; part < wires_of_stage[stage].size(); ++part) {
        const Op message = op_of(kind, static_cast<int>(stage), 0, static_cast<int>(part));
        values_.push_back(value(message));
      }
    }
  }

  std::vector<T> values_;
  std::array<std::vector<std::size_t>, op_kinds> first_;  // by kind and stage, into values_
};

}  // namespace stageline
