// The vocabulary of a model divided among the devices of its pipeline (Yeung et al. 2024, arXiv
// 2411.05288): of the first layer, which looks it up, and of the last, which has the logits.
#pragma once

#include "sim/costs.hpp"
#include "sim/model.hpp"

namespace stageline {

/// The layers between the two, unchanged, and behind the last of them `shares` layers beside each
/// other ("head.0" …); with `loss`, one more that reads them all. A share has an equal part of
///   - the head's times, FLOPs and what it keeps and works on, but the whole of its input, and in
///     its workspaces the whole of that input's gradient;
///   - weights, gradients, optimizer state and update of both ends, tied weights once;
/// and all of the embedding's passes, since each device writes every row (zeros where the token is
/// another's). The first layer between keeps what the embedding keeps. A share gives the loss three
/// numbers a row (maximum, sum, the target's logit), where the head's output is one.
///
/// Divided evenly, a product has the efficiency of the whole one.
///
/// Throws UsageError unless the first layer is of kind "embedding", read by the next one alone, and
/// the last of kind "head", which reads the one before alone.
Model spread_vocabulary(const Model& model, int shares, bool loss);

/// Makes collectives of the messages between the last stage of the pipeline (shares - 1) and the
/// shares behind it (shares to 2·shares - 1), the last of which is on its device: each of the
/// others moves such a part of the hidden state that together they take a ring's time. That of a
/// broadcast is its bytes, that of the gradient's all-reduce 2·(shares - 1)/shares times its bytes.
void exchange_in_rings(Costs& costs, int shares);

}  // namespace stageline
