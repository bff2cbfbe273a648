// "Which op needs which" written once more, by names of ops, for tests only: it shares no code with
// sim/rules.hpp.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "sim/base/index.hpp"
#include "sim/program.hpp"

namespace stageline::test {

inline Op op(OpKind kind, int stage, std::uint32_t number, int part = 0) {
  Op made;
  made.kind = kind;
  made.stage = static_cast<std::uint16_t>(stage);
  made.microbatch = number;
  made.part = static_cast<std::uint8_t>(part & 0x7f);
  return made;
}

using stageline::plain;

/// An edge of the stage graph, and how messages name it at both ends.
struct EdgeWire {
  int from = 0;
  int to = 0;
  int among_outgoing = 0;  // the how-manieth of `from`
  int among_incoming = 0;  // of `to`
};
inline std::vector<EdgeWire> wires_of(const Program& program) {
  std::vector<EdgeWire> all;
  for (const StageEdge edge : program.edges) {
    EdgeWire wire{edge.from, edge.to, 0, 0};
    for (const EdgeWire& other : all) {
      wire.among_outgoing += other.from == wire.from ? 1 : 0;
      wire.among_incoming += other.to == wire.to ? 1 : 0;
    }
    all.push_back(wire);
  }
  return all;
}

/// Where the roles of a stage are: one device each, of I one a part.
struct Roles {
  explicit Roles(const StagePlace& place)
      : forward(place.replicas.front()), input_grad(place.input_grad) {
    apart = !place.input_grad.empty() || !place.weight_grad.empty();
    weight_grad = place.weight_grad.empty() ? forward : place.weight_grad.front();
    if (input_grad.empty()) input_grad.push_back(forward);
  }
  /// Devices that read the output gradient and the stash, each once: I's, then W's.
  std::vector<int> readers() const {
    std::vector<int> all;
    for (const int device : input_grad) add(device, all);
    add(weight_grad, all);
    return all;
  }
  std::vector<int> stash_goes_to() const {
    std::vector<int> all = readers();
    all.erase(std::remove(all.begin(), all.end(), forward), all.end());
    return all;
  }
  std::vector<int> weights_go_to() const {
    std::vector<int> all;
    add(forward, all);
    for (const int device : input_grad) add(device, all);
    all.erase(std::remove(all.begin(), all.end(), weight_grad), all.end());
    return all;
  }
  static void add(int device, std::vector<int>& all) {
    if (std::find(all.begin(), all.end(), device) == all.end()) all.push_back(device);
  }

  bool apart = false;
  int forward = 0;
  std::vector<int> input_grad;
  int weight_grad = 0;
};

/// The gradient messages of a stage, in the order of their numbers: for every incoming edge each
/// part of I to each reader. A reader of -1 is whoever has the micro-batch.
struct GradientWay {
  int from = 0;  // the stage that reads it
  int part = 0;
  int reader = -1;
};
inline std::vector<GradientWay> gradient_ways(const Program& program, int stage) {
  std::vector<GradientWay> all;
  for (const EdgeWire& wire : wires_of(program)) {
    if (wire.to != stage) continue;
    const Roles maker(nth(program.placement.stage, stage));
    const Roles reader(nth(program.placement.stage, wire.from));
    for (std::size_t part = 0; part < maker.input_grad.size(); ++part) {
      if (!reader.apart) {
        all.push_back({wire.from, static_cast<int>(part), -1});
        continue;
      }
      for (const int device : reader.readers()) {
        all.push_back({wire.from, static_cast<int>(part), device});
      }
    }
  }
  return all;
}

/// The ops that an op needs by the table in sim/README.md, from all ops that
/// the program has.
class Table {
 public:
  explicit Table(const Program& program) : program_(program), wires_(wires_of(program)) {
    for (const auto& list : program.ops) {
      for (const Op one : list) ops_.insert(plain(one));
    }
  }

