// Runs a grid of programs for real, by turns with a profile of the layers, so that a drift of the
// machine meets prediction and measurement alike.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tools/lab/evidence/evidence.hpp"

namespace stageline::executor {

class Peers;

/// A built-in model and the sizes of its micro-batches.
struct ModelSizes {
  std::string shape;  // "gpt,layers=4"
  std::vector<int> batches;
};

/// Schedule and links of a case, in every model and size.
struct Variant {
  std::string schedule;
  std::string link;  // "100MB/s,1ms", or empty
  std::string partition = "balanced";
  bool held_out = true;
  std::string host_link = "";  // likewise
};

struct ValidationPlan {
  std::vector<ModelSizes> models;
  std::vector<Variant> variants;
  std::string devices = "cpu:2";
  std::string dtype = "fp32";
  int microbatches = 8;
  int asynchronous_steps = 2;
  int rounds = 5;  // runs of each case, of which `seconds` may leave out all but one
  double seconds = std::numeric_limits<double>::infinity();  // no round begins that would end later
  int profile_rounds = 1;  // before each run of a case, of its model and size: alone and together
  int counted_runs = 5;    // of each case, at the end, for its memory
  int timelines = 3;       // cases that keep theirs, of the first model and size
  bool imitate = false;  // ops wait for the profiled times: any number of lanes, cpu:N or process:N
  /// Tokens of each sequence of micro-batch n of a step; empty: alike. Not with `imitate`.
  std::vector<std::int64_t> lengths{};
  bool calibrate = false;  // the caller fits the cluster to the variants that are not held out
};

/// The grid that ships.
ValidationPlan usual_plan();

/// The same models with every schedule that two devices hold and the knobs that change what they
/// hold. Left out: slices of sequences, which only one of the models has.
ValidationPlan every_plan();

struct ValidationProgress {
  int round = 0;  // of plan.rounds; 0: preparing
  int cases = 0;
  double seconds = 0;
  double expected_seconds = 0;  // of the whole validation, estimated before it began
  Bytes expected_memory{};      // the same: of all profiles, and of the largest run
  std::string doing;
};

/// Everything but date, software, settings and command; the device is empty where it is a CPU.
/// `peers`: of an imitated validation in several processes, which all call this with the same plan;
/// rank 0 profiles, and its evidence is complete. Throws UsageError for what cannot be, and Stopped
/// (tools/executor/run/execute.hpp) when told to stop.
lab::Evidence run_validation(const ValidationPlan& plan,
                             const std::function<void(const ValidationProgress&)>& tell,
                             const std::atomic<bool>* stop, Peers* peers = nullptr);

/// The same evidence with its memory counted again, here. The plan has its models, and devices for
/// its lanes. Throws as run_validation() does, and UsageError for a case whose model the plan
/// lacks.
lab::Evidence count_memory_again(const ValidationPlan& plan, lab::Evidence evidence,
                                 const std::function<void(const ValidationProgress&)>& tell,
                                 const std::atomic<bool>* stop);

}  // namespace stageline::executor
