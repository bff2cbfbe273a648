#include "tools/launch/run_setting.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "schedulers/aliases.hpp"
#include "sim/base/errors.hpp"
#include "tools/base/text.hpp"
#include "tools/inputs/settings.hpp"
#include "tools/launch/run_model.hpp"

namespace stageline {
namespace {

constexpr std::int64_t most_devices = 1 << 20;

class SettingWriter {
 public:
  SettingWriter(const RunFacts& facts, const RunAround& around) : facts_(facts), around_(around) {}

  RunSetting write() {
    measure();
    const RunModel model = model_of(facts_, {around_.model, around_.device, tensor_, context_});
    layers_ = model.layers;
    set("trace", model.trace);
    setting_.notes = model.notes;
    set_cluster();
    set_degrees();
    set_state();
    set_schedule();
    set_recomputation();
    set_offloading();
    set_batch();
    note_what_is_left_out();
    return std::move(setting_);
  }

 private:
  bool titan() const { return facts_.framework() == Framework::torchtitan; }
  void set(const char* key, std::string value) {
    setting_.values.emplace_back(key, std::move(value));
  }
  template <class Number>
  void set_count(const char* key, Number number, Number usual) {
    if (number != usual) set(key, fmt::format("{}", number));
  }
  void note(std::string sentence) { setting_.notes.push_back(std::move(sentence)); }

  void measure() {
    tensor_ = facts_.count("tp", 1);
    pipeline_ = facts_.count("pp", 1);
    context_ = facts_.count("cp", 1);
    expert_ = facts_.count("ep", 1);
    for (const char* const fact : {"tp", "pp", "cp", "ep"}) {
      if (facts_.count(fact, 1) > most_devices) {
        facts_.refuse(fact, fmt::format("is at most {}", most_devices));
      }
    }
    width_ = tensor_ * context_ * pipeline_;
    devices_ = devices();
    if (devices_ % width_ != 0) {
      throw TraceError(facts_.file(), "",
                       fmt::format("the run has {} devices, which tp {} × cp {} × pp {} = {} does "
                                   "not divide; --devices says another number",
                                   devices_, tensor_, context_, pipeline_, width_));
    }
    data_ = devices_ / width_;
    measure_batch();
  }

  // The number is that of the flag, the launcher, degrees that are all said, or a batch that says
  // the replicas.
  std::int64_t devices() const {
    if (around_.devices > 0) return around_.devices;
    const std::int64_t each = facts_.count("devices_each", 0);
    if (each > 0) return each * facts_.count("machines", 1);
    if (facts_.has("dp_shard") && facts_.text("dp_shard") != "-1") {
      return width_ * facts_.count("dp_shard", 1) * facts_.count("dp_replicate", 1);
    }
    const std::int64_t samples = facts_.count("micro_batch", 0) * facts_.count("accumulation", 0);
    if (samples > 0 && global_batch() % samples == 0 && global_batch() > 0) {
      return width_ * (global_batch() / samples);
    }
    throw TraceError(facts_.file(), "",
                     "nothing says how many devices run it, as torchrun's --nproc_per_node and "
                     "--nnodes do; give --devices N");
  }

  // torchtitan's default, -1, is the local batch of all replicas.
  std::int64_t global_batch() const {
    return facts_.text("global_batch") == "-1" ? 0 : facts_.count("global_batch", 0);
  }

  void measure_batch() {
    micro_ = facts_.count("micro_batch", titan() && pipeline_ == 1 ? 0 : 1);
    const std::int64_t local = facts_.count("local_batch", 0);
    if (titan() && pipeline_ == 1) micro_ = std::max<std::int64_t>(local, 1);
    if (!facts_.has("micro_batch") && !titan() && facts_.has("global_batch") &&
        facts_.has("accumulation")) {
      const std::int64_t per = data_ * facts_.count("accumulation", 1);
      micro_ = std::max<std::int64_t>(global_batch() / per, 1);
    }
    std::int64_t global = global_batch();
    if (global == 0) {
      global = local > 0 ? local * data_ : micro_ * data_ * facts_.count("accumulation", 1);
    }
    const std::int64_t each = micro_ * data_;
    if (global % each != 0) {
      throw TraceError(facts_.file(), "",
                       fmt::format("a global batch of {} does not divide by a micro-batch of {} on "
                                   "{} replicas",
                                   global, micro_, data_));
    }
    microbatches_ = global / each;
    if (const std::int64_t said = facts_.count("accumulation", microbatches_);
        said != microbatches_) {
      facts_.refuse("accumulation",
                    fmt::format("is {}, and a batch of {} of {} each on {} replicas makes {}", said,
                                global, micro_, data_, microbatches_));
    }
  }