  bool has(Op one) const { return ops_.count(one) > 0; }
  const std::set<Op>& ops() const { return ops_; }

  std::vector<Op> needs(Op one) const {
    const int s = one.stage;
    const std::uint32_t m = one.microbatch;
    const Roles roles(program_.placement.stage[one.stage]);
    const int device = one.kind == OpKind::input_grad  ? roles.input_grad.at(one.part)
                       : one.kind == OpKind::forward   ? roles.forward
                       : one.kind == OpKind::recompute ? roles.readers().at(one.part)
                                                       : roles.weight_grad;
    std::vector<Op> all;
    switch (one.kind) {
      case OpKind::forward:
        for (const EdgeWire& wire : wires_) {
          if (wire.to != s) continue;
          const Op sent = op(OpKind::send_forward, wire.from, m, wire.among_outgoing);
          all.push_back(has(sent) ? sent : op(OpKind::forward, wire.from, m));
        }
        add_delayed_weights(s, m, roles.forward, all);
        add_window(s, m, all);
        if (const std::int64_t before = m - buffers(s); buffers(s) > 0 && before >= 0) {
          const Op copied = op(OpKind::offload, s, static_cast<std::uint32_t>(before));
          if (has(copied)) all.push_back(copied);
        }
        if (m % chunks() != 0) all.push_back(op(OpKind::forward, s, m - 1));
        add_cycle_before(m + s, all);
        break;
      case OpKind::input_grad:
      case OpKind::backward:
        add_stash(s, m, device, all);
        add_output_gradient(s, m, device, all);
        if (roles.apart && program_.settings.weights == WeightRule::stash) {
          add_delayed_weights(s, m, device, all);
        }
        add_chunk_behind(s, m, all);
        add_cycle_before(m + 2 * (program_.stages() - 1) - s, all);
        break;
      case OpKind::weight_grad:
        add_stash(s, m, device, all);
        if (!program_.independent_w[one.stage] && has(op(OpKind::input_grad, s, m))) {
          add_gradient(s, m, all);
        } else {
          add_output_gradient(s, m, device, all);
          add_chunk_behind(s, m, all);
        }
        add_cycle_before(m + 2 * (program_.stages() - 1) - s, all);
        break;
      case OpKind::recompute:
        add_left_by_forward(s, m, device, all);
        if (program_.settings.recompute == RecomputeStart::late) {
          add_output_gradient(s, m, device, all);
        }
        if (roles.apart && program_.settings.weights == WeightRule::stash) {
          add_delayed_weights(s, m, device, all);
        }
        break;
      case OpKind::offload:
      case OpKind::send_forward:
      case OpKind::send_stash:
        all.push_back(op(OpKind::forward, s, m));
        break;
      case OpKind::prefetch:
        all.push_back(op(OpKind::offload, s, m));
        if (program_.settings.copies == Copies::issued) add_issuer(one, all);
        if (const std::int64_t before = m - buffers(s); buffers(s) > 0 && before >= 0) {
          add_backward(s, static_cast<std::uint32_t>(before), all);
        }
        break;
      case OpKind::send_weights:
        all.push_back(op(OpKind::update, s, m));
        break;
      case OpKind::send_backward: {
        const GradientWay way = gradient_ways(program_, s).at(one.part);
        add_part(s, m, way.part, all);
        break;
      }
      case OpKind::update:
        if (has(op(OpKind::reduce_grad, s, m, one.part))) {
          all.push_back(op(OpKind::reduce_grad, s, m, one.part));
        } else {
          add_weight_gradients(s, m, all);
        }
        add_last_reader(s, m, all);
        break;
      case OpKind::reduce_grad:
        add_weight_gradients(s, m, all);
        break;
      case OpKind::receive_forward:
      case OpKind::receive_backward:
      case OpKind::receive_stash:
      case OpKind::receive_weights:
        break;  // happens with its SEND
    }
    return all;
  }

