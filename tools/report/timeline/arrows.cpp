// Finds both ends of every message, and of every version of the weights.
#include "tools/report/timeline/arrows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "sim/analysis/versions.hpp"
#include "sim/analysis/weight_copies.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "sim/rules.hpp"

namespace stageline::report {
namespace {

constexpr std::string_view of_one = "messages:";

// What makes each product: the op, its device and its end.
class ArrowSources {
 public:
  ArrowSources(const Program& program, const Timeline& timeline)
      : program_(program),
        stages_(stage_graph(program)),
        products_(program, stages_),
        makers_(products_.size()) {
    for (std::size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
      for (const Span& span : timeline.lanes[lane]) {
        const Op op = plain(span.op);
        makes(stages_, op, [&](Product product, int at, std::uint32_t number, int part) {
          const std::int64_t index = products_.index(product, at, number, part);
          if (index < 0) return;
          nth(makers_, index) = ArrowEnd{op, static_cast<int>(lane / lane_kinds), span.end};
        });
      }
    }
  }

  /// The op and its device; nothing where no op of the run makes it.
  const std::optional<ArrowEnd>& maker(Product product, int at, std::uint32_t number,
                                       int part) const {
    static const std::optional<ArrowEnd> none;
    const std::int64_t index = products_.index(product, at, number, part);
    return index < 0 ? none : nth(makers_, index);
  }

  /// Calls need(product, index, number, part) for what the op needs.
  template <class Need>
  void each_need(Op op, Need&& need) const {
    needs(
        program_, stages_, op,
        [&](Product product, int at, std::uint32_t number, int part) {
          return maker(product, at, number, part).has_value();
        },
        need);
  }

  /// The op whose result a SEND carries: of several parts the one that ends last.
  std::optional<ArrowEnd> carried_by(Op send) const {
    std::optional<ArrowEnd> last;
    each_need(send, [&](Product product, int at, std::uint32_t number, int part) {
      const std::optional<ArrowEnd>& one = maker(product, at, number, part);
      if (one && lane_of(one->op.kind) == LaneKind::compute && (!last || one->at > last->at)) {
        last = one;
      }
    });
    return last;
  }

  /// What the op `to` needs from another device without a message of its own: the output of a
  /// neighbour in the stage graph, or its stage's stash.
  std::optional<Cargo> cargo_between(Product product, int at, std::uint32_t number, Op to) const {
    if (number != to.microbatch) return std::nullopt;
    const auto joined = [&](int from, int reader) {
      return std::any_of(stages_.edges.begin(), stages_.edges.end(), [&](const StageEdge& edge) {
        return edge.from == from && edge.to == reader;
      });
    };
    if (product == Product::activation) {
      if (to.kind != OpKind::forward) {
        return at == to.stage ? std::optional(Cargo::stash) : std::nullopt;
      }
      return joined(at, to.stage) ? std::optional(Cargo::activation) : std::nullopt;
    }
    const bool gradient = product == Product::gradient && to.kind != OpKind::forward;
    return gradient && joined(to.stage, at) ? std::optional(Cargo::gradient) : std::nullopt;
  }

