// What the tests of Kineto profiles share: a run of three ranks, and its profiles.
#pragma once

#include <string>
#include <vector>

#include "sim/base/index.hpp"
#include "tests/traces/profiles.hpp"
#include "tests/traces/support.hpp"

namespace stageline::profiles {

using examples::millisecond;

inline const report::Drawing& small_run() {
  static const report::Drawing run =
      examples::drawing_of(examples::one_f_one_b(3, 4), millisecond, millisecond / 8);
  return run;
}

/// The profiles of two ranks of a recorded run: see tests/traces/kineto/README.md.
inline std::vector<NamedText> recorded(const std::string& folder) {
  std::vector<NamedText> files;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string name = fmt::format("tests/traces/kineto/{}/rank{}.json.gz", folder, rank);
    files.push_back({name, source_text(name)});
  }
  return files;
}

inline bool noted(const KinetoRun& run, const std::string& part) {
  for (const std::string& note : run.notes) {
    if (contains(note, part)) return true;
  }
  return false;
}

inline void check_compute_lanes(const Timeline& read, const Timeline& simulated) {
  REQUIRE(read.lanes.size() == simulated.lanes.size());
  for (std::size_t lane = 0; lane < read.lanes.size(); lane += lane_kinds) {
    CHECK(read.lanes[lane] == simulated.lanes[lane]);
  }
}

inline TraceError error_of(const std::vector<NamedText>& files) {
  return trace_error_of([&] { read_kineto(files); });
}

inline TraceError error_of(const std::vector<Range>& ranges) {
  Form form;
  form.rank = 0;
  return error_of({NamedText{"rank0.json", profile_text(ranges, form)}});
}

// One stage, one micro-batch.
inline const std::vector<Range> one_step{{"PP:0F0", 1000, 2000}, {"PP:0B0", 2000, 4000}};

/// A profile for each rank of small_run(): make(rank, form) returns its ranges, and may change the
/// form.
template <class Make>
std::vector<NamedText> each_rank(Make&& make) {
  std::vector<NamedText> files;
  for (int rank = 0; rank < 3; ++rank) {
    Form form;
    form.rank = rank;
    const std::vector<Range> ranges = make(rank, form);
    files.push_back({file_name(rank), profile_text(ranges, form)});
  }
  return files;
}

}  // namespace stageline::profiles
