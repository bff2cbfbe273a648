// Precompiled for em++, with what most of the library's files format and count with.
#include <fmt/format.h>

#include <chrono>
#include <numeric>
#include <set>
#include <span>
#include <tuple>

#include "sim/pch/standard.hpp"
