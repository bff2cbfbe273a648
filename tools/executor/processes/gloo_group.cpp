// Connects the processes of a run by c10d's TCPStore and ProcessGroupGloo.
//
// ProcessGroupGloo.hpp includes Gloo's headers, but this file uses only names of types behind
// pointers, so a wheel may contain another version of Gloo than Debian's.
#include "tools/executor/processes/gloo_group.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"

namespace stageline::executor {

struct Transfer::Work {
  c10::intrusive_ptr<c10d::Work> work;
};

struct GlooGroup::State {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
  std::mutex posting;  // a group may be called by one thread at a time
};

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
constexpr Milliseconds between_attempts{50};
constexpr Milliseconds forever = std::chrono::hours(24 * 365);

// The message of an error of c10d or Gloo, without the source line ahead of it and the stack trace
// behind it.
std::string reason(const std::exception& error) {
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && text[0] == '[' && text.find("] ") != std::string::npos)
    text.erase(0, text.find("] ") + 2);
  return text;
}

struct Deadline {
  explicit Deadline(std::chrono::seconds all) : timeout(all), end(Clock::now() + all) {}
  bool over() const { return Clock::now() >= end; }
  Milliseconds left() const {
    return std::max(Milliseconds(1000), std::chrono::ceil<Milliseconds>(end - Clock::now()));
  }
  std::chrono::seconds timeout;
  Clock::time_point end;
};

std::string numeric_address(const sockaddr* address, socklen_t size) {
  std::array<char, NI_MAXHOST> text{};
  const int failed =
      ::getnameinfo(address, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failed == 0 ? text.data() : "";
}

// The address from which this machine reaches `there`, or an empty text if that does not answer.
std::string address_towards(const addrinfo& there) {
  const int socket = ::socket(there.ai_family, there.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                              there.ai_protocol);
  if (socket < 0) return "";
  std::string found;
  pollfd ready{socket, POLLOUT, 0};
  int error = 0;
  socklen_t size = sizeof error;
  const bool connected =
      ::connect(socket, there.ai_addr, there.ai_addrlen) == 0 ||
      (errno == EINPROGRESS && ::poll(&ready, 1, 1000) == 1 &&
       ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0);
  sockaddr_storage own{};
  size = sizeof own;
  if (connected && ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) == 0)
    found = numeric_address(reinterpret_cast<const sockaddr*>(&own), size);
  ::close(socket);
  return found;
}

// Waits until rank 0 (or torchrun's agent) answers. Returns the address from which this machine
// reached it: the others can reach that one too, while a machine's own name often resolves to
// 127.0.1.1.
std::string own_address(const Place& place, const Deadline& deadline) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed =
          ::getaddrinfo(place.master.c_str(), std::to_string(place.port).c_str(), &wanted, &found);
      failed != 0) {
    throw UsageError(fmt::format("MASTER_ADDR is \"{}\", which this machine does not know: {}",
                                 place.master, ::gai_strerror(failed)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  do {
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      if (std::string own = address_towards(*one); !own.empty()) return own;
    }
    std::this_thread::sleep_for(between_attempts);
  } while (!deadline.over());
  throw UsageError(
      fmt::format("rank {} of {} found nobody at {}:{} (MASTER_ADDR, MASTER_PORT) within {} s; {}",
                  place.rank, place.size, place.master, place.port, deadline.timeout.count(),
                  place.rank == 0 ? "is that the machine that rank 0 runs on?"
                                  : "is rank 0 running there, and may that port be reached?"));
}

// Why a port of this machine cannot be listened on, or an empty text. c10d's message is longer.
std::string taken(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool free =
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::listen(socket, 1) == 0;
  const std::string why = free ? "" : std::strerror(errno);
  ::close(socket);
  return why;
}

c10::intrusive_ptr<c10d::Store> open_store(const Place& place, const Deadline& deadline,
                                           std::string& own) {
  const bool holds = place.rank == 0 && place.agent.empty();
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(place.port);
  options.isServer = holds;
  options.waitWorkers = false;  // await_all reports the missing ranks
  if (!holds) own = own_address(place, deadline);
  options.timeout = deadline.left();
  if (const std::string why = holds ? taken(place.port) : ""; !why.empty()) {
    throw UsageError(
        fmt::format("rank 0 cannot wait for the others at port {} (MASTER_PORT): {}; is "
                    "another run there?",
                    place.port, why));
  }
  c10::intrusive_ptr<c10d::Store> store =
      c10::make_intrusive<c10d::TCPStore>(place.master, options);
  if (holds) own = own_address(place, deadline);
  if (!place.agent.empty()) store = c10::make_intrusive<c10d::PrefixStore>(place.agent, store);
  return store;
}

std::vector<std::uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }

