// What a process knows of its peers: barriers, texts, clocks and failures.
#include "tools/executor/processes/peers.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/executor/processes/gloo_group.hpp"
#include "tools/executor/processes/link.hpp"
#include "tools/executor/processes/message.hpp"

namespace stageline::executor {
namespace {

constexpr std::chrono::seconds last_words{3};  // for a failure to reach everybody
constexpr int clock_comparisons = 100;

// A peer and what is known of it; guarded by State::mutex_, but for the link.
struct Peer {
  Peer(GlooGroup& group, int its_rank) : rank(its_rank), link(group, its_rank) {}
  const int rank;
  Link link;
  int arrived = 0;                // barriers it has come to
  std::deque<std::string> texts;  // gathered from it
  bool said_bye = false, heard_bye = false, broken = false;
};

// The offset of rank 0's clock, from the fastest of many ways there and back.
//
//     here   echo ─┐                  ┌─► came
//     rank 0       └─► at ──── sent ──┘            both ways are taken for equally long
struct ClockOffset {
  std::int64_t offset = 0;
  std::int64_t error = std::numeric_limits<std::int64_t>::max();

  void note(const Head& pong, std::int64_t came) {
    const std::int64_t on_the_way = (came - pong.echo) - (pong.sent - pong.at);
    if (on_the_way / 2 >= error) return;
    error = on_the_way / 2;
    offset = ((pong.at - pong.echo) + (pong.sent - came)) / 2;
  }
};

}  // namespace

class Peers::State {
 public:
  State(const Place& place, std::chrono::seconds timeout) : place_(place), silence_(timeout) {
    if (place.size == 1) return;
    group_.emplace(place, timeout);
    for (int rank = 0; rank < place.size; ++rank) {
      peers_.push_back(rank == place.rank ? nullptr : std::make_unique<Peer>(*group_, rank));
    }
    try {
      each([this](Peer& peer) { start(peer); });
      watcher_ = std::thread([this] { watch(); });
    } catch (const std::system_error& error) {
      const std::string why =
          fmt::format("a thread for messages cannot be started: {}", error.code().message());
      fail(why);
      forget_unstarted();
      end();
      throw UsageError(why);
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (!failure() && std::uncaught_exceptions() > exceptions_before_) {
      fail("it was stopped by an error of which nothing more is known");
    }
    end();
  }

  const Place& place() const { return place_; }
  void post(int rank, Message made) { peer(rank).link.post(std::move(made)); }

  void listen(std::function<void(int, Delivery)> take,
              std::function<void(const std::string&)> failed) {
    const std::unique_lock listening(listening_);
    take_ = std::move(take);
    failed_ = std::move(failed);
    if (take_) {
      for (auto& [from, delivery] : std::exchange(early_, {})) hand_over(from, std::move(delivery));
    }
    report_failure();
  }

  void fail(const std::string& why) {
    if (set_failure(why, FailureOrigin::own)) each([this](Peer& peer) { close(peer, true); });
  }

  std::optional<std::string> failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  void barrier() {
    ++barriers_;
    if (place_.rank != 0) {
      post(0, message(Kind::arrived));
      await(peer(0), [this] { return all_there_ >= barriers_; });
      return;
    }
    each([this](Peer& peer) { await(peer, [&] { return peer.arrived >= barriers_; }); });
    each([](Peer& peer) { peer.link.post(message(Kind::all_there)); });
  }

  std::vector<std::string> gather(const std::string& mine) {
    if (place_.rank != 0) {
      if (const auto why = failure()) throw PeerFailure(*why);
      post(0, message(Kind::text, mine));
      return {};
    }
    std::vector<std::string> all = {mine};
    each([&](Peer& peer) {
      await(peer, [&] { return !peer.texts.empty(); });
      const std::lock_guard lock(mutex_);
      all.push_back(std::move(peer.texts.front()));
      peer.texts.pop_front();
    });
    return all;
  }

  void compare_clocks() {
    if (place_.rank == 0) return;
    {
      const std::lock_guard lock(mutex_);
      measured_ = {};
    }
    for (int i = 0; i < clock_comparisons; ++i) {
      const std::uint32_t number = ++pings_;
      Message ping = message(Kind::ping);
      ping.head.task = number;
      post(0, std::move(ping));
      await(peer(0), [&] { return ponged_ == number; });
    }
    const std::lock_guard lock(mutex_);
    offset_ = measured_.offset;
    error_ = measured_.error;
  }

  std::int64_t offset() const { return offset_; }
  std::int64_t error() const { return error_; }

 private:
  template <class Do>
  void each(Do&& act) {
    for (const auto& peer : peers_) {
      if (peer != nullptr) act(*peer);
    }
  }
  Peer& peer(int rank) { return *peers_.at(as_size(rank)); }

  void start(Peer& peer) {
    Link::Events events;
    events.received = [this, &peer](std::int64_t came, const Head& head,
                                    std::vector<at::Tensor> tensors) {
      return act_on(peer, came, head, std::move(tensors));
    };
    events.all_sent = [this, &peer] {
      {
        const std::lock_guard lock(mutex_);
        peer.said_bye = true;
      }
      changed_.notify_all();
    };
    events.broken = [this, &peer](const std::string& why) { broken(peer, why); };
    peer.link.start(std::move(events));
  }

  // Waits until `done`, which reads what mutex_ guards. Throws where it cannot become true any
  // more: after a failure, or when the peer that it depends on has ended.
  template <class Done>
  void await(const Peer& peer, const Done& done) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done() || failure_ || peer.heard_bye; });
    if (done()) return;
    if (failure_) throw PeerFailure(*failure_);
    throw PeerFailure(fmt::format("rank {} has ended before the others were through", peer.rank));
  }

  enum class FailureOrigin { own, listener, peer };

  // True for the first failure. The listener is called for failures that it cannot know of.
  bool set_failure(const std::string& why, FailureOrigin origin) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return false;
      failure_ = why;
      origin_ = origin;
    }
    changed_.notify_all();
    return true;
  }

  // With listening_ held, possibly by several threads.
  void report_failure() {
    std::string why;
    {
      const std::lock_guard lock(mutex_);
      if (!failed_ || !failure_ || origin_ == FailureOrigin::own || std::exchange(reported_, true))
        return;
      why = *failure_;
    }
    failed_(why);
  }

  void failed_elsewhere(const std::string& why) {
    if (!set_failure(why, FailureOrigin::peer)) return;
    const std::shared_lock listening(listening_);
    report_failure();
  }

  // The last messages to a peer: why this process fails, and that nothing follows.
  void close(Peer& peer, bool failed) {
    std::vector<Message> last;
    if (failed) {
      const std::lock_guard lock(mutex_);
      last.push_back(
          message(Kind::failed, origin_ == FailureOrigin::peer
                                    ? *failure_
                                    : fmt::format("rank {}: {}", place_.rank, *failure_)));
    }
    last.push_back(message(Kind::bye));
    peer.link.close(std::move(last), failed);
  }

  // A thread that does not run neither says goodbye nor hears it.
  void forget_unstarted() {
    const std::lock_guard lock(mutex_);
    each([](Peer& peer) {
      if (!peer.link.sends()) peer.said_bye = true;
      if (!peer.link.receives()) peer.heard_bye = true;
    });
  }

  // Says goodbye to all, and ends the threads.
  void end() {
    const bool failed = failure().has_value();
    each([&](Peer& peer) { close(peer, failed); });
    await_goodbyes();
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    each([](Peer& peer) { peer.link.abort(); });
    each([](Peer& peer) { peer.link.join(); });
    if (watcher_.joinable()) watcher_.join();
  }

  void await_goodbyes() {
    std::unique_lock lock(mutex_);
    const auto done = [this] {
      return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) {
        return peer == nullptr || peer->broken || (peer->said_bye && peer->heard_bye);
      });
    };
    changed_.wait(lock, [&] { return failure_ || done(); });
    changed_.wait_for(lock, last_words, done);
  }

  void broken(Peer& peer, const std::string& why) {
    bool vanished = false;
    {
      const std::lock_guard lock(mutex_);
      peer.broken = true;
      vanished = !peer.heard_bye && !over_;
    }
    changed_.notify_all();
    if (vanished) failed_elsewhere(fmt::format("rank {} has vanished: {}", peer.rank, why));
  }

  // False after the last message.
  bool act_on(Peer& peer, std::int64_t came, const Head& head, std::vector<at::Tensor> tensors) {
    switch (head.kind) {
      case Kind::delivery:
        deliver(peer.rank, {head.task, head.at, std::move(tensors)});
        return true;
      case Kind::ping: {
        Message pong = message(Kind::pong);
        pong.head.task = head.task;
        pong.head.at = came;
        pong.head.echo = head.sent;
        peer.link.post(std::move(pong));
        return true;
      }
      case Kind::failed:
        failed_elsewhere(text_of(tensors.at(0)));
        close(peer, true);
        return true;
      case Kind::alive:
        return true;
      case Kind::pong:
      case Kind::text:
      case Kind::arrived:
      case Kind::all_there:
      case Kind::bye:
        break;
    }
    {
      const std::lock_guard lock(mutex_);
      if (head.kind == Kind::pong) {
        measured_.note(head, came);
        ponged_ = head.task;
      }
      if (head.kind == Kind::text) peer.texts.push_back(text_of(tensors.at(0)));
      if (head.kind == Kind::arrived) ++peer.arrived;
      if (head.kind == Kind::all_there) ++all_there_;
      if (head.kind == Kind::bye) peer.heard_bye = true;
    }
    changed_.notify_all();
    return head.kind != Kind::bye;
  }

  void deliver(int from, Delivery delivery) {
    const std::shared_lock listening(listening_);
    if (!take_) {
      const std::lock_guard lock(mutex_);
      early_.emplace_back(from, std::move(delivery));
    } else {
      hand_over(from, std::move(delivery));
      report_failure();
    }
  }

  // With listening_ held. What the listener throws is this process's failure.
  void hand_over(int from, Delivery delivery) {
    try {
      take_(from, std::move(delivery));
    } catch (const std::exception& error) {
      if (!set_failure(error.what(), FailureOrigin::listener)) return;
      each([this](Peer& peer) { close(peer, true); });
    }
  }

  // Sends a sign of life at intervals, and checks that the other processes do.
  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(silence_) / 8,
                              [this] { return over_; })) {
      std::vector<Peer*> silent;
      each([&](Peer& peer) {
        const bool ended = peer.heard_bye || peer.broken;
        if (!ended && peer.link.silence() > silence_) silent.push_back(&peer);
      });
      lock.unlock();
      each([](Peer& peer) { peer.link.post(message(Kind::alive)); });
      for (Peer* const peer : silent) {
        broken(*peer, fmt::format("nothing has come from it for {} s", silence_.count()));
        peer->link.abort();
      }
      lock.lock();
    }
  }

  const Place place_;
  const std::chrono::seconds silence_;
  const int exceptions_before_ = std::uncaught_exceptions();
  std::optional<GlooGroup> group_;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; null at the own
  std::thread watcher_;

  mutable std::mutex mutex_;  // guards what follows, and what is known of each peer
  std::condition_variable changed_;
  std::optional<std::string> failure_;
  FailureOrigin origin_ = FailureOrigin::own;
  bool reported_ = false;  // failed_ has been called
  bool over_ = false;
  int all_there_ = 0;  // barriers that rank 0 has ended
  std::uint32_t ponged_ = 0;
  ClockOffset measured_;
  std::vector<std::pair<int, Delivery>> early_;  // came before listen()

  std::shared_mutex listening_;  // guards the functions; shared while one runs
  std::function<void(int, Delivery)> take_;
  std::function<void(const std::string&)> failed_;

  int barriers_ = 0;  // of the calling thread
  std::uint32_t pings_ = 0;
  std::atomic<std::int64_t> offset_{0}, error_{0};
};

