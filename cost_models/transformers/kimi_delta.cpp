#include "cost_models/transformers/kimi_delta.hpp"

namespace stageline {
namespace {

// What the kernels of the chunked form move, of a token and head with K channels of keys and V of
// values, in elements of 16 bits; fp32 counts twice. From fla-org/flash-linear-attention,
// fla/ops/kda (chunk_fwd.py, chunk_bwd.py, commit bc3b101, 2026-08-22), as transformers and Kimi
// call it: chunks of 64 tokens, the norm of queries and keys and the decay's activation in the
// kernel, and all but the two matrices of a chunk made again backward. That these kernels are bound
// by memory is assumed: nobody measured them here.
struct ScanTraffic {
  double keys;    // passes over K
  double values;  // over V
  double rows;    // over a row of a chunk's matrix
  double states;  // over a state, which a chunk's tokens share
  double small;   // elements
};

// Norms 4K; decays summed up 3K; diagonal blocks of 16 in fp32 4K, 48; both matrices 4K, 2 rows;
// w, u and the decayed keys 5K, 2V, a row; states 2K, 2V, a state; output 3K, 2V, a row, a state.
constexpr ScanTraffic scan_forward{25, 6, 4, 2, 48};
// Decays, w, u, both decayed, and states again 12K, 4V, a row, a state; gradients of a matrix and
// values 3V, 3 rows; of states 3K, 3V, a state; of queries, keys, values and decays 10K, 5V, 3
// rows, 2 states; within chunks 16K, 4 rows; of decays 9K; of norms 8K.
constexpr ScanTraffic scan_backward{58, 15, 11, 4, 0};

double elements(const ScanTraffic& moved, const LinearMixer& linear) {
  const double keys = real(linear.key_width);
  const double values = real(linear.value_width);
  return moved.keys * keys + moved.values * values + moved.rows * delta_chunk +
         moved.states * keys * values / delta_chunk + moved.small;
}

double heads_of(const LinearMixer& linear, const RankSizes& sizes) {
  return real(linear.heads) / sizes.tensor;
}

}  // namespace

void add_kimi_delta(LayerKernels& passes, const LinearMixer& linear, const RankSizes& sizes,
                    const BlockTraffic& traffic) {
  const RankLinear rank = rank_linear(linear, sizes);
  const double low = real(linear.gate_rank);
  const double keys = real(linear.keys()) / sizes.tensor;
  add_linear(passes, "linear_in", sizes.tokens, rank.columns, sizes.hidden);
  add_elementwise(passes, "convolution", sizes.bytes(sizes.tokens * rank.convolved), {2, 4});
  add_linear(passes, "linear_decay", sizes.tokens, keys, low);
  add_linear(passes, "linear_gate", sizes.tokens, rank.values, low);
  const double token_heads = sizes.tokens * heads_of(linear, sizes);
  passes.forward.push_back(
      elementwise("scan", sizes.bytes(token_heads * elements(scan_forward, linear))));
  passes.input_grad.push_back(
      elementwise("scan", sizes.bytes(token_heads * elements(scan_backward, linear))));
  add_elementwise(passes, "linear_norm", sizes.bytes(sizes.tokens * rank.values), traffic.gated);
  add_linear(passes, "linear_out", sizes.tokens, sizes.hidden, rank.values);
}

// The convolution's input; queries and keys as normed, values, decays and rates, and a row of both
// matrices; the gate, and the scan's output; for products the vectors of low rank and what the last
// one reads.
KimiDeltaKept kept_by_kimi_delta(const LinearMixer& linear, const RankSizes& sizes) {
  const RankLinear rank = rank_linear(linear, sizes);
  const double heads = heads_of(linear, sizes);
  const double keys = real(linear.keys()) / sizes.tensor;
  const double low_ranks = 2 * real(linear.gate_rank);
  const double norms_and_rates = heads * (2 * 2 + 2);  // in fp32: of queries and of keys; and rates
  KimiDeltaKept its;
  its.kept = sizes.tokens * (2 * rank.convolved + keys + norms_and_rates + 2 * heads * delta_chunk +
                             2 * rank.values);
  its.for_products = sizes.tokens * (low_ranks + rank.values);
  its.output_gradients = sizes.tokens * (keys + rank.values);  // beside those of linear_in
  return its;
}

}  // namespace stageline
