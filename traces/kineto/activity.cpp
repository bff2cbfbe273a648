// Scans profiles once more for what their ranks do outside of the pipeline's ops.
#include "traces/kineto/activity.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"
#include "traces/chrome/trace_events.hpp"
#include "traces/gzip.hpp"
#include "traces/kineto/profile_times.hpp"
#include "traces/kineto/traffic.hpp"

namespace stageline {
namespace {

constexpr std::array on_device_order{Activity::work, Activity::collectives, Activity::data_loading,
                                     Activity::allocation, Activity::synchronization};
constexpr std::array on_cpu_order{Activity::collectives, Activity::data_loading,
                                  Activity::allocation, Activity::synchronization, Activity::work};

bool starts_with_any_of(std::string_view name, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.starts_with(word); });
}

// Calls of CUDA and of HIP (torch/cuda of July 2025 calls both by CUDA's names).
bool allocates(std::string_view name) {
  constexpr std::array<std::string_view, 6> words{"cudaMalloc", "cudaFree", "cudaHostAlloc",
                                                  "hipMalloc",  "hipFree",  "hipHostMalloc"};
  return starts_with_any_of(name, words) && name.find("Async") == std::string_view::npos;
}

bool synchronizes(std::string_view name) {
  return name.find("Synchronize") != std::string_view::npos || name == "cudaMemcpy" ||
         name == "hipMemcpy";
}

std::optional<Activity> activity_of(const TraceEvent& event, bool on_device) {
  if (is_on_device(event)) {
    return is_collective(event, false) ? Activity::collectives : Activity::work;
  }
  if (is_launcher(event)) {
    if (allocates(event.name)) return Activity::allocation;
    if (synchronizes(event.name)) return Activity::synchronization;
    return std::nullopt;
  }
  if (event.category != "cpu_op" && event.category != "user_annotation") return std::nullopt;
  if (event.name.find("DataLoader") != std::string::npos) return Activity::data_loading;
  if (on_device) return std::nullopt;
  if (is_collective(event, false)) return Activity::collectives;
  if (event.category != "cpu_op" || event.name.starts_with("c10d::")) return std::nullopt;
  return Activity::work;
}

// The sizes of torch's types, as NCCL's events name them; 0: another one.
std::int64_t bytes_of_type(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 8> sizes{{{"BFloat16", 2},
                                                                            {"Half", 2},
                                                                            {"Float", 4},
                                                                            {"Double", 8},
                                                                            {"Int", 4},
                                                                            {"Long", 8},
                                                                            {"Byte", 1},
                                                                            {"Char", 1}}};
  for (const auto& [name, bytes] : sizes) {
    if (type == name) return bytes;
  }
  return type.starts_with("Float8") ? 1 : 0;
}

// The time that lies in `when`, cut out of the stretches that are left of it.
Time cut_out(const std::vector<TimeStretch>& when, bool to_the_end,
             std::vector<TimeStretch>& left) {
  Time taken{};
  std::vector<TimeStretch> rest;
  for (TimeStretch piece : left) {
    auto at =
        std::upper_bound(when.begin(), when.end(), piece.start,
                         [](Time time, const TimeStretch& stretch) { return time < stretch.end; });
    if (to_the_end && at != when.end() && at->start <= piece.start) {
      taken += piece.end - piece.start;
      continue;
    }
    for (; at != when.end() && at->start < piece.end; ++at) {
      const Time start = std::max(piece.start, at->start);
      const Time end = std::min(piece.end, at->end);
      if (start > piece.start) rest.push_back({piece.start, start});
      taken += end - start;
      piece.start = end;
    }
    if (piece.start < piece.end) rest.push_back(piece);
  }
  left = std::move(rest);
  return taken;
}

struct SeenActivity {
  Activity activity = Activity::nothing;
  bool send_receive = false;  // a kernel of messages, or of an all-to-all
  std::int64_t start = 0;     // nanoseconds, as written in the file
  std::int64_t end = 0;
};

struct ActivityScan {
  std::optional<int> rank;
  std::vector<SeenActivity> seen;
  std::set<std::int64_t> sent;  // bytes of messages
};

void look_at_message(const TraceEvent& event, std::set<std::int64_t>& sent) {
  if (event.collective != "send") return;
  const std::int64_t elements = parse_number<std::int64_t>(event.elements).value_or(0);
  constexpr std::int64_t most = std::int64_t{1} << 50;
  const std::int64_t bytes =
      elements > 0 && elements < most ? elements * bytes_of_type(event.data_type) : 0;
  if (bytes > 0) sent.insert(bytes);
}

