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

class ChunkRun {
 public:
  ChunkRun(SweepRunner& runner, const std::vector<std::int64_t>& chunks, const SweepRun& asked,
           const TakeChunk& give)
      : runner_(runner),
        asked_(asked),
        give_(give),
        block_(std::min(runner.block(), runner.spec().chunk)),
        header_(csv_header(runner.spec())),
        chunks_(chunks_of(runner.spec(), chunks, block_)) {}

  SweepCount all() {
    for (const Chunk& chunk : chunks_) progress_.wanted += chunk.count;
    const auto blocks = static_cast<std::size_t>((runner_.spec().chunk + block_ - 1) / block_);
    if (!chunks_.empty()) {
      in_parallel(chunks_.size() * blocks, runner_.at_a_time(asked_.threads), [&](std::size_t i) {
        const auto block = static_cast<std::int64_t>(i % blocks);
        Chunk& chunk = chunks_[i / blocks];
        if (block < chunk.blocks) make(chunk, block);  // the last chunk may have fewer
      });
    }
    count_.stopped = stopped() && count_.chunks < static_cast<std::int64_t>(chunks_.size());
    return count_;
  }

 private:
  bool stopped() const { return asked_.stop != nullptr && asked_.stop->load(); }

  void make(Chunk& chunk, std::int64_t block) {
    if (stopped()) return;
    const std::int64_t begin = block * block_;
    const std::int64_t count = std::min(block_, chunk.count - begin);
    const std::vector<SweepRow> rows = runner_.rows(chunk.first + begin, count, asked_.stop);
    if (static_cast<std::int64_t>(rows.size()) < count) return;
    std::string text;
    std::int64_t possible = 0;
    std::int64_t fit = 0;
    for (const SweepRow& row : rows) {
      text += csv_line(runner_.spec(), row);
      if (!row.verdict) {
        note_refused(row);
        continue;
      }
      ++possible;
      if (row.verdict->fit != Fit::no) ++fit;
    }
    if (keep(chunk, block, std::move(text), possible, fit)) end(chunk);
  }

  void note_refused(const SweepRow& row) {
    const std::lock_guard<std::mutex> lock(access_);
    if (refused_ >= 0 && refused_ < row.number) return;
    refused_ = row.number;
    count_.why_not = row.why_not;
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

  void end(Chunk& chunk) {
    std::string text = header_;
    for (const std::string& part : chunk.texts) text += part;
    chunk.texts = {};
    give_(chunk.number, text);
    const std::lock_guard<std::mutex> lock(access_);
    ++count_.chunks;
    count_.rows += chunk.count;
    count_.possible += chunk.possible;
    count_.fit += chunk.fit;
  }

  SweepRunner& runner_;
  const SweepRun& asked_;
  const TakeChunk& give_;
  std::int64_t block_;
  std::string header_;
  std::vector<Chunk> chunks_;
  std::mutex access_;
  SweepCount count_;
  std::int64_t refused_ = -1;  // the first scenario without a result
  SweepProgress progress_;
};

}  // namespace

SweepCount run_chunks(SweepRunner& runner, const std::vector<std::int64_t>& chunks,
                      const SweepRun& run, const TakeChunk& take) {
  return ChunkRun(runner, chunks, run, take).all();
}

SweepCount run_sweep(const SweepFolder& folder, const SweepRun& run) {
  SweepRunner runner(folder.spec(), folder.files());
  const std::int64_t chunks = folder.spec().chunks();
  if (static_cast<std::int64_t>(folder.missing().size()) == chunks) runner.probe();
  folder.begin();
  const std::vector<std::int64_t> missing = folder.missing(run.shard);
  SweepCount count = run_chunks(
      runner, missing, run,
      [&](std::int64_t chunk, const std::string& text) { folder.write_chunk(chunk, text); });
  const std::int64_t of_shard =
      run.shard.index > chunks ? 0 : (chunks - run.shard.index + run.shard.count) / run.shard.count;
  if (count.chunks > 0) count.notes = runner.notes();
  count.before = of_shard - static_cast<std::int64_t>(missing.size());
  return count;
}

}  // namespace stageline
