// The spelling "name,key=value,key=value" of models and of data on the command line.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stageline {

struct Spec {
  std::string head;                                          // before the first comma
  std::vector<std::pair<std::string, std::string>> options;  // in order, each key once
};

/// Throws UsageError on a word that is not key=value and on a key that is given twice.
Spec parse_spec(std::string_view text);

/// Throws UsageError: "batch must be a whole number from 1 to 2147483647, not 'x'".
std::int64_t whole_number(std::string_view key, std::string_view text,
                          std::int64_t most = std::numeric_limits<std::int64_t>::max(),
                          std::int64_t least = 1);

/// Throws UsageError: "efficiency must be <rule>, not 'x'".
double real_number(std::string_view key, std::string_view text, std::string_view rule);

/// Throws UsageError: "sp must be yes or no, not 'x'".
bool yes_or_no(std::string_view key, std::string_view text);

/// A degree of tensor, context or expert parallelism. Throws as whole_number().
int parallel_degree(std::string_view key, std::string_view text);

}  // namespace stageline
