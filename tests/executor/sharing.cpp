// Do two transfers through one throttled link share it as the simulator's fair sharing says?
//
//     network namespace A                                 network namespace B
//     rank 0 ── 1 or 3 × S ──┐                       ┌──► rank 2
//                            ├─► veth, throttled ────┤
//     rank 1 ── S ───────────┘   by a token bucket   └──► rank 3
//
// The ranks are processes that send tensors over Gloo, as those of a run do. Who gets how much of
// the link is up to the kernel: nothing of ours decides it. By max-min fairness both of two equal
// transfers take twice the time of one alone; of S beside 3 S, the short one takes 2 and the long
// one 4 times the time of S alone. First come first served, the first would take once its time.
//
// A benchmark: it prints what it measured.
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sim/base/index.hpp"
#include "tests/executor/member.hpp"
#include "tools/executor/processes/peers.hpp"

namespace stageline::executor {
namespace {

constexpr int ranks = 4;
constexpr std::int64_t size = 2'000'000;  // bytes of S
const std::string rate = "200mbit";       // 80 ms for S

// A process that keeps a network namespace of its own alive.
class NetworkNamespace {
 public:
  NetworkNamespace() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const char made = ::unshare(CLONE_NEWNET) == 0 ? 'y' : 'n';
      if (::write(ends[1], &made, 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    char made = 'n';
    made_ = process_ > 0 && ::read(ends[0], &made, 1) == 1 && made == 'y';
    ::close(ends[0]);
    ::close(ends[1]);
  }
  NetworkNamespace(const NetworkNamespace&) = delete;
  NetworkNamespace& operator=(const NetworkNamespace&) = delete;
  ~NetworkNamespace() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  std::string file() const { return fmt::format("/proc/{}/ns/net", process_); }
  pid_t process() const { return process_; }
  /// Whether all commands succeed, run in it.
  bool does(const std::vector<std::string>& commands) const {
    return made_ && std::all_of(commands.begin(), commands.end(), [this](const std::string& one) {
             const std::string line = fmt::format(
                 "PATH=$PATH:/usr/sbin:/sbin nsenter --net={} {} 2>/dev/null", file(), one);
             return std::system(line.c_str()) == 0;
           });
  }

 private:
  pid_t process_ = -1;
  bool made_ = false;
};

// Two namespaces with a link between them, throttled from `a` to `b`.
bool joined(const NetworkNamespace& a, const NetworkNamespace& b) {
  return b.does({"true"}) &&
         a.does({fmt::format("ip link add left type veth peer name right netns {}", b.process()),
                 "ip address add 10.77.0.1/24 dev left", "ip link set left up",
                 "ip link set lo up"}) &&
         b.does({"ip address add 10.77.0.2/24 dev right", "ip link set right up",
                 "ip link set lo up"}) &&
         a.does(
             {fmt::format("tc qdisc add dev left root tbf rate {} burst 16kb limit 256kb", rate)});
}

bool sends(int rank) { return rank < 2; }

// What rank 0 and rank 1 send in a round; 0: nothing.
struct Round {
  std::string name;
  std::int64_t bytes[2];
};
const std::vector<Round>& rounds() {
  static const std::vector<Round> all = {
      {"alone", {size, 0}}, {"equal", {size, size}}, {"unequal", {3 * size, size}}};
  return all;
}

// One rank's part in all rounds: returns when its tensor came, in ns after the start, by round; 0
// for a sender or nothing.
std::vector<std::int64_t> take_part(Peers& peers, int repeats) {
  std::atomic<std::int64_t> start{0};
  std::atomic<std::int64_t> came{0};
  peers.listen([&](int, const Delivery& delivery) {
    if (delivery.tensors.empty()) {
      start = delivery.at;
    } else {
      came = peers.now();
    }
  });
  const at::Tensor bytes = at::zeros({3 * size}, at::kByte);
  std::vector<std::int64_t> times;
  const auto wait = [&](const std::atomic<std::int64_t>& value) {
    while (value == 0) {
      if (const auto why = peers.failure()) throw PeerFailure(*why);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  };
  for (int i = 0; i < repeats * static_cast<int>(rounds().size()); ++i) {
    const Round& round = rounds()[as_size(i) % rounds().size()];
    start = came = 0;
    peers.barrier();
    if (peers.rank() == 0) {
      const std::int64_t at = peers.now() + 5'000'000;
      for (int other = 1; other < ranks; ++other) peers.send(other, {0, at, {}});
      start = at;
    }
    wait(start);
    const std::int64_t mine = round.bytes[peers.rank() % 2];
    while (peers.now() < start) std::this_thread::yield();
    if (sends(peers.rank())) {
      if (mine > 0) peers.send(peers.rank() + 2, {0, 0, {bytes.narrow(0, 0, mine)}});
    } else if (mine > 0) {
      wait(came);
    }
    times.push_back(came == 0 ? 0 : came - start);
    peers.barrier();
  }
  peers.listen({});
  return times;
}

std::string text_of(const std::vector<std::int64_t>& times) {
  std::string text;
  for (const std::int64_t time : times) text += std::to_string(time) + ' ';
  return text;
}

// Of one kind of round, in ns: sorted.
std::vector<double> sorted(const std::string& text, std::size_t kind) {
  std::istringstream words(text);
  std::vector<double> times;
  std::size_t i = 0;
  for (double time = 0; words >> time; ++i) {
    // The first of each kind warms up.
    if (i >= rounds().size() && i % rounds().size() == kind) times.push_back(time);
  }
  std::sort(times.begin(), times.end());
  return times;
}
double middle(const std::vector<double>& times) { return times.at(times.size() / 2); }

// "2.03 (1.95–2.10)": median and quartiles, as multiples of `alone`.
std::string shown(const std::vector<double>& times, double alone) {
  return fmt::format("{:.2f} ({:.2f}–{:.2f})", middle(times) / alone,
                     times.at(times.size() / 4) / alone, times.at(times.size() * 3 / 4) / alone);
}

}  // namespace

TEST_CASE("as a rank: share a link" * doctest::skip()) {
  const int there = ::open(std::getenv("NETWORK"), O_RDONLY | O_CLOEXEC);
  REQUIRE(::setns(there, CLONE_NEWNET) == 0);
  Peers peers(place_from_environment().value(), member::seconds(60));
  const std::vector<std::int64_t> times = take_part(peers, std::atoi(std::getenv("REPEATS")));
  const std::vector<std::string> all = peers.gather(text_of(times));
  for (const std::string& one : all) std::fputs(("times: " + one + "\n").c_str(), stderr);
}

TEST_CASE("how two transfers share one throttled link") {
  const NetworkNamespace a;
  const NetworkNamespace b;
  if (!joined(a, b)) {
    MESSAGE("not tried: it takes root, ip, tc and nsenter");
    return;
  }
  const char* const wanted = std::getenv("STAGELINE_SHARING_REPEATS");
  const std::string repeats = wanted == nullptr ? "12" : wanted;
  std::vector<std::unique_ptr<Spawned>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    Variables variables = member::variables({rank, ranks, "10.77.0.1", 29500}, "60");
    variables["NETWORK"] = sends(rank) ? a.file() : b.file();
    variables["REPEATS"] = repeats;
    all.push_back(std::make_unique<Spawned>("as a rank: share a link", variables));
  }
  std::istringstream lines(all[0]->errors());
  std::vector<std::string> of_rank;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("times: ")) of_rank.push_back(line.substr(7));
  }
  REQUIRE(of_rank.size() == ranks);
  for (const auto& one : all) CHECK(one->wait() == 0);

  // Rank 2 receives what rank 0 sends: S, S, 3 S. Rank 3: nothing, S, S.
  const double alone = middle(sorted(of_rank[2], 0));
  const std::vector<double> equal[] = {sorted(of_rank[2], 1), sorted(of_rank[3], 1)};
  const std::vector<double> long_one = sorted(of_rank[2], 2);
  const std::vector<double> short_one = sorted(of_rank[3], 2);
  MESSAGE("S alone: " << alone / 1e6 << " ms; multiples of it, by median (quartiles): two equal "
                      << shown(equal[0], alone) << " and " << shown(equal[1], alone)
                      << " (fair 2 and 2); S " << shown(short_one, alone) << " beside 3 S "
                      << shown(long_one, alone) << " (fair 2 and 4)");
}

}  // namespace stageline::executor
