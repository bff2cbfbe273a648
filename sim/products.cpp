// Numbers for the products that a program makes.
#include "sim/products.hpp"

#include <algorithm>
#include <bit>

#include "sim/base/index.hpp"
#include "sim/rules.hpp"

namespace stageline {
namespace {

// The product of a compute op or a copy that may come in parts.
std::optional<Product> product_in_parts(OpKind kind) {
  if (kind == OpKind::input_grad) return Product::gradient;
  if (kind == OpKind::recompute) return Product::rebuilt;
  if (kind == OpKind::prefetch) return Product::prefetched;
  return std::nullopt;
}

}  // namespace

ProductIndex::ProductIndex(const Program& program, const StageGraph& graph) {
  for (Row& row : row_) row.columns = program.total_microbatches();
  // Numbered as updates are, and one a replica.
  Row by_update;
  by_update.columns = 1;
  for (const StagePlace& place : program.placement.stage) {
    by_update.parts = std::max(by_update.parts, static_cast<int>(place.replicas.size()));
  }
  for (int s = 0; s < program.stages(); ++s) {
    by_update.columns =
        std::max(by_update.columns, static_cast<std::uint32_t>(updates(program, s)));
  }
  nth(row_, Product::reduced) = by_update;
  nth(row_, Product::updated) = by_update;
  std::uint32_t kinds = 0;
  unsigned part_bits = 0;
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      kinds |= 1U << static_cast<unsigned>(op.kind);
      part_bits |= op.part;
      if (op.part == 0) continue;
      if (const std::optional<Product> product = product_in_parts(op.kind)) {
        int& parts = nth(row_, *product).parts;
        parts = std::max(parts, op.part + 1);
      }
    }
  }
  kinds_ = kinds;
  part_limit_ = std::bit_ceil(part_bits + 1);
  bool made[products] = {};
  for (std::size_t kind = 0; kind < op_kinds; ++kind) {
    if (!has(static_cast<OpKind>(kind))) continue;
    Op op;
    op.kind = static_cast<OpKind>(kind);
    // Only the kind of product counts here: the op is of stage 0, and its edge may not exist.
    makes(graph, op, [&](Product product, int, std::uint32_t, int) { nth(made, product) = true; });
  }
  std::int64_t base = 0;
  for (std::size_t product = 0; product < products; ++product) {
    Row& row = row_[product];
    if (!made[product]) {
      row.columns = 0;
      continue;
    }
    const auto cargo = cargo_of(static_cast<Product>(product));
    const std::size_t rows = cargo ? nth(graph.wires, *cargo).size() : graph.in.size();
    row.base = base;
    // An odd number of cache lines (16 numbers of 4 bytes) apart, for stages are walked side by
    // side: micro-batches in powers of two would put them all in one set of the cache.
    row.stride = 16 * ((static_cast<std::int64_t>(row.columns) * row.parts / 16 + 1) | 1);
    base += static_cast<std::int64_t>(rows) * row.stride;
    row.first_series = static_cast<std::int64_t>(series_count_);
    series_count_ += rows * static_cast<std::size_t>(row.parts);
  }
  size_ = as_size(base);
}

}  // namespace stageline
