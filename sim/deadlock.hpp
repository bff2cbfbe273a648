// The error of a program whose ops wait for each other.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/op.hpp"

namespace stageline {

/// A program that cannot finish: `cycle` holds ops that each wait for the next, and the last for
/// the first; what() spells it out; `figure` shows the lists with these ops marked.
struct Deadlock : std::runtime_error {
  Deadlock(const std::string& message, std::vector<Op> around, std::string drawn)
      : std::runtime_error(without_nul(message)),
        cycle(std::move(around)),
        figure(std::move(drawn)) {}
  std::vector<Op> cycle;
  std::string figure;
};

}  // namespace stageline
