// The model of a run: by its sizes, or by the name that a framework or the user gives it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/launch/run_facts.hpp"

namespace stageline {

struct RunModelAsked {
  std::string model;  // "llama3-8b"; empty: as the facts say
  std::string device;
  std::int64_t tensor = 1;
  std::int64_t context = 1;
};

struct RunModel {
  std::string trace;        // "model:transformer@h100,layers=24,…"
  std::int64_t layers = 0;  // blocks; 0: those of a model by its name
  std::vector<std::string> notes;
};

/// Throws TraceError where the sizes are not said, or are no transformer's.
RunModel model_of(const RunFacts& facts, const RunModelAsked& asked);

/// As --precision takes it.
std::string state_precision(const RunFacts& facts);

/// How many stages a Megatron layout has. Throws UsageError.
std::int64_t layout_stages(const std::string& layout);

}  // namespace stageline