  void set_cluster() {
    const bool rack = around_.device.starts_with("gb");
    const std::int64_t each = rack ? 72 : 8;
    if (!around_.cluster.empty()) {
      set("cluster", around_.cluster);
    } else if (devices_ > each) {
      set("cluster", fmt::format("{}x{}*{}", around_.device, each, (devices_ + each - 1) / each));
    }
    if (around_.device_said && around_.cluster.empty()) {
      note(fmt::format(
          "the run says {} and not what joins them: machines of {} are taken; --cluster "
          "says another",
          around_.device, each));
      return;
    }
    note(fmt::format(
        "what it runs on is not said: {} of {} are taken; {} and --cluster say another", devices_,
        around_.cluster.empty() ? around_.device : around_.cluster, around_.device_flag));
  }

  void set_degrees() {
    set("pp", fmt::format("{}", pipeline_));
    set_count<std::int64_t>("tp", tensor_, 1);
    set_count<std::int64_t>("cp", context_, 1);
    set_count<std::int64_t>("ep", expert_, 1);
    const std::int64_t tensor_of_experts = facts_.count("etp", titan() ? 1 : tensor_);
    if (expert_ > 1 && tensor_of_experts != tensor_) {
      set("etp", fmt::format("{}", tensor_of_experts));
    }
    set_count<std::int64_t>("dp", data_, 1);
    if (tensor_ > 1 && (titan() || facts_.yes("sequence_parallel"))) {
      set("sequence_parallel", "true");
    }
  }

  // torchtitan's default, -1, is all that no other degree takes.
  bool is_sharded() const {
    return facts_.text("dp_shard") == "-1" || facts_.count("dp_shard", 2) > 1;
  }

  std::int64_t zero() const {
    if (titan()) return data_ * context_ > 1 && is_sharded() ? 3 : 0;
    if (facts_.framework() == Framework::deepspeed) return facts_.count("zero", 0);
    if (facts_.yes("fsdp")) {
      const std::string strategy = facts_.word("fsdp_strategy");
      if (strategy == "no_shard") return 0;
      if (strategy == "optim") return 1;
      return strategy == "optim_grads" ? 2 : 3;
    }
    const bool divided = facts_.yes("distributed_optimizer") ||
                         facts_.word("optimizer_name") == "distributed_fused_adam";
    return divided ? 1 : 0;
  }

  void set_state() {
    const std::int64_t divided = zero();
    if (divided > 3) facts_.refuse("zero", fmt::format("is 0 to 3 (it is {})", divided));
    set_count<std::int64_t>("zero", divided, 0);
    if (titan() && facts_.word("reshard") == "always" && divided == 3 && pipeline_ > 1) {
      set("zero_every", "microbatch");
    } else if (facts_.word("reshard") == "never") {
      facts_.leave_out("reshard");
    }
    std::int64_t group = 0;
    if (titan() && facts_.count("dp_replicate", 1) > 1) {
      group = data_ * context_ / facts_.count("dp_replicate", 1);
    }
    if (const std::int64_t copies = facts_.count("optimizer_instances", 1); copies > 1) {
      group = data_ * context_ / copies;
    }
    if (group > 0 && divided > 0) set("shard_group", fmt::format("{}", group));
    set("precision", state_precision(facts_));
    const bool overlaps = titan() || facts_.yes("overlap_reduce") || facts_.yes("fsdp");
    if (!overlaps && data_ * context_ > 1) set("buckets", "none");
  }

  void set_schedule() {
    std::string schedule = "1f1b";
    if (pipeline_ > 1) schedule = facts_.has("schedule") ? named_schedule() : interleaved();
    if (titan() && pipeline_ > 1 && !facts_.has("schedule")) schedule = "1f1b";
    if (facts_.yes("expert_overlap")) {
      schedule += schedule.find(':') == std::string::npos ? ":overlap=experts" : ",overlap=experts";
    }
    set("schedule", schedule);
    if (pipeline_ > 1) set_partition();
  }

