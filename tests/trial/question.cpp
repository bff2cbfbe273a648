#include "tests/trial/question.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "sim/base/index.hpp"
#include "tests/trial/machines.hpp"

namespace stageline::trial {

std::string Question::trace() const {
  std::string text = model;
  char separator = model.starts_with("model:") ? ',' : ':';
  for (const std::string& option : options) {
    text += separator + option;
    separator = ',';
  }
  return text;
}

Words Question::words() const {
  Words all{trace()};
  for (const Setting& setting : settings) {
    all.push_back(setting.flag);
    if (!setting.value.empty()) all.push_back(setting.value);
  }
  return all;
}

bool Question::has(const std::string& flag) const {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const Setting& one) { return one.flag == flag; });
}

std::string Question::value(const std::string& flag) const {
  for (const Setting& one : settings) {
    if (one.flag == flag) return one.value;
  }
  return "";
}

Question Question::without(const std::string& flag) const {
  Question other = *this;
  std::erase_if(other.settings, [&](const Setting& one) { return one.flag == flag; });
  return other;
}

Question Question::with(const std::string& flag, const std::string& value) const {
  Question other = *this;
  for (Setting& one : other.settings) {
    if (one.flag != flag) continue;
    one.value = value;
    return other;
  }
  other.settings.push_back({flag, value});
  return other;
}

bool Question::has_degrees() const {
  static constexpr std::array degrees{"--tp", "--cp", "--ep", "--etp", "--dp", "--pp"};
  return std::any_of(degrees.begin(), degrees.end(),
                     [this](const char* flag) { return has(flag); });
}

bool Question::searches() const {
  const std::string schedule = value("--schedule");
  const std::string name = schedule.substr(0, schedule.find(':'));
  static const Words names{"cyclic", "dapple", "list", "v_half", "v_min", "zb_auto", "zb_v"};
  if (std::find(names.begin(), names.end(), name) != names.end()) return true;
  return value("--partition").starts_with("simulated") || value("--device-order") == "search";
}

test::Questions draw_of(std::uint64_t seed, int number, const std::string& folder) {
  std::uint64_t mixed = seed * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(number);
  mixed ^= mixed >> 29U;
  mixed *= 0xbf58476d1ce4e5b9U;
  return {static_cast<unsigned>(mixed >> 32U), folder};
}

