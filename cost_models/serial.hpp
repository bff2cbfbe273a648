// What the same work would take without any pipeline.
#pragma once

#include <cstdint>

#include "sim/cluster.hpp"
#include "sim/model.hpp"
#include "sim/program.hpp"

namespace stageline {

/// On the device of the cluster that is fastest at it, alone: every layer's F and B for so many
/// micro-batches, and every layer's U so many times, at the rates of sim/rates.hpp; on a device
/// whose rates are not 1 rounded once. Its memory is not looked at. Throws UsageError where that is
/// longer than 106 days, the most that 64 bits of picoseconds can say.
Time time_on_one_device(const Model& model, const Cluster& cluster, std::int64_t microbatches,
                        std::int64_t updates);

/// The same, or what the program's own passes add up to where that is less: a program that leaves
/// out the gradient of the model's input, or takes I and W apart where that is shorter, is measured
/// against a device that does so, too. `partition`: the program's cut. No pipeline of p equal
/// devices is then more than p times as fast.
Time time_on_one_device(const Model& model, const Cluster& cluster, const Program& program,
                        const Partition& partition, std::int64_t microbatches,
                        std::int64_t updates);

}  // namespace stageline
