// Degrees of parallelism as the user gives them.
#pragma once

#include <string>

#include "sim/cluster.hpp"
#include "sim/degrees.hpp"

namespace stageline {

/// The same with the pipeline degree that `devices` leave to it. Throws UsageError, with both
/// numbers, where the degrees do not multiply to them.
Degrees completed(Degrees degrees, int devices);

/// "--tp 8 × --cp 1 × --dp 4 × --pp 2", where there is an encoder "--dp 4 × (--encoder-tp 1 ×
/// --encoder-pp 1 + --tp 8 × 1 of --pp 2)".
std::string device_product(const Degrees& degrees);

/// "tp 8 × dp 4 × pp 2", without the degrees that are 1, and behind them an encoder's.
std::string print(const Degrees& degrees);

/// "ZeRO 3", "ZeRO 3 in groups of 8", beside a pipeline also "ZeRO 3 in every micro-batch"; empty
/// with none.
std::string zero_words(const Degrees& degrees);

/// "0" to "3". Throws UsageError, which begins with `what`.
Zero parse_zero(const std::string& text, const std::string& what);

/// "8", "machine", "domain": ranks that divide state. Throws UsageError, which begins with `what`.
ShardGroup parse_shard_group(const std::string& text, const std::string& what);
/// The same text; empty: all ranks.
std::string print(const ShardGroup& group);

/// "fair". Throws UsageError, which begins with `what`.
Sharing parse_sharing(const std::string& text, const std::string& what);

}  // namespace stageline
