// What the tests of PyTorch's schedule CSV share.
#pragma once

#include <string>

#include "sim/base/errors.hpp"
#include "tests/interop/csv.hpp"
#include "tests/text.hpp"

namespace stageline::pytorch_text {

inline constexpr PytorchForm only = PytorchForm::compute_only;
inline constexpr PytorchForm comms = PytorchForm::compute_comms;

inline std::string in_our_text(const std::string& csv) {
  return test::lists(read_pytorch_schedule(csv).program);
}
inline std::string complaint(const std::string& csv) {
  return test::complaint<ProgramError>([&] { read_pytorch_schedule(csv); });
}
inline std::string refusal(const Program& program, PytorchForm form = only) {
  return test::complaint<UsageError>([&] { write_pytorch_schedule(program, form); });
}

inline Program parsed(int stages, int microbatches, const std::string& lists,
                      const std::string& header = "") {
  return parse_program(test::straight_text(stages, microbatches, lists, header));
}

// Two ranks in a V: stages 0 and 3 on the first, 1 and 2 on the second.
inline const char* const v_shape =
    "stageline-program 1\nmicrobatches: 2\nstage 0: gpu0\nstage 1: gpu1\nstage 2: gpu1\n"
    "stage 3: gpu0\n"
    "gpu0: 0F0 0F1 3F0 3I0 3F1 3I1 3W0 3W1 0B0 0B1\n"
    "gpu1: 1F0 2F0 1F1 2F1 2B0 1B0 2I1 1I1 2W1 1W1\n";

}  // namespace stageline::pytorch_text
