// Clusters of machines of unequal sizes.
#pragma once

#include <string>

#include "tests/questions/random_question.hpp"

namespace stageline::trial {

/// A cluster of at least `devices` devices of a bundled kind ("h100"): a bundled one, or a file in
/// the folder of `draw`, named by its machines and NICs, "h100-3+5-nic2.json".
std::string machines(test::Questions& draw, int devices, const std::string& kind);

/// The same cluster with other names of devices, links, hosts and switches, in a file of its own;
/// "" where `cluster` is no file.
std::string renamed(const std::string& cluster, const std::string& folder);

}  // namespace stageline::trial
