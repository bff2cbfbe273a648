// How a scheduler writes a device's list: order.forward(m).backward(m) appends F and B of one stage
// to the device that this stage and micro-batch live on.
#pragma once

#include <cstdint>

#include "sim/program.hpp"

namespace stageline {

class Order {
 public:
  Order(Program& program, int stage) : program_(program), stage_(stage) {}

  Order& forward(std::uint32_t m) { return add(OpKind::forward, m); }
  Order& backward(std::uint32_t m) { return add(OpKind::backward, m); }
  Order& input_grad(std::uint32_t m) { return add(OpKind::input_grad, m); }
  Order& weight_grad(std::uint32_t m) { return add(OpKind::weight_grad, m); }
  Order& recompute(std::uint32_t m) { return add(OpKind::recompute, m); }

 private:
  Order& add(OpKind kind, std::uint32_t m) {
    Op op;
    op.kind = kind;
    op.stage = static_cast<std::uint16_t>(stage_);
    op.microbatch = m;
    program_.ops[static_cast<std::size_t>(device_of(program_.placement, op))].push_back(op);
    return *this;
  }

  Program& program_;
  int stage_;
};

}  // namespace stageline
