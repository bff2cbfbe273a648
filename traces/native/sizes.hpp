// Numbers that a native trace gives once, or once per batch size.
#pragma once

#include <fmt/core.h>

#include <vector>

#include "traces/json/tree.hpp"
#include "traces/native/fields.hpp"

namespace stageline {

/// The batch sizes, and whether they were written as a list.
struct TraceSizes {
  std::vector<int> sizes;
  bool list = false;
};

/// One value per batch size, from one number that holds for all of them or from a list.
/// Throws TraceError.
template <class Read>
auto by_batch(const JsonNode& node, const TraceSizes& batches, PerBatch per_batch, Read read) {
  const std::size_t count = batches.sizes.size();
  std::vector<decltype(read(node))> values;
  if (!node.is_list()) {
    if (batches.list && per_batch == PerBatch::must) {
      node.refuse(fmt::format("\"batch\" is a list, so this must be a list of {} number{} too",
                              count, count == 1 ? "" : "s"));
    }
    values.assign(count, read(node));
    return values;
  }
  if (per_batch == PerBatch::never) {
    node.refuse("this does not depend on the batch size, so it must be a number, not a list");
  }
  if (!batches.list) node.refuse("\"batch\" is not a list, so this must be a number, not a list");
  const std::vector<JsonNode> items = node.items();
  if (items.size() != count) {
    node.refuse(fmt::format("this list must be as long as \"batch\" ({} number{}, not {})", count,
                            count == 1 ? "" : "s", items.size()));
  }
  for (const JsonNode& item : items) values.push_back(read(item));
  return values;
}

}  // namespace stageline
