// torchtitan's configurations of 2026, functions of Python (pytorch/torchtitan,
// torchtitan/models/*/config_registry.py, read 2026-08-21), as the arguments of its TOML.
#pragma once

#include <string>

#include "tools/launch/arguments.hpp"

namespace stageline {

/// Whether the text defines such functions.
bool is_titan_registry(const std::string& text);

/// What the function that the addition "config" names returns, or the only one that returns a
/// configuration. Throws TraceError where none or several do, where a branch or a computed value
/// decides what is needed, and for products that are quantized in a way that is not read.
LaunchArguments read_titan_registry(const std::string& text, const std::string& file,
                                    const LaunchAdditions& additions);

}  // namespace stageline
