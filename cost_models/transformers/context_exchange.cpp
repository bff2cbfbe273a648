#include "cost_models/transformers/context_exchange.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/names.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {
namespace {

constexpr std::string_view of_parts = "a2a+p2p:";  // and their ranks

bool exchanges_heads(const LanguageForm& form) {
  return form.context_exchange == ContextExchange::all_to_all ||
         form.context_exchange == ContextExchange::hierarchical;
}

// Heads for keys and values on one rank of a tensor-parallel group.
std::int64_t key_heads_of(const TransformerConfig& config, const LanguageForm& form) {
  const std::int64_t tensor = form.sharding.tensor;
  if (config.latent) return config.heads / tensor;
  return std::max<std::int64_t>(config.least_kv_heads() / tensor, 1);
}

std::int64_t head_ranks(const LanguageForm& form) {
  return form.context_exchange == ContextExchange::all_to_all ? form.sharding.context
                                                              : form.context_part;
}

// What parts of a sequence are exchanged for is heads: of attention, and of keys and values.
void check_head_exchange(const TransformerConfig& config, const LanguageForm& form) {
  const std::int64_t parts = head_ranks(form);
  const std::int64_t heads = config.heads / form.sharding.tensor;
  const std::int64_t keys = key_heads_of(config, form);
  if (heads % parts != 0) {
    throw UsageError(fmt::format(
        "{}: cp_exchange={} gives each of {} ranks whole heads, and there are {} heads{}; take a "
        "divisor of {}, or cp_exchange=p2p",
        config.name, exchange_text(form), parts, heads,
        form.sharding.tensor > 1 ? fmt::format(" on each of tp {} ranks", form.sharding.tensor)
                                 : "",
        heads));
  }
  if (keys % parts != 0 && parts % keys != 0) {
    throw UsageError(fmt::format(
        "{}: cp_exchange={} gives each of {} ranks whole heads for keys and values, and there are "
        "{}; take a divisor or a multiple of {}, or cp_exchange=p2p",
        config.name, exchange_text(form), parts, keys, keys));
  }
  if (config.latent && config.latent->index_heads > 0) {
    throw UsageError(fmt::format(
        "{}: its indexer has the keys of all heads, which cp_exchange={} does not bring; take "
        "cp_exchange=all_gather",
        config.name, exchange_text(form)));
  }
}

}  // namespace

std::string_view name(ContextExchange exchange) {
  switch (exchange) {
    case ContextExchange::all_gather:
      return "all_gather";
    case ContextExchange::ring:
      return "p2p";
    case ContextExchange::all_to_all:
      return "a2a";
    case ContextExchange::hierarchical:
      return "a2a+p2p";
  }
  return "all_gather";  // unreachable; g++ wants it
}

std::string exchange_text(const LanguageForm& form) {
  std::string text(name(form.context_exchange));
  if (form.context_exchange == ContextExchange::hierarchical) {
    text += fmt::format(":{}", form.context_part);
  }
  return text;
}

void set_context_exchange(LanguageForm& form, const std::string& text) {
  form.context_part = 0;
  if (text.starts_with(of_parts)) {
    const auto part = parse_number<int>(text.substr(of_parts.size()));
    if (!part || *part < 2) {
      throw UsageError(fmt::format(
          "cp_exchange=a2a+p2p:N has all-to-alls among N neighbours, 2 or more, not \"{}\"",
          text.substr(of_parts.size())));
    }
    form.context_exchange = ContextExchange::hierarchical;
    form.context_part = *part;
    return;
  }
  if (text == name(ContextExchange::hierarchical)) {
    throw UsageError(
        "cp_exchange=a2a+p2p needs the ranks of its all-to-alls, mostly those of a machine (the "
        "first of Megatron-LM's --hierarchical-context-parallel-sizes): give a2a+p2p:N");
  }
  std::vector<std::string> known{"ring"};  // another word for p2p
  for (const ContextExchange one : all_context_exchanges) {
    if (text == name(one) || (text == "ring" && one == ContextExchange::ring)) {
      form.context_exchange = one;
      return;
    }
    known.emplace_back(name(one));
  }
  throw UsageError(
      fmt::format("cp_exchange is one of all_gather, p2p (or ring), a2a, a2a+p2p:N (not \"{}\"{})",
                  text, did_you_mean(text, known)));
}

void check_context_exchange(const TransformerConfig& config, const LanguageForm& form) {
  const int ranks = form.sharding.context;
  const int part = form.context_part;
  const bool parts = form.context_exchange == ContextExchange::hierarchical;
  if (parts && ranks > 1 && (part >= ranks || ranks % part != 0)) {
    throw UsageError(fmt::format(
        "{}: cp_exchange=a2a+p2p:{} has parts of {} ranks, which must be several equal ones of cp "
        "{}; take a divisor of {} from 2 to {}, or cp_exchange=a2a or p2p",
        config.name, part, part, ranks, ranks, ranks / 2));
  }
  const bool ring = parts || form.context_exchange == ContextExchange::ring;
  if (ring && ranks > 1 && form.attention == AttentionKernel::plain) {
    throw UsageError(fmt::format(
        "{}: cp_exchange={} adds up attention part by part, which attention=plain does not; take "
        "attention=flash, or cp_exchange=all_gather",
        config.name, exchange_text(form)));
  }
  if (exchanges_heads(form) && ranks > 1) check_head_exchange(config, form);
}

std::string context_exchange_note(const TransformerConfig& config, const LanguageForm& form) {
  const int ranks = form.sharding.context;
  if (ranks == 1) {
    if (form.context_exchange == ContextExchange::all_gather) return "";
    return fmt::format("cp_exchange={} has no effect without context parallelism (--cp)",
                       exchange_text(form));
  }
  std::string text;
  switch (form.context_exchange) {
    case ContextExchange::all_gather:
      break;
    case ContextExchange::ring:
      text =
          "keys and values go around a ring of the cp ranks beside attention, whose parts are "
          "priced as one kernel";
      break;
    case ContextExchange::all_to_all:
      text = fmt::format(
          "the cp ranks exchange parts of the sequence for heads before attention, and back: cp {} "
          "all-to-alls were never held against a measured run",
          ranks);
      break;
    case ContextExchange::hierarchical:
      text = fmt::format(
          "of the cp ranks {} neighbours each exchange parts of the sequence for heads, and keys "
          "and values go around {} rings of {} beside attention: never held against a measured run",
          form.context_part, form.context_part, ranks / form.context_part);
      break;
  }
  if (exchanges_heads(form) && head_ranks(form) > key_heads_of(config, form)) {
    text += fmt::format(
        "; {} heads for keys and values are copied to {} ranks, which DeepSpeed-Ulysses does and "
        "TransformerEngine refuses",
        key_heads_of(config, form), head_ranks(form));
  }
  return text;
}

}  // namespace stageline
