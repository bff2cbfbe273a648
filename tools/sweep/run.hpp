// Runs what is missing in the folder of a sweep.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/sweep/folder.hpp"
#include "tools/sweep/rows.hpp"

namespace stageline {

struct SweepProgress {
  std::int64_t rows = 0;    // done by this run
  std::int64_t wanted = 0;  // to be done by it
};

struct SweepRun {
  Shard shard;
  int threads = 0;                          // 0: one a processor core; changes no byte
  const std::atomic<bool>* stop = nullptr;  // ends the run early, without the chunks under way
  /// Called behind every few rows, by one thread at a time.
  std::function<void(const SweepProgress&)> progress;
};

struct SweepCount {
  std::int64_t chunks = 0;    // made by this run
  std::int64_t before = 0;    // of the shard, that were there
  std::int64_t rows = 0;      // in the chunks that were made
  std::int64_t possible = 0;  // of these rows, with a result
  std::int64_t fit = 0;       // of these, that fit into memory or may
  bool stopped = false;
  std::string why_not;             // of the first row without a result
  std::vector<std::string> notes;  // SweepRunner::notes(), where this run made chunks
};

/// Gets the table of a chunk, with header; several threads may call it at the same time.
using TakeChunk = std::function<void(std::int64_t chunk, const std::string& text)>;

/// Makes these chunks, whatever the shard of `run`. Throws what `take` throws.
SweepCount run_chunks(SweepRunner& runner, const std::vector<std::int64_t>& chunks,
                      const SweepRun& run, const TakeChunk& take);

/// Makes the chunks of the shard that are missing. Throws what SweepRunner::probe() throws, and
/// UsageError where a file cannot be written.
SweepCount run_sweep(const SweepFolder& folder, const SweepRun& run);

}  // namespace stageline
