// Is each thing done exactly once, in the right place? (Whether it can finish is compile()'s
// question.)
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "sim/errors.hpp"
#include "sim/figure.hpp"
#include "sim/rules.hpp"

namespace stageline {
namespace {

struct Place {
  int device = -1;
  int position = -1;
};

class Validator {
 public:
  explicit Validator(const Program& program)
      : program_(program), graph_(stage_graph(program)), index_(program, graph_) {}

  void validate() {
    check_header();
    made_.assign(index_.size(), 0);
    updated_.resize(program_.placement.stage.size());
    exists_input_grad_.resize(program_.placement.stage.size());
    for (const auto& list : program_.ops) {
      for (const Op op : list) {
        if (op.kind == OpKind::input_grad) exists_input_grad_[op.stage] = true;
      }
    }
    for (std::size_t device = 0; device < program_.ops.size(); ++device) {
      const auto& list = program_.ops[device];
      for (std::size_t i = 0; i < list.size(); ++i) {
        check_op({static_cast<int>(device), static_cast<int>(i)}, list);
      }
    }
    for (int s = 0; s < program_.stages(); ++s) check_work(s);
    check_messages();
  }

 private:
  [[noreturn]] void refuse(Place place, Op op, const std::string& message) const {
    throw ProgramError(
        fmt::format("{}, op {} ({}): {}", program_.devices[static_cast<std::size_t>(place.device)],
                    place.position, print(op), message),
        place.device, place.position, grid(program_, {op}));
  }

  bool exists(Product product, int index, std::uint32_t number, int part = 0) const {
    const std::int64_t slot = index_.index(product, index, number, part);
    return slot >= 0 && made_[static_cast<std::size_t>(slot)] > 0;
  }

  void check_header() const {
    // Before room is made for them: a short text may ask for many.
    std::int64_t ops = 0;
    for (const auto& list : program_.ops) ops += static_cast<std::int64_t>(list.size());
    if (ops < std::int64_t{program_.stages()} * program_.total_microbatches()) {
      throw ProgramError(fmt::format(
          "the program has {} ops, too few for {} stages and {} micro-batches, of which "
          "each needs one F and either one B or I and W",
          ops, program_.stages(), program_.total_microbatches()));
    }
    if (program_.sequence_chunks > 1) check_chunks();
    const auto devices = static_cast<int>(program_.devices.size());
    for (int s = 0; s < program_.stages(); ++s) {
      const StagePlace& place = program_.placement.stage[static_cast<std::size_t>(s)];
      std::vector<int> replicas = place.replicas;
      std::sort(replicas.begin(), replicas.end());
      const bool twice = std::adjacent_find(replicas.begin(), replicas.end()) != replicas.end();
      if (replicas.empty() || replicas.front() < 0 || replicas.back() >= devices || twice ||
          replicas.size() > max_parts) {
        throw ProgramError(
            fmt::format("stage {} must live on 1 to {} different devices of the {} there are", s,
                        max_parts, devices));
      }
      check_roles(s, place);
      for (std::size_t cargo = 0; cargo < cargoes; ++cargo) {
        const std::size_t most =
            std::max(graph_.sends[cargo][static_cast<std::size_t>(s)].size(),
                     graph_.receives[cargo][static_cast<std::size_t>(s)].size());
        if (most <= max_parts) continue;
        throw ProgramError(
            fmt::format("stage {} has {} ways for messages of a kind; at most {} can be told apart",
                        s, most, max_parts));
      }
    }
  }

  // A sequence stays together: in a step, and on a device.
  void check_chunks() const {
    const bool by_step =
        program_.weights == WeightRule::flush || program_.weights == WeightRule::double_buffer;
    if (!by_step) {
      throw ProgramError(fmt::format(
          "sequence_chunks is for weights that change between steps: flush or double_buffer (not "
          "{})",
          name(program_.weights)));
    }
    if (program_.microbatches % program_.sequence_chunks != 0) {
      throw ProgramError(fmt::format(
          "the micro-batches of a step are chunks of whole sequences: {} are no multiple of "
          "sequence_chunks, {}",
          program_.microbatches, program_.sequence_chunks));
    }
    for (int s = 0; s < program_.stages(); ++s) {
      const StagePlace& place = program_.placement.stage[static_cast<std::size_t>(s)];
      if (!place.apart() && place.replicas.size() == 1) continue;
      throw ProgramError(fmt::format(
          "stage {}: with sequence_chunks a stage lives on one device, where attention finds the "
          "earlier chunks",
          s));
    }
  }

