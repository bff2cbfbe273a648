// Sends a text from rank 0 to the other processes, as the bytes of a tensor.
#include "tools/executor/processes/shared_text.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tools/executor/run/worker_pool.hpp"

namespace stageline::executor {

std::string shared_text(Peers& peers, const std::string& mine, const std::atomic<bool>* stop) {
  if (peers.rank() == 0) {
    const auto size = static_cast<std::int64_t>(mine.size());
    at::Tensor bytes = at::empty({size}, at::kByte);
    std::copy(mine.begin(), mine.end(), bytes.data_ptr<std::uint8_t>());
    for (int rank = 1; rank < peers.size(); ++rank) peers.send(rank, {0, 0, {bytes}});
    return mine;
  }
  std::string text;
  std::atomic<bool> came{false};
  peers.listen([&](int, const Delivery& delivery) {
    const at::Tensor& bytes = delivery.tensors.at(0);
    const auto* const begin = bytes.data_ptr<std::uint8_t>();
    text.assign(begin, begin + bytes.numel());
    came = true;
  });
  while (!came) {
    stop_if(stop);
    if (const auto why = peers.failure()) throw PeerFailure(*why);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  peers.listen({});
  return text;
}

}  // namespace stageline::executor
