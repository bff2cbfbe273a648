#include "schedulers/partition/device_loads.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "schedulers/partition/cuts.hpp"
#include "sim/base/index.hpp"

namespace stageline {
namespace {

// Loads of devices under ends that move.
class Loads {
 public:
  Loads(const PartitionRequest& request, const std::vector<int>& last_layers) : request_(request) {
    for (const Device& device : request.cluster.devices) {
      const Rates rates = rates_of(device);
      const auto known = std::find(kinds_.begin(), kinds_.end(), rates);
      kind_of_.push_back(as_size(known - kinds_.begin()));
      if (known == kinds_.end()) kinds_.push_back(rates);
    }
    for (const Rates rates : kinds_) before_.push_back(times_before(request.model, rates));
    begin_.push_back(0);
    for (const int last : last_layers) begin_.push_back(as_size(last) + 1);
    begin_.push_back(request.model.layers.size());
    load_.resize(request.cluster.devices.size());
    for (std::size_t stage = 0; stage + 1 < begin_.size(); ++stage) {
      add(stage, begin_[stage], begin_[stage + 1], 1);
    }
  }

  const std::vector<double>& all() const { return load_; }

  std::vector<int> last_layers() const {
    std::vector<int> last;
    for (std::size_t stage = 1; stage + 1 < begin_.size(); ++stage) {
      last.push_back(static_cast<int>(begin_[stage]) - 1);
    }
    return last;
  }

  std::size_t stages() const { return begin_.size() - 1; }

  // Moves the begins of stages first..last by one layer, all the same way, if that evens out;
  // whether it did.
  bool move(std::size_t first, std::size_t last, bool later) {
    for (std::size_t stage = first; stage <= last; ++stage) {
      const std::size_t neighbour = later ? stage + 1 : stage - 1;
      const bool moves_too = later ? stage < last : stage > first;
      const std::size_t gap =
          later ? begin_[neighbour] - begin_[stage] : begin_[stage] - begin_[neighbour];
      if (gap == 1 && !moves_too) return false;
    }
    const double unevenness = power_sum();
    shift(first, last, later);
    // More than rounding: or the same ends would be moved to and fro.
    if (power_sum() < unevenness * (1 - 1e-9)) return true;
    shift(first, last, !later);
    return false;
  }

 private:
  static std::vector<double> times_before(const Model& model, Rates rates) {
    std::vector<double> before{0};
    for (const Layer& layer : model.layers) {
      ClassTimes both = forward_times(layer);
      both += backward_times(layer);
      before.push_back(before.back() + picoseconds(both, rates));
    }
    return before;
  }

  void shift(std::size_t first, std::size_t last, bool later) {
    for (std::size_t stage = first; stage <= last; ++stage) {
      const std::size_t at = begin_[stage];
      const std::size_t layer = later ? at : at - 1;
      add(later ? stage : stage - 1, layer, layer + 1, -1);
      add(later ? stage - 1 : stage, layer, layer + 1, 1);
      begin_[stage] = later ? at + 1 : at - 1;
    }
  }

  // `sign` times the layers from begin to end.
  void add(std::size_t stage, std::size_t begin, std::size_t end, double sign) {
    const std::vector<int>& devices = request_.placed[stage];
    for (const int device : devices) {
      const auto d = as_size(device);
      const std::vector<double>& before = before_[kind_of_[d]];
      load_[d] += sign * (before[end] - before[begin]) / static_cast<double>(devices.size());
    }
  }

  // In units of the mean, so that nothing overflows.
  double power_sum() const {
    const double mean = before_.front().back() / static_cast<double>(load_.size()) + 1;
    double sum = 0;
    for (const double load : load_) {
      const double square = load / mean * (load / mean);
      sum += square * square * square * square;
    }
    return sum;
  }

  const PartitionRequest& request_;
  std::vector<Rates> kinds_;                 // all different
  std::vector<std::size_t> kind_of_;         // by device
  std::vector<std::vector<double>> before_;  // by kind, ps of layers 0..i-1 on such a device
  std::vector<std::size_t> begin_;           // of stages, and the end
  std::vector<double> load_;                 // by device, ps
};

}  // namespace

bool holds_several(const PartitionRequest& request) {
  if (request.placed.size() != as_size(request.stages)) return false;
  if (std::find(request.apart.begin(), request.apart.end(), true) != request.apart.end()) {
    return false;
  }
  std::vector<int> stages(request.cluster.devices.size());
  for (const std::vector<int>& devices : request.placed) {
    for (const int device : devices) ++nth(stages, device);
  }
  return std::any_of(stages.begin(), stages.end(), [](int count) { return count > 1; });
}

std::vector<double> device_loads(const PartitionRequest& request,
                                 const std::vector<int>& last_layers) {
  return Loads(request, last_layers).all();
}

std::vector<int> even_out(const PartitionRequest& request, const std::vector<int>& last_layers) {
  Loads loads(request, last_layers);
  // Where stages are many, only neighbouring ends are moved together.
  constexpr std::size_t most_moves = 100'000;
  const std::size_t stages = loads.stages();
  const std::size_t together = std::clamp<std::size_t>(most_moves / (stages * stages), 1, stages);
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t first = 1; first < stages; ++first) {
      for (std::size_t last = first; last < std::min(stages, first + together); ++last) {
        for (const bool later : {true, false}) {
          while (loads.move(first, last, later)) moved = true;
        }
      }
    }
  }
  return loads.last_layers();
}

}  // namespace stageline
