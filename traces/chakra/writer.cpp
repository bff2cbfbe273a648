// Writes a program as Chakra execution traces, one per device (MLCommons; ASTRA-sim's input).
//
// Each op is a node, numbered by its position in its device's list. A node depends on the previous
// node of its lane and on the ops it needs; across devices, on the RECV that delivers the message.
// A RECV itself depends on the last op that the device computes before it reads the message (if no
// op reads it, on all other nodes): later would delay the reader, and earlier would block the only
// communication that ASTRA-sim allows a rank to have in flight.
//
//     rank 0   F0 ──► SEND_F0 ┄┄┄┄┄tag 1┄┄┄┄┐         ──►  data_deps
//               └───► F1                    ┊         ┄┄►  comm_tag, of one SEND and one RECV
//     rank 1   F7 ──► RECV_F0 ◄┄┄┄┄┄┄┄┄┄┄┄┄┄┘
//               └───► F0 ◄── RECV_F0
#include "sim/base/index.hpp"
#include "traces/chakra/chakra.pb.h"

#include <fmt/core.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/lower/passes.hpp"
#include "sim/rules.hpp"
#include "sim/task_graph.hpp"
#include "sim/text/visible.hpp"
#include "traces/programs.hpp"

namespace stageline {
namespace {

constexpr std::int64_t picoseconds_in_a_microsecond = 1'000'000;

class Traces {
 public:
  Traces(const Program& program, const Costs& costs)
      : program_(add_transfers(add_reductions(add_updates(program)))),
        costs_(costs),
        stages_(stage_graph(program_)) {
    validate(program_);
    if (program_.settings.clock == Clock::lockstep) {
      throw UsageError(
          "Chakra cannot express \"clock: lockstep\", "
          "where devices wait for each other without a message");
    }
    if (program_.settings.messages != Messages::async) {
      throw UsageError(
          fmt::format("Chakra cannot express \"messages: {}\"; leave the line out, "
                      "and the reader's own network decides",
                      name(program_.settings.messages)));
    }
    for (const StagePlace& place : program_.placement.stage) {
      if (place.stash_homes.empty()) continue;
      throw UsageError(
          "Chakra cannot express copies of stashes to another device (\"stash=\"): its loads and "
          "stores are between a device and a memory");
    }
    if (!costs_.bytes_known) {
      throw UsageError(
          "Chakra messages need sizes, but the trace gives no bytes; "
          "fill in its input_bytes and those of its layers");
    }
    graph_ = compile(program_, costs_);
    nodes_.resize(program_.ops.size());
    number_ops();
    for (std::uint32_t task = 0; task < graph_.tasks(); ++task) add_task(task);
    place_receives();
  }

  ChakraTraces write() const {
    ChakraTraces traces;
    // Our own text without the ops, whose names the nodes have: a line for each device at the end.
    const std::string own = header_of(program_);
    std::vector<std::string> devices(nodes_.size());
    std::size_t lists_begin = own.size();
    for (std::size_t device = devices.size(); device-- > 0;) {
      const std::size_t end = std::exchange(lists_begin, own.rfind('\n', lists_begin - 2) + 1) - 1;
      devices[device] = own.substr(lists_begin, end - lists_begin);
    }
    for (const auto& list : nodes_) {
      std::ostringstream out;
      chakra::GlobalMetadata metadata;
      metadata.set_version("0.0.4");
      chakra::Attribute& schedule = *metadata.add_attr();
      schedule.set_name("schedule");
      schedule.set_string_val(visible(program_.schedule));  // protobuf's strings are UTF-8
      add_text(metadata, "stageline_program", own.substr(0, lists_begin));
      add_text(metadata, "stageline_device", devices[traces.ranks.size()]);
      add_text(metadata, "stageline_ranks", std::to_string(devices.size()));
      write(out, metadata);
      for (const chakra::Node& node : list) write(out, node);
      traces.ranks.push_back(std::move(out).str());
    }
    nlohmann::ordered_json groups = nlohmann::ordered_json::object();
    for (std::size_t s = 0; s < program_.placement.stage.size(); ++s) {
      const auto& replicas = program_.placement.stage[s].replicas;
      if (replicas.size() > 1) groups[group_name(static_cast<int>(s))] = replicas;
    }
    if (!groups.empty()) traces.groups = groups.dump() + "\n";
    return traces;
  }

 private:
  template <class Message>
  static void write(std::ostream& out, const Message& message) {
    if (!google::protobuf::util::SerializeDelimitedToOstream(message, &out)) {
      throw UsageError("a Chakra message could not be written");
    }
  }

