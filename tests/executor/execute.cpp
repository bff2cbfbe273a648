// Does reality follow the program? A run's weights and losses against sequential training, its
// order against the program, its messages against what the simulator charges for them.
#include "tools/executor/run/execute.hpp"
#include "sim/index.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "schedulers/scheduler.hpp"
#include "sim/analysis/versions.hpp"
#include "sim/errors.hpp"
#include "sim/lower/passes.hpp"
#include "tests/specs.hpp"
#include "tools/executor/run/stash_payload.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/study/study.hpp"

namespace stageline::executor {
namespace {

// Small, and with every kind of edge: a chain with skips inside a layer, and skips across layers.
const std::string gpt = "gpt,layers=3,hidden=16,heads=2,seq=4,vocab=11";
const std::string resnet = "resnet20";

Training training_of(const std::string& shape) {
  Training training;
  training.shape = parse_shape(shape);
  training.batch = 2;
  training.optimizer = Optimizer::momentum;
  training.dtype = at::kDouble;
  training.recipe.rate = 0.02;
  return training;
}

Case case_of(const std::string& shape, const ScheduleSpec& spec, int devices, int microbatches,
             int steps, std::optional<LinkSpec> link) {
  Case asked;
  // "gpt,layers=3" is priced as "model:gpt@h100,layers=3".
  const std::size_t comma = shape.find(',');
  const std::string options = comma == std::string::npos ? "" : shape.substr(comma);
  TraceRequest request;
  request.text = "model:" + shape.substr(0, comma) + "@h100,batch=2" + options;
  asked.model = open_trace(request);
  asked.cluster = uniform_cluster(devices, link, std::nullopt, link);
  asked.spec = spec;
  asked.microbatches = microbatches;
  asked.steps = steps;
  return asked;
}

struct Trial {
  Outcome outcome;
  Job job;
};

Trial trial(const std::string& shape, const Case& asked) {
  Outcome outcome = study(asked);
  Job job{outcome.program, stage_graph(outcome.program), outcome.plan.partition, training_of(shape),
          false};
  return {std::move(outcome), std::move(job)};
}

// So many on whatever cores there are.
std::vector<Accelerator> anywhere(std::size_t count) { return std::vector<Accelerator>(count); }

using Values = std::vector<at::Tensor>;

Values clones(const Values& values) {
  Values result;
  for (const at::Tensor& value : values) result.push_back(value.detach().clone());
  return result;
}

// ---- plain training: one device, autograd, every micro-batch of a step, then an update

struct Trained {
  std::vector<Values> weights;  // by layer
  std::vector<double> losses;   // by micro-batch
};

Trained plain_training(const Job& job) {
  const Training& training = job.training;
  TensorModel model = tensor_model(training.shape, training.optimizer,
                                   at::TensorOptions(training.dtype), training.seed);
  Trained result;
  for (int step = 0; step < job.program.steps; ++step) {
    zero_gradients(model);
    for (int i = 0; i < job.program.microbatches; ++i) {
      const int m = step * job.program.microbatches + i;
      MicroBatch batch =
          random_micro_batch(model, training.batch,
                             training.seed + 1 + static_cast<std::uint64_t>(m % training.distinct));
      const at::Tensor loss = whole_forward(model, batch);
      result.losses.push_back(loss.item<double>());
      whole_backward(model, loss / job.program.microbatches);
    }
    for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
      update(model, layer, {training.recipe.rate});
    }
  }
  for (const LayerWeights& weights : model.weights)
    result.weights.push_back(clones(weights.values));
  return result;
}

// ---- stale training, one pass after the other: each reads the version that the run says it read,
// and each stage's updates come in their order

struct StageReads {
  std::vector<std::uint32_t> forward;      // version read, by micro-batch
  std::vector<std::uint32_t> input_grad;   // by micro-batch; also of B
  std::vector<std::uint32_t> weight_grad;  // by micro-batch
  bool mixed = false;  // parts of one I have read different versions (only a correction lets them)
  bool apart = false;  // W does not follow I on its device: it makes its own way through the stage
};

std::vector<StageReads> reads_of(const Job& job, const Execution& run) {
  const std::size_t total = job.program.total_microbatches();
  std::vector<StageReads> reads(as_size(job.program.stages()));
  std::vector<int> input_grad_on(reads.size(), -1);
  std::set<std::pair<int, std::uint32_t>> seen;
  for (StageReads& stage : reads) {
    stage.forward.resize(total);
    stage.input_grad.resize(total);
    stage.weight_grad.resize(total);
  }
  for (std::uint32_t task = 0; task < run.graph.tasks(); ++task) {
    const Op op = run.graph.op[task];
    StageReads& stage = reads[op.stage];
    const int device = run.graph.lanes[run.graph.lane[task]].device;
    const std::uint32_t version = run.version[task];
    if (op.kind == OpKind::forward) stage.forward[op.microbatch] = version;
    if (op.kind == OpKind::backward || op.kind == OpKind::input_grad) {
      std::uint32_t& there = stage.input_grad[op.microbatch];
      const bool another = !seen.insert({op.stage, op.microbatch}).second;
      stage.mixed = stage.mixed || (another && there != version);
      there = version;
      input_grad_on[op.stage] = device;
    }
    if (op.kind == OpKind::backward || op.kind == OpKind::weight_grad) {
      stage.weight_grad[op.microbatch] = version;
      if (op.kind == OpKind::weight_grad) {
        stage.apart = input_grad_on[op.stage] != device || job.program.independent_w[op.stage];
      }
    }
  }
  return reads;
}

class StaleTraining {
 public:
  StaleTraining(const Job& job, const std::vector<StageReads>& reads)
      : job_(job),
        reads_(reads),
        model_(tensor_model(job.training.shape, job.training.optimizer,
                            at::TensorOptions(job.training.dtype), job.training.seed)),
        versions_(model_.layers.size()),
        drift_(model_.layers.size(), {Values{}}),
        forwards_(reads.size()),
        backwards_(reads.size()),
        weight_grads_(reads.size()),
        updates_(reads.size()),
        before_(reads.size()) {
    for (std::size_t l = 0; l < versions_.size(); ++l) {
      versions_[l].push_back(clones(model_.weights[l].values));
    }
    zero_gradients(model_);
    const Training& training = job.training;
    for (std::uint32_t m = 0; m < total(); ++m) {
      batches_.push_back(random_micro_batch(
          model_, training.batch,
          training.seed + 1 + m % static_cast<std::uint64_t>(training.distinct)));
    }
  }

