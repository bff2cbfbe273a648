// What ops make for one another, and a number for each such product.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/op.hpp"
#include "sim/program.hpp"
#include "sim/wires.hpp"

namespace stageline {

/// The kinds of products that ops make for one another. A product has an index (a stage, or for
/// `sent_*` a wire of that cargo), a number (a micro-batch; for `sent_weights`, `reduced` and
/// `updated` an update) and a part.
enum class Product : std::uint8_t {
  activation,       // by F
  gradient,         // of the stage's input; by I (a part each) or B
  weight_gradient,  // by W or B
  rebuilt,          // stash; by R, part = reader (sim/stash_readers.hpp)
  offloaded,        // what F leaves for the backward; by OFFLOAD
  prefetched,       // the same; by PREFETCH, part = reader
  sent_activation,  // by a SEND_F and its RECV_F together
  sent_gradient,    // by a SEND_B and its RECV_B together
  sent_stash,       // by a SEND_STASH and its RECV_STASH together
  sent_weights,     // by a SEND_WEIGHTS and its RECV_WEIGHTS together; numbered as updates
  reduced,          // by REDUCE_GRAD, part = replica
  updated,          // by U, part = replica; only where another op waits for it
};
inline constexpr int products = 12;

constexpr Product sent(Cargo cargo) {
  return static_cast<Product>(static_cast<int>(Product::sent_activation) + static_cast<int>(cargo));
}
constexpr std::optional<Cargo> cargo_of(Product product) {
  if (product < Product::sent_activation || product > Product::sent_weights) return std::nullopt;
  return static_cast<Cargo>(static_cast<int>(product) - static_cast<int>(Product::sent_activation));
}

/// The products that differ in their number alone: one kind, one stage or wire, one part.
/// Number n has the index first + n * step, for n < length.
struct ProductSeries {
  std::size_t first = 0;
  std::uint32_t step = 1;
  std::uint32_t length = 0;
  std::size_t id = 0;  // of the series, < ProductIndex::series_count()
};

/// Indices of products, so that a flat array can hold a value for each. Only the kinds of product
/// that the program makes have indices; of anything else index() is -1.
class ProductIndex {
 public:
  explicit ProductIndex(const Program& program, const StageGraph& graph);

  std::size_t size() const { return size_; }
  std::size_t series_count() const { return series_count_; }
  /// Whether the program has an op of that kind; and a power of two that all parts are less than.
  bool has(OpKind kind) const { return (kinds_ >> static_cast<unsigned>(kind) & 1U) != 0; }
  unsigned part_limit() const { return part_limit_; }
  bool has(Product product) const { return row_[static_cast<std::size_t>(product)].columns > 0; }
  std::int64_t index(Product product, int stage_or_edge, std::uint32_t number, int part) const {
    const Row& row = row_[static_cast<std::size_t>(product)];
    if (number >= row.columns || part >= row.parts || stage_or_edge < 0) return -1;
    return row.base + stage_or_edge * row.stride + static_cast<std::int64_t>(number) * row.parts +
           part;
  }
  /// The series of a product; where nothing has an index, a series of length 0.
  ProductSeries series(Product product, int stage_or_edge, int part) const {
    const Row& row = row_[static_cast<std::size_t>(product)];
    const std::int64_t first = index(product, stage_or_edge, 0, part);
    if (first < 0) return {};
    const std::int64_t id =
        row.first_series + std::int64_t{stage_or_edge} * row.parts + std::int64_t{part};
    return {static_cast<std::size_t>(first), static_cast<std::uint32_t>(row.parts), row.columns,
            static_cast<std::size_t>(id)};
  }

 private:
  struct Row {
    std::int64_t base = 0;
    std::int64_t stride = 0;        // from stage to stage
    std::int64_t first_series = 0;  // of stage 0, part 0
    std::uint32_t columns = 0;      // 0: not made
    int parts = 1;
  };
  Row row_[products];
  std::size_t size_ = 0;
  std::size_t series_count_ = 0;
  std::uint32_t kinds_ = 0;  // a bit per OpKind
  unsigned part_limit_ = 1;
};

/// By stage, the micro-batches that have an I. A first stage may have none; its W then takes the
/// output gradient, which B or I take otherwise.
class InputGrads {
 public:
  explicit InputGrads(const Program& program) : there_(program.placement.stage.size()) {
    for (const auto& list : program.ops) {
      for (const Op op : list) {
        if (op.kind != OpKind::input_grad) continue;
        there_[op.stage].resize(program.total_microbatches());
        there_[op.stage][op.microbatch] = true;
      }
    }
  }

  bool has(int stage, std::uint32_t microbatch) const {
    const std::vector<bool>& here = there_[static_cast<std::size_t>(stage)];
    return !here.empty() && here[microbatch];
  }

  /// The op before which a message with the output gradient arrives.
  bool takes_output_gradient(Op op) const {
    return op.kind == OpKind::backward || op.kind == OpKind::input_grad ||
           (op.kind == OpKind::weight_grad && !has(op.stage, op.microbatch));
  }

 private:
  std::vector<std::vector<bool>> there_;  // stages × micro-batches; empty for a stage without I
};

}  // namespace stageline
