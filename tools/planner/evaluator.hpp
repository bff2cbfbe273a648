// Judges candidates: opens the setting of each shape once, and simulates.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tools/planner/candidate.hpp"
#include "tools/study/run/layout.hpp"
#include "tools/study/verdict.hpp"

namespace stageline::planner {

/// A verdict, or the sentence that refuses the candidate.
struct Judgement {
  std::optional<Verdict> verdict;
  std::string why_not;
};

/// What was judged, with the layers of its stages.
struct JudgedCut {
  Layout layout;
  Judgement judgement;
};

/// Threads may call it at the same time.
class Evaluator {
 public:
  /// Keeps at most `most_settings` open at a time.
  explicit Evaluator(SettingRequest base, std::size_t most_settings = 256);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  const SettingRequest& base() const { return base_; }
  /// The trace and cluster for those ranks, opened when first asked for. Throws UsageError where
  /// there is none: degrees that the model does not allow, a size that the trace does not have.
  std::shared_ptr<const Setting> setting(const Shape& shape);
  /// The placement on racks that the base leaves open for such a shape, beside its own; empty:
  /// there is none. Throws as setting() does.
  std::string other_placement(const Shape& shape);
  /// The case of study(). Throws as setting() does.
  Case case_of(const Candidate& candidate);
  /// Judges a candidate as study() does, to the picosecond and byte. Any error but CalledOff is its
  /// `why_not`: a search does not end with one candidate.
  Judgement judge(const Candidate& candidate);
  /// The same of one that differs from all of `others` in its partitioner alone, and joins them:
  /// where two partitioners put the same layers in the same stages, one simulation is enough.
  Judgement judge(const Candidate& candidate, std::vector<JudgedCut>& others);
  Judge& judge() { return judge_; }

 private:
  struct Settings;
  SettingRequest base_;
  std::unique_ptr<Settings> settings_;
  Judge judge_;
};

}  // namespace stageline::planner
