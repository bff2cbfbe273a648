// How a scheduler writes a device's list: order.forward(m).backward(m) appends F and B of one stage
// to the device that this stage and micro-batch live on.
#pragma once

#include <cstdint>

#include "sim/base/index.hpp"
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
  /// A forward of this stage and a backward of one on the same device, as one indivisible task.
  Order& pair(std::uint32_t m, Order& other, std::uint32_t back) {
    add(OpKind::forward, m);
    last().overlapped = 1;
    other.add(OpKind::backward, back);
    return *this;
  }

 private:
  Order& add(OpKind kind, std::uint32_t m) {
    const Op op = op_of(kind, stage_, m);
    device_ = as_size(device_of(program_.placement, op));
    program_.ops[device_].push_back(op);
    return *this;
  }
  Op& last() { return program_.ops[device_].back(); }

  Program& program_;
  int stage_;
  std::size_t device_ = 0;  // of the last op
};

}  // namespace stageline