  std::string named_schedule() {
    const std::string asked = facts_.text("schedule");
    std::string spec = read_schedule_name(asked);
    if (spec.empty()) {
      facts_.refuse("schedule", fmt::format("is no schedule that is known: \"{}\"{}", asked,
                                            did_you_mean_schedule(asked)));
    }
    const ScheduleSpec read = parse_schedules(spec).front();
    if (facts_.has("module_names") && read.knobs.count("chunks") > 0) {
      return with_chunks(spec, layout_stages(layout_of_modules()) / pipeline_);
    }
    const std::int64_t each = facts_.count("layers_per_chunk", 0);
    if (each == 0 || read.knobs.count("chunks") == 0 || layers_ == 0) return spec;
    // torchtitan counts the embedding and the head as a layer each.
    const std::int64_t stages = (layers_ + 2 + each - 1) / each;
    if (stages % pipeline_ != 0) {
      facts_.refuse("layers_per_chunk", fmt::format("makes {} stages of {} layers, no multiple of "
                                                    "pp {}",
                                                    stages, layers_, pipeline_));
    }
    return with_chunks(spec, stages / pipeline_);
  }

  static std::string with_chunks(const std::string& spec, std::int64_t chunks) {
    return fmt::format("{}{}chunks={}", spec, spec.find(':') == std::string::npos ? ":" : ",",
                       chunks);
  }

  // "tok_embeddings layers.0|layers.1 norm output" as "Et|tL"; Megatron's list of lists, "embedding
  // decoder|decoder mtp loss", likewise.
  std::string layout_of_words(const std::string& fact) const {
    std::string layout;
    std::string word;
    const std::string names = facts_.text(fact) + " ";
    for (const char c : names) {
      if (c != ' ' && c != '|') {
        word += c;
        continue;
      }
      if (word == "tok_embeddings" || word == "embedding") layout += 'E';
      if (word.starts_with("layers.") || word == "decoder") layout += 't';
      if (word == "mtp") layout += 'm';
      if (word == "output" || word == "loss") layout += 'L';
      word.clear();
      if (c == '|') layout += '|';
    }
    return layout;
  }
  std::string layout_of_modules() const { return layout_of_words("module_names"); }

  // A text as Megatron's flag has it, or a list of lists of YAML.
  std::string megatron_layout() const {
    const std::string text = facts_.text("layout");
    const bool words = text.find("decoder") != std::string::npos && !text.starts_with('[');
    return words ? layout_of_words("layout") : text;
  }

  std::string interleaved() {
    std::int64_t chunks = facts_.count("chunks", 1);
    if (const std::int64_t each = facts_.count("layers_per_chunk", 0); each > 0) {
      if (layers_ == 0 || layers_ % (each * pipeline_) != 0) {
        facts_.refuse("layers_per_chunk",
                      fmt::format("is {}, and {} blocks do not divide into chunks of that on pp {}",
                                  each, layers_, pipeline_));
      }
      chunks = layers_ / (each * pipeline_);
    }
    if (const std::string layout = megatron_layout(); !layout.empty()) {
      chunks = layout_stages(layout) / pipeline_;
    }
    if (chunks <= 1) return "1f1b";
    const std::int64_t group = facts_.count("group", pipeline_);
    if (group < pipeline_) {
      facts_.refuse("group", fmt::format("is {}, and Megatron-Core runs no groups of fewer "
                                         "micro-batches than the {} ranks of its pipeline",
                                         group, pipeline_));
    }
    return fmt::format("interleaved_1f1b:chunks={}{}", chunks,
                       group == pipeline_ ? "" : fmt::format(",group={}", group));
  }

  void set_partition() {
    if (facts_.has("layout")) {
      set("partition", megatron_layout());
      return;
    }
    if (facts_.has("module_names")) {
      set("partition", layout_of_modules());
      return;
    }
    std::vector<std::string> options;
    if (titan()) {
      options = {"embedding=1", "head=1"};
      note("torchtitan's own cut: the embedding and the head count as a layer each");
    }
    if (facts_.yes("embedding_counts")) options.emplace_back("embedding=1");
    if (facts_.yes("head_counts")) options.emplace_back("head=1");
    for (const auto& [fact, option] :
         {std::pair("first_blocks", "first"), std::pair("last_blocks", "last")}) {
      const std::int64_t number = facts_.count(fact, 0);
      if (number > 0) options.push_back(fmt::format("{}={}", option, number));
    }
    if (facts_.framework() == Framework::deepspeed) {
      note("DeepSpeed's partition method is no flag: stages of equally many blocks");
    }
    set("partition",
        options.empty() ? "blocks" : fmt::format("blocks:{}", fmt::join(options, ",")));
  }

