// Refines the map of winners as a quadtree.
#include "tools/sweep/phase.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/check_point.hpp"
#include "tools/base/parallel.hpp"
#include "tools/inputs/given_programs.hpp"
#include "tools/report/charts/axis.hpp"
#include "tools/sweep/folder.hpp"

namespace stageline {
namespace {

constexpr std::size_t coarse = 8;  // values from one that is simulated to the next, at first
constexpr std::int64_t most_cells = 1'000'000;

// Corners of a rectangle of cells, both ends simulated.
struct Rectangle {
  std::size_t left = 0;
  std::size_t right = 0;
  std::size_t low = 0;
  std::size_t high = 0;

  bool is_cell() const { return right - left <= 1 && high - low <= 1; }
};

struct Point {
  std::size_t x = 0;
  std::size_t y = 0;
};

using Span = std::pair<std::size_t, std::size_t>;

// From one value that is simulated at first to the next. Of counts and lists, each value by itself:
// a schedule may take every second number of micro-batches, and nothing lies between two traces.
std::vector<Span> spans_of(const SweepAxis& axis, bool exhaustive) {
  const auto count = static_cast<std::size_t>(axis.count);
  std::vector<Span> spans;
  if (exhaustive || count == 1 || axis.whole || axis.kind == SweepAxis::Kind::list) {
    for (std::size_t i = 0; i < count; ++i) spans.emplace_back(i, i);
    return spans;
  }
  for (std::size_t i = 0; i + 1 < count; i += coarse) {
    spans.emplace_back(i, std::min(i + coarse, count - 1));
  }
  return spans;
}

// Samples a second: where something is uncertain, of the step that 95 % of the scenarios stay
// below, as compare ranks.
double rate_of(const SweepRow& row) {
  const double rate = row.verdict->throughput;
  const Time step = row.drawn          ? *row.drawn
                    : row.distribution ? row.distribution->p95
                                       : row.verdict->step;
  return step > Time{} ? rate * to_seconds(row.verdict->step) / to_seconds(step) : rate;
}

bool is_uncertain(const SweepSpec& spec) {
  constexpr std::string_view uncertain[] = {"jitter", "sometimes_slow", "pause", "perturb"};
  const auto is = [&](const std::string& name) {
    return std::find(std::begin(uncertain), std::end(uncertain), name) != std::end(uncertain);
  };
  return std::any_of(spec.fixed.begin(), spec.fixed.end(),
                     [&](const SettingWord& word) { return is(word.key); }) ||
         std::any_of(spec.axes.begin(), spec.axes.end(),
                     [&](const SweepAxis& axis) { return is(axis.name); });
}

report::PhaseCell cell_of(const std::vector<SweepRow>& rows,
                          const std::vector<std::string>& names) {
  report::PhaseCell cell;
  double fastest = 0;  // whether or not it fits
  double best = 0;
  double second = 0;
  std::size_t runner_up = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].verdict) continue;
    cell.possible = true;
    const double rate = rate_of(rows[i]);
    fastest = std::max(fastest, rate);
    if (rows[i].verdict->fit == Fit::no) continue;
    if (!cell.winner || rate > best) {
      second = best;
      runner_up = cell.winner.value_or(0);
      best = rate;
      cell.winner = i;
    } else if (rate > second) {
      second = rate;
      runner_up = i;
    }
  }
  if (cell.winner && second > 0) {
    cell.lead = best / second - 1;
    cell.second = names[runner_up];
  }
  cell.by_memory = cell.possible && fastest > best;
  return cell;
}

class Refinement {
 public:
  Refinement(const SweepSpec& spec, PhaseMap& map)
      : runner_(spec, read_named_files(spec)), spec_(spec), map_(map), done_(map.chart.ys.size()) {
    runner_.probe();
    for (std::vector<char>& row : done_) row.resize(map.chart.xs.size());
  }

  void run() {
    const bool all = map_.request.exhaustive;
    std::vector<Rectangle> open;
    std::vector<Point> points;
    for (const auto& [low, high] : spans_of(map_.request.y, all)) {
      for (const auto& [left, right] : spans_of(map_.request.x, all)) {
        open.push_back({left, right, low, high});
        add_corners(open.back(), points);
      }
    }
    if (!simulate(points)) throw CalledOff();
    std::vector<Rectangle> agreed;
    while (!open.empty()) open = refined(open, agreed);
    for (const Rectangle& one : agreed) fill(one);  // last, beside what others have simulated
    for (const Rectangle& one : unsettled_) fill_from_corners(one);
    map_.partial = !unsettled_.empty();
    map_.notes = runner_.notes();
    if (is_uncertain(spec_)) {
      map_.notes.emplace_back(
          "schedules are ranked by the step that 95 % of the scenarios stay below");
    }
  }

