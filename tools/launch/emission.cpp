#include "tools/launch/emission.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "cost_models/recomputation.hpp"
#include "cost_models/spec.hpp"
#include "cost_models/transformers/software.hpp"
#include "schedulers/partition/transformer_blocks.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/text.hpp"
#include "tools/launch/flag_table.hpp"

namespace stageline {
namespace {

using Facts = std::vector<std::pair<std::string_view, std::string>>;

class FactWriter {
 public:
  FactWriter(Framework framework, const EmissionAsked& asked)
      : framework_(framework),
        asked_(asked),
        setting_(asked.setting),
        degrees_(asked.setting.degrees) {}

  Facts write() {
    check();
    add_degrees();
    add_batch();
    add_schedule();
    add_recomputation();
    add_offloading();
    add_state();
    add_precision();
    return std::move(facts_);
  }

 private:
  bool titan() const { return framework_ == Framework::torchtitan; }
  bool deepspeed() const { return framework_ == Framework::deepspeed; }
  bool megatron() const { return framework_ == Framework::megatron; }
  bool pipelined() const { return degrees_.pipeline > 1; }

  void add(std::string_view fact, std::string value) {
    facts_.emplace_back(fact, std::move(value));
  }
  void add_count(std::string_view fact, std::int64_t count) { add(fact, fmt::format("{}", count)); }
  void add_above_one(std::string_view fact, int count) {
    if (count > 1) add_count(fact, count);
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& instead = "") const {
    throw UsageError(fmt::format("{} cannot express {}{}", name(framework_), what,
                                 instead.empty() ? "" : "; " + instead));
  }

  void check() const {
    schedule_name(framework_, asked_.spec);
    if (setting_.offloading.all || !setting_.offloading.stages.empty()) {
      refuse("stashes that are offloaded by stage", "search with --offload none");
    }
    if (degrees_.encoder.pipeline > 0) refuse("an encoder on ranks of its own");
    if (degrees_.order != Degrees{}.order) refuse("an order of ranks other than tp-cp-ep-dp-pp");
    if (deepspeed()) check_deepspeed();
    if (titan() && degrees_.tensor > 1 && !setting_.sequence_parallel) {
      refuse("tensor parallelism without sequence parallelism", "search with --sequence-parallel");
    }
  }

  void check_deepspeed() const {
    if (degrees_.context > 1) refuse("context parallelism", "search with --cp 1");
    if (degrees_.expert > 1)
      refuse("expert parallelism in its configuration", "search with --ep 1");
    if (setting_.sequence_parallel) refuse("sequence parallelism of tensor-parallel ranks");
    if (pipelined() && degrees_.zero > Zero::optimizer) {
      refuse("ZeRO 2 and 3 beside a pipeline", "search with --zero 0,1");
    }
  }

  void add_degrees() {
    add_above_one("tp", degrees_.tensor);
    add_above_one("pp", degrees_.pipeline);
    add_above_one("cp", degrees_.context);
    add_above_one("ep", degrees_.expert);
    if (degrees_.expert > 1 && (degrees_.folded() || (titan() && degrees_.tensor > 1))) {
      add_count("etp", degrees_.expert_tensor_ranks());
    }
    if (degrees_.context > 1) add_context_exchange();
    if (megatron() && setting_.sequence_parallel && degrees_.tensor > 1) {
      add("sequence_parallel", "yes");
    }
  }

  // As the candidate, the model's name or its software says.
  std::string context_exchange() const {
    if (!setting_.cp_comm_type.empty()) return setting_.cp_comm_type;
    std::string of_software = setting_.software;
    std::string said;
    if (setting_.trace.find('=') != std::string::npos) {  // else it has no options
      for (const auto& [key, value] : parse_spec(setting_.trace).options) {
        if (key == "cp_exchange") said = value;
        if (key == "software") of_software = value;
      }
    }
    if (!said.empty()) return said == "ring" ? "p2p" : said;
    if (of_software.empty()) return "all_gather";
    const std::string options = fmt::format(",{}", find_software(of_software).options);
    for (const auto& [key, value] : parse_spec(options).options) {
      if (key == "cp_exchange") return value;
    }
    return "all_gather";
  }

  // Megatron-Core's default is a ring, torchtitan's all keys and values at once: its alltoall turns
  // a ring, too.
  void add_context_exchange() {
    constexpr std::string_view of_parts = "a2a+p2p:";
    const std::string how = context_exchange();
    if (titan()) {
      if (how.starts_with("a2a")) {
        refuse("context-parallel ranks that exchange heads",
               "search with --cp-comm-type all_gather,p2p");
      }
      if (how == "p2p") add("cp_exchange", "alltoall");
    }
    if (!megatron()) return;
    if (!how.starts_with(of_parts)) {
      add("cp_exchange", how);
      return;
    }
    add("cp_exchange", "a2a+p2p");
    const int part = parse_number<int>(how.substr(of_parts.size())).value_or(1);
    add("cp_parts", fmt::format("{} {}", part, degrees_.context / part));
  }

