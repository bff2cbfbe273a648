// Hands blocks of scenarios to threads; who ends the last block of a chunk writes it.
#include "tools/sweep/run.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/base/parallel.hpp"

namespace stageline {
namespace {

// A chunk under way.
struct Chunk {
  std::int64_t number = 0;
  std::int64_t first = 0;  // scenario
  std::int64_t count = 0;  // scenarios
  std::int64_t blocks = 0;
  std::int64_t done = 0;  // blocks
  std::int64_t possible = 0;
  std::int64_t fit = 0;
  std::vector<std::string> texts;  // by block
};

std::vector<Chunk> chunks_of(const SweepSpec& spec, const std::vector<std::int64_t>& missing,
                             std::int64_t block) {
  std::vector<Chunk> chunks;
  for (const std::int64_t number : missing) {
    Chunk chunk;
    chunk.number = number;
    chunk.first = number * spec.chunk;
    chunk.count = std::min(spec.chunk, spec.scenarios() - chunk.first);
    chunk.blocks = (chunk.count + block - 1) / block;
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

class Run {
 public:
  Run(const SweepFolder& folder, const SweepRun& asked, SweepRunner& runner)
      : folder_(folder),
        asked_(asked),
        runner_(runner),
        block_(std::min(runner.block(), folder.spec().chunk)),
        header_(csv_header(folder.spec())) {}

  SweepCount all() {
    const std::vector<std::int64_t> missing = folder_.missing(asked_.shard);
    chunks_ = chunks_of(folder_.spec(), missing, block_);
    const std::int64_t chunks = folder_.spec().chunks();
    const std::int64_t of_shard =
        asked_.shard.index > chunks
            ? 0
            : (chunks - asked_.shard.index + asked_.shard.count) / asked_.shard.count;
    count_.before = of_shard - static_cast<std::int64_t>(missing.size());
    for (const Chunk& chunk : chunks_) progress_.wanted += chunk.count;
    const auto blocks = static_cast<std::size_t>((folder_.spec().chunk + block_ - 1) / block_);
    if (!chunks_.empty()) {
      in_parallel(chunks_.size() * blocks, runner_.at_a_time(asked_.threads), [&](std::size_t i) {
        const auto block = static_cast<std::int64_t>(i % blocks);
        Chunk& chunk = chunks_[i / blocks];
        if (block < chunk.blocks) take(chunk, block);  // the last chunk may have fewer
      });
    }
    count_.stopped = stopped() && count_.chunks < static_cast<std::int64_t>(chunks_.size());
    return count_;
  }

 private:
  bool stopped() const { return asked_.stop != nullptr && asked_.stop->load(); }

  void take(Chunk& chunk, std::int64_t block) {
    if (stopped()) return;
    const std::int64_t begin = block * block_;
    const std::int64_t count = std::min(block_, chunk.count - begin);
    const std::vector<SweepRow> rows = runner_.rows(chunk.first + begin, count, asked_.stop);
    if (static_cast<std::int64_t>(rows.size()) < count) return;
    std::string text;
    std::int64_t possible = 0;
    std::int64_t fit = 0;
    for (const SweepRow& row : rows) {
      text += csv_line(folder_.spec(), row);
      if (!row.verdict) continue;
      ++possible;
      if (row.verdict->fit != Fit::no) ++fit;
    }
    if (keep(chunk, block, std::move(text), possible, fit)) write(chunk);
  }

  // Whether it was the last block of its chunk.
  bool keep(Chunk& chunk, std::int64_t block, std::string text, std::int64_t possible,
            std::int64_t fit) {
    const std::lock_guard<std::mutex> lock(access_);
    chunk.texts.resize(static_cast<std::size_t>(chunk.blocks));
    const auto rows = std::min(block_, chunk.count - block * block_);
    chunk.texts[static_cast<std::size_t>(block)] = std::move(text);
    chunk.possible += possible;
    chunk.fit += fit;
    progress_.rows += rows;
    if (asked_.progress) asked_.progress(progress_);
    return ++chunk.done == chunk.blocks;
  }

  void write(Chunk& chunk) {
    std::string text = header_;
    for (const std::string& part : chunk.texts) text += part;
    chunk.texts = {};
    folder_.write_chunk(chunk.number, text);
    const std::lock_guard<std::mutex> lock(access_);
    ++count_.chunks;
    count_.rows += chunk.count;
    count_.possible += chunk.possible;
    count_.fit += chunk.fit;
  }

  const SweepFolder& folder_;
  const SweepRun& asked_;
  SweepRunner& runner_;
  std::int64_t block_;
  std::string header_;
  std::vector<Chunk> chunks_;
  std::mutex access_;
  SweepCount count_;
  SweepProgress progress_;
};

}  // namespace

SweepCount run_sweep(const SweepFolder& folder, const SweepRun& run) {
  SweepRunner runner(folder.spec());
  if (static_cast<std::int64_t>(folder.missing().size()) == folder.spec().chunks()) runner.probe();
  folder.begin();
  return Run(folder, run, runner).all();
}

}  // namespace stageline