  static void add_text(chakra::GlobalMetadata& metadata, const char* name,
                       const std::string& text) {
    chakra::Attribute& attribute = *metadata.add_attr();
    attribute.set_name(name);
    attribute.set_string_val(text);
  }

  static std::string header_of(Program program) {
    program.schedule = visible(program.schedule);
    for (std::string& device : program.devices) device = visible(device);
    for (auto& list : program.ops) list.clear();
    return print(program);
  }

  // ASTRA-sim reserves group 0 for all ranks.
  static std::string group_name(int stage) { return std::to_string(stage + 1); }

  // Numbers the nodes in the order of the lists; an overlapped pair is one node.
  void number_ops() {
    for (std::size_t device = 0; device < program_.ops.size(); ++device) {
      bool second = false;
      for (const Op op : program_.ops[device]) {
        if (second) {
          second = false;
          continue;
        }
        second = op.overlapped != 0;
        chakra::Node& node = nodes_[device].emplace_back();
        node.set_id(nodes_[device].size());
        node.set_name(print(op));
        place_[{static_cast<int>(device), plain(op)}] = static_cast<int>(nodes_[device].size()) - 1;
      }
    }
    const std::size_t messages = as_size(
        std::count_if(graph_.op.begin(), graph_.op.end(), [](Op op) { return is_send(op.kind); }));
    if (messages > as_size(std::numeric_limits<std::int32_t>::max())) {
      throw UsageError(
          fmt::format("{} messages exceed the number of distinct Chakra tags", messages));
    }
    last_of_lane_.assign(graph_.lanes.size(), 0);
  }

  chakra::Node& node_of(int device, Op op) {
    return nth(nodes_, device)[as_size(place_.at({device, plain(op)}))];
  }
  int device_of_task(std::uint32_t task) const { return graph_.lanes[graph_.lane[task]].device; }

  static void set(chakra::Node& node, const char* name, std::int64_t value) {
    chakra::Attribute& attribute = *node.add_attr();
    attribute.set_name(name);
    attribute.set_int64_val(value);
  }
  static void set_int32(chakra::Node& node, const char* name, std::int32_t value) {
    chakra::Attribute& attribute = *node.add_attr();
    attribute.set_name(name);
    attribute.set_int32_val(value);
  }
  static void set_text(chakra::Node& node, const char* name, const std::string& value) {
    chakra::Attribute& attribute = *node.add_attr();
    attribute.set_name(name);
    attribute.set_string_val(value);
  }

  // Chakra's durations are whole microseconds; an attribute beside them keeps the exact time.
  static void set_kind(chakra::Node& node, chakra::NodeType type, Time duration) {
    node.set_type(type);
    node.set_duration_micros(static_cast<std::uint64_t>(
        (duration.count() + picoseconds_in_a_microsecond / 2) / picoseconds_in_a_microsecond));
    chakra::Attribute& cpu = *node.add_attr();
    cpu.set_name("is_cpu_op");
    cpu.set_bool_val(false);
    chakra::Attribute& exact = *node.add_attr();
    exact.set_name("duration_ps");
    exact.set_uint64_val(static_cast<std::uint64_t>(duration.count()));
  }

  static void depend(chakra::Node& node, std::uint64_t on) {
    const auto& before = node.data_deps();
    if (std::find(before.begin(), before.end(), on) == before.end()) node.add_data_deps(on);
  }

  void add_task(std::uint32_t task) {
    const Op op = graph_.op[task];
    const int device = device_of_task(task);
    chakra::Node& node = node_of(device, op);
    describe(node, task);
    std::uint64_t& last = last_of_lane_[graph_.lane[task]];
    if (last != 0) depend(node, last);
    for (std::uint32_t i = graph_.need_begin[task]; i < graph_.need_begin[task + 1]; ++i) {
      need(node, device, op, graph_.need[i]);
    }
    if (graph_.lanes[graph_.lane[task]].kind == LaneKind::compute) {
      for (const std::uint64_t received : received_) {
        nth(before_reader_, device).try_emplace(received, last);
      }
    }
    received_.clear();
    last = node.id();
  }