  void add_batch() {
    const std::int64_t each = asked_.samples / degrees_.data;
    if (titan()) {
      if (pipelined()) add_count("micro_batch", setting_.microbatch_size);
      add_count("local_batch", pipelined() ? each : setting_.microbatch_size);
    } else {
      add_count("micro_batch", setting_.microbatch_size);
    }
    add_count("global_batch", asked_.samples);
    if (deepspeed()) add_count("accumulation", setting_.microbatches);
  }

  void add_schedule() {
    if (!pipelined()) {
      if (asked_.stages.size() > 1) refuse("several stages without a pipeline");
      return;
    }
    if (titan()) add("schedule", std::string(schedule_name(framework_, asked_.spec)));
    if (deepspeed()) {
      check_even_stages();
      return;
    }
    add(titan() ? "module_names" : "layout", titan() ? module_names() : layout());
    if (!megatron()) return;
    const auto group = asked_.spec.knobs.find("group");
    if (group != asked_.spec.knobs.end() && group->second != "auto") add_group(group->second);
    const auto overlap = asked_.spec.knobs.find("overlap");
    if (overlap != asked_.spec.knobs.end() && overlap->second == "experts") {
      add("expert_overlap", "yes");
    }
  }

  // Megatron-Core, pipeline_parallel/schedules.py, forward_backward_pipelining_with_interleaving: a
  // ValueError where groups are smaller than the pipeline. Read 2026-11-30.
  void add_group(const std::string& text) {
    if (parse_number<int>(text).value_or(0) < degrees_.pipeline) {
      refuse(fmt::format("groups of {}, fewer micro-batches than its pipeline has ranks, {}", text,
                         degrees_.pipeline),
             fmt::format("search with group={} or more", degrees_.pipeline));
    }
    add("group", text);
  }

  std::string layout() const { return fmt::format("{}", fmt::join(asked_.stages, "|")); }

  // torchtitan's generate_llm_fqn_per_model_part() names the parts of a model so.
  std::string module_names() const {
    nlohmann::json parts = nlohmann::json::array();
    int block = 0;
    for (const std::string& stage : asked_.stages) {
      nlohmann::json names = nlohmann::json::array();
      for (const char letter : stage) {
        if (letter == 'E') names.push_back("tok_embeddings");
        if (letter == 't') names.push_back(fmt::format("layers.{}", block++));
        if (letter == 'm') refuse("multi-token prediction");
        if (letter != 'L') continue;
        names.push_back("norm");
        names.push_back("output");
      }
      if (names.empty()) refuse("a stage without layers");
      parts.push_back(std::move(names));
    }
    return parts.dump();
  }

  void check_even_stages() const {
    std::size_t least = asked_.stages.front().size();
    std::size_t most = 0;
    for (const std::string& stage : asked_.stages) {
      const auto blocks = static_cast<std::size_t>(std::count(stage.begin(), stage.end(), 't'));
      least = std::min(least, blocks);
      most = std::max(most, blocks);
    }
    if (most > least + 1) {
      refuse("stages of any blocks, but divides them by a method of its own",
             "search with --partition blocks");
    }
  }

  void add_recomputation() {
    const std::string asked = print(setting_.recomputation);
    const std::string how = asked.substr(0, asked.find(':'));
    const std::string rest = how == asked ? "" : asked.substr(how.size() + 1);
    const bool counted = parse_number<int>(rest).has_value();
    if (titan() && asked == "none") add("recompute", "none");  // its default is another
    if (asked == "none") return;
    if (titan()) {
      add_torchtitan_recomputation(asked);
    } else if (asked == "full") {
      add_full_recomputation();
    } else if (deepspeed() && how == "every" && counted) {
      add("recompute_layers", rest);
    } else if (megatron() && (how == "every" || how == "block") && counted) {
      add("recompute", "full");
      add("recompute_method", how == "every" ? "uniform" : "block");
      add("recompute_layers", rest);
    } else if (megatron() && asked == "selective") {
      add("recompute", "selective");
    } else if (megatron() && how == "modules" && rest.find_first_of("@,;") == std::string::npos) {
      std::string modules = rest;
      std::replace(modules.begin(), modules.end(), '+', ' ');
      add("recompute", "selective");
      add("recompute_modules", modules);
    } else {
      refuse(fmt::format("--recompute {}", asked), "search with --recompute none or every:1");
    }
  }

