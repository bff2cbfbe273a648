// Kernels of a layer with a state of constant size: gated delta rule, Mamba 2, lightning attention.
//
//   linear_in ─► [ convolution ] ─► scan ─► linear_norm (gated) ─► linear_out
//   Mamba 1: between convolution and scan ─► linear_select ─► linear_step, which make B, C and
//   steps short convolution: no scan; a gate before and one behind it
//   Kimi Linear: kimi_delta.hpp
//
// Products are exact. The scan is assumed to be bound by memory: it reads queries, keys and values,
// writes its output, and between chunks of tokens writes and reads a state in fp32; backward reads
// them again with the gradient, makes the states again, and writes the gradients. Nobody measured
// it here.
#include "cost_models/transformers/kimi_delta.hpp"

namespace stageline {

void add_linear_mixer(LayerKernels& passes, const LinearMixer& linear, const RankSizes& sizes,
                      const BlockTraffic& traffic) {
  if (linear.kind == LinearKind::kimi_delta) {
    add_kimi_delta(passes, linear, sizes, traffic);
    return;
  }
  const RankLinear rank = rank_linear(linear, sizes);
  add_linear(passes, "linear_in", sizes.tokens, rank.columns, sizes.hidden);
  if (linear.taps > 0) {
    add_elementwise(passes, "convolution", sizes.bytes(sizes.tokens * rank.convolved), {2, 4});
  }
  if (linear.kind == LinearKind::selective) {
    const double rank_of_steps = real(linear.step_rank);
    add_linear(passes, "linear_select", sizes.tokens, rank_of_steps + 2 * real(linear.key_width),
               rank.values);
    add_linear(passes, "linear_step", sizes.tokens, rank.values, rank_of_steps);
  }
  if (linear.kind == LinearKind::convolution) {
    add_elementwise(passes, "linear_gates", sizes.bytes(sizes.tokens * rank.values),
                    {2 * traffic.gated.forward, 2 * traffic.gated.input_grad});
    add_linear(passes, "linear_out", sizes.tokens, sizes.hidden, rank.values);
    return;
  }
  const double states = 2 * single_bytes * sizes.tokens * rank.states;
  const double moved = sizes.bytes(sizes.tokens * (rank.read + rank.values));
  passes.forward.push_back(elementwise("scan", moved + states));
  passes.input_grad.push_back(elementwise("scan", 2 * moved + 2 * states));
  add_elementwise(passes, "linear_norm", sizes.bytes(sizes.tokens * rank.values), traffic.gated);
  add_linear(passes, "linear_out", sizes.tokens, sizes.hidden, rank.values);
}

}  // namespace stageline
