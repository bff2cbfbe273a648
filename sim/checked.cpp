// Checked sums and products.
#include "sim/checked.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/errors.hpp"

namespace stageline {
namespace {

[[noreturn]] void refuse_sum() {
  throw UsageError(
      "the collectives of a stage take longer than 106 days, the most that picoseconds in 64 bits "
      "can say; check the units of times and links");
}

}  // namespace

Time checked_sum(Time one, Time other) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(one.count(), other.count(), &sum)) refuse_sum();
  return Time{sum};
}

Time checked_product(Time time, std::int64_t times) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(time.count(), times, &product)) refuse_sum();
  return Time{product};
}

Bandwidth side_by_side(Bandwidth bandwidth, std::int64_t links) {
  std::int64_t sum = 0;
  if (__builtin_mul_overflow(bandwidth.bytes_per_second, links, &sum)) {
    return Bandwidth::unlimited();
  }
  return {sum};
}

void check_product(const Degrees& degrees) {
  const std::int64_t of_encoder = std::int64_t{std::max(degrees.encoder.pipeline, 0)} *
                                  degrees.tensor_of_encoder() * degrees.context;
  if (of_encoder > most_ranks || of_encoder * degrees.data > most_ranks) {
    throw UsageError(fmt::format(
        "--encoder-pp {} × --encoder-tp {} × --cp {} × --dp {} are more than {} devices; take "
        "smaller degrees",
        degrees.encoder.pipeline, degrees.tensor_of_encoder(), degrees.context, degrees.data,
        most_ranks));
  }
  std::int64_t product = 1;
  for (const int degree :
       {degrees.tensor, degrees.context, degrees.data, std::max(degrees.pipeline, 1)}) {
    product *= degree;
    if (product <= most_ranks) continue;
    throw UsageError(fmt::format(
        "--tp {} × --cp {} × --dp {}{} are more than {} devices; take smaller degrees",
        degrees.tensor, degrees.context, degrees.data,
        degrees.pipeline > 0 ? fmt::format(" × --pp {}", degrees.pipeline) : "", most_ranks));
  }
}

}  // namespace stageline