  Trained train() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t s = 0; s < reads_.size(); ++s) {
        while (update_next(s) || weight_grad_next(s) || backward_next(s) || forward_next(s)) {
          moved = true;
        }
      }
    }
    for (const std::uint32_t done : weight_grads_) REQUIRE(done == total());
    for (std::size_t l = 0; l < versions_.size(); ++l) {
      result_.weights.push_back(clones(versions_[l].back()));
    }
    return result_;
  }

 private:
  std::uint32_t total() const { return job_.program.total_microbatches(); }
  std::vector<std::size_t> layers_of(std::size_t s) const {
    std::vector<std::size_t> layers;
    for (std::size_t l = 0; l < model_.layers.size(); ++l) {
      if (job_.partition.stage_of[l] == static_cast<int>(s)) layers.push_back(l);
    }
    return layers;
  }
  bool has(std::size_t s, std::uint32_t version) const { return version <= updates_[s]; }

  bool forward_next(std::size_t s) {
    const std::uint32_t m = forwards_[s];
    if (m == total() || (s > 0 && forwards_[s - 1] <= m) || !has(s, reads_[s].forward[m])) {
      return false;
    }
    for (const std::size_t l : layers_of(s)) {
      model_.weights[l].values = versions_[l].at(reads_[s].forward[m]);
      forward(model_, l, batches_[m]);
    }
    if (s + 1 == reads_.size()) {
      result_.losses.push_back(batches_[m].outputs.back().item<double>());
    }
    ++forwards_[s];
    return true;
  }

  // What backward reads: a version, or, for LayerPipe's correction, the newest weights taken back
  // by the mean step of late, times the steps since the forward. The mean is 0.9 of the one before
  // and 0.1 of the last step.
  Values read(std::size_t s, std::size_t l, std::uint32_t m, std::uint32_t version) const {
    if (job_.program.settings.correction != moving_average) return versions_[l].at(version);
    Values values = clones(versions_[l].at(version));
    const double steps = static_cast<double>(version) - reads_[s].forward[m];
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (steps > 0) values[i] -= drift_[l].at(version).at(i) * steps;
    }
    return values;
  }

  void run_backward(std::size_t s, std::uint32_t m, std::uint32_t version, MicroBatch& batch) {
    std::vector<std::size_t> layers = layers_of(s);
    std::reverse(layers.begin(), layers.end());
    for (const std::size_t l : layers) {
      model_.weights[l].values = read(s, l, m, version);
      backward(model_, l, batch);
    }
  }

  bool has_gradient(std::size_t s, std::uint32_t m) const {
    return m < total() && forwards_[s] > m && (s + 1 == reads_.size() || backwards_[s + 1] > m);
  }

  // W where it is apart from I.
  bool weight_grad_next(std::size_t s) {
    const std::uint32_t m = weight_grads_[s];
    if (!reads_[s].apart || !has_gradient(s, m) || !has(s, reads_[s].weight_grad[m])) return false;
    MicroBatch once = backwards_[s] > m ? before_[s].at(m) : batches_[m];
    run_backward(s, m, reads_[s].weight_grad[m], once);
    before_[s].erase(m);
    ++weight_grads_[s];
    return true;
  }

  // B, or I apart from W: then what it adds to the weights' gradients is dropped.
  bool backward_next(std::size_t s) {
    const std::uint32_t m = backwards_[s];
    if (!has_gradient(s, m) || !has(s, reads_[s].input_grad[m])) return false;
    std::vector<Values> kept(model_.layers.size());
    for (std::size_t l = 0; l < kept.size() && reads_[s].apart; ++l) {
      kept[l].resize(model_.weights[l].gradients.size());
      std::swap(kept[l], model_.weights[l].gradients);
    }
    if (reads_[s].apart && weight_grads_[s] <= m) before_[s].emplace(m, batches_[m]);
    run_backward(s, m, reads_[s].input_grad[m], batches_[m]);
    for (std::size_t l = 0; l < kept.size() && reads_[s].apart; ++l) {
      std::swap(kept[l], model_.weights[l].gradients);
    }
    ++backwards_[s];
    if (!reads_[s].apart) ++weight_grads_[s];
    return true;
  }

  // As soon as its micro-batches are there, and before the next one adds to the sums.
  bool update_next(std::size_t s) {
    const auto group =
        static_cast<std::uint32_t>(microbatches_per_update(job_.program, static_cast<int>(s)));
    const std::uint32_t first = updates_[s] * group;
    const std::uint32_t end = std::min(first + group, total());
    if (first >= total() || weight_grads_[s] != end) return false;
    for (const std::size_t l : layers_of(s)) {
      LayerWeights& weights = model_.weights[l];
      weights.values = clones(versions_[l].back());
      for (at::Tensor& gradient : weights.gradients)
        gradient.div_(static_cast<double>(end - first));
      update(model_, l, {job_.training.recipe.rate});
      Values& mean = drift_[l].emplace_back();
      for (std::size_t i = 0; i < weights.values.size(); ++i) {
        const at::Tensor step = weights.values[i] - versions_[l].back()[i];
        const bool first_step = versions_[l].size() == 1;
        mean.push_back(first_step ? step : drift_[l].end()[-2][i] * 0.9 + step * 0.1);
      }
      versions_[l].push_back(weights.values);
      zero_gradients(weights);
    }
    ++updates_[s];
    return true;
  }

  const Job& job_;
  const std::vector<StageReads>& reads_;
  TensorModel model_;
  std::vector<std::vector<Values>> versions_;  // by layer and version
  std::vector<std::vector<Values>> drift_;     // by layer and version
  std::vector<MicroBatch> batches_;
  std::vector<std::uint32_t> forwards_;                      // by stage: micro-batches done
  std::vector<std::uint32_t> backwards_;                     // by stage: micro-batches done
  std::vector<std::uint32_t> weight_grads_;                  // by stage: micro-batches done
  std::vector<std::uint32_t> updates_;                       // made
  std::vector<std::map<std::uint32_t, MicroBatch>> before_;  // by stage: as W apart finds it
  Trained result_;
};

