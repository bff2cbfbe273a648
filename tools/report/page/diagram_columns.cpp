// Numbers the spans through all lanes, and writes what is known of each.
#include "tools/report/page/diagram_columns.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/analysis/memory_categories.hpp"
#include "sim/base/index.hpp"
#include "sim/rules.hpp"
#include "tools/report/page/varint.hpp"

namespace stageline::report {
namespace {

// The same for the same op, whether overlapped or not.
std::uint64_t key_of(Op op) {
  return std::uint64_t{op.microbatch} | std::uint64_t{op.stage} << 32U |
         std::uint64_t{op.part} << 48U | std::uint64_t{static_cast<std::uint8_t>(op.kind)} << 56U;
}

template <class Each>
void each_span(const Timeline& timeline, Each&& each) {
  std::uint32_t number = 0;
  for (const Spans& lane : timeline.lanes) {
    for (const Span& span : lane) each(span, number++);
  }
}

// By product, the span that makes it; of a message the SEND, and the RECV where it has arrived.
class Makers {
 public:
  explicit Makers(const Drawing& drawing)
      : program_(drawing.program),
        stages_(stage_graph(program_)),
        products_(program_, stages_),
        maker_(products_.size(), none),
        arrival_(products_.size(), none) {
    each_span(drawing.timeline, [&](const Span& span, std::uint32_t number) {
      const Op op = plain(span.op);
      const bool arrives = cargo_of(op.kind) && !is_send(op.kind);
      const auto note = [&](Product product, int at, std::uint32_t of, int part) {
        const std::int64_t index = products_.index(product, at, of, part);
        if (index >= 0) nth(arrives ? arrival_ : maker_, index) = number;
      };
      if (arrives) {
        note(sent(*cargo_of(op.kind)), wire_of(stages_, op), op.microbatch, 0);
      } else {
        makes(stages_, op, note);
      }
    });
  }

