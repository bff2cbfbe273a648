#include "tools/executor/processes/peers.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "sim/index.hpp"
#include "tools/executor/processes/gloo_group.hpp"
#include "tools/executor/processes/message.hpp"

namespace stageline {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds last_words{3};  // for a failure to reach everybody
constexpr std::int64_t busy = std::numeric_limits<std::int64_t>::max();  // see Link::heard
constexpr int clock_comparisons = 100;
constexpr int head_tag = 0;  // first blocks
constexpr int rest_tag = 1;  // the others

std::int64_t steady() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

struct Message {
  Head head;
  std::vector<at::Tensor> tensors;
};

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

// One peer. `mutex` guards the first part; State::mutex_ the second.
struct Link {
  explicit Link(int to) : rank(to) {}
  const int rank;

  std::mutex mutex;
  std::condition_variable queued;
  std::deque<Message> queue;
  bool closing = false;  // the last message is in the queue, or gone
  bool aborted = false;  // both threads are to end
  Transfer sending, receiving;

  int arrived = 0;                // barriers it has come to
  std::deque<std::string> texts;  // gathered from it
  bool said_bye = false, heard_bye = false, broken = false;

  // When something last came, on the own steady clock; `busy` while that is dealt with.
  std::atomic<std::int64_t> heard{steady()};
  std::thread sender, receiver;
};

}  // namespace

class Peers::State {
 public:
  State(const Place& place, std::chrono::seconds timeout) : place_(place), silence_(timeout) {
    if (place.size == 1) return;
    group_.emplace(place, timeout);
    for (int rank = 0; rank < place.size; ++rank)
      links_.push_back(rank == place.rank ? nullptr : std::make_unique<Link>(rank));
    each([this](Link& link) {
      link.sender = std::thread([this, &link] { send_all(link); });
      link.receiver = std::thread([this, &link] { receive_all(link); });
    });
    watcher_ = std::thread([this] { watch(); });
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (!failure() && std::uncaught_exceptions() > exceptions_before_)
      fail("it was stopped by an error of which nothing more is known");
    const bool failed = failure().has_value();
    each([&](Link& link) { close(link, failed); });
    await_goodbyes();
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    each([](Link& link) { abort(link); });
    each([](Link& link) {
      if (link.sender.joinable()) link.sender.join();
      if (link.receiver.joinable()) link.receiver.join();
    });
    if (watcher_.joinable()) watcher_.join();
  }

  const Place& place() const { return place_; }
  Link& to(int rank) { return *links_.at(as_size(rank)); }

  void listen(std::function<void(int, Delivery)> take,
              std::function<void(const std::string&)> failed) {
    const std::unique_lock listening(listening_);
    take_ = std::move(take);
    failed_ = std::move(failed);
    if (take_) {
      for (auto& [from, delivery] : early_) take_(from, std::move(delivery));
      early_.clear();
    }
    tell_failure();
  }

  static void post(Link& link, Message made) {
    {
      const std::lock_guard lock(link.mutex);
      if (link.closing) return;
      link.queue.push_back(std::move(made));
    }
    link.queued.notify_one();
  }

  void fail(const std::string& why) {
    if (set_failure(why, Whose::own)) each([this](Link& link) { close(link, true); });
  }

  std::optional<std::string> failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  void barrier() {
    ++barriers_;
    if (place_.rank != 0) {
      post(to(0), message(Kind::arrived));
      await({&to(0)}, [this] { return all_there_ >= barriers_; });
      return;
    }
    each([this](Link& link) { await({&link}, [&] { return link.arrived >= barriers_; }); });
    each([](Link& link) { post(link, message(Kind::all_there)); });
  }

  std::vector<std::string> gather(const std::string& mine) {
    if (place_.rank != 0) {
      if (const auto why = failure()) throw PeerFailure(*why);
      post(to(0), message(Kind::text, mine));
      return {};
    }
    std::vector<std::string> all = {mine};
    each([&](Link& link) {
      await({&link}, [&] { return !link.texts.empty(); });
      const std::lock_guard lock(mutex_);
      all.push_back(std::move(link.texts.front()));
      link.texts.pop_front();
    });
    return all;
  }