  // One checkpoint a stage: of as many layers as the largest has.
  void add_full_recomputation() {
    std::size_t most = 1;
    for (const std::string& stage : asked_.stages) {
      const auto blocks = std::count(stage.begin(), stage.end(), 't');
      most = std::max(most, deepspeed() ? stage.size() : static_cast<std::size_t>(blocks));
    }
    if (!deepspeed()) {
      add("recompute", "full");
      add("recompute_method", "uniform");
    }
    add("recompute_layers", fmt::format("{}", most));
  }

  void add_offloading() {
    const int blocks = setting_.offloading.blocks;
    if (blocks == 0) return;
    if (!megatron()) refuse("stashes that are offloaded", "search with --offload none");
    if (pipelined()) {
      refuse("offloading beside a pipeline", "search with --offload none or --pp 1");
    }
    if (print(setting_.recomputation) != "none") {
      refuse("offloading beside recomputation", "search with --recompute none or --offload none");
    }
    add_count("offload_layers", blocks);
  }

  // How many groups of ranks divide state among themselves; 1: all ranks are one.
  int shard_groups() const {
    if (degrees_.shard_group == ShardGroup{}) return 1;
    if (degrees_.shard_group.span != ShardSpan::ranks) {
      refuse("--shard-group machine or domain", "give its number of ranks");
    }
    const int ranks = degrees_.data * degrees_.context;
    if (ranks % degrees_.shard_group.ranks != 0) {
      refuse(fmt::format("groups of {} among {} ranks", degrees_.shard_group.ranks, ranks));
    }
    return ranks / degrees_.shard_group.ranks;
  }

  void add_torchtitan_recomputation(const std::string& asked) {
    if (asked != "every:1" && asked != "ops") {
      refuse(fmt::format("--recompute {}", asked), "search with --recompute none, every:1 or ops");
    }
    add("recompute", asked == "ops" ? "selective" : "full");
    if (asked == "ops") add("recompute_method", "op");
  }

  void add_state() {
    const bool replicated = degrees_.data * degrees_.context > 1;
    if (!replicated) return;
    if (titan()) {
      add_torchtitan_state();
      return;
    }
    const int groups = degrees_.zero == Zero::none ? 1 : shard_groups();
    if (groups > 1 && (!megatron() || degrees_.zero != Zero::optimizer)) {
      refuse(fmt::format("{} groups that divide state", groups), "search with --shard-group all");
    }
    add_above_one("optimizer_instances", groups);
    if (deepspeed()) {
      add_count("zero", static_cast<int>(degrees_.zero));
    } else if (degrees_.zero == Zero::optimizer) {
      add("distributed_optimizer", "yes");
    } else if (degrees_.zero != Zero::none) {
      if (pipelined() && exchanges_every(degrees_) == ZeroEvery::step) {
        refuse("--zero-every step with ZeRO 2 or 3", "search with --zero 0,1");
      }
      add("fsdp", "yes");
      add("fsdp_strategy", degrees_.zero == Zero::gradients ? "optim_grads" : "optim_grads_params");
    }
    if (setting_.buckets != "none") add("overlap_reduce", "yes");
  }

  void add_torchtitan_state() {
    if (degrees_.zero != Zero::none && degrees_.zero != Zero::weights) {
      refuse(fmt::format("ZeRO {}", static_cast<int>(degrees_.zero)), "search with --zero 0,3");
    }
    if (setting_.buckets == "none") refuse("--buckets none");
    const int groups = degrees_.zero == Zero::none ? 1 : shard_groups();
    if (degrees_.data % groups != 0) {
      refuse(fmt::format("{} groups among {} data-parallel ranks", groups, degrees_.data));
    }
    const bool whole = degrees_.zero == Zero::none;
    if (whole && degrees_.context > 1) {
      refuse("context parallelism whose ranks hold whole weights", "search with --zero 3");
    }
    add_count("dp_replicate", whole ? degrees_.data : groups);
    add_count("dp_shard", whole ? 1 : degrees_.data / groups);
    if (!whole && pipelined() && exchanges_every(degrees_) == ZeroEvery::microbatch) {
      add("reshard", "always");
    }
  }

  void add_precision() {
    const std::string precision(degrees_.precision.name);
    if (titan()) {
      if (!precision.empty() && precision != "bf16") refuse("--precision " + precision);
    } else if (precision == "fp16" && megatron()) {
      add("fp16", "yes");
    } else if (deepspeed() && !precision.empty() && precision != "mixed") {
      refuse("--precision " + precision, "search with --precision mixed");
    } else if (precision.empty() || precision == "bf16" || precision == "mixed") {
      add("bf16", "yes");
      if (precision == "mixed" && megatron()) add("reduce_in_bf16", "yes");
    } else if (precision == "bf16-moments" || precision == "precision-aware") {
      add("bf16", "yes");
      add("aware_optimizer", "yes");
      add("moment_dtype", "bf16");
      add("second_moment_dtype", "bf16");
      if (precision == "precision-aware") add("gradient_dtype", "bf16");
    } else if (precision != "fp32") {
      refuse("--precision " + precision + ", whose flags are not written");
    }
  }

