// What the flags of training frameworks say, a row each: in which facts a run of theirs is read
// (run_facts.hpp), by which of their flags a plan is written, and what Stageline calls it.
//
//     --tensor-model-parallel-size 8   ╮              ╭ --tp 8
//     tensor_parallel_degree = 8       ├─▶ tp = 8 ◀───┤ --tensor-model-parallel-size 8
//     "autotp_size": 8                 ╯              ╰ "stageline says --tp N"
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tools/launch/framework.hpp"

namespace stageline {

/// What a value says: itself; or that it is there or true, yes, of `off` no.
enum class LaunchForm : std::uint8_t { value, on, off };

struct LaunchFlag {
  std::string_view fact;  // "tp"
  std::string_view ours;  // "--tp N"; empty: it is no flag of ours
  LaunchForm form = LaunchForm::value;
  /// Names between blanks, the first of which is written. Megatron's with dashes and, as those of
  /// NeMo and Megatron-Bridge, by the last part of their path with underscores.
  std::string_view megatron;
  std::string_view torchtitan = {};
  std::string_view deepspeed = {};
};

std::span<const LaunchFlag> launch_flags();

/// The row of a flag that a framework gives such a name, by its whole path or, of Megatron's, the
/// last part of it; null: none.
const LaunchFlag* find_launch_flag(Framework framework, std::string_view name);

/// The name that is written: "--tensor-model-parallel-size" without its dashes; empty: the
/// framework has none for the fact.
std::string_view written_name(Framework framework, std::string_view fact);

/// What an argument without a row does.
enum class LaunchEffect : std::uint8_t { none, left_out, unknown };
LaunchEffect effect_of(Framework framework, std::string_view name);

/// `stageline says --tp N` for a flag of another tool that was typed at ours, or empty.
std::string said_by_stageline(const std::string& flag);

}  // namespace stageline
