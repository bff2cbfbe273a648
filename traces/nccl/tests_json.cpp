// Reads what nccl-tests writes by -J (NVIDIA/nccl-tests, src/util.cu of 2.17 to 2.18).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/bus_bandwidth.hpp"
#include "traces/json/tree.hpp"
#include "traces/nccl/tests_log.hpp"

namespace stageline {
namespace {

constexpr std::int64_t most_ranks = 1'000'000;

// "NCCL version 2.29.0" of 22900, as NCCL_VERSION() makes it since 2.9; before, of three digits.
std::string version_text(std::int64_t code) {
  const std::int64_t major = code >= 10'000 ? code / 10'000 : code / 1000;
  const std::int64_t minor = code >= 10'000 ? code / 100 % 100 : code / 100 % 10;
  return fmt::format("NCCL version {}.{}.{}", major, minor, code % 100);
}

class JsonReader {
 public:
  JsonReader(const JsonNode& top, std::optional<CollectiveKind> kind) : top_(top), kind_(kind) {}

  NcclTestsLog read() {
    read_test();
    if (const auto version = top_.find("nccl_version")) {
      run_.version = version_text(version->whole(0, 1'000'000'000));
    }
    const JsonNode config = top_.at("config");
    const JsonNode results = top_.at("results");
    if (const auto bounds = top_.find("out_of_bounds")) {
      const auto okay = bounds->find("okay");
      if (okay && okay->kind() == JsonKind::text && okay->text() == "false") {
        okay->refuse("the run failed its check of results, so its times say nothing");
      }
    }
    read_devices(config);
    for (const JsonNode& row : results.items()) add_row(row);
    if (run_.rows.empty()) results.refuse("there is no row with a size and a time out of place");
    settle_ranks(config);
    NcclTestsLog log;
    if (other_ != nullptr) {
      log.others.push_back({std::string(other_->first), std::move(run_)});
    } else {
      log.runs.push_back(std::move(run_));
    }
    return log;
  }

 private:
  void read_test() {
    const JsonNode args = top_.at("args");
    const std::vector<JsonNode> words = args.items();
    const std::string program = words.empty() ? std::string() : words.front().text();
    const NcclTest* const test = nccl_test_in(program);
    if (test == nullptr && !kind_) {
      args.refuse(
          "the program is none of nccl-tests, so the collective is not known; name it by --kind "
          "all_reduce, reduce_scatter, all_gather, all_to_all or broadcast");
    }
    if (test != nullptr && !test->second) other_ = test;
    if (other_ == nullptr) run_.kind = test != nullptr ? *test->second : *kind_;
  }

  // An entry a process, its first rank; some versions list every rank.
  void read_devices(const JsonNode& config) {
    const auto whole = [&](const char* key) {
      const auto node = config.find(key);
      return node ? node->whole(1, most_ranks) : 1;
    };
    per_process_ = whole("nthreads") * whole("ngpus");
    std::set<std::string> hosts;
    for (const JsonNode& device : config.at("devices").items()) {
      if (const auto group = device.find("group")) {
        if (group->whole(0, most_ranks) != 0) continue;  // it ran beside
      }
      hosts.insert(device.at("hostname").text());
      const std::int64_t rank = device.at("rank").whole(0, most_ranks);
      if (rank == 0) run_.device = device.text_or_empty("device_info");
      last_rank_ = std::max(last_rank_, rank);
      ++listed_;
    }
    if (listed_ == 0)
      config.at("devices").refuse("no device is listed, so the number of ranks is not known");
    run_.machines = static_cast<int>(hosts.size());
  }

  void add_row(const JsonNode& row) {
    const Bytes bytes = row.at("size").bytes();
    const JsonNode measured = row.at("out_of_place");
    if (measured.kind() == JsonKind::null) return;
    if (measured.find("cpu_time")) {
      measured.refuse(
          "it has cpu_time, the time that the CPU took to launch the collective, and not the "
          "collective's; run the test without -C (--report_cputime)");
    }
    const auto wrong = measured.find("nwrong");
    if (wrong && wrong->kind() == JsonKind::number && wrong->number() > 0) {
      wrong->refuse("the results of the collective were wrong, so its times say nothing");
    }
    const Time time = measured.at("time").microseconds();
    if (bytes <= Bytes{} || time <= Time{}) return;
    const double algorithm = measured.at("alg_bw").number();
    const double rate = static_cast<double>(bytes.count) / 1e9 / to_seconds(time);
    constexpr double rounding = 1e-3;  // six decimals are printed of times and rates
    if (algorithm > 0.1 && std::abs(algorithm / rate - 1) > rounding) {
      measured.at("alg_bw").refuse(fmt::format(
          "it is {:.3f} GB/s, but size over time is {:.3f} GB/s; give the file as the test wrote it",
          algorithm, rate));
    }
    if (algorithm > 0.1) ratio_ = measured.at("bus_bw").number() / algorithm;
    run_.rows.push_back({bytes, time, 0});
  }

  // The devices are processes or ranks: the ratio of bandwidths tells which.
  void settle_ranks(const JsonNode& config) {
    const std::int64_t by_process = listed_ * per_process_;
    const bool each = last_rank_ + 1 == listed_;
    std::vector<std::int64_t> possible{by_process};
    if (each && listed_ > 1 && per_process_ > 1) possible.push_back(listed_);
    if (other_ != nullptr || ratio_ == 0) {
      if (by_process > most_ranks) config.refuse("it has more than a million ranks");
      run_.ranks = static_cast<int>(by_process);
      return;
    }
    for (const std::int64_t ranks : possible) {
      if (ranks > most_ranks) continue;
      const double factor = ranks > 1 ? bus_factor(run_.kind, static_cast<int>(ranks)) : 0;
      if (std::abs(ratio_ - factor) > 1e-4) continue;
      run_.ranks = static_cast<int>(ranks);
      return;
    }
    config.refuse(fmt::format(
        "bus_bw is {:.4f} times alg_bw, which {} among {} ranks ({} processes of {}) has not; give "
        "the whole file, and name the collective that ran by --kind",
        ratio_, name(run_.kind), by_process, listed_, per_process_));
  }

  const JsonNode& top_;
  std::optional<CollectiveKind> kind_;
  const NcclTest* other_ = nullptr;
  NcclTestsRun run_;
  std::int64_t per_process_ = 1;
  std::int64_t listed_ = 0;
  std::int64_t last_rank_ = 0;
  double ratio_ = 0;  // bus over algorithm bandwidth, of the last row
};

}  // namespace

NcclTestsLog read_nccl_tests_json(const std::string& text, const std::string& file,
                                  std::optional<CollectiveKind> kind) {
  const JsonValue tree = parse_json(text, file);
  const JsonNode top(tree, "", file);
  if (!top.find("results") || !top.find("config") || !top.find("args")) {
    top.refuse(
        "it is no output of nccl-tests: what -J writes has \"args\", \"config\" and \"results\"");
  }
  return JsonReader(top, kind).read();
}

}  // namespace stageline
