#include "tools/inputs/encoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cost_models/encoder.hpp"
#include "cost_models/network/rank_grid.hpp"
#include "sim/base/errors.hpp"

namespace stageline {

void check_beside_encoder(const SettingRequest& request) {
  const EncoderDegrees& degrees = request.degrees.encoder;
  if (request.encoder.empty()) {
    if (request.frozen_encoder) {
      throw UsageError(
          "--frozen-encoder is of the encoder that --encoder names; give it, or leave it out");
    }
    if (degrees == EncoderDegrees{}) return;
    throw UsageError(
        "--encoder-pp and --encoder-tp are ranks of the encoder that --encoder names; give it, or "
        "leave them out");
  }
  if (request.degrees_are_searched) {
    throw UsageError(
        "degrees beside an encoder are not searched; compare them with stageline sweep --axis "
        "encoder_pp=1,2 --axis encoder_tp=1,2");
  }
  if (!request.lengths.empty()) {
    throw UsageError("--lengths: sequences of unequal lengths behind an encoder are not priced");
  }
  const auto refused = [](const std::string& partition) {
    return partition.starts_with("simulated") || partition.find('|') != std::string::npos;
  };
  const bool any = refused(request.partition) ||
                   std::any_of(request.partitions.begin(), request.partitions.end(), refused);
  if (any) {
    throw UsageError(
        "--partition: behind an encoder cuts are not searched by simulating, and take no layout; "
        "take balanced, or ranges of layers that end where the encoder does");
  }
  if (request.degrees.pipeline > 0) static_cast<void>(RankGrid(request.degrees));
}

Model behind_opened_encoder(const SettingRequest& request, TraceRequest trace, Model model) {
  trace.text = request.encoder;
  trace.batch = 0;
  trace.sharding = {request.degrees.tensor_of_encoder(), 1, 1, request.sequence_parallel, 0};
  trace.cp_comm_type.clear();
  Model encoder;
  try {
    encoder = open_trace(trace);
  } catch (const UsageError& error) {
    throw UsageError(
        fmt::format("--encoder of --encoder-tp {}: {}", trace.sharding.tensor, error.what()));
  }
  return with_encoder(std::move(encoder), std::move(model), request.degrees,
                      request.frozen_encoder);
}

}  // namespace stageline