// "ranks 1, 2 and 5".
std::string print_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

// Waits until every rank has described itself. All descriptions must be equal.
void await_all(c10d::Store& store, const Place& place, const Deadline& deadline) {
  const auto key = [](int rank) { return fmt::format("stageline/rank/{}", rank); };
  if (store.add(fmt::format("stageline/taken/{}", place.rank), 1) > 1) {
    throw UsageError(fmt::format("two processes at {}:{} have RANK {}, and each needs its own",
                                 place.master, place.port, place.rank));
  }
  const std::string mine =
      fmt::format("LibTorch {} and WORLD_SIZE {}", STAGELINE_TORCH_VERSION, place.size);
  store.set(key(place.rank), bytes(mine));
  for (int rank = 0; rank < place.size; ++rank) {
    while (!store.check({key(rank)})) {
      if (!deadline.over()) {
        std::this_thread::sleep_for(between_attempts);
        continue;
      }
      std::vector<int> missing;
      for (int other = 0; other < place.size; ++other) {
        if (!store.check({key(other)})) missing.push_back(other);
      }
      if (missing.empty()) break;
      throw UsageError(fmt::format(
          "{} of {} did not come to {}:{} (MASTER_ADDR, MASTER_PORT) within "
          "{} s; were they started, with the same WORLD_SIZE?",
          print_ranks(missing), place.size, place.master, place.port, deadline.timeout.count()));
    }
    const std::vector<std::uint8_t> said = store.get(key(rank));
    const std::string other(said.begin(), said.end());
    if (other != mine) {
      throw UsageError(
          fmt::format("processes that run together must be alike: rank {} has {}, rank "
                      "{} has {}",
                      place.rank, mine, rank, other));
    }
  }
}

}  // namespace

std::string no_gloo() { return ""; }

bool Transfer::wait() const { return work_->work->wait(forever); }

void Transfer::abort() const {
  if (work_ != nullptr) work_->work->abort();
}

GlooGroup::GlooGroup(const Place& place, std::chrono::seconds timeout)
    : state_(std::make_unique<State>()) {
  // A peer that has ended closes its sockets. Writing to one is an error to report; by default it
  // would end this process without a word.
  std::signal(SIGPIPE, SIG_IGN);
  const Deadline deadline(timeout);
  std::string own;
  try {
    state_->store = open_store(place, deadline, own);
    await_all(*state_->store, place, deadline);
    const auto options = c10d::ProcessGroupGloo::Options::create(deadline.left());
    const char* const interface = std::getenv("GLOO_SOCKET_IFNAME");
    options->devices = {interface != nullptr && *interface != 0
                            ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                            : c10d::ProcessGroupGloo::createDeviceForHostname(own)};
    options->threads = 1;  // for collectives, of which there are none
    state_->group =
        c10::make_intrusive<c10d::ProcessGroupGloo>(state_->store, place.rank, place.size, options);
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    throw UsageError(fmt::format("rank {} of {} could not be linked with the others: {}",
                                 place.rank, place.size, reason(error)));
  }
}

GlooGroup::~GlooGroup() = default;

Transfer GlooGroup::send(int to, int tag, const at::Tensor& bytes) {
  std::vector<at::Tensor> one = {bytes};
  const std::lock_guard lock(state_->posting);
  return Transfer(
      std::make_shared<Transfer::Work>(Transfer::Work{state_->group->send(one, to, tag)}));
}

Transfer GlooGroup::receive(int from, int tag, const at::Tensor& bytes) {
  std::vector<at::Tensor> one = {bytes};
  const std::lock_guard lock(state_->posting);
  return Transfer(
      std::make_shared<Transfer::Work>(Transfer::Work{state_->group->recv(one, from, tag)}));
}

}  // namespace stageline::executor
