// Slices of sequences: what schedules that cut sequences pass through the pipeline one behind the
// other.
#pragma once

#include <cstdint>
#include <string>

#include "sim/model.hpp"

namespace stageline {

/// Throws UsageError, with the nearest numbers that do, unless so many equal slices make up a
/// sequence of `tokens`, each of whole tokens on every rank that it is divided among. `model`: its
/// name, for the message.
void check_slices(const std::string& model, std::int64_t tokens, const Sharding& sharding,
                  int slices);

/// The model of one of `slices` equal shares of a micro-batch, where nothing but the whole is
/// known: times and bytes divided and rounded up, those of weights and updates whole. For times a
/// lower bound: launches do not get shorter, nor do smaller products run as efficiently.
Model equal_share(Model model, int slices);

}  // namespace stageline