 private:
  const Program& program_;
  StageGraph stages_;
  ProductIndex products_;
  std::vector<std::optional<ArrowEnd>> makers_;
};

template <class Key>
std::vector<Arrow> in_order(const std::map<Key, Arrow>& found) {
  std::vector<Arrow> arrows;
  for (const auto& [key, arrow] : found) arrows.push_back(arrow);
  std::stable_sort(arrows.begin(), arrows.end(),
                   [](const Arrow& a, const Arrow& b) { return a.to.at < b.to.at; });
  return arrows;
}

}  // namespace

ArrowChoice arrow_choice(const std::vector<std::string>& words) {
  ArrowChoice choice;
  for (const std::string& word : words) {
    const bool one = word.starts_with(of_one);
    const bool messages = one || word == "messages";
    const std::optional<std::uint32_t> number =
        one ? parse_number<std::uint32_t>(word.substr(of_one.size())) : std::nullopt;
    if ((!messages && word != "weights") || (one && !number)) {
      throw UsageError(fmt::format(
          "arrows: \"{}\" is none of messages, messages:N (those of micro-batch N, from 0) and weights",
          word));
    }
    if (messages ? choice.messages : choice.weights) {
      throw UsageError(fmt::format("arrows: {} is there twice; name them once",
                                   messages ? "messages" : "weights"));
    }
    (messages ? choice.messages : choice.weights) = true;
    if (one) choice.microbatch = number;
  }
  return choice;
}

std::vector<Arrow> message_arrows(const Program& program, const Timeline& timeline) {
  using Key = std::tuple<Product, int, std::uint32_t, int, int>;
  const ArrowSources sources(program, timeline);
  std::map<Key, Arrow> first;
  for (int device = 0; device < static_cast<int>(timeline.devices.size()); ++device) {
    for (const Span& span : timeline.lane(device, LaneKind::compute)) {
      const Op op = plain(span.op);
      sources.each_need(op, [&](Product product, int at, std::uint32_t number, int part) {
        std::optional<ArrowEnd> from = sources.maker(product, at, number, part);
        if (!from) return;
        std::optional<Cargo> cargo = cargo_of(product);
        if (cargo) {
          from = sources.carried_by(from->op);
        } else {
          cargo = sources.cargo_between(product, at, number, op);
        }
        if (!from || !cargo || *cargo == Cargo::weights || from->device == device) return;
        const Arrow arrow{*cargo, *from, {op, device, span.start}};
        const auto known = first.emplace(Key{product, at, number, part, device}, arrow).first;
        if (span.start < known->second.to.at) known->second = arrow;
      });
    }
  }
  return in_order(first);
}

std::vector<Arrow> version_arrows(const Program& program, const Timeline& timeline) {
  std::map<std::pair<int, Op>, Span> spans;    // by device and op
  std::map<Op, std::pair<int, Span>> updates;  // by op without its part; of several the first
  for (int device = 0; device < static_cast<int>(timeline.devices.size()); ++device) {
    for (const Span& span : timeline.lane(device, LaneKind::compute)) {
      spans.emplace(std::pair(device, plain(span.op)), span);
      if (span.op.kind != OpKind::update) continue;
      updates.emplace(op_of(OpKind::update, span.op.stage, span.op.microbatch),
                      std::pair(device, span));
    }
  }
  // By stage and device, the numbers of the updates in the order in which they take effect there.
  std::map<std::pair<int, int>, std::vector<Op>> made;
  const auto copies = weight_copies(program, timeline);
  for (std::size_t stage = 0; stage < copies.size(); ++stage) {
    for (const WeightCopy& copy : copies[stage]) {
      for (const Span& span : copy.spans) {
        if (span.op.kind != OpKind::update) continue;
        made[{static_cast<int>(stage), copy.device}].push_back(plain(span.op));
      }
    }
  }
  std::map<std::tuple<int, int, std::uint32_t>, Arrow> first;
  for (const VersionRead& read : versions_read(program, timeline)) {
    if (read.version == 0 || read.op.kind == OpKind::weight_grad) continue;  // W reads no weights
    const auto reader = spans.find({read.device, plain(read.op)});
    const std::vector<Op>& here = made[{read.op.stage, read.device}];
    if (reader == spans.end() || read.version > here.size()) continue;
    const Op update = here[read.version - 1];
    ArrowEnd from{update, read.device, {}};
    if (const auto own = spans.find({read.device, update}); own != spans.end()) {
      from.at = own->second.end;
    } else {  // weights that come from another device
      const auto other = updates.find(op_of(OpKind::update, update.stage, update.microbatch));
      if (other == updates.end()) continue;
      from = {plain(other->second.second.op), other->second.first, other->second.second.end};
    }
    const Arrow arrow{Cargo::weights, from, {plain(read.op), read.device, reader->second.start}};
    const auto known =
        first.emplace(std::tuple(int{read.op.stage}, read.device, read.version), arrow).first;
    if (arrow.to.at < known->second.to.at) known->second = arrow;
  }
  return in_order(first);
}

}  // namespace stageline::report
