// stageline list: every name that the other commands accept.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cost_models/network/algorithm.hpp"
#include "cost_models/shapes/shapes.hpp"
#include "cost_models/transformers/config.hpp"
#include "cost_models/transformers/hugging_face.hpp"
#include "cost_models/transformers/software.hpp"
#include "schedulers/aliases.hpp"
#include "schedulers/partition/partitioner.hpp"
#include "schedulers/scheduler.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/files.hpp"
#include "tools/base/provenance.hpp"
#include "tools/base/table.hpp"
#include "tools/commands/command.hpp"
#include "tools/commands/listed_json.hpp"
#include "tools/commands/terminal.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/inputs/settings.hpp"
#include "tools/report/figure_table.hpp"
#include "traces/traces.hpp"

namespace stageline::cli {
namespace {

std::string list_schedulers() {
  std::string text = "Schedules (--schedule NAME:knob=value,…)\n";
  for (const Scheduler* const one : schedulers()) {
    text += fmt::format("  {:<16} {} [{}]\n{:19}{}\n", one->name, one->summary,
                        one->synchrony == Synchrony::synchronous ? "synchronous" : "asynchronous",
                        "", one->source);
    for (const Knob& knob : one->knobs) {
      text += fmt::format("{:19}{}={}  ({}; default {})\n", "", knob.name, knob.values,
                          knob.summary, knob.fallback);
    }
  }
  std::map<std::string_view, std::string> aliases;
  for (const ScheduleAlias& alias : schedule_aliases()) {
    std::string& words = aliases[alias.spec];
    words += fmt::format("{}{}", words.empty() ? "" : ", ", alias.word);
  }
  text +=
      "\nOther names of schedules, without case, punctuation and \"Schedule\" (as in ZB-H1 and "
      "Schedule1F1B)\n";
  for (const auto& [spec, words] : aliases) text += fmt::format("  {:<16} {}\n", spec, words);
  return text;
}

std::string list_partitioners() {
  std::string text = "\nPartitioners (--partition NAME)\n";
  for (const Partitioner* const one : partitioners()) {
    text += fmt::format("  {:<12} {}\n", one->name, one->summary);
    if (!one->options.empty()) text += fmt::format("{:15}options: {}\n", "", one->options);
    if (!one->source.empty()) text += fmt::format("{:15}{}\n", "", one->source);
  }
  text +=
      "  simulated    the best of the cuts that were simulated, for each schedule: from promising "
      "ones on, boundaries moved as long as that gains\n"
      "               options: most=N  (cuts to simulate; default 400), blocks  (transformer blocks "
      "stay whole)\n";
  text += "  or ranges \"0-5,6-11,12-\", or the last layer of each stage but the last by name\n";
  return text;
}

std::string list_models() {
  std::string text = "\nModels (model:NAME@DEVICE,batch=N,…; priced by a roofline, so estimated)\n";
  for (const std::string& name : model_names()) {
    std::string options;
    for (const std::string& option : model_options(name)) options += " " + option + "=";
    text += fmt::format("  {:<13} {}{}\n", name, model_summary(name),
                        options.empty() ? "" : " · options:" + options);
  }
  text += "  devices:";
  for (const DeviceKind& kind : known_kinds()) text += fmt::format(" {}", kind.name);
  text += "\n  options of all: batch= dtype= optimizer= efficiency= overhead=\n";
  return text;
}

std::string list_families() {
  std::string text =
      "\nLanguage models (model:NAME@DEVICE,seq=N,tp=N,…; NAME also a path/config.json, or "
      "transformer with its sizes)\n";
  for (const FamilyMember& member : families()) {
    text += fmt::format("  {:<17} {}\n", member.config.name, member.summary);
  }
  text += "  sizes:";
  for (const std::string& option : transformer_options()) text += " " + option + "=";
  text += "\n  model_type of a config.json:";
  for (const std::string& type : hugging_face_types()) text += " " + type;
  return text + "\n";
}

std::string list_software() {
  std::string text = "\nSoftware of language models (--software NAME, or software=NAME)\n";
  for (const SoftwareGeneration& one : software_generations()) {
    text +=
        fmt::format("  {:<24} {}\n{:27}{}{}{}\n{:27}{}\n", one.name, one.summary, "", one.options,
                    one.experts.empty() ? "" : "; with experts ", one.experts, "", one.source);
  }
  return text;
}

// "8 × NVIDIA H100 SXM5 80 GB, 80.00 GB each", once for each pair of kind and memory.
std::string devices_of(const Cluster& cluster) {
  std::vector<Device> groups;
  std::vector<int> counts;
  for (const Device& device : cluster.devices) {
    std::size_t g = 0;
    while (g < groups.size() &&
           !(groups[g].kind == device.kind && groups[g].memory == device.memory)) {
      ++g;
    }
    if (g == groups.size()) {
      groups.push_back(device);
      counts.push_back(0);
    }
    ++counts[g];
  }
  std::string text;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Device& device = groups[g];
    text += fmt::format("{}{} × {}{}", g == 0 ? "" : "; ", counts[g],
                        device.kind < 0 ? "device" : nth(cluster.kinds, device.kind).title,
                        device.memory ? fmt::format(", {} each", print(*device.memory)) : "");
  }
  return text;
}

std::string list_clusters() {
  std::string text = "\nClusters (--cluster NAME, or a file; NAME*4 for four such machines)\n";
  for (const Bundled& bundled : bundled_clusters()) {
    const Cluster cluster = read_cluster(std::string(bundled.text), std::string(bundled.name));
    text += fmt::format("  {:<13} {}\n", bundled.name, devices_of(cluster));
  }
  return text;
}

std::string list_collectives() {
  std::string text = "\nAlgorithms of collectives (best: the fastest of them, as NCCL chooses)\n";
  for (const Algorithm* const one : algorithms()) {
    text += fmt::format("  {:<13} {}\n{:16}{}\n", one->name, one->summary, "", one->source);
  }
  return text;
}

std::string list_traces() {
  std::string text = "\nBundled traces\n";
  for (const Bundled& bundled : bundled_traces()) {
    const std::vector<Model> models =
        read_trace(std::string(bundled.text), std::string(bundled.name));
    text += fmt::format("  {:<13} {} layers, {}\n", bundled.name, models.front().layers.size(),
                        described(models.front().provenance));
  }
  return text;
}

// What is listed, by the word that asks for it alone.
struct ListedKind {
  const char* word;
  std::string (*text)();
  Json (*json)();  // an object with a member for each list
};

constexpr ListedKind listed_kinds[] = {
    {"schedules", list_schedulers, schedules_json},
    {"partitioners", list_partitioners, partitioners_json},
    {"models", [] { return list_models() + list_families(); }, priced_models_json},
    {"software", list_software, software_json},
    {"clusters", list_clusters, clusters_json},
    {"collectives", list_collectives, collectives_json},
    {"traces", list_traces, traces_json},
};

// All of them where `word` is empty.
std::string listed(const std::string& word) {
  std::string text;
  for (const ListedKind& kind : listed_kinds) {
    if (word.empty() || word == kind.word) text += kind.text();
  }
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}

Json listed_json(const std::string& word) {
  Json all = Json::object();
  for (const ListedKind& kind : listed_kinds) {
    if (word.empty() || word == kind.word) all.update(kind.json());
  }
  return all;
}

void add_list(Flags command) {
  struct Asked {
    std::string word;
    bool schema = false;
    bool figures = false;
    std::string json;
  };
  const auto asked = std::make_shared<Asked>();
  std::vector<std::string> words;
  for (const ListedKind& kind : listed_kinds) words.emplace_back(kind.word);
  command.option("WHAT", asked->word, "names of one kind alone; default: all").one_of(words);
  command.flag("--request-schema", asked->schema,
               "print the JSON Schema of a request, and nothing else");
  command.flag("--figures", asked->figures,
               "print the figures of a row as a table in Markdown, and nothing else");
  command
      .option("--json", asked->json,
              "write the names as JSON to a file, or - for stdout, and print nothing else there")
      .writes_file();
  command.footer("Example:\n  stageline list schedules");
  command.runs([asked] {
    if (!asked->json.empty() && (asked->schema || asked->figures)) {
      throw UsageError("--json lists names; leave out --request-schema and --figures");
    }
    if (!asked->json.empty()) write_file(asked->json, listed_json(asked->word).text());
    if (asked->json == "-") return 0;
    if (asked->schema || asked->figures) {
      show("{}{}", asked->schema ? request_schema() : "",
           asked->figures ? report::figures_page() : "");
      return 0;
    }
    print_wrapped(listed(asked->word));
    return 0;
  });
}

}  // namespace

extern const Command list_command;
const Command list_command = {
    "list", "List schedules, partitioners, models, clusters, collectives and traces", add_list, ""};

}  // namespace stageline::cli
