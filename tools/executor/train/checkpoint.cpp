// Writes and reads training states in LibTorch's format.
#include "tools/executor/train/checkpoint.hpp"

#include <ATen/core/Dict.h>
#include <ATen/core/ivalue.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/base/files.hpp"

namespace stageline::executor {
namespace {

using nlohmann::json;

constexpr const char* format = "stageline-checkpoint 1";

// A tree of tensors as a tree of numbers, and the tensors in one row.
struct Row {
  c10::List<at::Tensor> tensors;

  json put(const Tensors& some) {
    for (const at::Tensor& one : some) tensors.push_back(one.detach().cpu());
    return some.size();
  }
  json put(const std::vector<Tensors>& some) {
    json counts = json::array();
    for (const Tensors& one : some) counts.push_back(put(one));
    return counts;
  }
};

class Reader {
 public:
  explicit Reader(c10::List<at::Tensor> tensors) : tensors_(std::move(tensors)) {}

  Tensors take(const json& count) {
    Tensors some;
    for (std::size_t i = 0; i < count.get<std::size_t>(); ++i)
      some.push_back(tensors_.get(next_++));
    return some;
  }
  std::vector<Tensors> take_all(const json& counts) {
    std::vector<Tensors> some;
    for (const json& count : counts) some.push_back(take(count));
    return some;
  }

 private:
  c10::List<at::Tensor> tensors_;
  std::size_t next_ = 0;
};

json stage_json(const StageState& stage, Row& row) {
  json made;
  made["newest"] = stage.newest;
  made["versions"] = json::array();
  for (const auto& [number, version] : stage.versions) {
    made["versions"].push_back({{"number", number},
                                {"values", row.put(version.values)},
                                {"memory", row.put(version.memory)}});
  }
  made["optimizer"] = row.put(stage.optimizer);
  made["updates"] = stage.updates;
  made["statistics"] = json::array();
  for (const auto& replica : stage.statistics) made["statistics"].push_back(row.put(replica));
  return made;
}

StageState stage_of(const json& made, Reader& row) {
  StageState stage;
  stage.newest = made.at("newest").get<std::uint32_t>();
  for (const json& one : made.at("versions")) {
    StageVersion& version = stage.versions[one.at("number").get<std::uint32_t>()];
    version.values = row.take_all(one.at("values"));
    version.memory = row.take_all(one.at("memory"));
  }
  stage.optimizer = row.take_all(made.at("optimizer"));
  stage.updates = made.at("updates").get<std::vector<int>>();
  for (const json& replica : made.at("statistics")) {
    stage.statistics.push_back(row.take_all(replica));
  }
  return stage;
}

std::string pickled(const c10::IValue& value) {
  const std::vector<char> bytes = torch::jit::pickle_save(value);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  Row row;
  json meta;
  meta["format"] = format;
  meta["settings"] = json::parse(checkpoint.settings);
  meta["step"] = checkpoint.state.step;
  meta["wall_seconds"] = checkpoint.wall_seconds;
  meta["stages"] = json::array();
  for (const StageState& stage : checkpoint.state.stage) {
    meta["stages"].push_back(stage_json(stage, row));
  }
  meta["evaluations"] = json::array();
  for (const lab::Evaluation& one : checkpoint.evaluations) {
    meta["evaluations"].push_back({one.step, row.tensors.size()});
    row.tensors.push_back(at::tensor({one.loss, one.accuracy}, at::kDouble));
  }
  row.tensors.push_back(at::tensor(checkpoint.losses, at::kDouble));
  c10::impl::GenericDict dict(c10::StringType::get(), c10::AnyType::get());
  dict.insert("meta", meta.dump());
  dict.insert("tensors", row.tensors);
  write_file(path, pickled(dict));
}

Checkpoint read_checkpoint(const std::string& path) {
  const std::string bytes = read_file(path);
  const auto wrong = [&](std::string_view why) {
    return UsageError(fmt::format(
        "{} is no whole checkpoint of stageline-train ({}); give another file, or start anew", path,
        why));
  };
  try {
    const c10::IValue value =
        torch::jit::pickle_load(std::vector<char>(bytes.begin(), bytes.end()));
    const c10::impl::GenericDict dict = value.toGenericDict();
    const json meta = json::parse(dict.at("meta").toStringRef());
    if (meta.at("format") != format) throw wrong("its format is " + meta.at("format").dump());
    const c10::List<at::Tensor> tensors = dict.at("tensors").toTensorList();
    Checkpoint checkpoint;
    checkpoint.settings = meta.at("settings").dump();
    checkpoint.state.step = meta.at("step").get<std::int64_t>();
    checkpoint.wall_seconds = meta.at("wall_seconds").get<double>();
    Reader row(tensors);
    for (const json& stage : meta.at("stages")) {
      checkpoint.state.stage.push_back(stage_of(stage, row));
    }
    for (const json& one : meta.at("evaluations")) {
      const at::Tensor pair = tensors.get(one.at(1).get<std::size_t>());
      checkpoint.evaluations.push_back(
          {one.at(0).get<std::int64_t>(), Time{}, pair[0].item<double>(), pair[1].item<double>()});
    }
    const at::Tensor losses = tensors.get(tensors.size() - 1).contiguous();
    const double* const first = losses.data_ptr<double>();
    checkpoint.losses.assign(first, first + losses.numel());
    return checkpoint;
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception&) {
    throw wrong(bytes.empty() ? "it is empty" : "it is cut off, or another kind of file");
  }
}

void write_weights(const std::string& path, const TrainingState& state, const Partition& partition,
                   const ModelShape& shape) {
  c10::impl::GenericDict dict(c10::StringType::get(), c10::TensorType::get());
  std::vector<std::size_t> next(state.stage.size());
  for (std::size_t layer = 0; layer < partition.stage_of.size(); ++layer) {
    const auto s = as_size(partition.stage_of[layer]);
    const StageState& stage = state.stage[s];
    const Tensors& values = stage.versions.at(stage.newest).values[next[s]++];
    for (std::size_t i = 0; i < values.size(); ++i) {
      dict.insert(fmt::format("{}.{}", shape.layers[layer].name, i), values[i].detach().cpu());
    }
  }
  write_file(path, pickled(dict));
}

}  // namespace stageline::executor