  /// Sorted, each once.
  std::vector<std::uint32_t> needs_of(Op op) const {
    std::vector<std::uint32_t> found;
    const bool arrives = cargo_of(op.kind) && !is_send(op.kind);
    needs(
        program_, stages_, op,
        [&](Product product, int at, std::uint32_t of, int part) {
          const std::int64_t index = products_.index(product, at, of, part);
          return index >= 0 && nth(maker_, index) != none;
        },
        [&](Product product, int at, std::uint32_t of, int part) {
          const std::int64_t index = products_.index(product, at, of, part);
          if (index < 0) return;
          const std::uint32_t maker = nth(maker_, index);
          const std::uint32_t arrival = nth(arrival_, index);
          if (maker == none) return;
          found.push_back(arrives || arrival == none ? maker : arrival);
        });
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

 private:
  static constexpr std::uint32_t none = 0xffffffffU;
  const Program& program_;
  StageGraph stages_;
  ProductIndex products_;
  std::vector<std::uint32_t> maker_;
  std::vector<std::uint32_t> arrival_;
};

// At most so many points in all; of longer curves the highest in each of so many intervals.
constexpr std::size_t most_points = 200'000;

std::vector<MemoryPoint> thinned(const std::vector<MemoryPoint>& curve, std::size_t most) {
  if (curve.size() <= most) return curve;
  std::vector<MemoryPoint> kept;
  const Time first = curve.front().at;
  const Time interval{(curve.back().at - first).count() / static_cast<std::int64_t>(most) + 1};
  std::int64_t last = -1;
  for (const MemoryPoint& point : curve) {
    const std::int64_t now = (point.at - first) / interval;
    if (now != last) {
      kept.push_back(point);
    } else if (total(kept.back().use) < total(point.use)) {
      kept.back() = point;
    }
    last = now;
  }
  return kept;
}

}  // namespace

void add_spans(std::vector<PageBlob>& blobs, const std::string& prefix, const Drawing& drawing) {
  std::vector<std::uint32_t> sizes;
  std::vector<std::uint8_t> kinds;
  std::vector<std::uint16_t> stages;
  std::vector<std::uint8_t> parts;
  VarintColumn number(prefix + "number");
  VarintColumn gap(prefix + "gap");
  VarintColumn time(prefix + "time");
  for (const Spans& lane : drawing.timeline.lanes) {
    sizes.push_back(static_cast<std::uint32_t>(lane.size()));
    Time free{};
    for (const Span& span : lane) {
      kinds.push_back(static_cast<std::uint8_t>(span.op.kind));
      stages.push_back(span.op.stage);
      parts.push_back(static_cast<std::uint8_t>(span.op.part | (span.op.overlapped ? 0x80U : 0U)));
      number.put_delta(span.op.microbatch);
      gap.put_signed((span.start - free).count());
      time.put(static_cast<std::uint64_t>((span.end - span.start).count()));
      free = span.end;
    }
  }
  blobs.push_back(blob_of(prefix + "lane_sizes", sizes));
  blobs.push_back(blob_of(prefix + "kind", kinds));
  blobs.push_back(blob_of(prefix + "stage", stages));
  blobs.push_back(blob_of(prefix + "part", parts));
  blobs.push_back(number.take());
  blobs.push_back(gap.take());
  blobs.push_back(time.take());
}

void add_versions(std::vector<PageBlob>& blobs, const std::string& prefix, const Drawing& drawing) {
  if (drawing.program.stages() == 0) return;
  std::unordered_map<std::uint64_t, std::uint32_t> version;
  for (const VersionRead& read : versions_read(drawing.program, drawing.timeline)) {
    if (read.version > 0) version.emplace(key_of(read.op), read.version);
  }
  if (version.empty()) return;
  VarintColumn column(prefix + "version");
  each_span(drawing.timeline, [&](const Span& span, std::uint32_t) {
    const auto found = version.find(key_of(span.op));
    column.put_delta(found == version.end() ? 0 : found->second);
  });
  blobs.push_back(column.take());
}

void add_needs(std::vector<PageBlob>& blobs, const std::string& prefix, const Drawing& drawing) {
  // What a measured run without a program waited for is not known.
  const std::optional<Makers> makers =
      drawing.program.stages() > 0 ? std::optional<Makers>(std::in_place, drawing) : std::nullopt;
  VarintColumn sizes(prefix + "need_sizes");
  VarintColumn column(prefix + "need");
  each_span(drawing.timeline, [&](const Span& span, std::uint32_t number) {
    const std::vector<std::uint32_t> found =
        makers ? makers->needs_of(plain(span.op)) : std::vector<std::uint32_t>{};
    sizes.put(found.size());
    for (const std::uint32_t need : found) {
      column.put_signed(std::int64_t{need} - std::int64_t{number});
    }
  });
  blobs.push_back(sizes.take());
  blobs.push_back(column.take());
}

void add_idle(std::vector<PageBlob>& blobs, const std::string& prefix, const Drawing& drawing) {
  std::vector<std::uint32_t> sizes(drawing.timeline.devices.size());
  std::vector<std::uint8_t> causes;
  VarintColumn gap(prefix + "idle_gap");
  VarintColumn time(prefix + "idle_time");
  std::vector<IdleInterval> idle = drawing.idle;
  std::stable_sort(idle.begin(), idle.end(), [](const IdleInterval& a, const IdleInterval& b) {
    return std::pair(a.device, a.start) < std::pair(b.device, b.start);
  });
  Time free{};
  for (std::size_t i = 0; i < idle.size(); ++i) {
    const IdleInterval& one = idle[i];
    if (one.device < 0 || as_size(one.device) >= sizes.size()) continue;
    if (i == 0 || idle[i - 1].device != one.device) free = Time{};
    ++nth(sizes, one.device);
    gap.put_signed((one.start - free).count());
    time.put(static_cast<std::uint64_t>((one.end - one.start).count()));
    causes.push_back(static_cast<std::uint8_t>(one.kind));
    free = one.end;
  }
  blobs.push_back(blob_of(prefix + "idle_sizes", sizes));
  blobs.push_back(gap.take());
  blobs.push_back(time.take());
  blobs.push_back(blob_of(prefix + "idle_cause", causes));
}

void add_path(std::vector<PageBlob>& blobs, const std::string& prefix, const Drawing& drawing,
              const std::vector<PathPiece>& path) {
  std::unordered_map<std::uint64_t, std::uint32_t> number_of;
  for (const PathPiece& piece : path) number_of.emplace(key_of(piece.op), 0);
  each_span(drawing.timeline, [&](const Span& span, std::uint32_t number) {
    const auto found = number_of.find(key_of(span.op));
    if (found != number_of.end()) found->second = number;
  });
  std::vector<std::uint8_t> kinds;
  VarintColumn time(prefix + "path_time");
  VarintColumn span(prefix + "path_span");
  for (const PathPiece& piece : path) {
    kinds.push_back(static_cast<std::uint8_t>(piece.kind));
    time.put(static_cast<std::uint64_t>((piece.end - piece.start).count()));
    span.put_delta(number_of[key_of(piece.op)]);
  }
  blobs.push_back(blob_of(prefix + "path_kind", kinds));
  blobs.push_back(time.take());
  blobs.push_back(span.take());
}

bool add_curves(std::vector<PageBlob>& blobs, const std::string& prefix, const Drawing& drawing) {
  std::vector<std::uint32_t> sizes;
  VarintColumn at(prefix + "curve_at");
  VarintColumn bytes(prefix + "curve_bytes");
  const std::size_t devices = drawing.memory.device.size();
  bool exact = true;
  for (const DeviceMemory& device : drawing.memory.device) {
    const std::vector<MemoryPoint> curve = thinned(device.curve, most_points / devices);
    exact = exact && curve.size() == device.curve.size();
    sizes.push_back(static_cast<std::uint32_t>(curve.size()));
    CategoryUse last{};
    Time before{};
    for (const MemoryPoint& point : curve) {
      at.put_signed((point.at - before).count());
      const CategoryUse use = by_category(point.use, point.stash, device.reserve);
      for (int category = 0; category < memory_categories; ++category) {
        bytes.put_signed(nth(use, category).count - nth(last, category).count);
      }
      before = point.at;
      last = use;
    }
  }
  blobs.push_back(blob_of(prefix + "curve_sizes", sizes));
  blobs.push_back(at.take());
  blobs.push_back(bytes.take());
  return exact;
}

}  // namespace stageline::report
