// The trainings of a study: which are missing, each as a process on a core of its own.
#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace stageline {

struct StudyRequest {
  std::string out = "tools/executor/studies";  // folder of staleness.json.gz and the report
  std::string trainer;                         // the program stageline-train
  std::vector<std::string> only;               // nets; empty: all that a CPU trains in a night
  std::string device = "cpu";                  // or cuda
  int jobs = 2;                                // trainings at a time
  int seeds = 3;                               // of each case: 1, 2, …
  bool fresh = false;                          // make runs again that are kept already
};

/// Makes the runs that staleness.json.gz lacks, and writes the report. The file is written after
/// every run, so an interrupted study continues where it was. Throws UsageError, and Interrupted
/// (tools/commands/program_main.hpp) once `interrupted` is set.
void make_study(const StudyRequest& request, const std::atomic<bool>& interrupted);

}  // namespace stageline
