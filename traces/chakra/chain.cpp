// Orders the passes of a pipeline by the messages between its ranks.
//
//   stage 0   c c ──► SEND         RECV ──► c c        c: a node that computes
//                       ┊           ▲                  a forward is where its message comes from or
//   stage 1           RECV ──► c ──► SEND              goes to; so is a backward
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/program.hpp"
#include "traces/chakra/ranks.hpp"

namespace stageline {
namespace {

constexpr std::size_t no_node = std::numeric_limits<std::size_t>::max();

using Indices = std::vector<std::size_t>;

// Messages of one rank with another, in the file's order.
Indices messages_with(const ChakraRank& rank, ChakraWork work, std::size_t peer) {
  Indices found;
  for (std::size_t i = 0; i < rank.nodes.size(); ++i) {
    const ChakraNode& node = rank.nodes[i];
    if (node.work == work && node.peer == static_cast<std::int64_t>(peer)) found.push_back(i);
  }
  return found;
}

// The ranks from the first stage to the last.
class ChainFinder {
 public:
  explicit ChainFinder(const std::vector<ChakraRank>& ranks) : ranks_(ranks) {
    neighbours_.resize(ranks.size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) add(rank);
  }

  Indices chain() const {
    const auto ends = std::find_if(neighbours_.begin(), neighbours_.end(),
                                   [](const std::set<std::size_t>& one) { return !one.empty(); });
    if (ends == neighbours_.end()) {
      refuse(0, "no rank sends a message to another, so nothing says what the stages are");
    }
    Indices chain = along(as_size(ends - neighbours_.begin()));
    const bool forth = sends_first(chain.front());
    if (forth == sends_first(chain.back())) {
      refuse(chain.front(),
             fmt::format("of the ends of the chain, ranks {} and {}, {} its first message, so "
                         "nothing says which is the first stage",
                         chain.front(), chain.back(), forth ? "both send" : "both receive"));
    }
    if (!forth) std::reverse(chain.begin(), chain.end());
    return chain;
  }

 private:
  [[noreturn]] void refuse(std::size_t rank, const std::string& what) const {
    throw TraceError(ranks_[rank].file, "", what);
  }

  void add(std::size_t rank) {
    for (const ChakraNode& node : ranks_[rank].nodes) {
      if (node.work != ChakraWork::send && node.work != ChakraWork::receive) continue;
      if (node.peer < 0 || as_size(node.peer) >= ranks_.size() || as_size(node.peer) == rank) {
        refuse(rank, fmt::format("node \"{}\" is a message of rank {} with rank {}, and there are "
                                 "{} files, of ranks 0 to {}; give those of all ranks",
                                 node.name, rank, node.peer, ranks_.size(), ranks_.size() - 1));
      }
      neighbours_[rank].insert(as_size(node.peer));
      neighbours_[as_size(node.peer)].insert(rank);
    }
  }

  // From one end of its chain to the other.
  Indices along(std::size_t member) const {
    Indices chain{end_from(member)};
    while (true) {
      const std::set<std::size_t>& next = two_of(chain.back());
      const std::size_t before = chain.size() > 1 ? chain[chain.size() - 2] : no_node;
      const auto other =
          std::find_if(next.begin(), next.end(), [&](std::size_t rank) { return rank != before; });
      if (other == next.end()) return chain;
      chain.push_back(*other);
    }
  }

  // Its neighbours.
  const std::set<std::size_t>& two_of(std::size_t rank) const {
    const std::set<std::size_t>& next = neighbours_[rank];
    if (next.size() <= 2) return next;
    refuse(rank,
           fmt::format("rank {} exchanges messages with ranks {}, and a stage of a chain does "
                       "with two at most; interleaved stages and several pipelines in one "
                       "are not read",
                       rank, fmt::join(next, ", ")));
  }

  std::size_t end_from(std::size_t member) const {
    std::size_t before = no_node;
    for (std::size_t steps = 0; steps <= ranks_.size(); ++steps) {
      const std::set<std::size_t>& next = two_of(member);
      if (next.size() == 1) return member;
      const std::size_t other = *next.begin() == before ? *next.rbegin() : *next.begin();
      before = std::exchange(member, other);
    }
    refuse(member,
           "the ranks' messages go in a circle, as those of interleaved stages do, which "
           "are not read");
  }

  bool sends_first(std::size_t rank) const {
    for (const ChakraNode& node : ranks_[rank].nodes) {
      if (node.work == ChakraWork::send) return true;
      if (node.work == ChakraWork::receive) return false;
    }
    return false;
  }

