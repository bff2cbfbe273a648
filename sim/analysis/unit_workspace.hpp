// What a unit of the compute lane, an op or an overlapped pair, holds beyond the stash at each
// moment of its time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "sim/analysis/memory_tables.hpp"
#include "sim/timeline.hpp"

namespace stageline {

class UnitWorkspace {
 public:
  /// The ops of one unit on `device`. Where a pair hides transfers, both go on in proportion, a
  /// layer of the one beside a layer of the other, and what the one frees the other takes
  /// (Megatron-Core, core_v0.17.0, model_chunk_schedule_plan.py; a DeepSeek-V3 of 14 layers that
  /// recomputes all of them holds 0.6 % more with its overlap than without: Megatron-LM, pull
  /// request 6311). Else they take turns, the forward first: until it has run the gradient that has
  /// come for the other waits, and its output leaves when the pair ends. (Without steps that is not
  /// known, and the pair has the larger workspace all the time.)
  UnitWorkspace(const MemoryTables& tables, int device, const Span* first, const Span* behind) {
    for (const Span* span = first; span != behind; ++span) add(tables, span->op);
    if (parts_ != 2 || !known()) return;
    together_ = tables.pairs_hide();
    if (together_) return;
    const bool turned = class_of(first->op.kind) != OpClass::forward &&
                        class_of((first + 1)->op.kind) == OpClass::forward;
    if (turned) std::swap(part_[0], part_[1]);
    const Op leader = part_[0].op;
    const Op other = part_[1].op;
    if (class_of(leader.kind) == OpClass::forward) {
      part_[1].beside = tables.messages(leader, Cargo::activation, Side::sends, device);
    }
    if (tables.takes_output_gradient(other)) {
      part_[0].beside = tables.messages(other, Cargo::gradient, Side::receives, device);
    }
    const double all = part_[0].time + part_[1].time;
    if (all <= 0) return;
    part_[0].until = part_[1].from = part_[0].time / all;
  }

  /// Whether the steps of all its ops are known.
  bool known() const {
    return std::all_of(part_.begin(), part_.begin() + parts_,
                       [](const Part& part) { return part.steps != nullptr; });
  }

  /// Over all its time; at least 0, but for a pair that hides transfers.
  Bytes most() const {
    if (together_) return most(0, 1);
    Bytes most{};
    for (int i = 0; i < parts_; ++i) most = std::max(most, part_[i].most + part_[i].beside);
    return most;
  }

  /// Between two shares of its time, of a unit that is known(); perhaps negative.
  Bytes most(double from, double until) const {
    if (together_) return most_together(from, until);
    Bytes most = most_bytes_held;
    bool any = false;
    for (int i = 0; i < parts_; ++i) {
      const Part& part = part_[i];
      double begin = part.from;
      for (const HeldStep& step : *part.steps) {
        const double end = part.from + (part.until - part.from) * step.until;
        if (begin < until && end > from) {
          most = any ? std::max(most, step.beyond + part.beside) : step.beyond + part.beside;
          any = true;
        }
        begin = end;
      }
    }
    return any ? most : Bytes{};
  }

 private:
  struct Part {
    Op op;
    const HeldSteps* steps = nullptr;
    Bytes most{};
    Bytes beside{};
    double time = 0;
    double from = 0;  // in the unit's time
    double until = 1;
  };

  // The most of what the two hold at once, step by step.
  Bytes most_together(double from, double until) const {
    const HeldSteps& one = *part_[0].steps;
    const HeldSteps& other = *part_[1].steps;
    std::optional<Bytes> most;
    std::size_t i = 0;
    std::size_t j = 0;
    double begin = 0;
    while (i < one.size() && j < other.size() && begin < until) {
      const double end = std::min(one[i].until, other[j].until);
      const Bytes both = one[i].beyond + other[j].beyond;
      if (end > from) most = std::max(most.value_or(both), both);
      if (one[i].until <= end) ++i;
      if (other[j].until <= end) ++j;
      begin = end;
    }
    return most.value_or(Bytes{});
  }

  void add(const MemoryTables& tables, Op op) {
    Part& part = nth(part_, parts_++);
    part.op = op;
    part.steps = tables.steps(op);
    part.most = tables.workspace(op);
    part.time = static_cast<double>(tables.time(op).count());
  }

  std::array<Part, 2> part_;
  int parts_ = 0;
  bool together_ = false;  // the two of a pair that hides transfers
};

}  // namespace stageline
