// Sends and receives the messages of one peer.
#include "tools/executor/processes/link.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <iterator>
#include <limits>
#include <utility>

namespace stageline::executor {
namespace {

constexpr std::int64_t busy = std::numeric_limits<std::int64_t>::max();  // of Link::heard_
constexpr int head_tag = 0;                                              // first blocks
constexpr int rest_tag = 1;                                              // the others

std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  const std::string line = text.substr(0, text.find('\n'));
  const auto place = line.rfind("] ");  // [/where/it/was/built/pair.cc:598] Connection closed …
  return place == std::string::npos ? line : line.substr(place + 2);
}

}  // namespace

Message message(Kind kind) {
  Message made;
  made.head.kind = kind;
  return made;
}

Message message(Kind kind, const std::string& text) {
  Message made = message(kind);
  made.tensors.push_back(bytes_of(text));
  return made;
}

std::int64_t steady_nanoseconds() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Link::start(Events events) {
  events_ = std::move(events);
  sender_ = std::thread([this] { send_all(); });
  receiver_ = std::thread([this] { receive_all(); });
}

void Link::post(Message made) {
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    queue_.push_back(std::move(made));
  }
  queued_.notify_one();
}

void Link::close(std::vector<Message> last, bool failed) {
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    closing_ = true;
    if (failed) {
      std::erase_if(queue_, [](const Message& one) { return one.head.kind == Kind::delivery; });
    }
    std::move(last.begin(), last.end(), std::back_inserter(queue_));
  }
  queued_.notify_one();
}

void Link::abort() {
  {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    sending_.abort();
    receiving_.abort();
  }
  queued_.notify_one();
}

void Link::join() {
  if (sender_.joinable()) sender_.join();
  if (receiver_.joinable()) receiver_.join();
}

std::chrono::nanoseconds Link::silence() const {
  return std::chrono::nanoseconds(steady_nanoseconds() - heard_);
}

// ---- the sending thread

void Link::send_all() {
  try {
    for (bool last = false; !last;) {
      const std::optional<Message> made = next();
      if (!made || !transmit(*made)) return;
      last = made->head.kind == Kind::bye;
    }
    events_.all_sent();
  } catch (const std::exception& error) {
    events_.broken("what is sent to it does not arrive any more (" + first_line(error) + ")");
  }
}

// Nothing when the link is to end instead.
std::optional<Message> Link::next() {
  std::unique_lock lock(mutex_);
  queued_.wait(lock, [&] { return aborted_ || !queue_.empty(); });
  if (aborted_) return {};
  Message made = std::move(queue_.front());
  queue_.pop_front();
  return made;
}

bool Link::transmit(const Message& made) {
  Blocks blocks = write_blocks(made.head, made.tensors);
  std::vector<Transfer> transfers;
  set_sent(blocks.first, steady_nanoseconds());
  transfers.push_back(group_.send(rank_, head_tag, blocks.first));
  for (const at::Tensor& block : blocks.rest) {
    transfers.push_back(group_.send(rank_, rest_tag, block));
  }
  return std::all_of(transfers.begin(), transfers.end(),
                     [&](const Transfer& transfer) { return finish(sending_, transfer); });
}

// Waits for a transfer; false when the link is to end instead.
bool Link::finish(Transfer& current, const Transfer& transfer) {
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) {
      transfer.abort();
      return false;
    }
    current = transfer;
  }
  const bool done = transfer.wait();
  const std::lock_guard lock(mutex_);
  current = {};
  return done && !aborted_;
}

// ---- the receiving thread

void Link::receive_all() {
  try {
    // Two, in turns: the next message may come while this one is read.
    std::array<at::Tensor, 2> firsts = {at::empty({first_block}, at::kByte),
                                        at::empty({first_block}, at::kByte)};
    Transfer coming = group_.receive(rank_, head_tag, firsts[0]);
    for (std::size_t turn = 1;; turn ^= 1) {
      if (!finish(receiving_, coming)) return;
      const std::int64_t came = steady_nanoseconds();
      heard_ = came;
      Arriving arriving(firsts[turn ^ 1]);
      if (arriving.head.kind != Kind::bye) {
        coming = group_.receive(rank_, head_tag, firsts[turn]);
      }
      if (arriving.description.defined() && !receive_blocks({arriving.description})) return;
      if (!receive_blocks(arriving.make_room())) return;
      heard_ = busy;
      if (!events_.received(came, arriving.head, std::move(arriving.tensors))) return;
      heard_ = steady_nanoseconds();
    }
  } catch (const std::exception& error) {
    events_.broken("its process has ended or its machine cannot be reached (" + first_line(error) +
                   ")");
  }
}

bool Link::receive_blocks(const std::vector<at::Tensor>& blocks) {
  std::vector<Transfer> transfers;
  for (const at::Tensor& block : blocks) {
    transfers.push_back(group_.receive(rank_, rest_tag, block));
  }
  return std::all_of(transfers.begin(), transfers.end(), [&](const Transfer& transfer) {
    const bool came = finish(receiving_, transfer);
    heard_ = steady_nanoseconds();
    return came;
  });
}

}  // namespace stageline::executor