  Framework framework_;
  const EmissionAsked& asked_;
  const SettingRequest& setting_;
  const Degrees& degrees_;
  Facts facts_;
};

bool is_yes_or_no(std::string_view fact) {
  const std::span<const LaunchFlag> flags = launch_flags();
  return std::any_of(flags.begin(), flags.end(), [&](const LaunchFlag& flag) {
    return flag.fact == fact && flag.form != LaunchForm::value;
  });
}

// Whose value is several words.
bool is_of_several(std::string_view fact) {
  return fact == "recompute_modules" || fact == "cp_parts";
}

std::string command_flags(const Facts& facts) {
  std::string text;
  for (const auto& [fact, value] : facts) {
    if (!text.empty()) text += " \\\n";
    text += fmt::format("  --{}", written_name(Framework::megatron, fact));
    if (is_yes_or_no(fact)) continue;
    text += " " + (is_of_several(fact) ? value : shell_word(value));
  }
  return text + "\n";
}

// A number, a list, or a text in quotes.
std::string toml_value(const std::string& value) {
  const bool bare = parse_number<std::int64_t>(value).has_value() || value.starts_with('[');
  return bare ? value : fmt::format("\"{}\"", value);
}

std::string toml_lines(const Facts& facts) {
  std::vector<std::pair<std::string, std::string>> sections;
  for (const auto& [fact, value] : facts) {
    const std::string path(written_name(Framework::torchtitan, fact));
    const std::size_t dot = path.find('.');
    const std::string section = path.substr(0, dot);
    const auto at = std::find_if(sections.begin(), sections.end(),
                                 [&](const auto& one) { return one.first == section; });
    std::string& lines =
        at == sections.end() ? sections.emplace_back(section, "").second : at->second;
    lines += fmt::format("{} = {}\n", path.substr(dot + 1), toml_value(value));
  }
  std::string text;
  for (const auto& [section, lines] : sections) {
    text += fmt::format("{}[{}]\n{}", text.empty() ? "" : "\n", section, lines);
  }
  return text;
}

std::string json_text(const Facts& facts) {
  nlohmann::ordered_json all;
  for (const auto& [fact, value] : facts) {
    std::string path(written_name(Framework::deepspeed, fact));
    std::replace(path.begin(), path.end(), '.', '/');
    nlohmann::ordered_json& at = all[nlohmann::ordered_json::json_pointer("/" + path)];
    if (is_yes_or_no(fact)) {
      at = value == "yes";
    } else if (const auto number = parse_number<std::int64_t>(value)) {
      at = *number;
    } else {
      at = value;
    }
  }
  return all.dump(2) + "\n";
}

std::vector<Recomputation> recomputations(std::initializer_list<const char*> texts) {
  std::vector<Recomputation> all;
  for (const char* const text : texts) all.push_back(parse_recomputation(text, "--recompute"));
  return all;
}

}  // namespace

std::string emitted(Framework framework, const EmissionAsked& asked) {
  const Facts facts = FactWriter(framework, asked).write();
  if (framework == Framework::torchtitan) return toml_lines(facts);
  return framework == Framework::deepspeed ? json_text(facts) : command_flags(facts);
}

void restrict_to(Framework framework, const Model& model, planner::PlanSpace& space) {
  if (space.asynchronous) {
    throw UsageError(
        fmt::format("{} has no schedule that updates without a flush; leave out "
                    "--asynchronous",
                    name(framework)));
  }
  if (!space.schedules.empty()) {
    check_runs_in(framework, space.schedules);
  } else {
    space.schedules = schedules_of(framework);
  }
  space.plain_alone = true;
  const bool titan = framework == Framework::torchtitan;
  if (space.zero.empty()) {
    space.zero = {Zero::none, titan ? Zero::weights : Zero::optimizer};
  }
  const bool bytes = model.bytes_known;
  if (space.recomputation.empty() && bytes) {
    if (titan) space.recomputation = recomputations({"none", "every:1"});
    if (framework == Framework::deepspeed)
      space.recomputation = recomputations({"none", "every:1"});
    if (is_megatron(framework)) {
      space.recomputation = recomputations({"none", "selective", "every:1"});
    }
  }
  if (space.partitions.empty() && model.edges.empty() && blocks_of(model).size() > 1) {
    space.partitions = {"blocks"};
  }
  if (framework == Framework::deepspeed && !space.sequence_parallel) {
    space.sequence_parallel = false;
  }
}

}  // namespace stageline