  void set_recomputation() {
    const std::string how = titan() && !facts_.has("recompute") ? "" : facts_.word("recompute");
    const std::int64_t number = facts_.count("recompute_layers", 1);
    if (facts_.framework() == Framework::deepspeed) {
      if (facts_.has("recompute_layers")) set("recompute", fmt::format("every:{}", number));
    } else if (how == "full") {
      const bool block = facts_.word("recompute_method") == "block";
      set("recompute", fmt::format("{}:{}", block ? "block" : "every", number));
    } else if (how == "selective" && titan()) {
      if (facts_.word("recompute_method") == "op" || !facts_.has("recompute_method")) {
        set("recompute", "ops");
      } else {
        facts_.leave_out("recompute_method");
      }
    } else if (how == "selective" && facts_.has("recompute_modules")) {
      std::string modules = facts_.text("recompute_modules");
      std::replace(modules.begin(), modules.end(), ' ', '+');
      set("recompute", "modules:" + modules);
    } else if (how == "selective" || facts_.yes("recompute_core")) {
      set("recompute", "selective");
    } else if (!how.empty() && how != "none") {
      facts_.refuse("recompute", fmt::format("is full, selective or none (it is \"{}\")", how));
    }
    if (titan() && !facts_.has("recompute")) {
      note("activation_checkpoint.mode is not set: nothing is recomputed, whatever its default is");
    }
  }

  // The model's first blocks are offloaded; Megatron-LM refuses it beside a pipeline.
  void set_offloading() {
    const std::int64_t blocks = facts_.count("offload_layers", 0);
    if (blocks == 0 || (facts_.has("offload") && !facts_.yes("offload"))) return;
    if (pipeline_ > 1) {
      facts_.refuse("offload_layers",
                    "is not known beside a pipeline, of which each stage has first "
                    "blocks of its own (Megatron-LM refuses it, too)");
    }
    set("offload", fmt::format("block:{}", blocks));
  }

  void set_batch() {
    set("microbatch_size", fmt::format("{}", micro_));
    set("microbatches", fmt::format("{}", microbatches_));
  }

  static std::string listed(const std::vector<std::string>& names) {
    return fmt::format("{}", fmt::join(names, ", "));
  }

  void note_what_is_left_out() {
    if (!facts_.left_out().empty()) {
      note("left out, though they change times or memory: " + listed(facts_.left_out()));
    }
    if (!facts_.unknown().empty()) {
      note("left out, since nothing is known of them here: " + listed(facts_.unknown()));
    }
    if (facts_.without_effect() > 0) {
      note(fmt::format("passed by, being without effect on times and memory: {} {}",
                       facts_.without_effect(),
                       facts_.without_effect() == 1 ? "argument" : "arguments"));
    }
  }

  const RunFacts& facts_;
  const RunAround& around_;
  RunSetting setting_;
  std::int64_t tensor_ = 1, pipeline_ = 1, context_ = 1, expert_ = 1, data_ = 1;
  std::int64_t width_ = 1, devices_ = 1, micro_ = 1, microbatches_ = 1;
  std::int64_t layers_ = 0;  // 0: a model by its name
};

nlohmann::ordered_json json_of(const SettingRow& row, const std::string& value) {
  switch (row.form) {
    case SettingForm::count:
    case SettingForm::counts:
      return std::stoll(value);
    case SettingForm::yes:
      return true;
    case SettingForm::text:
    case SettingForm::word:
    case SettingForm::file:
    case SettingForm::texts:
    case SettingForm::number:
    case SettingForm::amount:
      return value;
  }
  return value;  // unreachable; g++ wants it
}

}  // namespace

RunSetting setting_of(const RunFacts& facts, const RunAround& around) {
  return SettingWriter(facts, around).write();
}

std::string command_of(const RunSetting& setting) {
  std::string text = "stageline simulate";
  for (const auto& [key, value] : setting.values) {
    const SettingRow& row = *find_setting(key);
    if (row.flag() != "TRACE") text += " " + row.flag();
    if (row.form != SettingForm::yes) text += " " + shell_word(value);
  }
  return text;
}

std::string request_of(const RunSetting& setting) {
  nlohmann::ordered_json request;
  for (const auto& [key, value] : setting.values) {
    request[key] = json_of(*find_setting(key), value);
  }
  return request.dump(2) + "\n";
}

}  // namespace stageline
