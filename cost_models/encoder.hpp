// An encoder of images or sound before a language model, trained with it.
#pragma once

#include "sim/degrees.hpp"
#include "sim/model.hpp"

namespace stageline {

/// Both as one model of the degrees of a run: the encoder's layers, without a last one that is
/// called "head", then the model's, the first of which reads what no layer of the encoder does.
/// A frozen encoder keeps its forward alone: nothing is stashed for a backward, and no gradient is
/// sent to it, reduced or applied. Both are of one micro-batch, so that each of the model's has the
/// encoder's batch of samples before it. Batch, sample, tokens, sharding and peak are the model's;
/// parameters are those of both, or unknown. Throws UsageError, which names the flag to change,
/// where the encoder's layers are not those of a rank of its degrees; where only one of the two has
/// bytes; and where sequence parallelism divides what the encoder hands on among more ranks than
/// the model has, or divides one of the two alone.
Model with_encoder(Model encoder, Model model, const Degrees& degrees, bool frozen = false);

/// The model behind its encoder, and the encoder alone.
Model behind_encoder(const Model& model);
Model encoder_of(const Model& model);

}  // namespace stageline
