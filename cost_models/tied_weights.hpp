// Weights that two layers share: the output layer's, where they are the embedding's (tied
// embeddings). A device that runs both layers holds them once; where the layers are on different
// devices, each holds a copy, and their gradients are added up. Layer::tied_weights says how many
// bytes of a layer's weights are those of the model's first layer.
#pragma once

#include "sim/model.hpp"
#include "sim/placement.hpp"

namespace stageline {

/// Whether a layer has some of the first layer's weights.
bool has_tied_weights(const Model& model);

/// bytes · part / whole, rounded down. 0 <= part <= whole, whole > 0.
Bytes portion(Bytes bytes, Bytes part, Bytes whole);

/// The model where one device has all layers. Tied weights are left out of a layer's weights,
/// gradients, optimizer state and update, each in proportion to the weights, and are its
/// `shared_weights`.
Model held_once(Model model);

/// The optimizer's step of that model.
Time update_once(const Model& model);

/// Whether every device of `stage` is one of `owner` in the same role.
bool shares_devices(const StagePlace& stage, const StagePlace& owner);

/// The model as the devices of a placement hold it: as held_once() says for layers whose stage
/// shares its devices with the first layer's stage, unchanged elsewhere. The partition is one of
/// the model's layers into the stages of the placement.
Model held_on(Model model, const Partition& partition, const Placement& placement);

/// Whether some stage holds a copy of weights that are on another device, too.
bool holds_copies(const Model& model, const Partition& partition, const Placement& placement);

}  // namespace stageline
