// Judges a case by the whole of study().
#include "tools/study/verdict.hpp"

#include <algorithm>

#include "tools/study/study.hpp"

namespace stageline {

Bytes Verdict::fullest() const {
  return peak.empty() ? Bytes{} : *std::max_element(peak.begin(), peak.end());
}

struct Judge::Kept {};

Judge::Judge() : kept_(std::make_unique<Kept>()) {}
Judge::~Judge() = default;

Verdict Judge::verdict(const Case& asked) {
  const Outcome outcome = study(asked);
  Verdict verdict;
  verdict.step = outcome.step_time;
  verdict.throughput = outcome.throughput;
  verdict.fit = outcome.fit;
  verdict.need = tightest(outcome);
  if (!outcome.bytes_known()) return verdict;
  for (const DeviceMemory& device : outcome.memory.device) verdict.peak.push_back(device.peak);
  return verdict;
}

}  // namespace stageline
