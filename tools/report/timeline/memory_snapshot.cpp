#include "tools/report/timeline/memory_snapshot.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/analysis/memory_categories.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::report {
namespace {

// Values as opcodes of a pickle; lists and dicts are closed by their callers.
class Pickle {
 public:
  Pickle() : out_("\x80\x02") {}

  void number(std::int64_t value) {
    out_ += '\x8a';  // LONG1
    out_ += '\x08';
    bytes(static_cast<std::uint64_t>(value), 8);
  }
  void text(std::string_view value) {
    out_ += 'X';  // BINUNICODE
    bytes(value.size(), 4);
    out_ += value;
  }
  void key(std::string_view name, std::string_view value) {
    text(name);
    text(value);
  }
  void key(std::string_view name, std::int64_t value) {
    text(name);
    number(value);
  }
  void open_list() { out_ += ']'; }
  void append() { out_ += 'a'; }  // the value on top to the list below it
  void open_dict() { out_ += "}("; }
  void close_dict() { out_ += 'u'; }

  std::string finished() && {
    out_ += '.';
    return std::move(out_);
  }

 private:
  // Little-endian.
  void bytes(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i, value >>= 8U) out_ += static_cast<char>(value & 0xffU);
  }

  std::string out_;
};

// Takes the first gap with room.
class AddressSpace {
 public:
  explicit AddressSpace(std::int64_t first) : first_(first), end_(first) {}

  std::int64_t take(std::int64_t size) {
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      if (gap->second < size) continue;
      const auto [at, room] = *gap;
      gaps_.erase(gap);
      if (room > size) gaps_[at + size] = room - size;
      return at;
    }
    const std::int64_t at = end_;
    end_ += size;
    return at;
  }

  void give_back(std::int64_t at, std::int64_t size) {
    auto gap = gaps_.emplace(at, size).first;
    if (const auto next = std::next(gap); next != gaps_.end() && at + size == next->first) {
      gap->second += next->second;
      gaps_.erase(next);
    }
    if (gap == gaps_.begin()) return;
    const auto before = std::prev(gap);
    if (before->first + before->second != gap->first) return;
    before->second += gap->second;
    gaps_.erase(gap);
  }

  std::int64_t first() const { return first_; }
  std::int64_t size() const { return end_ - first_; }

 private:
  std::int64_t first_;
  std::int64_t end_;
  std::map<std::int64_t, std::int64_t> gaps_;  // sizes by address
};

struct Allocation {
  std::int64_t address = 0;
  std::int64_t size = 0;
  std::string op;
};

// The op that begins at each moment of a device, or ends then where none begins.
std::map<Time, Op> ops_at(const Spans& compute) {
  std::map<Time, Op> ops;
  for (const Span& span : compute) ops[span.end] = span.op;
  for (const Span& span : compute) ops[span.start] = span.op;
  return ops;
}

// The events of one device, and what it holds in the end.
class DeviceTrace {
 public:
  DeviceTrace(Pickle& out, const Drawing& drawing, int device)
      : out_(out),
        curve_(drawing.memory.device[as_size(device)].curve),
        ops_(ops_at(drawing.timeline.lane(device, LaneKind::compute))),
        space_(first_address + device * address_room) {}

  void write_events() {
    out_.open_list();
    CategoryUse held{};
    for (const MemoryPoint& point : curve_) {
      const CategoryUse use = by_category(point.use, point.stash, Bytes{});
      const auto op = ops_.find(point.at);
      const std::string name = op == ops_.end() ? std::string("start") : print(op->second);
      for (std::size_t i = 0; i < use.size(); ++i) {
        if (use[i] < held[i]) shrink(i, (held[i] - use[i]).count, point.at);
      }
      for (std::size_t i = 0; i < use.size(); ++i) {
        if (held[i] < use[i]) grow(i, (use[i] - held[i]).count, point.at, name);
      }
      held = use;
    }
  }

