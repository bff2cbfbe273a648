// Sequences of unequal lengths: how many tokens those of each micro-batch have, and in which order.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model.hpp"
#include "sim/program.hpp"

namespace stageline {

/// In which order a step takes its micro-batches. given: as stated; ascending, descending: by what
/// they cost; snake: the cheapest first and last, and so inwards to the dearest; balanced: their
/// documents are dealt anew, the dearest first, each to the cheapest micro-batch that has room, and
/// then as snake. Heuristics all.
enum class LengthsOrder : std::uint8_t { given, ascending, descending, snake, balanced };
inline constexpr std::array all_lengths_orders{LengthsOrder::given, LengthsOrder::ascending,
                                               LengthsOrder::descending, LengthsOrder::snake,
                                               LengthsOrder::balanced};
std::string_view name(LengthsOrder order);

/// Documents of each sequence of micro-batch n of a pipeline's step, by n. `text`:
///   * "2048,4096,512+1536", tokens, those of documents that one sequence packs joined by "+";
///   * "lognormal(MEAN,SIGMA)", of which each is drawn, the same ones every time, SIGMA of the
///     logarithm, rounded up to a multiple of `step`;
///   * a file with such numbers, between white space or commas;
///   * "packed:N:" before one of these, whose documents are packed one behind the other, a new
///     sequence beginning where one would have more than N tokens.
/// Throws UsageError unless there are as many as `microbatches`, each of 1 to 2^30 tokens.
std::vector<Documents> lengths_of(const std::string& text, int microbatches, std::int64_t step);

/// Tokens of sequences that pack no documents. Throws UsageError where one does.
std::vector<std::int64_t> plain_tokens(const std::vector<Documents>& lengths);

/// How many micro-batches `text` is of; 0: any number, which are drawn. Throws as lengths_of().
int count_of_lengths(const std::string& text);

/// What drawn lengths are multiples of, so that the ranks of a sharding have equal parts of a
/// sequence and, under context parallelism, of each of its halves.
std::int64_t length_step(const Sharding& sharding);

/// In that order. `cost` of documents in one micro-batch grows with each of them. `balanced` leaves
/// as they are those that it finds no room for within the most tokens of a given one.
std::vector<Documents> ordered(std::vector<Documents> lengths, LengthsOrder order,
                               const std::function<double(const Documents&)>& cost);

}  // namespace stageline