Peers::Peers(const Place& place, std::chrono::seconds timeout)
    : state_(std::make_unique<State>(place, timeout)) {
  compare_clocks();
  barrier();
}

Peers::~Peers() = default;
int Peers::rank() const { return state_->place().rank; }
int Peers::size() const { return state_->place().size; }

void Peers::listen(std::function<void(int, Delivery)> take,
                   std::function<void(const std::string&)> failed) {
  state_->listen(std::move(take), std::move(failed));
}

void Peers::send(int to, Delivery delivery) {
  Message made = message(Kind::delivery);
  made.head.task = delivery.task;
  made.head.at = delivery.at;
  for (const at::Tensor& tensor : delivery.tensors) made.tensors.push_back(sendable(tensor));
  state_->post(to, std::move(made));
}

void Peers::fail(const std::string& why) { state_->fail(why); }
std::optional<std::string> Peers::failure() const { return state_->failure(); }
void Peers::barrier() { state_->barrier(); }
std::vector<std::string> Peers::gather(const std::string& mine) { return state_->gather(mine); }
void Peers::compare_clocks() { state_->compare_clocks(); }
std::int64_t Peers::clock_offset() const { return state_->offset(); }
std::int64_t Peers::clock_error() const { return state_->error(); }
std::int64_t Peers::now() const { return steady_nanoseconds() + state_->offset(); }

}  // namespace stageline::executor
