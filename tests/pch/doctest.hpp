// Precompiled for the tests. (No #pragma once: g++ warns of it in a file that it compiles itself.)
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/pch/standard.hpp"
