// Parses the names that torch.distributed.pipelining gives its actions.

#include "sim/base/numbers.hpp"
#include "sim/program.hpp"
#include "traces/kineto/rank.hpp"

namespace stageline {
namespace {

bool is_pytorch_op(OpKind kind) {
  switch (class_of(kind)) {
    case OpClass::forward:
    case OpClass::backward:
      return true;
    case OpClass::message:
      return cargo_of(kind) == Cargo::activation || cargo_of(kind) == Cargo::gradient;
    case OpClass::recompute:
    case OpClass::update:
    case OpClass::reduction:
    case OpClass::copy:
      return false;
  }
  return false;  // unreachable; g++ requires it
}

}  // namespace

std::optional<std::int64_t> parse_count(std::string_view digits) {
  const auto value = parse_number<std::int64_t>(digits);
  return value && *value >= 0 ? value : std::nullopt;
}

std::optional<KinetoAction> parse_action(std::string_view text) {
  const auto one = [](std::string_view word) -> std::optional<Op> {
    const std::optional<Op> op = parse_op(word);
    if (!op || op->part != 0 || !is_pytorch_op(op->kind)) return {};
    return op;
  };
  if (text.starts_with("(")) {
    const std::size_t middle = text.find(';');
    const std::size_t end = text.find(')');
    if (middle == std::string_view::npos || end == std::string_view::npos || end < middle ||
        text.substr(end + 1) != overlap_mark) {
      return {};
    }
    std::optional<Op> first = one(text.substr(1, middle - 1));
    const std::optional<Op> second = one(text.substr(middle + 1, end - middle - 1));
    if (!first || !second || lane_of(first->kind) != LaneKind::compute ||
        lane_of(second->kind) != LaneKind::compute) {
      return {};
    }
    first->overlapped = 1;
    return KinetoAction{{*first, *second}, false};
  }
  if (const std::optional<Op> op = one(text)) return KinetoAction{{*op}, false};
  const std::size_t letters = text.find_first_not_of("0123456789");
  if (letters == 0 || letters == std::string_view::npos) return {};
  const std::string_view word = text.substr(letters);
  if (word == "UNSHARD" || word == "RESHARD" || word == "REDUCE_GRAD")
    return KinetoAction{{}, true};
  return {};
}

std::optional<Op> parse_plain(std::string_view name) {
  Op op;
  for (const OpKind kind : {OpKind::forward, OpKind::backward}) {
    const std::string_view word = kind == OpKind::forward ? "Forward " : "Backward ";
    if (!name.starts_with(word)) continue;
    const std::optional<std::int64_t> number = parse_count(name.substr(word.size()));
    if (!number || *number > 0x7fffffff) return {};
    op.kind = kind;
    op.microbatch = static_cast<std::uint32_t>(*number);
    return op;
  }
  return {};
}

}  // namespace stageline