  void describe(chakra::Node& node, std::uint32_t task) {
    const Op op = graph_.op[task];
    const Time duration = graph_.duration[task];
    switch (class_of(op.kind)) {
      case OpClass::forward:
      case OpClass::backward:
      case OpClass::recompute:
      case OpClass::update:
        set_kind(node, chakra::COMP_NODE, duration);
        if (op.overlapped) {
          node.set_name(
              fmt::format("({};{}){}", print(op), print(graph_.partner[task]), overlap_mark));
        }
        return;
      case OpClass::copy: {
        set_kind(node, op.kind == OpKind::offload ? chakra::MEM_STORE_NODE : chakra::MEM_LOAD_NODE,
                 duration);
        chakra::Attribute& size = *node.add_attr();
        size.set_name("tensor_size");
        size.set_uint64_val(static_cast<std::uint64_t>(copy_bytes(costs_, stages_, op).count));
        return;
      }
      case OpClass::reduction:
        set_kind(node, chakra::COMM_COLL_NODE, duration);
        set(node, "comm_type", 0);  // all-reduce
        set(node, "comm_size", costs_.stage[op.stage].gradients.count);
        set_text(node, "pg_name", group_name(op.stage));
        return;
      case OpClass::message:
        if (is_send(op.kind)) describe_message(node, task);  // and with it its RECV
        return;
    }
  }

  // The SEND lasts as long as the wire is busy; its RECV lasts longer by the latency.
  void describe_message(chakra::Node& node, std::uint32_t task) {
    const Op op = graph_.op[task];
    const Wire& way = wire(stages_, *cargo_of(op.kind), wire_of(stages_, op));
    const Ends ends = ends_of(program_.placement, way, op.microbatch);
    chakra::Node& arrival = node_of(ends.to, other_end(stages_, op));
    set_kind(node, chakra::COMM_SEND_NODE, graph_.duration[task]);
    set_kind(arrival, chakra::COMM_RECV_NODE, graph_.paths[graph_.path_of[task]].lag);
    const std::int64_t size = message_bytes(program_, costs_, stages_, op).count;
    ++tag_;
    for (chakra::Node* const end : {&node, &arrival}) {
      set_int32(*end, "comm_src", ends.from);
      set_int32(*end, "comm_dst", ends.to);
      set_int32(*end, "comm_tag", tag_);
      set(*end, "comm_size", size);
    }
    receive_[task] = {ends.to, arrival.id()};
  }

  void need(chakra::Node& node, int device, Op op, std::uint32_t needed) {
    const auto message = receive_.find(needed);
    if (message != receive_.end() && message->second.first == device) {
      received_.push_back(message->second.second);
      return depend(node, message->second.second);
    }
    const int other = device_of_task(needed);
    if (other == device) {
      return depend(node, node_of(device, graph_.op[needed]).id());
    }
    // The gradients of the other replicas: an all-reduce waits for all of them on its own.
    if (op.kind == OpKind::reduce_grad) return;
    throw UsageError(fmt::format(
        "{} on {} waits for {} on {} without a message, which Chakra cannot express", print(op),
        nth(program_.devices, device), print(graph_.op[needed]), nth(program_.devices, other)));
  }

  // A RECV without a reader (the last weights) is awaited after everything else.
  void place_receives() {
    std::vector<std::vector<std::uint64_t>> last(nodes_.size());  // by compute and send lane
    for (std::size_t lane = 0; lane < graph_.lanes.size(); ++lane) {
      const LaneKind kind = graph_.lanes[lane].kind;
      if (kind != LaneKind::compute && kind != LaneKind::send) continue;
      nth(last, graph_.lanes[lane].device).push_back(last_of_lane_[lane]);
    }
    for (std::size_t device = 0; device < nodes_.size(); ++device) {
      for (chakra::Node& node : nodes_[device]) {
        if (node.type() != chakra::COMM_RECV_NODE) continue;
        const auto reader = before_reader_[device].find(node.id());
        if (reader == before_reader_[device].end()) {
          for (const std::uint64_t end : last[device]) depend(node, end);
        } else if (reader->second != 0) {
          depend(node, reader->second);
        }
      }
    }
  }

  const Program program_;
  const Costs& costs_;
  StageGraph stages_;
  TaskGraph graph_;
  std::vector<std::vector<chakra::Node>> nodes_;                    // by device
  std::map<std::pair<int, Op>, int> place_;                         // device, op: index in nodes_
  std::map<std::uint32_t, std::pair<int, std::uint64_t>> receive_;  // by SEND task: device, node id
  std::vector<std::uint64_t> last_of_lane_;                         // node id; 0: none yet
  std::vector<std::uint64_t> received_;  // messages received by the current task
  std::vector<std::map<std::uint64_t, std::uint64_t>> before_reader_ =
      std::vector<std::map<std::uint64_t, std::uint64_t>>(program_.ops.size());
  std::int32_t tag_ = 0;
};

}  // namespace

ChakraTraces write_chakra(const Program& program, const Costs& costs) {
  return Traces(program, costs).write();
}

}  // namespace stageline
