// Everything that turns a name on the command line into a value.
#pragma once

#include "tools/inputs/clusters.hpp"
#include "tools/inputs/traces.hpp"
#include "tools/inputs/weight_rule.hpp"