// The largest difference of any weight, against the largest weight of its tensor.
double weights_apart(const Executor& executor, const Trained& trained) {
  double worst = 0;
  for (std::size_t l = 0; l < trained.weights.size(); ++l) {
    for (std::size_t i = 0; i < trained.weights[l].size(); ++i) {
      const at::Tensor& expected = trained.weights[l][i];
      const at::Tensor got = executor.weights(l).values.at(i).detach();
      const double scale = std::max(expected.abs().max().item<double>(), 1e-3);
      worst = std::max(worst, (got - expected).abs().max().item<double>() / scale);
    }
  }
  return worst;
}

double losses_apart(const Execution& run, const Trained& trained) {
  REQUIRE(run.losses.size() == trained.losses.size());
  double worst = 0;
  for (std::size_t m = 0; m < run.losses.size(); ++m) {
    worst = std::max(worst, std::abs(run.losses[m] - trained.losses[m]));
  }
  return worst;
}

void check_against_training(const std::string& shape, const Case& asked) {
  const Trial tried = trial(shape, asked);
  Executor executor(tried.job, tried.outcome.costs, anywhere(asked.cluster.devices.size()));
  const Execution run = executor.run();
  const bool plain = tried.outcome.synchrony == Synchrony::synchronous;
  const std::vector<StageReads> reads = reads_of(tried.job, run);
  for (const StageReads& stage : reads) {
    if (stage.mixed) {
      CHECK(tried.job.program.settings.correction == moving_average);
      return;  // no single version stands for what was read
    }
  }
  const Trained expected =
      plain ? plain_training(tried.job) : StaleTraining(tried.job, reads).train();
  CHECK(losses_apart(run, expected) < 1e-9);
  CHECK(weights_apart(executor, expected) < 1e-9);
  CHECK(weights_apart(executor, Trained{{clones(executor.weights(0).values)}, {}}) == 0);
}

