// Everything that a program which uses the library needs: #include <stageline/stageline.hpp>.
#pragma once

#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "tools/base/version.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/report/json/answer.hpp"
#include "tools/study/figures/ranking.hpp"
#include "tools/study/study.hpp"