  void check_roles(int s, const StagePlace& place) const {
    if (!place.apart()) return;
    const auto devices = static_cast<int>(program_.devices.size());
    for (const auto* const role : {&place.input_grad, &place.weight_grad}) {
      for (const int device : *role) {
        if (device >= 0 && device < devices) continue;
        throw ProgramError(fmt::format("stage {}: there is no device {}", s, device));
      }
    }
    if (place.replicas.size() > 1 || place.weight_grad.size() > 1) {
      throw ProgramError(fmt::format(
          "stage {}: a stage with replicas has F, I and W of each on one device; W has one device",
          s));
    }
    double sum = 0;
    for (const double share : place.share) sum += share;
    const bool shared =
        place.share.size() == place.input_grad.size() && sum > 0.999999 && sum < 1.000001;
    if (place.input_grad.size() > 1 || !place.share.empty()) {
      if (!shared) {
        throw ProgramError(fmt::format(
            "stage {}: I on {} devices needs as many shares, which sum to 1 (they are {}: {:g})", s,
            place.input_grad.size(), place.share.size(), sum));
      }
    }
  }

  void check_op(Place place, const std::vector<Op>& list) {
    const Op op = list[static_cast<std::size_t>(place.position)];
    if (op.stage >= program_.stages()) {
      refuse(place, op, fmt::format("there are stages 0 to {} only", program_.stages() - 1));
    }
    if (counts_microbatches(op.kind)) {
      if (op.microbatch >= program_.total_microbatches()) {
        refuse(
            place, op,
            fmt::format("there are micro-batches 0 to {} only ({} a step, {} steps)",
                        program_.total_microbatches() - 1, program_.microbatches, program_.steps));
      }
    } else if (op.microbatch >= static_cast<std::uint32_t>(updates(program_, op.stage))) {
      refuse(place, op,
             fmt::format("the stage has updates 0 to {} only", updates(program_, op.stage) - 1));
    }
    const std::optional<Cargo> cargo = cargo_of(op.kind);
    if (cargo && wire_of(graph_, op) < 0)
      refuse(place, op, "the stage has no such edge for a message");
    const int home = device_of(graph_, program_.placement, op);
    if (home != place.device) {
      refuse(place, op,
             home < 0 ? std::string("the stage has no such part")
                      : fmt::format("the op belongs on {}, where its stage is placed",
                                    program_.devices[static_cast<std::size_t>(home)]));
    }
    if (op.overlapped) {
      const auto next = static_cast<std::size_t>(place.position) + 1;
      if (next >= list.size() || lane_of(list[next].kind) != LaneKind::compute ||
          lane_of(op.kind) != LaneKind::compute || list[next].overlapped) {
        refuse(place, op, "an overlapped op needs a second compute op right behind it");
      }
    }
    const StagePlace& stage = program_.placement.stage[op.stage];
    if (op.kind == OpKind::reduce_grad && stage.replicas.size() == 1) {
      refuse(place, op, "only a stage with replicas reduces gradients between them");
    }
    if (stage.apart()) check_apart(place, op, stage);
    if (cargo) check_message(place, op, *cargo);
    if (op.kind == OpKind::update) {
      auto& here = updated_[op.stage];
      here.resize(static_cast<std::size_t>(updates(program_, op.stage)) * stage.replicas.size());
      const std::size_t at = op.microbatch * stage.replicas.size() + op.part;
      if (here[at]) refuse(place, op, "this work is done twice");
      here[at] = true;
    }
    makes(graph_, op, [&](Product product, int index, std::uint32_t number, int part) {
      std::uint8_t& count =
          made_[static_cast<std::size_t>(index_.index(product, index, number, part))];
      if (count++ > 0) refuse(place, op, "this work is done twice");
    });
  }

  void check_message(Place place, Op op, Cargo cargo) {
    const int number = wire_of(graph_, op);
    const Ends ends = ends_of(program_.placement, wire(graph_, cargo, number), op.microbatch);
    if (ends.from == ends.to) refuse(place, op, "both ends of the message are on the same device");
    messages_.push_back({number, op.microbatch, cargo, is_send(op.kind), place, op});
  }

  // Where F, I and W are on several devices, what cannot travel must not have to.
  void check_apart(Place place, Op op, const StagePlace& stage) const {
    if (op.kind == OpKind::recompute) {
      refuse(place, op, "a stage with its backward on another device cannot be recomputed");
    }
    const bool together =
        stage.input_grad.size() <= 1 &&
        device_of(program_.placement, {OpKind::input_grad, 0, 0, op.stage, 0}) ==
            device_of(program_.placement, {OpKind::weight_grad, 0, 0, op.stage, 0});
    if (op.kind == OpKind::backward && !together) {
      refuse(place, op, "I and W of the stage are on different devices; write I and W");
    }
    if (op.kind == OpKind::weight_grad && !together && !program_.independent_w[op.stage] &&
        exists_input_grad_[op.stage]) {
      refuse(place, op,
             "inner gradients do not travel: a stage whose W is on another device than its I must "
             "be independent_w (one layer)");
    }
  }