const LinkSpec quick{parse_bandwidth("2GB/s"), std::chrono::microseconds(30)};

}  // namespace

TEST_CASE("a synchronous step is plain training, a stale one is sequential training as stale") {
  int tried = 0;
  std::set<std::string> names;
  for (int devices = 1; devices <= 4; ++devices) {
    for (const ScheduleSpec& spec : test::all_specs(devices)) {
      const std::string name = spelled(spec);
      for (const bool linked : {false, true}) {
        CAPTURE(name);
        CAPTURE(devices);
        CAPTURE(linked);
        try {
          const Case asked =
              case_of(gpt, spec, devices, 4, 2, linked ? std::optional(quick) : std::nullopt);
          check_against_training(gpt, asked);
          ++tried;
          names.insert(std::string(spec.scheduler->name));
        } catch (const UsageError&) {  // it does not go on so many devices
        }
      }
    }
  }
  MESSAGE(tried << " programs");
  CHECK(names.size() == schedulers().size());
}

TEST_CASE("chunks of sequences are simulated, and refused here") {
  const ScheduleSpec spec = parse_schedules("seq1f1b:sequence_chunks=2").at(0);
  CHECK_THROWS_WITH_AS(check_against_training(gpt, case_of(gpt, spec, 2, 4, 2, std::nullopt)),
                       doctest::Contains("can only be simulated"), UsageError);
}

TEST_CASE("skips across stages") {
  for (const std::string text :
       {"gpipe:recompute=always", "1f1b", "pipedream:replicas=2-1-1", "stale_weights"}) {
    CAPTURE(text);
    const ScheduleSpec spec = parse_schedules(text).at(0);
    const int devices = text == "stale_weights" ? 3 : 4;
    Case asked = case_of(resnet, spec, devices, 3, 2, quick);
    check_against_training(resnet, asked);
  }
}

TEST_CASE("a run does what each list says, in its order, and nothing before what it needs") {
  for (const std::string text : {"gpipe:recompute=always", "1f1b", "pipedream:replicas=2-1"}) {
    CAPTURE(text);
    const Case asked = case_of(gpt, parse_schedules(text).at(0), 3, 4, 2, quick);
    const Trial tried = trial(gpt, asked);
    Executor executor(tried.job, tried.outcome.costs, anywhere(3));
    const Execution run = executor.run();
    const TaskGraph& graph = run.graph;
    CHECK((graph.op == tried.outcome.graph.op));
    CHECK((graph.lane_task == tried.outcome.graph.lane_task));
    bool right = true;
    for (std::size_t lane = 0; lane < graph.lanes.size(); ++lane) {
      Time free{};
      for (std::uint32_t i = graph.lane_begin[lane]; i != graph.lane_begin[lane + 1]; ++i) {
        const std::uint32_t task = graph.lane_task[i];
        const Time start = start_of(graph, run.times, task);
        right = right && start >= free;
        free = end_of(graph, run.times, task);
        for (std::uint32_t n = graph.need_begin[task]; n != graph.need_begin[task + 1]; ++n) {
          right = right && start >= run.times.available[graph.need[n]];
        }
        // A link that is imitated takes what the cluster says, to the picosecond.
        const bool message = graph.lanes[lane].kind == LaneKind::send;
        right = right && (!message || free - start == tried.outcome.graph.duration[task]);
      }
    }
    CHECK(right);
  }
}

