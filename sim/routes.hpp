// Routes through the links of a cluster.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/cluster.hpp"

namespace stageline {

/// The routes between the devices of a cluster, found by source when they are first asked for:
/// those of least latency, and among them the one with the widest narrowest link. Bytes do not
/// travel through a third device.
class Routes {
 public:
  /// Refers to the cluster, which must outlive it. Throws UsageError where latencies add up to more
  /// than can be looked for.
  explicit Routes(const Cluster& cluster);
  ~Routes();
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  /// Free from a device to itself, and where the cluster has no links. Throws UsageError, with the
  /// names of both devices, where no link leads there. Valid as long as this object.
  const Route& between(int from, int to);

  /// Throws what between() throws for the first pair of devices that are not joined, row by row.
  void check_joined() const;

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

/// The same with a cluster of its own, for several threads.
class FoundRoutes {
 public:
  explicit FoundRoutes(const Cluster& cluster) : cluster_(cluster), routes_(cluster_) {}

  /// As Routes::between().
  const Route& between(int from, int to) {
    const std::lock_guard<std::mutex> held(access_);
    return routes_.between(from, to);
  }
  /// As long as one thread knows of it.
  Routes& routes() { return routes_; }

 private:
  Cluster cluster_;
  std::mutex access_;
  Routes routes_;
};

}  // namespace stageline
