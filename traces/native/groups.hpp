// What a native trace says of groups of ranks: the degrees that divide its layers, and the layers'
// collectives.
#pragma once

#include <string>
#include <vector>

#include "sim/model.hpp"
#include "traces/json/tree.hpp"
#include "traces/native/sizes.hpp"

namespace stageline {

/// The value of "sharding". Throws TraceError.
Sharding read_sharding(const JsonNode& node);

/// The value of "collectives" of a layer, at every batch size. Throws TraceError.
std::vector<std::vector<LayerCollective>> read_collectives(const JsonNode& node,
                                                           const TraceSizes& batches);

/// Microseconds with as many decimals as needed, at most six: exact.
std::string in_microseconds(Time time);

/// The same as text.
std::string sharding_text(const Sharding& sharding);
/// `by_size`: of one layer at every batch size; they differ in bytes and in the times
/// of products beside them. `indent`: of each item.
std::string collectives_text(const std::vector<const std::vector<LayerCollective>*>& by_size,
                             std::string_view indent);

/// Whether they differ in bytes and in the times of products beside them at most.
bool same_exchange(const std::vector<LayerCollective>& one,
                   const std::vector<LayerCollective>& other);

}  // namespace stageline
