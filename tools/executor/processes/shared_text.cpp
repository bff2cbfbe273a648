// Sends a text from rank 0 to the other processes, as the bytes of a tensor.
#include "tools/executor/processes/shared_text.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "tools/executor/run/worker_pool.hpp"

namespace stageline::executor {
namespace {

// A listener until the end of the scope: then no thread is in it any more, nor will be.
class Listening {
 public:
  Listening(Peers& peers, std::function<void(int, Delivery)> take) : peers_(peers) {
    peers_.listen(std::move(take));
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening() { peers_.listen({}); }

 private:
  Peers& peers_;
};

}  // namespace

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
  {
    const Listening listening(peers, [&](int, const Delivery& delivery) {
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
  }
  return text;
}

}  // namespace stageline::executor
