// Gathers the changes of one device's stashes.
#include "tools/executor/run/stash_log.hpp"

#include <algorithm>

namespace stageline::executor {

void StashLog::note(Time at, std::int64_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  changes_.emplace_back(at, bytes);
}

void StashLog::note(Op op, const StashChange& change, Time start, Time end, int messages) {
  note(start, change.at_start);
  note(end, change.at_end);
  if (change.sent == 0) return;
  const std::lock_guard lock(mutex_);
  sent_[{op.stage, op.microbatch}] = {change.sent, messages, end};
}

void StashLog::left(Op op, Time at) {
  const std::lock_guard lock(mutex_);
  const auto found = sent_.find({op.stage, op.microbatch});
  if (found == sent_.end()) return;
  Sent& sent = found->second;
  sent.last = std::max(sent.last, at);
  if (--sent.messages > 0) return;
  changes_.emplace_back(sent.last, -sent.bytes);
  sent_.erase(found);
}

void StashLog::restart() {
  const std::lock_guard lock(mutex_);
  changes_.clear();
  sent_.clear();
}

std::int64_t StashLog::peak() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<Time, std::int64_t>> changes = changes_;
  std::sort(changes.begin(), changes.end());
  std::int64_t held = 0;
  std::int64_t most = 0;
  for (const auto& [at, bytes] : changes) most = std::max(most, held += bytes);
  return most;
}

}  // namespace stageline::executor
