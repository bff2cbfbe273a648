// Checks that the degrees and the length of a sequence divide a language model.
#include "cost_models/transformers/language_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost_models/slices.hpp"
#include "cost_models/transformers/compressed_attention.hpp"
#include "cost_models/transformers/context_exchange.hpp"
#include "sim/base/errors.hpp"

namespace stageline {
namespace {

void check_multiple(const TransformerConfig& config, std::string_view what, std::int64_t number,
                    std::string_view of, std::int64_t divisor) {
  if (number % divisor == 0) return;
  throw UsageError(fmt::format("{}: {} must be a multiple of {}, and {} is not one of {}",
                               config.name, what, of, number, divisor));
}

void check_tp_overlap(const TransformerConfig& config, const LanguageForm& form) {
  if (form.tp_overlap >= 0 && form.tp_overlap <= 1) return;
  throw UsageError(
      fmt::format("{}: tp_overlap is a share of the time of gathers and scatters, from 0 to 1, "
                  "not {:g}",
                  config.name, form.tp_overlap));
}

template <class Is>
bool has_blocks(const TransformerConfig& config, Is is) {
  for (std::int64_t i = 0; i < config.layers; ++i) {
    if (is(config.kind(i))) return true;
  }
  return false;
}

void check_linear_form(const TransformerConfig& config, const LanguageForm& form) {
  if (!has_linear_blocks(config)) return;
  check_multiple(config, "heads of linear layers", config.linear->heads, "tp",
                 form.sharding.tensor);
  if (config.linear->kind == LinearKind::kimi_delta && form.slice.count > 1) {
    throw UsageError(fmt::format(
        "{}: the states of Kimi Delta Attention, and their gradients, pass between {} slices of a "
        "sequence, which is not priced; take a schedule without slices",
        config.name, form.slice.count));
  }
  if (form.sharding.context > 1) {
    throw UsageError(fmt::format(
        "{}: among cp {} ranks the states of its linear layers pass from rank to rank, which is "
        "not priced; leave cp at 1",
        config.name, form.sharding.context));
  }
}

void check_sparse_form(const TransformerConfig& config, const LanguageForm& form) {
  const bool sparse = config.latent && config.latent->index_heads > 0;
  if (!sparse || form.attention != AttentionKernel::plain) return;
  throw UsageError(fmt::format(
      "{}: attention=plain computes the scores of all keys, and its tokens attend to {} of them; "
      "take attention=flash",
      config.name, config.latent->index_keys));
}

// Among context-parallel ranks each document has a piece of its own from either end, as
// TransformerEngine divides packed sequences.
void check_documents(const TransformerConfig& config, const LanguageForm& form) {
  for (const std::int64_t tokens : form.documents) {
    const std::int64_t pieces = 2 * std::int64_t{form.sharding.context};
    if (form.sharding.context == 1 || tokens % pieces == 0) continue;
    throw UsageError(fmt::format(
        "{}: a packed document of {} tokens does not divide into 2·cp pieces, two a rank; give "
        "multiples of {}",
        config.name, tokens, pieces));
  }
}

}  // namespace

bool has_linear_blocks(const TransformerConfig& config) {
  return has_blocks(config, [](const BlockKind& kind) { return kind.scans(); });
}

void check_form(const TransformerConfig& config, const LanguageForm& form) {
  const std::int64_t tensor = form.sharding.tensor;
  const std::int64_t context = form.sharding.context;
  const std::int64_t expert = form.sharding.expert;
  if (form.batch < 1 || form.batch > std::numeric_limits<int>::max() || form.seq < 1) {
    throw UsageError(
        fmt::format("{}: batch must be from 1 to {}, and seq at least 1, not {} and {}",
                    config.name, std::numeric_limits<int>::max(), form.batch, form.seq));
  }
  const bool attends = has_blocks(config, [](const BlockKind& kind) { return kind.attends(); });
  if (attends) check_multiple(config, "heads", config.heads, "tp", tensor);
  for (const std::int64_t kv_heads : {config.kv_heads, config.least_kv_heads()}) {
    if (!attends || config.latent || tensor % kv_heads == 0) continue;
    check_multiple(config, "kv_heads", kv_heads, "tp (or tp one of kv_heads)", tensor);
  }
  const bool dense =
      has_blocks(config, [](const BlockKind& kind) { return kind.feed == Feed::dense; });
  const bool routed =
      has_blocks(config, [](const BlockKind& kind) { return kind.feed == Feed::experts; });
  if (dense) check_multiple(config, "ffn", config.ffn, "tp", tensor);
  if (routed) {
    check_multiple(config, "expert_ffn", config.experts->ffn, form.sharding.folded() ? "etp" : "tp",
                   form.sharding.expert_tensor_ranks());
    check_multiple(config, "shared_ffn", config.experts->shared_ffn, "tp", tensor);
    check_multiple(config, "experts", config.experts->count, "ep", expert);
  } else if (expert != 1) {
    throw UsageError(fmt::format("{} has no experts that ep {} could divide; leave ep at 1",
                                 config.name, expert));
  } else if (form.sharding.folded()) {
    throw UsageError(fmt::format("{} has no experts that etp {} could divide; leave etp out",
                                 config.name, form.sharding.expert_tensor));
  }
  if (form.sharding.folded() && tensor > 1 && !form.sharding.sequence) {
    throw UsageError(fmt::format(
        "{}: etp {} with tp {} needs sequence parallelism, by which each rank sends its "
        "own tokens to the experts; give --sequence-parallel",
        config.name, form.sharding.expert_tensor, tensor));
  }
  check_multiple(config, "seq", form.seq, "cp", context);
  if (!config.causal && form.slice.count > 1) {
    throw UsageError(fmt::format(
        "{}: its tokens attend to those behind them, so that {} slices of a sequence cannot be "
        "computed one behind the other; leave --slices at 1",
        config.name, form.slice.count));
  }
  // Each rank has a piece of the sequence from either end (Megatron-LM refuses others, too).
  if (context > 1 && form.context_balanced && form.attention != AttentionKernel::plain) {
    check_multiple(config, "seq", form.seq, "2·cp, two pieces a rank", 2 * context);
  }
  if (form.sharding.sequence) {
    check_multiple(config, "seq", form.seq, "cp·tp with sp", context * tensor);
  }
  check_documents(config, form);
  if (form.slice.count > 1) check_slices(config.name, form.seq, form.sharding, form.slice);
  const std::int64_t longest =
      form.documents.empty() ? form.seq
                             : *std::max_element(form.documents.begin(), form.documents.end());
  if (config.positions == Positions::learned && longest > config.places) {
    throw UsageError(
        fmt::format("{}: its table of positions has {} rows, and seq is {}; give a shorter seq",
                    config.name, config.places, longest));
  }
  if (!(form.imbalance >= 1) || !std::isfinite(form.imbalance)) {
    throw UsageError(
        fmt::format("{}: imbalance is the most loaded rank's tokens over the mean, at "
                    "least 1, not {:g}",
                    config.name, form.imbalance));
  }
  check_tp_overlap(config, form);
  check_linear_form(config, form);
  check_sparse_form(config, form);
  check_compressed_form(config, form);
  check_context_exchange(config, form);
}

}  // namespace stageline
