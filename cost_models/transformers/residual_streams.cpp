#include "cost_models/transformers/residual_streams.hpp"

namespace stageline {
namespace {

// Weights of a token: to collapse, to expand, and to mix.
std::int64_t weights_of_streams(std::int64_t streams) { return (2 + streams) * streams; }

constexpr std::int64_t stream_scales = 3;

// Forward the weights' kernel reads the streams; backward it reads them, and adds to their
// gradient. Of the streams.
constexpr TensorPasses weighing{1, 3};
// The rounds that make the mix doubly stochastic, in one kernel, made again backward. Of the
// weights in fp32.
constexpr TensorPasses balancing{2, 3};

}  // namespace

std::int64_t stream_weights(const TransformerConfig& config) {
  return weights_of_streams(config.streams) * config.streams * config.hidden;
}

std::int64_t stream_parameters(const TransformerConfig& config) {
  if (config.streams == 0) return 0;
  return stream_weights(config) + weights_of_streams(config.streams) + stream_scales;
}

std::int64_t head_stream_parameters(const TransformerConfig& config) {
  if (config.streams == 0) return 0;
  return config.streams * config.streams * config.hidden + config.streams + 1;
}

void add_head_streams(LayerKernels& passes, const RankSizes& sizes) {
  if (sizes.streams == 0) return;
  const double n = sizes.streams;
  const double hidden = sizes.bytes(sizes.norm_elements());
  add_elementwise(passes, "streams_weights", n * hidden, weighing);
  add_elementwise(passes, "streams_collapse", hidden, {n + 1, 2 * n + 1});
}

void add_streams_before(LayerKernels& passes, const RankSizes& sizes) {
  if (sizes.streams == 0) return;
  const double n = sizes.streams;
  add_elementwise(passes, "streams_balance", single_bytes * sizes.norm_tokens * (2 + n) * n,
                  balancing);
  add_head_streams(passes, sizes);
}

void add_streams_behind(LayerKernels& passes, const RankSizes& sizes) {
  if (sizes.streams == 0) return;
  const double n = sizes.streams;
  add_elementwise(passes, "streams_mix", sizes.bytes(sizes.norm_elements()),
                  {2 * n + 1, 3 * n + 2});
}

StreamBytes kept_by_streams(const RankSizes& sizes) {
  if (sizes.streams == 0) return {};
  const double n = sizes.streams;
  const double weights = sizes.norm_tokens * (2 + n) * n;
  StreamBytes bytes;
  bytes.weight_grad_inputs = sizes.bytes(n * sizes.norm_elements());
  bytes.kept =
      bytes.weight_grad_inputs + sizes.bytes(sizes.norm_elements()) + single_bytes * weights;
  bytes.output_gradients = single_bytes * weights;
  return bytes;
}

double kept_by_head_streams(const RankSizes& sizes) {
  return sizes.bytes(sizes.streams * sizes.norm_elements());
}

}  // namespace stageline