 private:
  report::PhaseCell& cell(std::size_t x, std::size_t y) { return map_.chart.cells[y][x]; }

  static void add_corners(const Rectangle& one, std::vector<Point>& points) {
    for (const std::size_t y : {one.low, one.high}) {
      for (const std::size_t x : {one.left, one.right}) points.push_back({x, y});
    }
  }

  bool stopped() const { return map_.request.stop != nullptr && map_.request.stop->load(); }

  // Those that are new, by several threads; whether all of them are simulated now.
  bool simulate(const std::vector<Point>& points) {
    std::vector<Point> fresh;
    for (const Point& point : points) {
      if (done_[point.y][point.x] != 0) continue;
      done_[point.y][point.x] = 1;
      fresh.push_back(point);
    }
    const auto schedules = static_cast<std::int64_t>(map_.request.schedules.size());
    const std::int64_t wanted = map_.cells + static_cast<std::int64_t>(fresh.size());
    std::mutex access;
    in_parallel(fresh.size(), runner_.at_a_time(map_.request.threads), [&](std::size_t i) {
      const Point& at = fresh[i];
      if (stopped()) {
        done_[at.y][at.x] = 0;
        return;
      }
      const std::int64_t first =
          number_of(spec_, {static_cast<std::int64_t>(at.y), static_cast<std::int64_t>(at.x), 0});
      const std::vector<SweepRow> rows = runner_.rows(first, schedules);
      cell(at.x, at.y) = cell_of(rows, map_.request.schedules);
      const std::lock_guard<std::mutex> held(access);
      note_refused(rows);
      ++map_.cells;
      map_.rows += schedules;
      if (map_.request.progress) map_.request.progress(map_.cells, wanted);
    });
    return map_.cells == wanted;
  }

  // The reason of the first row without a result, in the order of the sweep.
  void note_refused(const std::vector<SweepRow>& rows) {
    for (const SweepRow& row : rows) {
      if (row.why_not.empty() || (refused_ >= 0 && refused_ <= row.number)) continue;
      refused_ = row.number;
      map_.why_not = row.why_not;
    }
  }

  bool agree(const Rectangle& one) {
    const report::PhaseCell& first = cell(one.left, one.low);
    for (const report::PhaseCell* const other :
         {&cell(one.right, one.low), &cell(one.left, one.high), &cell(one.right, one.high)}) {
      if (other->winner != first.winner || other->by_memory != first.by_memory ||
          other->possible != first.possible) {
        return false;
      }
    }
    return true;
  }

  std::vector<Rectangle> refined(const std::vector<Rectangle>& open,
                                 std::vector<Rectangle>& agreed) {
    std::vector<Rectangle> next;
    std::vector<Rectangle> halved;
    std::vector<Point> points;
    for (const Rectangle& one : open) {
      if (one.is_cell()) continue;
      if (agree(one)) {
        agreed.push_back(one);
        continue;
      }
      halved.push_back(one);
      const std::size_t x = (one.left + one.right) / 2;
      const std::size_t y = (one.low + one.high) / 2;
      std::vector<Span> across{{one.left, x}, {x, one.right}};
      std::vector<Span> up{{one.low, y}, {y, one.high}};
      if (one.right - one.left <= 1) across = {{one.left, one.right}};
      if (one.high - one.low <= 1) up = {{one.low, one.high}};
      for (const auto& [low, high] : up) {
        for (const auto& [left, right] : across) {
          next.push_back({left, right, low, high});
          add_corners(next.back(), points);
        }
      }
    }
    if (simulate(points)) return next;
    unsettled_ = std::move(halved);
    return {};
  }

  // The cells between corners that differ: like the nearest of them.
  void fill_from_corners(const Rectangle& one) {
    for (std::size_t y = one.low; y <= one.high; ++y) {
      for (std::size_t x = one.left; x <= one.right; ++x) {
        if (done_[y][x] != 0) continue;
        done_[y][x] = 1;
        report::PhaseCell filled = cell(x - one.left <= one.right - x ? one.left : one.right,
                                        y - one.low <= one.high - y ? one.low : one.high);
        filled.known = false;
        filled.second.clear();
        cell(x, y) = std::move(filled);
      }
    }
  }

