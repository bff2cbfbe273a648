// The bricks of a layer's passes, and what elementwise kernels read and write.
#include "cost_models/transformers/passes.hpp"

namespace stageline {
namespace {

constexpr BlockTraffic megatron(double mask) {
  return {.norm = {2, 3},
          .add = {3 + mask, 2 + mask},
          .softmax = {4 + mask, 5 + mask},
          .activation = {4, 5},
          .gated = {5, 8},
          .rotary = {10, 10}};
}

// The add's backward alone reads the gradient of the residual, into the norm's sum; with dropout it
// makes a second gradient. Softmax with dropout writes both the probabilities and those that are
// left, and its backward reads the mask.
constexpr BlockTraffic compiled(double mask, bool dropout) {
  return {.norm = {2, 3},
          .add = dropout ? TensorPasses{3 + mask, 3 + mask} : TensorPasses{3, 1},
          .softmax = dropout ? TensorPasses{3 + mask, 3 + mask} : TensorPasses{2, 3},
          .activation = {2, 3},
          .gated = {3, 5},
          .rotary = {2, 2}};
}

}  // namespace

BlockTraffic block_traffic(const LanguageForm& form) {
  const double mask = 1 / form.element_bytes;  // a byte an element
  return form.fused ? compiled(mask, form.dropout) : megatron(mask);
}

Kernel product(std::string_view name, double rows, double columns, double inner) {
  Kernel kernel;
  kernel.name = name;
  kernel.kind = KernelKind::gemm;
  kernel.rows = rows;
  kernel.columns = columns;
  kernel.inner = inner;
  kernel.flops = 2 * rows * columns * inner;
  return kernel;
}

Kernel elementwise(std::string_view name, double bytes) {
  Kernel kernel;
  kernel.name = name;
  kernel.kind = KernelKind::elementwise;
  kernel.bytes = bytes;
  return kernel;
}

void add_linear(LayerKernels& passes, std::string_view name, double rows, double columns,
                double inner) {
  passes.forward.push_back(product(name, rows, columns, inner));
  passes.input_grad.push_back(product(name, rows, inner, columns));
  passes.weight_grad.push_back(product(name, rows, columns, inner));
}

// Weights are read, and gradients read and written where they are added up (Megatron-LM's
// gradient_accumulation_fusion).
void add_grouped(LayerKernels& passes, std::string_view name, const RankSizes& sizes, double rows,
                 double columns, double inner, double count) {
  const double weights = count * columns * inner;
  const auto grouped = [&](double n, double k, double element_bytes) {
    Kernel kernel = product(name, rows, n, k);
    kernel.kind = KernelKind::grouped;
    kernel.count = count;
    kernel.flops *= count;
    kernel.bytes = element_bytes * weights;
    return kernel;
  };
  passes.forward.push_back(grouped(columns, inner, sizes.operand_bytes));
  passes.input_grad.push_back(grouped(inner, columns, sizes.operand_bytes));
  passes.weight_grad.push_back(grouped(columns, inner, 2 * sizes.main_gradient_bytes));
}

void add_wide_linear(LayerKernels& passes, std::string_view name, double rows, double columns,
                     double inner) {
  add_linear(passes, name, rows, columns, inner);
  for (auto* pass : {&passes.forward, &passes.input_grad, &passes.weight_grad}) {
    pass->back().wide = true;
  }
}

void add_elementwise(LayerKernels& passes, std::string_view name, double bytes,
                     const TensorPasses& tensors) {
  if (tensors.forward > 0) passes.forward.push_back(elementwise(name, bytes * tensors.forward));
  if (tensors.input_grad > 0) {
    passes.input_grad.push_back(elementwise(name, bytes * tensors.input_grad));
  }
}

}  // namespace stageline