namespace {

using test::Questions;

template <class... Values>
std::string one_of(Questions& draw, const Values&... values) {
  return draw.one_of(Words{std::string(values)...});
}

// A number of 1, 2, 3, 4 or 8, most often a small one.
int degree(Questions& draw, int most) {
  static constexpr std::array usual{1, 1, 1, 2, 2, 2, 2, 3, 4, 4, 8};
  return std::min(usual.at(as_size(draw.number(static_cast<int>(usual.size())))), most);
}

struct Ranks {
  int tensor = 1;
  int context = 1;
  int data = 1;
  int pipeline = 1;
  int all() const { return tensor * context * data * pipeline; }
};

// A language model of its own sizes, small enough that a question takes milliseconds.
void draw_language_model(Questions& draw, Question& question, bool experts) {
  const std::string kind = one_of(draw, "h100", "h100", "a100", "b200", "v100");
  question.model = "model:transformer@" + kind;
  const int heads = draw.once_in(8) ? 16 : 24;  // that 3 and 8 ranks can share
  const auto add = [&](const char* key, const std::string& value) {
    question.options.push_back(fmt::format("{}={}", key, value));
  };
  add("layers", fmt::format("{}", 1 + (draw.once_in(4) ? 0 : 5) + draw.number(12)));
  add("hidden", fmt::format("{}", (draw.once_in(3) ? 64 : 16) * heads));
  add("heads", fmt::format("{}", heads));
  add("seq", fmt::format("{}", 256 * (1 + draw.number(8))));
  if (draw.once_in(2)) add("vocab", one_of(draw, "32000", "50257", "128256"));
  if (draw.once_in(3)) add("batch", fmt::format("{}", 1 + draw.number(4)));
  if (draw.once_in(3)) add("kv_heads", one_of(draw, "8", "24"));
  if (draw.once_in(3)) add("gated", one_of(draw, "yes", "no"));
  if (draw.once_in(3)) add("tied", one_of(draw, "yes", "no"));
  if (draw.once_in(6)) add("window", "128");
  if (draw.once_in(6)) add("attention", one_of(draw, "flash", "plain"));
  if (draw.once_in(6)) add("optimizer", one_of(draw, "adam", "sgd", "momentum"));
  if (draw.once_in(8)) add("efficiency", "0.5");
  if (draw.once_in(6)) add("dtype", one_of(draw, "bf16", "fp16", "fp8", "fp32"));
  if (!experts) return;
  add("experts", one_of(draw, "4", "8", "16"));
  add("topk", one_of(draw, "1", "2"));
  if (draw.once_in(3)) add("imbalance", "1.3");
  if (draw.once_in(3)) add("shared_ffn", "512");
}

std::string time_text(Questions& draw) { return fmt::format("{}us", 2 * (1 + draw.number(1500))); }
std::string bytes_text(Questions& draw) { return fmt::format("{}kB", 2 * (1 + draw.number(4500))); }

void draw_uniform(Questions& draw, Question& question) {
  question.model = "uniform";
  question.options = {fmt::format("layers={}", 1 + (draw.once_in(4) ? 0 : 11) + draw.number(12))};
  for (const char* const key : {"forward", "input_grad", "weight_grad", "update"}) {
    // One that is left out is not 0.
    question.options.push_back(
        fmt::format("{}={}", key, draw.once_in(8) ? "0us" : time_text(draw)));
  }
  for (const char* const key : {"output", "weights", "stash"}) {
    if (!draw.once_in(3)) question.options.push_back(fmt::format("{}={}", key, bytes_text(draw)));
  }
  if (draw.once_in(3)) question.options.push_back(fmt::format("batch={}", 1 + draw.number(16)));
}

std::string link_text(Questions& draw) {
  const std::string bandwidth =
      one_of(draw, "unlimited", "1GB/s", "12GB/s", "300MB/s", "900GB/s", "100Gbit/s");
  return draw.once_in(3) ? bandwidth : fmt::format("{},{}us", bandwidth, 1 + draw.number(900));
}

// How ranks share the state, the links and one another's work.
void draw_sharing(Questions& draw, Question& question, const Ranks& ranks, bool experts) {
  const auto add = [&](const char* flag, const std::string& value) {
    question.settings.push_back({flag, value});
  };
  if (ranks.tensor > 1 && draw.once_in(2)) add("--sequence-parallel", "");
  if (experts && draw.once_in(2)) {
    add("--ep", fmt::format("{}", degree(draw, ranks.tensor * ranks.data)));
    if (draw.once_in(3)) add("--etp", "1");
  }
  if (ranks.data * ranks.context > 1 && draw.once_in(2)) {
    add("--zero", fmt::format("{}", draw.number(4)));
    if (draw.once_in(3)) add("--zero-every", one_of(draw, "step", "microbatch"));
    if (draw.once_in(4)) add("--shard-group", one_of(draw, "1", "2", "2", "machine"));
  }
  std::vector<std::string> order{"tp", "cp", "dp", "pp"};
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], nth(order, draw.number(static_cast<int>(i))));
  }
  if (draw.once_in(2)) add("--order", fmt::format("{}", fmt::join(order, "-")));
  if (draw.once_in(4)) add("--sharing", one_of(draw, "fair", "fifo"));
  if (draw.once_in(6)) {
    add("--collectives", one_of(draw, "ring", "tree", "tp=hierarchical", "tp=nvls,dp=ring"));
  }
  if (draw.once_in(6)) add("--buckets", one_of(draw, "ddp", "megatron", "none"));
  if (ranks.context > 1 && draw.once_in(2)) {
    add("--cp-comm-type", one_of(draw, "all_gather", "p2p", "a2a"));
  }
}