  void compare_clocks() {
    if (place_.rank == 0) return;
    {
      const std::lock_guard lock(mutex_);
      best_error_ = std::numeric_limits<std::int64_t>::max();
    }
    for (int i = 0; i < clock_comparisons; ++i) {
      const std::uint32_t number = ++pings_;
      Message ping = message(Kind::ping);
      ping.head.task = number;
      post(to(0), std::move(ping));
      await({&to(0)}, [&] { return ponged_ == number; });
    }
    const std::lock_guard lock(mutex_);
    offset_ = best_offset_;
    error_ = best_error_;
  }

  std::int64_t offset() const { return offset_; }
  std::int64_t error() const { return error_; }

 private:
  template <class Do>
  void each(Do&& act) {
    for (const auto& link : links_) {
      if (link != nullptr) act(*link);
    }
  }

  // Waits until `done`, which reads what mutex_ guards. Throws when that cannot be any more.
  template <class Done>
  void await(std::initializer_list<const Link*> needed, const Done& done) {
    std::unique_lock lock(mutex_);
    const auto gone = [&] {
      return std::find_if(needed.begin(), needed.end(),
                          [](const Link* link) { return link->heard_bye; });
    };
    changed_.wait(lock, [&] { return done() || failure_ || gone() != needed.end(); });
    if (done()) return;
    if (failure_) throw PeerFailure(*failure_);
    throw PeerFailure(
        fmt::format("rank {} has ended before the others were through", (*gone())->rank));
  }

  enum class Whose { own, of_take, of_others };

