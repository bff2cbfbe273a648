// Routes through the links of a cluster.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/cluster.hpp"

namespace stageline {

/// The routes between the devices of a cluster, found by source when they are first asked for:
/// those of least latency, and among them the one with the widest narrowest link. Bytes do not
/// travel through a third device.
class Routes {
 public:
  /// Refers to the cluster, which must outlive it. Clusters of up to `most_searched` devices are
  /// searched from each device; larger ones between the switches that are between others, which
  /// finds routes as short and as wide, by O(1) of memory a device. Throws UsageError where
  /// latencies add up to more than can be looked for.
  explicit Routes(const Cluster& cluster, std::size_t most_searched = 4096);
  ~Routes();
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  /// Free from a device to itself, and where the cluster has no links. Throws UsageError, with the
  /// names of both devices, where no link leads there. Valid for the next 30,000 calls.
  const Route& between(int from, int to);

  /// Throws what between() throws for the first pair of devices that are not joined, row by row.
  void check_joined() const;

  /// Appends the resources of the route from one device to another, but for the beginning of the
  /// route that an earlier call for the same device with the same `passed` has walked. Beside those
  /// calls `passed` is empty at first. Throws as between().
  void append_resources(int from, int to, std::vector<bool>& passed, std::vector<int>& resources);
  /// Appends those of the whole route. Throws as between().
  void append_resources(int from, int to, std::vector<int>& resources);

  struct ToHost {
    Route there;  // from the device to its host
    Route back;
  };
  /// Free where the device has no host, or no link to it.
  ToHost host_routes(int device);

  /// Resources, to which Route::resources refers: one for each direction of a link, or one for a
  /// half-duplex link.
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<Bandwidth>& capacity() const { return capacity_; }

 private:
  class Search;

  void check_latencies() const;
  [[noreturn]] void refuse_pair(int from, int to) const;

  const Cluster& cluster_;
  std::unique_ptr<Search> search_;  // null: the cluster has no links
  Route free_;
  std::vector<std::unordered_map<int, Route>> between_;  // by source, those asked for so far
  std::vector<std::string> names_;
  std::vector<Bandwidth> capacity_;
};

/// Routes that are found when they are first asked for, for several threads.
class FoundRoutes {
 public:
  using Find = std::function<Route(int from, int to)>;

  /// `find` is called by one thread at a time, once for a pair.
  explicit FoundRoutes(Find find) : find_(std::move(find)) {}

  /// What `find` gives, or throws. Valid as long as this object.
  const Route& between(int from, int to) {
    const std::lock_guard<std::mutex> held(access_);
    const auto known = known_.find({from, to});
    if (known != known_.end()) return known->second;
    return known_.emplace(std::pair(from, to), find_(from, to)).first->second;
  }

 private:
  Find find_;
  std::mutex access_;
  std::map<std::pair<int, int>, Route> known_;
};

}  // namespace stageline
