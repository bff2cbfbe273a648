// Finds the patterns: asks the rules about one op, and notes whether the answer depends on its
// number.
#include "sim/lower/patterns.hpp"

#include <algorithm>

namespace stageline {
namespace {

constexpr std::uint32_t longest_step = 255;

}  // namespace

OpPatterns::OpPatterns(const Program& program, const StageGraph& stages, const ProductIndex& index,
                       const std::vector<Slot>& slots)
    : program_(program),
      stages_(stages),
      index_(index),
      slots_(slots),
      extent_(index.series_count(), Extent::unknown) {
  constexpr unsigned most_parts = 4;  // more take the general way
  parts_ = std::min(index.part_limit(), most_parts);
  for (std::size_t kind = 0; kind < op_kinds; ++kind) {
    if (index.has(static_cast<OpKind>(kind))) rank_[kind] = static_cast<std::uint8_t>(kinds_++);
  }
  patterns_.resize(program.placement.stage.size() * kinds_ * parts_);
  none_.makes_known = true;
  none_.needs_known = true;
}

void OpPatterns::find_makes(OpPattern& pattern, Op op) const {
  pattern.makes_known = true;
  if (index_.size() >= OpPattern::never) return;
  pattern.limit = program_.total_microbatches();
  for (std::uint32_t& spare : pattern.make_first) spare = static_cast<std::uint32_t>(index_.size());
  std::size_t found = 0;
  makes(stages_, op, [&](Product product, int at, std::uint32_t number, int part) {
    const ProductSeries series = index_.series(product, at, part);
    const bool fits =
        number == op.microbatch && found < OpPattern::most_makes && series.step <= longest_step;
    pattern.limit = fits ? std::min(pattern.limit, series.length) : 0;
    if (!fits || series.length == 0) return;
    pattern.make_first[found] = static_cast<std::uint32_t>(series.first);
    pattern.make_step[found++] = static_cast<std::uint8_t>(series.step);
  });
}

// Whether all ops that make the product of that stage are in that lane.
bool OpPatterns::made_in_lane(std::uint16_t lane, Product product, int stage, int part) {
  if (cargo_of(product) || lane >= OpPattern::several) return false;
  bool all = true;
  for (std::size_t kind = 0; kind < op_kinds; ++kind) {
    if (cargo_of(static_cast<OpKind>(kind)) || !index_.has(static_cast<OpKind>(kind))) continue;
    for (const int op_part : {0, part}) {
      const Op op = op_of(static_cast<OpKind>(kind), stage, 0, op_part);
      makes(stages_, op, [&](Product made, int, std::uint32_t, int made_part) {
        if (made != product || made_part != part) return;
        const std::uint16_t maker = of(op).lane;
        all = all && (maker == lane || maker == OpPattern::no_lane) && owns(of(op));
      });
    }
  }
  return all;
}

// The first number from which the rules treat all numbers alike; `never` where they do not.
std::uint32_t OpPatterns::regular_from(Op op) const {
  const StagePlace& place = program_.placement.stage[op.stage];
  const ProgramSettings& settings = program_.settings;
  if (settings.sequence_chunks != 1 || settings.clock != Clock::free || place.apart() ||
      op.kind == OpKind::update || op.kind == OpKind::reduce_grad) {
    return OpPattern::never;
  }
  if (op.kind == OpKind::prefetch && settings.copies == Copies::issued) return OpPattern::never;
  if (op.kind != OpKind::forward && op.kind != OpKind::prefetch) return 0;
  const auto of_stage = [&](const std::vector<int>& by_stage) {
    return by_stage.empty() ? 0 : std::max(by_stage[op.stage], 0);
  };
  const auto buffers = static_cast<std::uint32_t>(copy_buffers(settings.copies)) *
                       static_cast<std::uint32_t>(place.replicas.size());
  const auto delay = static_cast<std::uint32_t>(of_stage(settings.delay)) + 1;
  return std::max({delay, static_cast<std::uint32_t>(of_stage(settings.window)), buffers});
}

OpPatterns::Extent OpPatterns::extent_of(const ProductSeries& series) {
  Extent& extent = extent_[series.id];
  if (extent != Extent::unknown) return extent;
  std::uint32_t made = 0;
  for (std::uint32_t number = 0; number < series.length; ++number) {
    made += slots_[series.first + std::size_t{number} * series.step] != nobody ? 1U : 0U;
  }
  extent = made == 0 ? Extent::none : made == series.length ? Extent::all : Extent::some;
  return extent;
}

// An update needs the weight gradients of its micro-batches, unless it needs their reduction or has
// to wait for a reader of the old weights.
void OpPatterns::find_span(OpPattern& pattern, Op op) {
  const ProductSeries gradients = index_.series(Product::weight_gradient, op.stage, 0);
  if (gradients.length < program_.total_microbatches() || gradients.step > longest_step) return;
  if (op.kind == OpKind::update) {
    const ProductSeries reduced = index_.series(Product::reduced, op.stage, op.part);
    if (reduced.length > 0 && extent_of(reduced) != Extent::none) return;
    if (program_.settings.weights == WeightRule::latest && !program_.settings.delay.empty()) return;
  }
  pattern.span = static_cast<std::uint32_t>(microbatches_per_update(program_, op.stage));
  pattern.need_first[0] = static_cast<std::uint32_t>(gradients.first);
  pattern.need_step[0] = static_cast<std::uint8_t>(gradients.step);
}

void OpPatterns::find_needs(OpPattern& pattern, Op op) {
  pattern.needs_known = true;
  if (pattern.limit == 0) return;
  if (op.kind == OpKind::update || op.kind == OpKind::reduce_grad) find_span(pattern, op);
  const std::uint32_t from = regular_from(op);
  if (from >= pattern.limit) return;
  op.microbatch = std::max(op.microbatch, from);
  if (op.microbatch >= pattern.limit) return;
  // The answers hold for every number if the same holds for the whole of each series in question.
  bool regular = true;
  const auto reaches_back = [&](const ProductSeries& series, std::uint32_t number) {
    return number <= op.microbatch && series.length >= program_.total_microbatches();
  };
  needs(
      program_, stages_, op,
      [&](Product product, int at, std::uint32_t number, int part) {
        const ProductSeries series = index_.series(product, at, part);
        if (series.length == 0) return false;
        const Extent extent = extent_of(series);
        regular = regular && extent != Extent::some && reaches_back(series, number);
        return extent == Extent::all;
      },
      [&](Product product, int at, std::uint32_t number, int part) {
        const ProductSeries series = index_.series(product, at, part);
        if (!reaches_back(series, number) || pattern.needs == OpPattern::most_needs ||
            series.step > longest_step) {
          regular = false;
        }
        if (!regular) return;
        const std::uint32_t back = op.microbatch - number;
        const std::uint32_t i = pattern.needs++;
        pattern.need_first[i] = static_cast<std::uint32_t>(series.first) - back * series.step;
        pattern.need_step[i] = static_cast<std::uint8_t>(series.step);
        if (made_in_lane(pattern.lane, product, at, part)) {
          pattern.in_lane = static_cast<std::uint8_t>(pattern.in_lane | 1U << i);
        }
      });
  if (regular) pattern.from = from;
}

}  // namespace stageline
