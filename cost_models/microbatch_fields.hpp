// What of a layer grows with its micro-batch. Weights, their gradients, the optimizer's state and
// its step do not.
#pragma once

#include <array>
#include <cstdint>

#include "sim/model.hpp"

namespace stageline {

inline constexpr std::array<Time Layer::*, 11> microbatch_times{
    &Layer::forward,          &Layer::input_grad,        &Layer::weight_grad,
    &Layer::lone_weight_grad, &Layer::backward,          &Layer::recompute,
    &Layer::forward_spread,   &Layer::input_grad_spread, &Layer::weight_grad_spread,
    &Layer::backward_spread,  &Layer::selective_forward};
inline constexpr std::array<Bytes Layer::*, 12> microbatch_sizes{&Layer::forward_workspace,
                                                                 &Layer::backward_workspace,
                                                                 &Layer::input_grad_workspace,
                                                                 &Layer::weight_grad_workspace,
                                                                 &Layer::output,
                                                                 &Layer::stash_input_grad,
                                                                 &Layer::stash_weight_grad,
                                                                 &Layer::stash_gradient,
                                                                 &Layer::input_kept,
                                                                 &Layer::output_kept,
                                                                 &Layer::selective_stash,
                                                                 &Layer::workspace};
inline constexpr std::array<std::int64_t Layer::*, 3> microbatch_flops{
    &Layer::forward_flops, &Layer::backward_flops, &Layer::selective_flops};

}  // namespace stageline
