// The rebuilt assignment of LayerPipe, and PipeDream's, as periods: the slowest piece of a chain.
#pragma once

#include "schedulers/partition/chain_cut.hpp"
#include "sim/model.hpp"

namespace stageline::lab {

/// Whole layers on `processors` (at least 1), communication free: PipeDream without replicas.
Time pipedream_period(const Model& model, int processors);

/// [I_l] F_l W_l with each I in at most two pieces, as `division` allows.
Time layerpipe_period(const Model& model, int processors, Division division);

/// Speed-up: PipeDream's period over LayerPipe's.
double layerpipe_gain(const Model& model, int processors, Division division);

}  // namespace stageline::lab
