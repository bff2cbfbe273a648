// Prints what PyTorch's schedule CSV can hold, for tests/interop/pytorch.py: a schedule with its
// knobs and a number of devices a line.
#include <cstdio>

#include "tests/interop/csv.hpp"

int main() {
  using namespace stageline;
  for (const int devices : {1, 2, 4, 5}) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      try {
        if (!test::fits_pytorch(test::written(spec, devices, 8))) continue;
      } catch (const UsageError&) {
        continue;  // so many devices do not suit the schedule
      }
      std::printf("%s %d\n", spelled(spec).c_str(), devices);
    }
  }
}
