// Sums and products of a shell.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stageline {

/// What $((PP * 8)) is once PP is put in: + - * / and brackets over whole numbers. Empty for
/// anything else, a division by 0, and what 64 bits cannot hold.
std::optional<std::int64_t> shell_arithmetic(std::string_view text);

}  // namespace stageline
