// Precompiled for all rooms: to read these is a third of the time that a file takes to compile.
// Files include what they use all the same. (No #pragma once: g++ warns of it in a file that it
// compiles itself.)
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