// Ranks in random nesting on machines of unequal sizes.
void draw_ranks(Questions& draw, Question& question, bool experts) {
  Ranks ranks;
  ranks.tensor = degree(draw, 8);
  ranks.context = draw.once_in(5) ? 2 : 1;
  ranks.data = degree(draw, ranks.tensor * ranks.context > 4 ? 2 : 4);
  ranks.pipeline = 1 + draw.number(4);
  const auto add = [&](const char* flag, int value) {
    if (value > 1 || draw.once_in(8)) question.settings.push_back({flag, fmt::format("{}", value)});
  };
  const std::string kind = question.model.substr(question.model.find('@') + 1);
  question.settings.push_back({"--cluster", machines(draw, ranks.all(), kind)});
  question.settings.push_back({"--devices", fmt::format("{}", ranks.all())});
  add("--tp", ranks.tensor);
  add("--cp", ranks.context);
  add("--dp", ranks.data);
  question.settings.push_back({"--pp", fmt::format("{}", ranks.pipeline)});
  question.settings.push_back(
      {"--schedule", draw.schedule(ranks.pipeline, Synchrony::synchronous)});
  question.settings.push_back(
      {"--microbatches", fmt::format("{}", ranks.pipeline * (1 + draw.number(3)))});
  draw_sharing(draw, question, ranks, experts);
}

void draw_pipeline(Questions& draw, Question& question) {
  const int devices = 1 + draw.number(6);
  const auto add = [&](const char* flag, const std::string& value) {
    question.settings.push_back({flag, value});
  };
  add("--devices", fmt::format("{}", devices));
  add("--schedule",
      draw.schedule(devices,
                    draw.once_in(5) ? std::nullopt : std::optional(Synchrony::synchronous)));
  add("--microbatches", fmt::format("{}", 1 + draw.number(12)));
  if (!draw.once_in(3)) add("--link", link_text(draw));
  if (draw.once_in(3)) add("--memory", fmt::format("{}MB", 1 + draw.number(300)));
  if (draw.once_in(4)) add("--host-link", link_text(draw));
}

// What every row may have.
void draw_rules(Questions& draw, Question& question) {
  const auto add = [&](const char* flag, const std::string& value) {
    question.settings.push_back({flag, value});
  };
  const bool language = question.model.starts_with("model:transformer");
  if (draw.once_in(5)) add("--microbatch-size", fmt::format("{}", 1 + draw.number(4)));
  if (draw.once_in(5)) {
    add("--partition", one_of(draw, "uniform", "balanced", "by_device", "blocks", "parameters"));
  }
  if (draw.once_in(4)) {
    add("--recompute", one_of(draw, "full", "every:1", "every:2", "selective", "block:1", "none",
                              "full@0", "modules:mlp", "layers:0-"));
    if (draw.once_in(4)) add("--recompute-start", one_of(draw, "late", "early"));
  }
  if (draw.once_in(8)) {
    add("--offload", one_of(draw, "all", "@0", "block:1"));
    if (draw.once_in(3)) add("--prefetch", fmt::format("{}", 1 + draw.number(3)));
  }
  if (draw.once_in(8)) add("--messages", one_of(draw, "blocking", "batched", "async"));
  if (draw.once_in(8)) add("--slow", fmt::format("gpu0:{}", 0.5 * (1 + draw.number(4))));
  if (draw.once_in(12)) add("--steps", fmt::format("{}", 1 + draw.number(3)));
  if (!language) return;
  if (draw.once_in(6)) add("--precision", one_of(draw, "fp32", "bf16", "fp16", "fp8"));
  if (draw.once_in(8)) add("--cuda-graphs", one_of(draw, "none", "partial", "full"));
  if (draw.once_in(8)) {
    add("--software", one_of(draw, "megatron-core-2024", "megatron-2021", "torchtitan-2025"));
  }
  if (draw.once_in(12)) add("--memory", fmt::format("{}GB", 4 + draw.number(30)));
  if (draw.once_in(12)) {
    add("--lengths", fmt::format("lognormal({},0.5)", 200 + draw.number(600)));
  }
}

}  // namespace

Question draw_question(Questions& draw, Kind of) {
  Question question;
  if (of == Kind::ranks || (of == Kind::any && !draw.once_in(5))) {
    const bool experts = draw.once_in(4);
    draw_language_model(draw, question, experts);
    draw_ranks(draw, question, experts);
  } else {
    draw_uniform(draw, question);
    draw_pipeline(draw, question);
  }
  draw_rules(draw, question);
  return question;
}

}  // namespace stageline::trial