  // Each micro-batch of the stage: one F, and one B or all parts of I and one W.
  void check_work(int s) const {
    const StagePlace& place = program_.placement.stage[static_cast<std::size_t>(s)];
    const bool first = graph_.in[static_cast<std::size_t>(s)].empty();
    const auto parts = static_cast<int>(std::max<std::size_t>(place.input_grad.size(), 1));
    const auto missing = [&](std::uint32_t m, std::string_view kind) {
      throw ProgramError(
          fmt::format("no device does {}{}{}; every stage needs, for each of the {} "
                      "micro-batches, one F and either one B or I and W",
                      s, kind, m, program_.total_microbatches()));
    };
    for (std::uint32_t m = 0; m < program_.total_microbatches(); ++m) {
      if (!exists(Product::activation, s, m)) missing(m, "F");
      if (!exists(Product::weight_gradient, s, m)) missing(m, "B");
      for (int part = 0; part < parts; ++part) {
        if (!first && !exists(Product::gradient, s, m, part)) {
          missing(m, part == 0 ? "I" : fmt::format("I (part {}) ", part));
        }
      }
      if (exists(Product::offloaded, s, m) && !exists(Product::prefetched, s, m)) {
        throw ProgramError(fmt::format(
            "no device does {}PREFETCH{}; what an OFFLOAD takes away must come back", s, m));
      }
    }
    // All updates or none: the pass that adds them leaves a stage alone that has some.
    const auto& done = updated_[static_cast<std::size_t>(s)];
    const auto gap = std::find(done.begin(), done.end(), false);
    if (gap != done.end()) {
      const auto at = static_cast<std::size_t>(gap - done.begin());
      Op absent;
      absent.kind = OpKind::update;
      absent.stage = static_cast<std::uint16_t>(s);
      absent.microbatch = static_cast<std::uint32_t>(at / place.replicas.size());
      absent.part = static_cast<std::uint8_t>(at % place.replicas.size() & 0x7f);
      throw ProgramError(
          fmt::format("no device does {}; write all updates of a stage or none", print(absent)));
    }
  }

  // A SEND for every RECV and the other way round; and none missing, when there are any.
  void check_messages() {
    if (messages_.empty()) return;
    const auto key = [](const Message& message) {
      return std::tuple(message.cargo, message.wire, message.microbatch, message.sends);
    };
    std::sort(messages_.begin(), messages_.end(),
              [&](const Message& a, const Message& b) { return key(a) < key(b); });
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const Message& one = messages_[i];
      if (i + 1 < messages_.size() && !one.sends) {
        const Message& two = messages_[i + 1];
        if (two.sends && two.wire == one.wire && two.microbatch == one.microbatch &&
            two.cargo == one.cargo) {
          ++i;
          continue;
        }
        if (key(two) == key(one)) refuse(two.place, two.op, "this message is received twice");
      }
      refuse(one.place, one.op,
             one.sends ? "nobody receives this message" : "nobody sends this message");
    }
    const InputGrads input_grads(program_);
    for (std::size_t device = 0; device < program_.ops.size(); ++device) {
      const auto& list = program_.ops[device];
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].kind != OpKind::forward && !input_grads.takes_output_gradient(list[i]))
          continue;
        check_brought({static_cast<int>(device), static_cast<int>(i)}, list[i]);
      }
    }
  }

  void check_brought(Place place, Op op) const {
    const Cargo cargo = op.kind == OpKind::forward ? Cargo::activation : Cargo::gradient;
    for (const int number : graph_.receives[static_cast<std::size_t>(cargo)][op.stage]) {
      const Wire& way = wire(graph_, cargo, number);
      const Ends ends = ends_of(program_.placement, way, op.microbatch);
      if (ends.from == ends.to || ends.to != place.device) continue;
      if (exists(sent(cargo), number, op.microbatch)) continue;
      refuse(place, op,
             fmt::format("no message brings what stage {} makes for it, though the program writes "
                         "its messages out; write all of them or none",
                         way.sender));
    }
  }

  struct Message {
    int wire;
    std::uint32_t microbatch;
    Cargo cargo;
    bool sends;
    Place place;
    Op op;
  };

  const Program& program_;
  StageGraph graph_;
  ProductIndex index_;
  std::vector<std::uint8_t> made_;
  std::vector<std::vector<bool>> updated_;  // by stage: updates × replicas, empty without any U
  std::vector<Message> messages_;
  std::vector<bool> exists_input_grad_;  // by stage
};

}  // namespace

void validate(const Program& program) {
  // These numbers first: the index below is made from them.
  if (program.microbatches < 1 || program.steps < 1) {
    throw ProgramError("a program needs at least one micro-batch and one step");
  }
  for (std::size_t device = 0; device < program.ops.size(); ++device) {
    for (std::size_t i = 0; i < program.ops[device].size(); ++i) {
      const Op op = program.ops[device][i];
      if (op.stage < program.stages()) continue;
      throw ProgramError(fmt::format("{}, op {} ({}): there are stages 0 to {} only",
                                     program.devices[device], i, print(op), program.stages() - 1),
                         static_cast<int>(device), static_cast<int>(i));
    }
  }
  Validator(program).validate();
}

}  // namespace stageline