  // The cells between corners that agree.
  void fill(const Rectangle& one) {
    const report::PhaseCell like = cell(one.left, one.low);
    const auto share = [](std::size_t at, std::size_t from, std::size_t to) {
      return to == from ? 0.0 : static_cast<double>(at - from) / static_cast<double>(to - from);
    };
    const auto lead = [&](std::size_t x, std::size_t y) { return cell(x, y).lead.value_or(0); };
    for (std::size_t y = one.low; y <= one.high; ++y) {
      for (std::size_t x = one.left; x <= one.right; ++x) {
        if (done_[y][x] != 0) continue;
        done_[y][x] = 1;
        const double u = share(x, one.left, one.right);
        const double v = share(y, one.low, one.high);
        report::PhaseCell filled = like;
        filled.known = false;
        filled.second.clear();
        if (like.lead) {
          const double below = (1 - u) * lead(one.left, one.low) + u * lead(one.right, one.low);
          const double above = (1 - u) * lead(one.left, one.high) + u * lead(one.right, one.high);
          filled.lead = (1 - v) * below + v * above;
        }
        cell(x, y) = filled;
      }
    }
  }

  SweepRunner runner_;
  const SweepSpec& spec_;
  PhaseMap& map_;
  std::vector<std::vector<char>> done_;  // [y][x]
  std::vector<Rectangle> unsettled_;     // where it was stopped
  std::int64_t refused_ = -1;            // the first scenario without a result
};

std::vector<std::string> values_of(const SweepAxis& axis) {
  std::vector<std::string> values;
  for (std::int64_t i = 0; i < axis.count; ++i) values.push_back(axis.value(i));
  return values;
}

std::vector<std::string> synchronous_schedules() {
  std::vector<std::string> names;
  for (const Scheduler* const one : schedulers()) {
    if (one->synchrony == Synchrony::synchronous) names.emplace_back(one->name);
  }
  return names;
}

// A program is called as it says, and its file said where it is named.
std::vector<std::string> titles_of(const std::vector<std::string>& schedules) {
  const std::vector<ScheduleSpec> read = read_schedules(schedules, /*quiet=*/true);
  if (read.size() != schedules.size()) return schedules;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < read.size(); ++i) {
    names.push_back(read[i].given ? title(read[i]) : schedules[i]);
  }
  return names;
}

struct SettingTitle {
  std::string_view key;
  std::string_view words;
};
// What people call a setting whose key is not its name.
constexpr SettingTitle setting_titles[] = {
    {"cp", "context-parallel ranks"},
    {"dp", "data-parallel replicas"},
    {"ep", "expert-parallel ranks"},
    {"memory", "memory of a device"},
    {"microbatch_size", "samples of a micro-batch"},
    {"microbatches", "micro-batches"},
    {"pp", "pipeline ranks"},
    {"tp", "tensor-parallel ranks"},
};

std::string setting_words(const std::string& key) {
  for (const SettingTitle& one : setting_titles) {
    if (one.key == key) return std::string(one.words);
  }
  return key;
}

// A range of links has bandwidths; a list may have latencies, too.
std::string sweep_axis_words(const SweepAxis& axis) {
  return axis.name == "link" && !axis.unit.empty() ? "link bandwidth" : setting_words(axis.name);
}

constexpr std::string_view prefixes = " kMGTPE";

// 2 and "GB/s" of 2000 "MB/s"; of a unit without a prefix as it is.
std::string with_prefix(double value, const std::string& unit) {
  const bool bytes = unit.find('B') != std::string::npos;
  if (!bytes || unit.find('i') != std::string::npos) return fmt::format("{:g} {}", value, unit);
  const std::size_t at = unit.front() == 'B' ? 0 : prefixes.find(unit.front());
  if (at == std::string_view::npos) return fmt::format("{:g} {}", value, unit);
  std::size_t prefix = at;
  for (; value >= 1000 && prefix + 1 < prefixes.size(); ++prefix) value /= 1000;
  const std::string rest = unit.substr(at == 0 ? 0 : 1);
  return fmt::format("{:g} {}{}", value, prefix == 0 ? "" : std::string(1, prefixes[prefix]), rest);
}

// Round values of a range with a unit, which has values of four digits; of others, each value.
std::vector<report::PhaseTick> round_ticks(const SweepAxis& axis) {
  constexpr int intervals = 10;
  const bool log = axis.kind == SweepAxis::Kind::log;
  const bool range = log || axis.kind == SweepAxis::Kind::linear;
  if (!range || axis.whole || axis.count < 3 || axis.unit.empty()) return {};
  const report::ValueScale scale{axis.from.value, axis.to.value, log};
  std::vector<report::PhaseTick> found;
  for (const report::Tick& tick : report::ticks(scale, intervals, false)) {
    found.push_back({scale.share(tick.at) * static_cast<double>(axis.count - 1) + 0.5,
                     with_prefix(tick.at, axis.unit)});
  }
  return found.size() < 2 ? std::vector<report::PhaseTick>{} : found;
}