// Times by the clock of the file, from 1970 or its base.
ActivityScan scanned(const NamedText& profile, bool on_device) {
  ActivityScan scan;
  ProfileTimes times(profile.file);
  bool all_to_alls = false;
  const std::string packed = is_gzip(profile.text) ? gunzip(profile.text, profile.file) : "";
  const std::string& text = packed.empty() ? profile.text : packed;
  const TraceHead head = scan_trace_events(text, profile.file, [&](const TraceEvent& event) {
    if (event.phase != "X") return;
    look_at_message(event, scan.sent);
    all_to_alls = all_to_alls || is_all_to_all(event);
    const bool send_receive = is_kernel(event) && event.name.starts_with("nccl") &&
                              !is_collective(event, /*all_to_alls=*/false);
    const std::optional<Activity> what =
        send_receive ? Activity::collectives : activity_of(event, on_device);
    if (!what) return;
    const std::int64_t start = times.start(event);
    scan.seen.push_back({*what, send_receive, start, start + times.duration(event)});
  });
  // A message's kernel waits for the other rank.
  if (!all_to_alls) {
    std::erase_if(scan.seen, [](const SeenActivity& one) { return one.send_receive; });
  }
  KinetoRank rank;
  times.read_head(head, rank);
  scan.rank = rank.rank;
  for (SeenActivity& one : scan.seen) {
    const std::int64_t from = times.counted_from(one.start);
    one.start += from;
    one.end += from;
  }
  return scan;
}

// Nanoseconds from the timeline's 0 to the clock of the device's rank.
std::int64_t clock_of(const KinetoRun& run, std::size_t device) {
  if (run.shifts.empty()) return run.origin;
  const Time shift = run.shifts[device].shift;
  return run.origin - std::chrono::duration_cast<std::chrono::nanoseconds>(shift).count();
}

}  // namespace

void RankActivity::add(Activity activity, TimeStretch when) {
  std::vector<TimeStretch>& list = when_[static_cast<std::size_t>(activity)];
  // Events are mostly in order, and those inside of others say nothing new.
  if (!list.empty() && when.start >= list.back().start && when.start <= list.back().end) {
    list.back().end = std::max(list.back().end, when.end);
  } else {
    list.push_back(when);
  }
}

void RankActivity::settle() {
  for (std::vector<TimeStretch>& list : when_) {
    std::sort(list.begin(), list.end(), [](const TimeStretch& a, const TimeStretch& b) {
      return std::pair(a.start, a.end) < std::pair(b.start, b.end);
    });
    std::vector<TimeStretch> apart;
    for (const TimeStretch& one : list) {
      if (!apart.empty() && one.start <= apart.back().end) {
        apart.back().end = std::max(apart.back().end, one.end);
      } else {
        apart.push_back(one);
      }
    }
    list = std::move(apart);
  }
}

ActivityTimes RankActivity::within(TimeStretch when) const {
  ActivityTimes times{};
  std::vector<TimeStretch> left;
  if (when.start < when.end) left.push_back(when);
  for (const Activity activity : on_device_ ? on_device_order : on_cpu_order) {
    const auto kind = static_cast<std::size_t>(activity);
    times[kind] = cut_out(when_[kind], activity == Activity::synchronization, left);
  }
  for (const TimeStretch& piece : left) times.back() += piece.end - piece.start;
  return times;
}

std::vector<RankActivity> activities_of(const std::vector<NamedText>& profiles,
                                        const KinetoRun& run) {
  const bool on_device = run.source == RangeSource::gpu;
  std::vector<ActivityScan> scans;
  for (const NamedText& profile : profiles) scans.push_back(scanned(profile, on_device));
  const bool named = std::all_of(scans.begin(), scans.end(),
                                 [](const ActivityScan& scan) { return scan.rank.has_value(); });
  std::vector<RankActivity> activities(run.program.devices.size(), RankActivity(on_device));
  for (std::size_t i = 0; i < scans.size(); ++i) {
    const int rank = named ? *scans[i].rank : static_cast<int>(i);
    const auto at = std::find(run.ranks.begin(), run.ranks.end(), rank);
    const auto device = static_cast<std::size_t>(at - run.ranks.begin());
    if (device >= activities.size()) continue;  // of another replica
    const std::int64_t clock = clock_of(run, device);
    for (const SeenActivity& one : scans[i].seen) {
      activities[device].add(one.activity,
                             {kineto_time(one.start - clock), kineto_time(one.end - clock)});
    }
    for (const std::int64_t bytes : scans[i].sent) activities[device].add_message(bytes);
    activities[device].settle();
  }
  return activities;
}

}  // namespace stageline