  const std::vector<ChakraRank>& ranks_;
  std::vector<std::set<std::size_t>> neighbours_;
};

// Where a rank's passes are: by the nodes that its messages come from or go to.
class PassPlaces {
 public:
  explicit PassPlaces(const ChakraRank& rank) : rank_(rank), readers_(rank.nodes.size()) {
    for (std::size_t i = 0; i < rank.nodes.size(); ++i) {
      for (const std::size_t needed : rank.nodes[i].needs) readers_[needed].push_back(i);
    }
  }

  /// The first node that computes and needs the message, its own place where none does.
  std::size_t reader(std::size_t message) const {
    const Indices found = computing(message, readers_);
    return found.empty() ? message : *std::min_element(found.begin(), found.end());
  }
  /// The last node that computes and that the message needs.
  std::size_t source(std::size_t message) const {
    const Indices found =
        computing(message, [&](std::size_t i) -> const Indices& { return rank_.nodes[i].needs; });
    return found.empty() ? message : *std::max_element(found.begin(), found.end());
  }

 private:
  Indices computing(std::size_t from, const std::vector<Indices>& next) const {
    return computing(from, [&](std::size_t i) -> const Indices& { return next[i]; });
  }
  // Those next to it; where there is none, those behind others that do not compute.
  template <class Next>
  Indices computing(std::size_t from, Next next) const {
    std::set<std::size_t> seen{from};
    Indices front{from};
    Indices found;
    while (found.empty() && !front.empty()) {
      Indices further;
      for (const std::size_t node : front) {
        for (const std::size_t other : next(node)) {
          if (!seen.insert(other).second) continue;
          const bool computes = rank_.nodes[other].work == ChakraWork::compute;
          (computes ? found : further).push_back(other);
        }
      }
      front = std::move(further);
    }
    return found;
  }

  const ChakraRank& rank_;
  std::vector<Indices> readers_;
};

// Each message in the receiver's file, in the order of the sender's: by tags where these tell them
// apart.
Indices in_order_of_sender(const ChakraRank& sender, const Indices& sent,
                           const ChakraRank& receiver, const Indices& received) {
  std::map<std::int64_t, std::size_t> by_tag;
  for (const std::size_t node : received) by_tag.emplace(receiver.nodes[node].tag, node);
  Indices matched;
  for (const std::size_t node : sent) {
    const auto found = by_tag.find(sender.nodes[node].tag);
    if (found == by_tag.end()) return received;
    matched.push_back(found->second);
    by_tag.erase(found);
  }
  return matched;
}

// From stage s to its neighbour: both ends of each message, in the sender's order.
struct Way {
  Indices sent;
  Indices received;
};

struct Pass {
  std::size_t place = 0;
  bool backward = false;
  std::size_t microbatch = 0;
};

class ChainReader {
 public:
  ChainReader(const std::vector<ChakraRank>& ranks, Indices chain)
      : ranks_(ranks), chain_(std::move(chain)), passes_(chain_.size()) {
    for (const std::size_t rank : chain_) places_.emplace_back(ranks[rank]);
    for (std::size_t stage = 0; stage + 1 < chain_.size(); ++stage) {
      forth_.push_back(way(stage, stage + 1));
      back_.push_back(way(stage + 1, stage));
    }
  }

  std::string text() {
    check_counts();
    place_forwards();
    place_backwards();
    std::string text =
        fmt::format("stageline-program 1\nschedule: chakra\nmicrobatches: {}\nsteps: 1\n",
                    forth_[0].sent.size());
    for (std::size_t stage = 0; stage < chain_.size(); ++stage) {
      text += fmt::format("stage {}: gpu{}\n", stage, chain_[stage]);
    }
    for (std::size_t stage = 0; stage < chain_.size(); ++stage) text += list_of(stage);
    return text;
  }

 private:
  Way way(std::size_t from, std::size_t to) const {
    const ChakraRank& sender = ranks_[chain_[from]];
    const ChakraRank& receiver = ranks_[chain_[to]];
    Way way;
    way.sent = messages_with(sender, ChakraWork::send, chain_[to]);
    way.received = messages_with(receiver, ChakraWork::receive, chain_[from]);
    if (way.sent.size() != way.received.size()) {
      throw TraceError(sender.file, "",
                       fmt::format("rank {} sends {} messages to rank {}, which receives {}",
                                   chain_[from], way.sent.size(), chain_[to], way.received.size()));
    }
    way.received = in_order_of_sender(sender, way.sent, receiver, way.received);
    return way;
  }