 private:
  int delay_of(int s) const {
    return program_.settings.delay.empty() ? -1 : nth(program_.settings.delay, s);
  }
  std::int64_t buffers(int s) const {
    const auto replicas = nth(program_.placement.stage, s).replicas.size();
    const Copies copies = program_.settings.copies;
    const int each = copies == Copies::free || copies == Copies::issued ? 0
                     : copies == Copies::blocking                       ? 1
                                                                        : 2;
    return each * static_cast<std::int64_t>(replicas);
  }

  // The nearest op of the compute lane in front of a PREFETCH, other than an update.
  void add_issuer(Op prefetch, std::vector<Op>& all) const {
    for (const auto& list : program_.ops) {
      const auto at = std::find(list.begin(), list.end(), prefetch);
      if (at == list.end()) continue;
      for (auto before = at; before != list.begin();) {
        --before;
        if (lane_of(before->kind) != LaneKind::compute || before->kind == OpKind::update) continue;
        return all.push_back(plain(*before));
      }
    }
  }

  void add_stash(int s, std::uint32_t m, int device, std::vector<Op>& all) const {
    add_left_by_forward(s, m, device, all);
    const Op again = op(OpKind::recompute, s, m, reader(s, device));
    if (has(again)) all.push_back(again);
  }

  // The part of R and PREFETCH on the device.
  int reader(int s, int device) const {
    const Roles roles(nth(program_.placement.stage, s));
    const std::vector<int> readers = roles.readers();
    const auto found = std::find(readers.begin(), readers.end(), device);
    return roles.apart ? static_cast<int>(found - readers.begin()) : 0;
  }

  void add_left_by_forward(int s, std::uint32_t m, int device, std::vector<Op>& all) const {
    const Roles roles(nth(program_.placement.stage, s));
    const Op copied = op(OpKind::prefetch, s, m, reader(s, device));
    if (roles.apart && has(copied)) return all.push_back(copied);
    const std::vector<int> ways = roles.stash_goes_to();
    for (std::size_t i = 0; roles.apart && i < ways.size(); ++i) {
      const Op sent = op(OpKind::send_stash, s, m, static_cast<int>(i));
      if (ways[i] == device && has(sent)) return all.push_back(sent);
    }
    all.push_back(op(OpKind::forward, s, m));
    if (!roles.apart && has(copied)) all.push_back(copied);
  }

  // The forward that still reads the weights that update m changes, where there is one copy.
  void add_last_reader(int s, std::uint32_t m, std::vector<Op>& all) const {
    const int delay = delay_of(s);
    const std::int64_t reader = std::int64_t{m} + delay;
    if (delay >= 0 && program_.settings.weights == WeightRule::latest &&
        reader < std::int64_t{program_.total_microbatches()}) {
      all.push_back(op(OpKind::forward, s, static_cast<std::uint32_t>(reader)));
    }
  }

  // The update that makes the weights which F of m reads, or its arrival on the device.
  void add_delayed_weights(int s, std::uint32_t m, int device, std::vector<Op>& all) const {
    const std::int64_t k = std::int64_t{m} - delay_of(s) - 1;
    if (delay_of(s) < 0 || k < 0) return;
    const auto number = static_cast<std::uint32_t>(k);
    const std::vector<int> ways = Roles(nth(program_.placement.stage, s)).weights_go_to();
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const Op sent = op(OpKind::send_weights, s, number, static_cast<int>(i));
      if (ways[i] == device && has(sent)) return all.push_back(sent);
    }
    if (has(op(OpKind::update, s, number))) all.push_back(op(OpKind::update, s, number));
  }

  std::uint32_t chunks() const {
    return static_cast<std::uint32_t>(program_.settings.sequence_chunks);
  }

  void add_chunk_behind(int s, std::uint32_t m, std::vector<Op>& all) const {
    if ((m + 1) % chunks() == 0) return;
    for (const OpKind kind : {OpKind::backward, OpKind::input_grad, OpKind::weight_grad}) {
      if (!has(op(kind, s, m + 1))) continue;
      return all.push_back(op(kind, s, m + 1));
    }
  }

