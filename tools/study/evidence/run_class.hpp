// The classes of runs by which the error of a prediction differs.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "cost_models/network/ranked_cluster.hpp"
#include "sim/model.hpp"

namespace stageline {

/// In the order of weight: a class with too few runs is widened by its last trait first.
///   software  known, unknown: whether the question states a generation
///   kind      dense, experts
///   chip      a100, h100, b200 (B300, too), gb200 (GB300, too), other: boards as published runs
///             have them, SXM
///   products  16, quantized (8 or 4 bits), 32
///   sharding  whole, sharded: gradients or weights divided among machines (ZeRO 2, 3, FSDP)
///   context   short, long: more than 8,192 tokens a sequence
inline constexpr std::array<std::string_view, 6> run_traits{"software", "kind",     "chip",
                                                            "products", "sharding", "context"};
inline constexpr std::size_t chip_trait = 2;

/// The word for a chip that no published run was held on.
inline constexpr const char* other_chip = "other";

/// A word for each trait; "*": any.
using RunClass = std::array<std::string, run_traits.size()>;
inline constexpr const char* any_word = "*";

/// The class of a run, all traits stated. `ranked`: null without degrees. Empty for a trace that is
/// no language model of ours: given times, whose composition is exact arithmetic, measured ones,
/// and models priced by a roofline, which is a bound; and for one behind an encoder, of which none
/// was published.
std::optional<RunClass> run_class(const Model& model, const RankedCluster* ranked);

/// With the first `stated` traits alone.
RunClass widened(RunClass of, std::size_t stated);

/// "models with experts on H100 with 16-bit products".
std::string words_of(const RunClass& of);

}  // namespace stageline
