// Says what micro-batches consist of, and draws their data.
#include "tools/executor/run/micro_batches.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"

namespace stageline::executor {
namespace {

std::uint32_t slices_in(const Job& job) {
  return static_cast<std::uint32_t>(job.program.settings.sequence_chunks);
}

std::int64_t count_of(const Job& job, std::uint32_t microbatch) {
  const std::vector<std::int64_t>& lengths = job.training.lengths;
  if (!lengths.empty()) return lengths[microbatch % lengths.size()];
  return most_tokens(job.training.shape) / slices_in(job);
}

// Tokens of the slices before it.
std::int64_t begin_of(const Job& job, std::uint32_t microbatch) {
  std::int64_t begin = 0;
  for (std::uint32_t m = microbatch - microbatch % slices_in(job); m < microbatch; ++m) {
    begin += count_of(job, m);
  }
  return begin;
}

void check_lengths(const Job& job) {
  const std::vector<std::int64_t>& lengths = job.training.lengths;
  const std::int64_t most = most_tokens(job.training.shape);
  if (lengths.empty()) return;
  if (most == 0) {
    throw UsageError(fmt::format("--lengths: a sample of {} is no sequence, which has a length",
                                 job.training.shape.name));
  }
  if (as_size(job.program.microbatches) % lengths.size() != 0) {
    throw UsageError(fmt::format("--lengths: {} lengths do not divide a step of {} micro-batches",
                                 lengths.size(), job.program.microbatches));
  }
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  if (slices_in(job) == 1 && longest > most) {
    throw UsageError(
        fmt::format("--lengths: a sequence of {} tokens is longer than the {} places of {}; take a "
                    "model with seq={}",
                    longest, most, job.training.shape.name, longest));
  }
}

void check_slices(const Job& job) {
  const std::int64_t most = most_tokens(job.training.shape);
  const std::vector<std::int64_t>& lengths = job.training.lengths;
  const std::string& name = job.training.shape.name;
  if (most == 0) {
    throw UsageError(
        fmt::format("sequence_chunks: a sample of {} is no sequence, which can be cut", name));
  }
  if (lengths.empty() && most % slices_in(job) != 0) {
    throw UsageError(
        fmt::format("sequence_chunks: {} equal slices do not divide a sequence of {} tokens of {}",
                    slices_in(job), most, name));
  }
  const std::int64_t sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (!lengths.empty() && (lengths.size() != slices_in(job) || sum != most)) {
    throw UsageError(
        fmt::format("sequence_chunks: slices of {} tokens do not make up a sequence of {} in {}",
                    fmt::join(lengths, ", "), most, slices_in(job)));
  }
}

// A slice leaves keys, values and their gradients to others of its sequence, once.
void check_ops_of_slices(const Program& program) {
  std::set<std::pair<int, std::uint32_t>> passed;  // stages and micro-batches whose I is done
  for (const auto& list : program.ops) {
    for (const Op op : list) {
      const bool again = op.kind == OpKind::recompute;
      const bool moved = op.kind == OpKind::offload || op.kind == OpKind::prefetch;
      const bool early =
          op.kind == OpKind::weight_grad && !passed.contains({op.stage, op.microbatch});
      if (op.kind == OpKind::input_grad) passed.emplace(op.stage, op.microbatch);
      if (!again && !moved && !early) continue;
      throw UsageError(fmt::format(
          "{} of stage {}: {}; such a program can only be simulated, or run with --imitate",
          print(op), op.stage,
          again   ? "slices of sequences are run without recomputation"
          : moved ? "slices of sequences are run with their stashes on the device"
                  : "slices of sequences are run with W behind their I"));
    }
  }
}

}  // namespace

TokenRange tokens_of(const Job& job, std::uint32_t microbatch) {
  return {begin_of(job, microbatch), count_of(job, microbatch), microbatch % slices_in(job)};
}

double loss_weight_of(const Job& job, std::uint32_t microbatch) {
  if (!updates_by_step(job.program.settings.weights)) return 1;
  const std::vector<std::int64_t>& lengths = job.training.lengths;
  if (lengths.empty()) return 1.0 / job.program.microbatches;
  const std::int64_t sum = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  return static_cast<double>(count_of(job, microbatch)) * static_cast<double>(lengths.size()) /
         (static_cast<double>(sum) * job.program.microbatches);
}

std::vector<std::int64_t> output_of(const Job& job, std::size_t layer, std::uint32_t microbatch) {
  std::vector<std::int64_t> sizes = job.training.shape.layers[layer].output;
  if (most_tokens(job.training.shape) > 0) sizes.front() = count_of(job, microbatch);
  sizes.insert(sizes.begin(), job.training.batch);
  return sizes;
}

MicroBatch drawn_micro_batch(const Job& job, const TensorModel& model, std::uint32_t microbatch) {
  const Training& training = job.training;
  const std::uint32_t slices = slices_in(job);
  const auto which =
      microbatch / slices % static_cast<std::uint32_t>(std::max(training.distinct, 1));
  const std::uint64_t seed = training.seed + 1 + which;
  if (slices == 1) {
    return random_micro_batch(model, training.batch, seed, count_of(job, microbatch));
  }
  return slice_of(random_micro_batch(model, training.batch, seed), tokens_of(job, microbatch));
}

std::uint32_t distinct_micro_batches(const Job& job) {
  const std::uint64_t drawn =
      std::uint64_t{slices_in(job)} * as_size(std::max(job.training.distinct, 1));
  const std::size_t lengths = std::max<std::size_t>(job.training.lengths.size(), 1);
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(job.program.total_microbatches(), std::lcm(drawn, lengths)));
}

void check_tokens(const Job& job) {
  check_lengths(job);
  if (slices_in(job) == 1) return;
  check_slices(job);
  check_ops_of_slices(job.program);
}

}  // namespace stageline::executor