  // One segment that holds all addresses in use, of allocations and gaps.
  void write_segment(int device) {
    std::map<std::int64_t, std::pair<std::size_t, const Allocation*>> blocks;
    std::int64_t active = 0;
    for (std::size_t category = 0; category < held_.size(); ++category) {
      for (const Allocation& one : held_[category]) {
        blocks[one.address] = {category, &one};
        active += one.size;
      }
    }
    out_.open_dict();
    out_.key("device", device);
    out_.key("address", space_.first());
    out_.key("total_size", space_.size());
    out_.key("allocated_size", active);
    out_.key("active_size", active);
    out_.key("stream", std::int64_t{0});
    out_.key("segment_type", "large");
    out_.text("blocks");
    out_.open_list();
    std::int64_t at = space_.first();
    for (const auto& [address, block] : blocks) {
      const auto& [category, one] = block;
      if (address > at) write_block("inactive", at, address - at, {}, {});
      write_block("active_allocated", address, one->size, category_name(category), one->op);
      at = address + one->size;
    }
    const std::int64_t end = space_.first() + space_.size();
    if (end > at) write_block("inactive", at, end - at, {}, {});
    out_.close_dict();
  }

 private:
  // Assumed, apart from one another; below 2^53, which JavaScript's numbers hold exactly.
  static constexpr std::int64_t first_address = std::int64_t{1} << 40;
  static constexpr std::int64_t address_room = std::int64_t{1} << 41;

  static std::string_view category_name(std::size_t category) {
    return name(static_cast<MemoryCategory>(category));
  }

  void grow(std::size_t category, std::int64_t size, Time at, const std::string& op) {
    held_[category].push_back({space_.take(size), size, op});
    event("alloc", category, held_[category].back(), at);
  }

  void shrink(std::size_t category, std::int64_t size, Time at) {
    std::deque<Allocation>& held = held_[category];
    while (size > 0 && !held.empty()) {
      const Allocation oldest = held.front();
      held.pop_front();
      event("free_requested", category, oldest, at);
      event("free_completed", category, oldest, at);
      space_.give_back(oldest.address, oldest.size);
      if (oldest.size > size) {
        const std::int64_t rest = oldest.size - size;
        held.push_front({space_.take(rest), rest, oldest.op});
        event("alloc", category, held.front(), at);
      }
      size -= std::min(size, oldest.size);
    }
  }

  void event(std::string_view action, std::size_t category, const Allocation& one, Time at) {
    constexpr std::int64_t picoseconds = 1'000'000;  // a microsecond
    out_.open_dict();
    out_.key("action", action);
    out_.key("addr", one.address);
    out_.key("size", one.size);
    out_.key("stream", std::int64_t{0});
    out_.key("time_us", at.count() / picoseconds);
    out_.text("frames");
    frames(category_name(category), one.op);
    out_.close_dict();
    out_.append();
  }

  void write_block(std::string_view state, std::int64_t address, std::int64_t size,
                   std::string_view category, std::string_view op) {
    out_.open_dict();
    out_.key("address", address);
    out_.key("size", size);
    out_.key("requested_size", size);
    out_.key("state", state);
    out_.text("frames");
    frames(category, op);
    out_.close_dict();
    out_.append();
  }

  // None without a category.
  void frames(std::string_view category, std::string_view op) {
    out_.open_list();
    if (category.empty()) return;
    out_.open_dict();
    out_.key("filename", category);
    out_.key("line", std::int64_t{0});
    out_.key("name", op);
    out_.close_dict();
    out_.append();
  }

  Pickle& out_;
  const std::vector<MemoryPoint>& curve_;
  std::map<Time, Op> ops_;
  AddressSpace space_;
  std::array<std::deque<Allocation>, memory_categories> held_;  // oldest first
};

}  // namespace

std::string memory_snapshot(const Drawing& drawing) {
  const std::size_t devices = drawing.memory.device.size();
  bool any = false;
  for (const DeviceMemory& one : drawing.memory.device) any = any || !one.curve.empty();
  if (!any) {
    throw UsageError(
        "a memory snapshot needs the memory of the run over time, and it is not known");
  }
  Pickle out;
  std::deque<DeviceTrace> traces;
  out.open_dict();
  out.text("device_traces");
  out.open_list();
  for (std::size_t device = 0; device < devices; ++device) {
    traces.emplace_back(out, drawing, static_cast<int>(device)).write_events();
    out.append();
  }
  out.text("segments");
  out.open_list();
  for (std::size_t device = 0; device < devices; ++device) {
    traces[device].write_segment(static_cast<int>(device));
    out.append();
  }
  out.close_dict();
  return std::move(out).finished();
}

}  // namespace stageline::report
