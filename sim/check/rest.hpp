// The part of a program that can be checked, and places in it. For sim/check/check.cpp and
// sim/check/header.cpp alone.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/index.hpp"
#include "sim/check/check.hpp"

namespace stageline {

struct CheckPlace {
  int device = -1;
  int position = -1;
};

using Found = std::function<void(LintFinding)>;

inline LintFinding finding_of(LintRule rule, CheckPlace place, std::string message) {
  LintFinding finding;
  finding.rule = rule;
  finding.device = place.device;
  finding.position = place.position;
  finding.message = std::move(message);
  return finding;
}

/// The program without the ops that cannot be checked, copied only if there are any.
class Rest {
 public:
  explicit Rest(const Program& program) : whole_(program) {}

  const Program& program() const { return part_ ? *part_ : whole_; }
  /// The place in the whole program of an op of program().
  CheckPlace place(CheckPlace place) const {
    if (part_ && place.position >= 0) {
      place.position = nth(nth(position_, place.device), place.position);
    }
    return place;
  }

  /// Drops the ops with a fault and reports them. `fault(place, op)` is a sentence, "" for none.
  template <class Fault>
  void drop(Fault&& fault, const Found& found) {
    Rest next(whole_);
    for (std::size_t device = 0; device < whole_.ops.size(); ++device) {
      const auto& list = program().ops[device];
      for (std::size_t i = 0; i < list.size(); ++i) {
        const CheckPlace at{static_cast<int>(device), static_cast<int>(i)};
        std::string wrong = fault(at, list[i]);
        if (wrong.empty()) continue;
        found(finding_of(LintRule::range, place(at), std::move(wrong)));
        next.part_.emplace();
      }
    }
    if (!next.part_) return;
    next.part_ = program();
    next.position_.resize(whole_.ops.size());
    for (std::size_t device = 0; device < whole_.ops.size(); ++device) {
      const auto& list = program().ops[device];
      auto& kept = next.part_->ops[device];
      kept.clear();
      for (std::size_t i = 0; i < list.size(); ++i) {
        const CheckPlace at{static_cast<int>(device), static_cast<int>(i)};
        if (!fault(at, list[i]).empty()) continue;
        kept.push_back(list[i]);
        next.position_[device].push_back(place(at).position);
      }
    }
    part_ = std::move(next.part_);
    position_ = std::move(next.position_);
  }

 private:
  const Program& whole_;
  std::optional<Program> part_;
  std::vector<std::vector<int>> position_;  // by device: of the ops kept, in the whole program
};

/// Checks the sizes and the placement of the program, and reports their errors. False if its ops
/// cannot be checked.
bool check_header(const Program& program, const Found& found);

}  // namespace stageline
