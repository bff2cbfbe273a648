// Are requests served in order of time, and of number where times are equal?
#include "sim/base/request_queue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace stageline::request_queue_tests {
namespace {

std::uint64_t key(const ResourceRequest& request) {
  return static_cast<std::uint64_t>(request.asked.count()) << 32 | request.task;
}

}  // namespace

TEST_CASE("requests leave the queue in order, whatever the order of pushes and pops") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    RequestQueue queue;
    std::vector<ResourceRequest> waiting;  // the reference: searched
    const std::uint64_t most = 1 + random() % 200;
    const std::uint64_t moments = 1 + random() % 50;  // few, so that many are equal
    std::uint32_t task = 0;
    for (int step = 0; step < 1000; ++step) {
      REQUIRE(queue.empty() == waiting.empty());
      const bool push = waiting.empty() || (waiting.size() < most && random() % 2 == 0);
      if (push) {
        // Numbers are distinct but in no order.
        const ResourceRequest request{Time{static_cast<std::int64_t>(random() % moments)},
                                      task++ * 2654435761U};
        waiting.push_back(request);
        queue.push(request);
      } else {
        const auto first =
            std::min_element(waiting.begin(), waiting.end(),
                             [](const auto& a, const auto& b) { return key(a) < key(b); });
        REQUIRE(key(queue.pop()) == key(*first));
        waiting.erase(first);
      }
    }
  }
}

}  // namespace stageline::request_queue_tests
