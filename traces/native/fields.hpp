// The fields of a layer and of the whole run in the native format, in the order in which they are
// written: one table for the reader and the writer.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/model.hpp"

namespace stageline {

inline constexpr std::string_view trace_format = "stageline-trace 1";

/// Whether a field must, may or must not be a list when `batch` is one.
enum class PerBatch : std::uint8_t { must, may, never };

struct TimeField {
  const char* key;
  Time Layer::*member;
  bool required;
  PerBatch per_batch;
};
inline constexpr std::array<TimeField, 13> time_fields{
    {{"forward_us", &Layer::forward, true, PerBatch::must},
     {"input_grad_us", &Layer::input_grad, true, PerBatch::must},
     {"weight_grad_us", &Layer::weight_grad, true, PerBatch::must},
     {"lone_weight_grad_us", &Layer::lone_weight_grad, false, PerBatch::must},
     {"backward_us", &Layer::backward, false, PerBatch::must},
     {"update_us", &Layer::update, false, PerBatch::may},
     {"recompute_us", &Layer::recompute, false, PerBatch::must},
     {"selective_forward_us", &Layer::selective_forward, false, PerBatch::must},
     {"forward_spread_us", &Layer::forward_spread, false, PerBatch::must},
     {"input_grad_spread_us", &Layer::input_grad_spread, false, PerBatch::must},
     {"weight_grad_spread_us", &Layer::weight_grad_spread, false, PerBatch::must},
     {"backward_spread_us", &Layer::backward_spread, false, PerBatch::must},
     {"update_spread_us", &Layer::update_spread, false, PerBatch::may}}};

struct ByteField {
  const char* key;
  Bytes Layer::*member;
  bool required;
  PerBatch per_batch;
};
inline constexpr std::array<ByteField, 16> byte_fields{
    {{"weights_bytes", &Layer::weights, true, PerBatch::never},
     {"tied_weights_bytes", &Layer::tied_weights, false, PerBatch::never},
     {"gradients_bytes", &Layer::gradients, false, PerBatch::never},
     {"optimizer_state_bytes", &Layer::optimizer_state, false, PerBatch::never},
     {"output_bytes", &Layer::output, true, PerBatch::may},
     {"stash_input_grad_bytes", &Layer::stash_input_grad, true, PerBatch::may},
     {"stash_weight_grad_bytes", &Layer::stash_weight_grad, true, PerBatch::may},
     {"stash_gradient_bytes", &Layer::stash_gradient, false, PerBatch::may},
     {"input_kept_bytes", &Layer::input_kept, false, PerBatch::may},
     {"output_kept_bytes", &Layer::output_kept, false, PerBatch::may},
     {"selective_stash_bytes", &Layer::selective_stash, false, PerBatch::may},
     {"workspace_bytes", &Layer::workspace, false, PerBatch::may},
     {"forward_workspace_bytes", &Layer::forward_workspace, false, PerBatch::may},
     {"backward_workspace_bytes", &Layer::backward_workspace, false, PerBatch::may},
     {"input_grad_workspace_bytes", &Layer::input_grad_workspace, false, PerBatch::may},
     {"weight_grad_workspace_bytes", &Layer::weight_grad_workspace, false, PerBatch::may}}};

/// Floating-point operations; 0 by default.
struct FlopsField {
  const char* key;
  std::int64_t Layer::*member;
};
inline constexpr std::array<FlopsField, 3> flops_fields{
    {{"forward_flops", &Layer::forward_flops},
     {"backward_flops", &Layer::backward_flops},
     {"selective_flops", &Layer::selective_flops}}};

/// The fields of "whole" that follow "samples". All are required, as lists where `batch` is one.
struct WholeField {
  const char* key;
  Time WholeRun::*member;
};
inline constexpr std::array<WholeField, 5> whole_fields{{{"forward_us", &WholeRun::forward},
                                                         {"backward_us", &WholeRun::backward},
                                                         {"update_us", &WholeRun::update},
                                                         {"spread_us", &WholeRun::spread},
                                                         {"noise_us", &WholeRun::noise}}};

/// The default of a field that is left out, once the fields before it are known.
inline Time fallback(const TimeField& field, const Layer& layer) {
  return field.member == &Layer::backward ? layer.input_grad + layer.weight_grad : Time{};
}
inline Bytes fallback(const ByteField& field, const Layer& layer) {
  if (field.member == &Layer::forward_workspace || field.member == &Layer::backward_workspace) {
    return layer.workspace;
  }
  if (field.member == &Layer::input_grad_workspace ||
      field.member == &Layer::weight_grad_workspace) {
    return layer.backward_workspace;
  }
  return field.member == &Layer::gradients ? layer.weights : Bytes{};
}

}  // namespace stageline