  void add_backward(int s, std::uint32_t m, std::vector<Op>& all) const {
    for (const OpKind kind : {OpKind::backward, OpKind::weight_grad}) {
      if (has(op(kind, s, m))) all.push_back(op(kind, s, m));
    }
    for (int part = 0; part <= max_parts; ++part) {
      if (has(op(OpKind::input_grad, s, m, part))) {
        all.push_back(op(OpKind::input_grad, s, m, part));
      }
    }
  }

  void add_window(int s, std::uint32_t m, std::vector<Op>& all) const {
    const int window = program_.settings.window.empty() ? 0 : nth(program_.settings.window, s);
    if (window > 0 && m >= static_cast<std::uint32_t>(window)) {
      add_backward(s, m - static_cast<std::uint32_t>(window), all);
    }
  }

  // Everything of the cycle before `cycle`.
  void add_cycle_before(std::int64_t cycle, std::vector<Op>& all) const {
    if (program_.settings.clock != Clock::lockstep) return;
    for (int s = 0; s < program_.stages(); ++s) {
      for (std::uint32_t m = 0; m < program_.total_microbatches(); ++m) {
        if (m + s == cycle - 1) all.push_back(op(OpKind::forward, s, m));
        if (m + 2 * (program_.stages() - 1) - s != cycle - 1) continue;
        all.push_back(op(OpKind::backward, s, m));
        if (has(op(OpKind::update, s, m))) all.push_back(op(OpKind::update, s, m));
      }
    }
  }

  // dL/d(input of s)
  void add_gradient(int s, std::uint32_t m, std::vector<Op>& all) const {
    if (!has(op(OpKind::input_grad, s, m))) return all.push_back(op(OpKind::backward, s, m));
    for (int part = 0; part <= max_parts; ++part) {
      if (has(op(OpKind::input_grad, s, m, part))) {
        all.push_back(op(OpKind::input_grad, s, m, part));
      }
    }
  }

  void add_part(int s, std::uint32_t m, int part, std::vector<Op>& all) const {
    const Op one = op(OpKind::input_grad, s, m, part);
    all.push_back(has(one) ? one : op(OpKind::backward, s, m));
  }

  void add_output_gradient(int s, std::uint32_t m, int device, std::vector<Op>& all) const {
    const bool apart = Roles(nth(program_.placement.stage, s)).apart;
    for (const EdgeWire& wire : wires_) {
      if (wire.from != s) continue;
      const std::vector<GradientWay> ways = gradient_ways(program_, wire.to);
      for (std::size_t i = 0; i < ways.size(); ++i) {
        if (ways[i].from != s || (apart && ways[i].reader != device)) continue;
        const Op sent = op(OpKind::send_backward, wire.to, m, static_cast<int>(i));
        if (has(sent)) {
          all.push_back(sent);
        } else {
          add_part(wire.to, m, ways[i].part, all);
        }
      }
    }
  }

  void add_weight_gradients(int s, std::uint32_t k, std::vector<Op>& all) const {
    const bool by_step = program_.settings.weights == WeightRule::flush ||
                         program_.settings.weights == WeightRule::double_buffer;
    const auto replicas = nth(program_.placement.stage, s).replicas.size();
    const std::size_t size = by_step ? as_size(program_.microbatches) : replicas;
    const std::size_t total = as_size(program_.microbatches * program_.steps);
    for (std::size_t m = k * size; m < std::min((k + 1) * size, total); ++m) {
      const auto number = static_cast<std::uint32_t>(m);
      const bool whole = has(op(OpKind::backward, s, number));
      all.push_back(op(whole ? OpKind::backward : OpKind::weight_grad, s, number));
    }
  }

  const Program& program_;
  std::vector<EdgeWire> wires_;
  std::set<Op> ops_;
};

}  // namespace stageline::test