// What the map is of, and what is fixed, a line each.
void entitle(report::PhaseChart& chart, const std::vector<SettingWord>& fixed) {
  for (const SettingWord& word : fixed) {
    if (word.key == "trace") {
      chart.title = fmt::format("The fastest schedule of {}", word.text);
      continue;
    }
    chart.subtitle += fmt::format("{}{} {}", chart.subtitle.empty() ? "" : " · ",
                                  setting_words(word.key), word.text);
  }
}

}  // namespace

SweepAxis phase_axis(const std::string& name, const std::string& text, std::int64_t points) {
  SweepAxis axis = parse_axis(name, text);
  if (axis.is_random()) {
    throw UsageError(fmt::format("axis {}: a map has no random axes; leave :random out", name));
  }
  if (axis.kind != SweepAxis::Kind::step || text.find(':') != std::string::npos) return axis;
  const bool wide = axis.from.value > 0 && axis.to.value >= 8 * axis.from.value;
  if (!wide && axis.whole && axis.count <= points) return axis;
  return parse_axis(name, fmt::format("{}:{}{}", text, wide ? "log" : "lin", points));
}

PhaseMap phase_map(PhaseRequest request) {
  for (const SweepAxis* const axis : {&request.x, &request.y}) {
    if (axis->name != "schedule") continue;
    throw UsageError(fmt::format(
        "phase compares schedules in every cell: name them by --schedule, and give --{} another "
        "setting",
        axis == &request.x ? "x" : "y"));
  }
  if (request.schedules.empty()) request.schedules = synchronous_schedules();
  SweepSpec spec;
  spec.fixed = request.fixed;
  spec.axes = {request.y, request.x, list_axis("schedule", request.schedules)};
  spec = checked(std::move(spec));
  const std::int64_t cells = request.x.count * request.y.count;
  if (cells > most_cells) {
    throw UsageError(fmt::format("the map has {} × {} cells; at most {} are drawn", request.x.count,
                                 request.y.count, most_cells));
  }
  PhaseMap map;
  map.request = std::move(request);
  report::PhaseChart& chart = map.chart;
  entitle(chart, map.request.fixed);
  chart.x = map.request.x.name;
  chart.y = map.request.y.name;
  chart.x_words = sweep_axis_words(map.request.x);
  chart.y_words = sweep_axis_words(map.request.y);
  chart.x_ticks = round_ticks(map.request.x);
  chart.y_ticks = round_ticks(map.request.y);
  chart.xs = values_of(map.request.x);
  chart.ys = values_of(map.request.y);
  chart.names = titles_of(map.request.schedules);
  chart.cells.assign(chart.ys.size(), std::vector<report::PhaseCell>(chart.xs.size()));
  Refinement(spec, map).run();
  for (const std::vector<report::PhaseCell>& row : chart.cells) {
    for (const report::PhaseCell& cell : row) map.any = map.any || cell.winner;
  }
  chart.footnotes.push_back(
      fmt::format("{} of {} cells simulated{}.", map.cells, cells,
                  map.partial         ? "; interrupted: borders are no finer than that"
                  : map.cells < cells ? "; the others lie between cells that agree"
                                      : ""));
  const bool possible = std::any_of(chart.cells.begin(), chart.cells.end(), [](const auto& row) {
    return std::any_of(row.begin(), row.end(),
                       [](const report::PhaseCell& one) { return one.possible; });
  });
  if (!possible) {
    chart.footnotes.push_back(
        fmt::format("No schedule can run. Why, in the first: {}.", map.why_not));
  }
  for (const std::string& note : map.notes) chart.footnotes.push_back("Note: " + note + ".");
  return map;
}

Json phase_json(const PhaseMap& map) {
  const report::PhaseChart& chart = map.chart;
  Json fixed = Json::object();
  for (const SettingWord& word : map.request.fixed) fixed[word.key] = word.text;
  Json cells = Json::array();
  for (std::size_t y = 0; y < chart.ys.size(); ++y) {
    for (std::size_t x = 0; x < chart.xs.size(); ++x) {
      const report::PhaseCell& cell = chart.cells[y][x];
      cells.push_back({{"x", x},
                       {"y", y},
                       {"winner", cell.winner ? Json(chart.names[*cell.winner]) : Json()},
                       {"second", cell.second.empty() ? Json() : Json(cell.second)},
                       {"lead", cell.lead ? Json(*cell.lead) : Json()},
                       {"by_memory", cell.by_memory},
                       {"possible", cell.possible},
                       {"simulated", cell.known}});
    }
  }
  return {{"fixed", fixed},
          {"schedules", chart.names},
          {"x", {{"name", chart.x}, {"values", chart.xs}}},
          {"y", {{"name", chart.y}, {"values", chart.ys}}},
          {"simulated", map.cells},
          {"partial", map.partial},
          {"why_not", map.why_not.empty() ? Json() : Json(map.why_not)},
          {"notes", map.notes},
          {"cells", cells}};
}

}  // namespace stageline