  void check_counts() const {
    const std::size_t count = forth_[0].sent.size();
    for (std::size_t stage = 0; stage < forth_.size(); ++stage) {
      for (const bool back : {false, true}) {
        const std::size_t sent = (back ? back_ : forth_)[stage].sent.size();
        if (sent == count) continue;
        throw TraceError(
            ranks_[chain_[stage + (back ? 1 : 0)]].file, "",
            fmt::format("rank {} sends {} messages to rank {}, and rank {} sends {} to rank {}: a "
                        "pipeline has one for each micro-batch, each way",
                        chain_[stage + (back ? 1 : 0)], sent, chain_[stage + (back ? 0 : 1)],
                        chain_[0], count, chain_[1]));
      }
    }
  }

  // A stage sends in the order of its passes; what it receives has the number that the sender's
  // had.
  void place_forwards() {
    const std::size_t count = forth_[0].sent.size();
    Indices number(count);
    std::iota(number.begin(), number.end(), std::size_t{0});
    for (std::size_t i = 0; i < count; ++i) {
      passes_[0].push_back({places_[0].source(forth_[0].sent[i]), false, i});
    }
    for (std::size_t stage = 1; stage < chain_.size(); ++stage) {
      std::vector<Pass> arrived;
      for (std::size_t i = 0; i < count; ++i) {
        arrived.push_back({places_[stage].reader(forth_[stage - 1].received[i]), false, number[i]});
      }
      number = add_in_order(stage, std::move(arrived));
    }
    last_forwards_ = std::move(number);
  }

  void place_backwards() {
    const std::size_t last = chain_.size() - 1;
    const Indices& sent = back_[last - 1].sent;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const std::size_t forward = passes_[last][i].place;
      passes_[last].push_back(
          {std::max(places_[last].source(sent[i]), forward), true, last_forwards_[i]});
    }
    Indices number = last_forwards_;
    for (std::size_t stage = last; stage-- > 0;) {
      std::vector<Pass> arrived;
      for (std::size_t i = 0; i < number.size(); ++i) {
        arrived.push_back({places_[stage].reader(back_[stage].received[i]), true, number[i]});
      }
      number = add_in_order(stage, std::move(arrived));
    }
  }

  // Returns their micro-batches.
  Indices add_in_order(std::size_t stage, std::vector<Pass> passes) {
    std::stable_sort(passes.begin(), passes.end(),
                     [](const Pass& a, const Pass& b) { return a.place < b.place; });
    Indices number;
    for (const Pass& pass : passes) number.push_back(pass.microbatch);
    passes_[stage].insert(passes_[stage].end(), passes.begin(), passes.end());
    return number;
  }

  std::string list_of(std::size_t stage) {
    std::vector<Pass>& passes = passes_[stage];
    std::stable_sort(passes.begin(), passes.end(), [](const Pass& a, const Pass& b) {
      return std::tuple(a.place, a.backward) < std::tuple(b.place, b.backward);
    });
    std::string text = fmt::format("gpu{}:", chain_[stage]);
    for (const Pass& pass : passes) {
      text += fmt::format(" {}{}{}", stage, pass.backward ? 'B' : 'F', pass.microbatch);
    }
    return text + "\n";
  }

  const std::vector<ChakraRank>& ranks_;
  Indices chain_;
  std::vector<PassPlaces> places_;         // by stage
  std::vector<Way> forth_;                 // from stage s to s + 1
  std::vector<Way> back_;                  // from s + 1 to s
  std::vector<std::vector<Pass>> passes_;  // by stage
  Indices last_forwards_;                  // micro-batches of the last stage, in order
};

}  // namespace

ReadProgram program_of_messages(const std::vector<ChakraRank>& ranks) {
  const Indices chain = ChainFinder(ranks).chain();
  ReadProgram read{parse_program(ChainReader(ranks, chain).text()), {}};
  read.notes.emplace_back(
      "its nodes are not named as ops: forwards and backwards are where the messages between ranks "
      "come from and go to, one each way for each micro-batch of one step; each rank is taken for "
      "one stage, and the last stage's backwards are counted in the order of its forwards");
  if (chain.size() < ranks.size()) {
    read.notes.push_back(
        fmt::format("ranks {} are read, which send each other messages, and the "
                    "other {} of {} are left out",
                    fmt::join(chain, ", "), ranks.size() - chain.size(), ranks.size()));
  }
  std::int64_t collectives = 0;
  for (const std::size_t rank : chain) {
    for (const ChakraNode& node : ranks[rank].nodes) {
      collectives += node.work == ChakraWork::collective ? 1 : 0;
    }
  }
  if (collectives > 0)
    read.notes.push_back(fmt::format("{} collectives are left out", collectives));
  read.notes.emplace_back("times and sizes of its nodes are left out: a program is an order alone");
  return read;
}

}  // namespace stageline
