// Bytes -> a small program of any shape with its costs -> complete -> compile -> every engine.
#include <limits>

#include "sim/base/errors.hpp"
#include "sim/check/check.hpp"
#include "sim/engine.hpp"
#include "sim/lower/passes.hpp"
#include "tests/fuzz/runs.hpp"
#include "tests/fuzz/target.hpp"
#include "tests/random_program.hpp"

namespace stageline::fuzz {
namespace {

// A generator whose numbers are the bytes of the input, and then those of a seeded one.
class Bytewise {
 public:
  using result_type = std::uint32_t;
  explicit Bytewise(const std::string& input) : input_(input) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() {
    if (at_ >= input_.size()) return after_();
    // Low bits choose among few, high bits among the positions of a shuffle.
    const auto byte = static_cast<unsigned char>(input_[at_++]);
    return byte * 0x01010101U;
  }

 private:
  const std::string& input_;
  std::size_t at_ = 0;
  std::mt19937 after_{1};
};

}  // namespace

void random_program(const std::string& input) {
  if (input.empty()) return;
  const bool shared = input[0] % 2 != 0;
  const test::RandomProgram made = test::ProgramsDrawn<Bytewise>(Bytewise(input)).make(shared);
  const Program program = complete(made.program, made.costs);
  // The references take the square of it, and small ones show as much.
  constexpr std::size_t most_ops = 200;
  std::size_t ops = 0;
  for (const auto& list : program.ops) ops += list.size();
  if (ops > most_ops) return;
  const std::string text = print(program);
  hold(parse_program(text) == program, "text -> program -> text -> another program");
  check(program, [&](const LintFinding& finding) { broken(finding.message + "\n" + text); });
  check_run(program, made.costs);
  const TaskGraph graph = compile(program, made.costs);
  check_batch(graph, static_cast<unsigned char>(input.back()));
}

}  // namespace stageline::fuzz