  // True for the first failure. The listener is told of those that it cannot know.
  bool set_failure(const std::string& why, Whose whose) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return false;
      failure_ = why;
      whose_ = whose;
    }
    changed_.notify_all();
    return true;
  }

  // With listening_ held, by several threads maybe.
  void tell_failure() {
    std::string why;
    {
      const std::lock_guard lock(mutex_);
      if (!failed_ || !failure_ || whose_ == Whose::own || std::exchange(told_, true)) return;
      why = *failure_;
    }
    failed_(why);
  }

  void failed_elsewhere(const std::string& why) {
    if (!set_failure(why, Whose::of_others)) return;
    const std::shared_lock listening(listening_);
    tell_failure();
  }

  // The last words to a peer.
  void close(Link& link, bool failed) {
    std::vector<Message> words;
    if (failed) {
      const std::lock_guard lock(mutex_);
      words.push_back(
          message(Kind::failed, whose_ == Whose::of_others
                                    ? *failure_
                                    : fmt::format("rank {}: {}", place_.rank, *failure_)));
    }
    words.push_back(message(Kind::bye));
    {
      const std::lock_guard lock(link.mutex);
      if (link.closing) return;
      link.closing = true;
      if (failed)
        std::erase_if(link.queue,
                      [](const Message& one) { return one.head.kind == Kind::delivery; });
      std::move(words.begin(), words.end(), std::back_inserter(link.queue));
    }
    link.queued.notify_one();
  }

  static void abort(Link& link) {
    {
      const std::lock_guard lock(link.mutex);
      link.aborted = true;
      link.sending.abort();
      link.receiving.abort();
    }
    link.queued.notify_one();
  }

  void await_goodbyes() {
    std::unique_lock lock(mutex_);
    const auto done = [this] {
      return std::all_of(links_.begin(), links_.end(), [](const auto& link) {
        return link == nullptr || link->broken || (link->said_bye && link->heard_bye);
      });
    };
    changed_.wait(lock, [&] { return failure_ || done(); });
    changed_.wait_for(lock, last_words, done);
  }

  void broken(Link& link, const std::string& why) {
    bool vanished = false;
    {
      const std::lock_guard lock(mutex_);
      link.broken = true;
      vanished = !link.heard_bye && !over_;
    }
    changed_.notify_all();
    if (vanished) failed_elsewhere(fmt::format("rank {} has vanished: {}", link.rank, why));
  }

  // False when the link is to end instead.
  static bool finish(Link& link, Transfer& current, const Transfer& transfer) {
    {
      const std::lock_guard lock(link.mutex);
      if (link.aborted) {
        transfer.abort();
        return false;
      }
      current = transfer;
    }
    const bool done = transfer.wait();
    const std::lock_guard lock(link.mutex);
    current = {};
    return done && !link.aborted;
  }

  std::optional<Message> next(Link& link) {
    std::unique_lock lock(link.mutex);
    link.queued.wait(lock, [&] { return link.aborted || !link.queue.empty(); });
    if (link.aborted) return {};
    Message made = std::move(link.queue.front());
    link.queue.pop_front();
    return made;
  }

  bool transmit(Link& link, const Message& made) {
    Blocks blocks = write_blocks(made.head, made.tensors);
    std::vector<Transfer> transfers;
    set_sent(blocks.first, steady());
    transfers.push_back(group_->send(link.rank, head_tag, blocks.first));
    for (const at::Tensor& block : blocks.rest)
      transfers.push_back(group_->send(link.rank, rest_tag, block));
    return std::all_of(transfers.begin(), transfers.end(), [&](const Transfer& transfer) {
      return finish(link, link.sending, transfer);
    });
  }

  void send_all(Link& link) {
    try {
      for (bool last = false; !last;) {
        const std::optional<Message> made = next(link);
        if (!made || !transmit(link, *made)) return;
        last = made->head.kind == Kind::bye;
      }
      {
        const std::lock_guard lock(mutex_);
        link.said_bye = true;
      }
      changed_.notify_all();
    } catch (const std::exception& error) {
      broken(link, "what is sent to it does not arrive any more (" + first_line(error) + ")");
    }
  }

  void receive_all(Link& link) {
    try {
      // Two, in turns: the next message may come while this one is read.
      std::array<at::Tensor, 2> firsts = {at::empty({first_block}, at::kByte),
                                          at::empty({first_block}, at::kByte)};
      Transfer coming = group_->receive(link.rank, head_tag, firsts[0]);
      for (std::size_t turn = 1;; turn ^= 1) {
        if (!finish(link, link.receiving, coming)) return;
        const std::int64_t came = steady();
        link.heard = came;
        Arriving arriving(firsts[turn ^ 1]);
        if (arriving.head.kind != Kind::bye)
          coming = group_->receive(link.rank, head_tag, firsts[turn]);
        if (arriving.description.defined() && !fill(link, {arriving.description})) return;
        if (!fill(link, arriving.make_room())) return;
        link.heard = busy;
        if (!act_on(link, came, arriving.head, std::move(arriving.tensors))) return;
        link.heard = steady();
      }
    } catch (const std::exception& error) {
      broken(link,
             "its process has ended or its machine cannot be reached (" + first_line(error) + ")");
    }
  }

  bool fill(Link& link, const std::vector<at::Tensor>& blocks) {
    std::vector<Transfer> transfers;
    for (const at::Tensor& block : blocks)
      transfers.push_back(group_->receive(link.rank, rest_tag, block));
    return std::all_of(transfers.begin(), transfers.end(), [&](const Transfer& transfer) {
      const bool came = finish(link, link.receiving, transfer);
      link.heard = steady();
      return came;
    });
  }

  // False after the last message.
  bool act_on(Link& link, std::int64_t came, const Head& head, std::vector<at::Tensor> tensors) {
    switch (head.kind) {
      case Kind::delivery:
        deliver(link.rank, {head.task, head.at, std::move(tensors)});
        return true;
      case Kind::ping: {
        Message pong = message(Kind::pong);
        pong.head.task = head.task;
        pong.head.at = came;
        pong.head.echo = head.sent;
        post(link, std::move(pong));
        return true;
      }
      case Kind::failed:
        failed_elsewhere(text_of(tensors.at(0)));
        close(link, true);
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
      if (head.kind == Kind::pong) note_time(head, came);
      if (head.kind == Kind::text) link.texts.push_back(text_of(tensors.at(0)));
      if (head.kind == Kind::arrived) ++link.arrived;
      if (head.kind == Kind::all_there) ++all_there_;
      if (head.kind == Kind::bye) link.heard_bye = true;
    }
    changed_.notify_all();
    return head.kind != Kind::bye;
  }

  //     here   echo ─┐                  ┌─► came
  //     rank 0       └─► at ──── sent ──┘            both ways are taken for equally long
  void note_time(const Head& head, std::int64_t came) {
    const std::int64_t on_the_way = (came - head.echo) - (head.sent - head.at);
    if (on_the_way / 2 < best_error_) {
      best_error_ = on_the_way / 2;
      best_offset_ = ((head.at - head.echo) + (head.sent - came)) / 2;
    }
    ponged_ = head.task;
  }

  void deliver(int from, Delivery delivery) {
    const std::shared_lock listening(listening_);
    if (!take_) {
      const std::lock_guard lock(mutex_);
      early_.emplace_back(from, std::move(delivery));
    } else {
      try {
        take_(from, std::move(delivery));
      } catch (const std::exception& error) {
        if (!set_failure(error.what(), Whose::of_take)) return;
        each([this](Link& link) { close(link, true); });
        tell_failure();
      }
    }
  }

  // Says now and then that this process lives, and looks whether the others have.
  void watch() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(silence_) / 8,
                              [this] { return over_; })) {
      std::vector<Link*> silent;
      each([&](Link& link) {
        const std::chrono::nanoseconds since(steady() - link.heard);
        if (!link.heard_bye && !link.broken && since > silence_) silent.push_back(&link);
      });
      lock.unlock();
      each([](Link& link) { post(link, message(Kind::alive)); });
      for (Link* const link : silent) {
        broken(*link, fmt::format("nothing has come from it for {} s", silence_.count()));
        abort(*link);
      }
      lock.lock();
    }
  }

  static std::string first_line(const std::exception& error) {
    const std::string text = error.what();
    const std::string line = text.substr(0, text.find('\n'));
    const auto place = line.rfind("] ");  // [/where/it/was/built/pair.cc:598] Connection closed …
    return place == std::string::npos ? line : line.substr(place + 2);
  }

  const Place place_;
  const std::chrono::seconds silence_;
  const int exceptions_before_ = std::uncaught_exceptions();
  std::optional<GlooGroup> group_;
  std::vector<std::unique_ptr<Link>> links_;  // by rank; none to itself
  std::thread watcher_;

  mutable std::mutex mutex_;  // guards what follows, and a part of each link
  std::condition_variable changed_;
  std::optional<std::string> failure_;
  Whose whose_ = Whose::own;
  bool told_ = false;  // failed_ has been called
  bool over_ = false;
  int all_there_ = 0;  // barriers that rank 0 has ended
  std::uint32_t ponged_ = 0;
  std::int64_t best_offset_ = 0, best_error_ = 0;
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
  State::post(state_->to(to), std::move(made));
}

void Peers::fail(const std::string& why) { state_->fail(why); }
std::optional<std::string> Peers::failure() const { return state_->failure(); }
void Peers::barrier() { state_->barrier(); }
std::vector<std::string> Peers::gather(const std::string& mine) { return state_->gather(mine); }
void Peers::compare_clocks() { state_->compare_clocks(); }
std::int64_t Peers::clock_offset() const { return state_->offset(); }
std::int64_t Peers::clock_error() const { return state_->error(); }
std::int64_t Peers::now() const { return steady() + state_->offset(); }

}  // namespace stageline