TEST_CASE("weights go on from run to run") {
  const Case asked = case_of(gpt, parse_schedules("1f1b").at(0), 2, 4, 1, std::nullopt);
  const Trial tried = trial(gpt, asked);
  Executor executor(tried.job, tried.outcome.costs, anywhere(2));
  const double first = executor.run().losses.at(0);
  for (int i = 0; i < 20; ++i) executor.run();
  CHECK(executor.run().losses.at(0) < first);
}

TEST_CASE("a run that is told to stop stops, and the next one is whole") {
  const Case asked = case_of(gpt, parse_schedules("1f1b").at(0), 2, 4, 1, std::nullopt);
  const Trial tried = trial(gpt, asked);
  Executor executor(tried.job, tried.outcome.costs, anywhere(2));
  const std::atomic<bool> stop{true};
  CHECK_THROWS_AS(executor.run(&stop), Stopped);
  CHECK(executor.run().losses.size() == 4);
}

TEST_CASE("a worker that fails ends the run with its message") {
  const Case asked = case_of(gpt, parse_schedules("1f1b").at(0), 2, 4, 1, std::nullopt);
  const Trial tried = trial(gpt, asked);
  std::vector<Accelerator> devices = anywhere(2);
  devices[1].cores = {4095};
  CHECK_THROWS_WITH_AS(Executor(tried.job, tried.outcome.costs, devices),
                       doctest::Contains("core 4095 cannot be used"), UsageError);
  CHECK_THROWS_WITH_AS(Executor(tried.job, tried.outcome.costs, anywhere(1)),
                       doctest::Contains("runs on 2 devices, but there are 1"), UsageError);
}

TEST_CASE("messages that block are refused, for they would not") {
  Case asked = case_of(gpt, parse_schedules("1f1b").at(0), 2, 4, 1, std::nullopt);
  asked.messages = Messages::batched;
  const Trial tried = trial(gpt, asked);
  CHECK_THROWS_WITH_AS(Executor(tried.job, tried.outcome.costs, anywhere(2)),
                       doctest::Contains("messages: batched can be simulated, but only messages: "
                                         "async can be executed"),
                       UsageError);
}

TEST_CASE("what a stage keeps is what the trace of its tensors says, to the byte") {
  // The trace counts the tensors of the model run whole; the run counts what its stages hold.
  for (const std::string text : {"gpipe", "1f1b", "pipedream:vertical_sync=yes"}) {
    CAPTURE(text);
    Case asked = case_of(resnet, parse_schedules(text).at(0), 2, 4, 1, std::nullopt);
    Training training = training_of(resnet);
    training.dtype = at::kFloat;
    TensorModel model = tensor_model(training.shape, training.optimizer,
                                     at::TensorOptions(at::kFloat), training.seed);
    const std::vector<LayerBytes> bytes =
        count_bytes(model, random_micro_batch(model, training.batch, 1));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      asked.model.layers[i].stash_input_grad = bytes[i].stash_input_grad;
      asked.model.layers[i].stash_weight_grad = bytes[i].stash_weight_grad;
      asked.model.layers[i].input_kept = bytes[i].input_kept;
      asked.model.layers[i].output_kept = bytes[i].output_kept;
    }
    for (const std::string cut : {"0-7,8-20", "0-8,9-20", "0-12,13-20"}) {
      CAPTURE(cut);
      asked.partition = cut;
      Trial tried = trial(resnet, asked);
      tried.job.training = training;
      Executor executor(tried.job, tried.outcome.costs, anywhere(2));
      const std::vector<HeldBytes> held = executor.run_counted();
      for (std::size_t d = 0; d < 2; ++d) {
        const Bytes stash = tried.outcome.costs.stage[d].stash();
        CHECK(held[d].stash == stash.count * tried.outcome.memory.device_stash_peak[d]);
        CHECK(held[d].peak > held[d].stash);
      }
    }
  }
}

}  // namespace stageline::executor
