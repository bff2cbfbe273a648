// Prints and parses ops.
#include "sim/op.hpp"

#include <fmt/format.h>

#include <array>

#include "sim/base/index.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

constexpr std::array<std::string_view, op_kinds> symbols{
    "F",           "I",          "W",           "B",
    "R",           "U",          "REDUCE_GRAD", "SEND_F",
    "RECV_F",      "SEND_B",     "RECV_B",      "OFFLOAD",
    "PREFETCH",    "SEND_STASH", "RECV_STASH",  "SEND_WEIGHTS",
    "RECV_WEIGHTS"};

// Cuts a number, at most `limit`, off the front of `text`.
std::optional<std::uint32_t> take_up_to(std::string_view& text, std::uint32_t limit) {
  const auto value = take_number<std::uint32_t>(text);
  return value && *value <= limit ? value : std::nullopt;
}

}  // namespace

std::string_view symbol(OpKind kind) { return nth(symbols, kind); }

std::string print(Op op) {
  std::string text = fmt::format("{}{}{}", op.stage, symbol(op.kind), op.microbatch);
  if (op.part != 0) text += fmt::format(".{}", static_cast<int>(op.part));
  return text;
}

std::optional<Op> parse_op(std::string_view text) {
  const auto stage = take_up_to(text, max_stages - 1);
  if (!stage) return std::nullopt;
  const std::size_t letters = text.find_first_of("0123456789");
  if (letters == std::string_view::npos) return std::nullopt;
  const std::string_view spelled = text.substr(0, letters);
  text.remove_prefix(letters);
  const auto microbatch = take_up_to(text, 0x7fffffff);
  if (!microbatch) return std::nullopt;
  std::uint32_t part = 0;
  if (!text.empty()) {
    if (text.front() != '.') return std::nullopt;
    text.remove_prefix(1);
    const auto given = take_up_to(text, max_parts);
    if (!given || !text.empty()) return std::nullopt;
    part = *given;
  }
  for (std::size_t kind = 0; kind < symbols.size(); ++kind) {
    if (symbols[kind] != spelled) continue;
    Op op;
    op.kind = static_cast<OpKind>(kind);
    op.part = static_cast<std::uint8_t>(part & 0x7f);
    op.stage = static_cast<std::uint16_t>(*stage);
    op.microbatch = *microbatch;
    return op;
  }
  return std::nullopt;
}

std::string_view name(LaneKind kind) {
  switch (kind) {
    case LaneKind::compute:
      return "compute";
    case LaneKind::send:
      return "send";
    case LaneKind::receive:
      return "receive";
    case LaneKind::copy_out:
      return "copy-out";
    case LaneKind::copy_in:
      return "copy-in";
  }
  return "";
}

}  // namespace stageline
