// Runs the phases of a training, with evaluations and checkpoints on the way.
#include "tools/executor/train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "tools/executor/run/execute.hpp"
#include "tools/executor/train/checkpoint.hpp"
#include "tools/executor/train/delayed.hpp"
#include "tools/executor/train/evaluator.hpp"
#include "tools/executor/train/phase.hpp"
#include "tools/lab/training/times.hpp"

namespace stageline::executor {
namespace {

using Clock = std::chrono::steady_clock;

class Trainer {
 public:
  Trainer(const TrainingRequest& request, const std::function<void(const TrainingProgress&)>& tell,
          const std::atomic<bool>* stop)
      : request_(request), tell_(tell), stop_(stop), began_(Clock::now()) {
    check_fits(request.shape, *request.data);
    check_sizes();
    if (request.pipelined > 0) phases_.push_back(pipelined_phase(request));
    const Phase* const before = phases_.empty() ? nullptr : &phases_.back();
    microbatches_ = lab::microbatches_of_step(request.asked);
    check_rounds();
    if (request.pipelined < request.recipe.steps) {
      phases_.push_back(plain_phase(request, before, microbatches_));
    }
    ends_ = lab::hybrid_step_ends(request.asked, request.recipe.steps, request.pipelined);
    evaluator_ = std::make_unique<Evaluator>(request.shape, options(), *request.data);
    fill_settings();
    if (!request.checkpoint.empty()) take_up();
  }

  TrainingResult run() {
    Partition partition = phases_.front().partition;
    if (state_.step == 0) evaluate_start();
    for (const Phase& phase : phases_) {
      partition = phase.partition;
      if (state_.step >= phase.end) continue;
      const bool first = &phase == &phases_.front();
      if (!first && state_.step == phases_.front().end) state_ = drained(std::move(state_));
      run_phase(phase);
    }
    TrainingResult result;
    fill_log();
    result.log = log_;
    result.digest = digest(state_, partition);
    result.partition = std::move(partition);
    result.state = std::move(state_);
    return result;
  }

 private:
  at::TensorOptions options() const {
    return at::TensorOptions(request_.dtype).device(request_.devices.front().where);
  }

  void check_sizes() const {
    for (const Correction* const one : request_.corrections) {
      if (!one->needs_momentum || request_.optimizer == Optimizer::momentum) continue;
      throw UsageError(fmt::format("correction {} needs --optimizer momentum (this is {})",
                                   one->name, name(request_.optimizer)));
    }
    const auto images = request_.data->train.size();
    if (as_size(request_.asked.model.batch) > images) {
      throw UsageError(fmt::format("a micro-batch of {} images cannot be filled from the {} of {}",
                                   request_.asked.model.batch, images, request_.data->name));
    }
    if (request_.pipelined > request_.recipe.steps) {
      throw UsageError(fmt::format("--pipelined-steps {} of --steps {}: there are not so many",
                                   request_.pipelined, request_.recipe.steps));
    }
  }

  void check_rounds() {
    if (phases_.empty()) return;
    round_ = phases_.front().plan.round();
    if (request_.pipelined % round_ == 0) return;
    const std::int64_t below = request_.pipelined / round_ * round_;
    throw UsageError(fmt::format(
        "the replicas of this schedule take turns of {} steps, so the pipelined ones must be a "
        "multiple of that: {} are not; take {} or {}",
        round_, request_.pipelined, below, below + round_));
  }

  std::int64_t rounded(std::int64_t steps) const { return (steps + round_ - 1) / round_ * round_; }

  // ---- what is the same in every run of this training

  void fill_settings() {
    lab::TrainingSettings& s = log_.settings;
    s.model = request_.model;
    s.trace = request_.trace;
    s.schedule = spelled(request_.asked.spec);
    s.partition = request_.asked.partition;
    s.weights = std::string(name(phases_.front().weights));
    s.correction = phases_.front().correction;
    s.devices = static_cast<int>(request_.asked.cluster.devices.size());
    s.microbatches = microbatches_;
    s.batch = request_.asked.model.batch;
    s.data = request_.data->name;
    if (request_.augmentation.shift) s.data += ",shift";
    if (request_.augmentation.flip) s.data += ",flip";
    s.optimizer = std::string(name(request_.optimizer));
    s.recipe = print(request_.recipe);
    s.number_format = request_.dtype == at::kDouble ? "fp64" : "fp32";
    s.steps = request_.recipe.steps;
    s.pipelined = request_.pipelined;
    log_.seed = request_.seed;
    log_.mode = std::string(name(request_.mode));
    std::vector<std::int64_t> weights;
    for (const LayerShape& layer : request_.shape.layers) weights.push_back(layer.weights);
    const Phase& phase = phases_.front();
    for (int stage = 0; stage < phase.partition.stages; ++stage) {
      lab::LoggedStage& one = log_.stages.emplace_back();
      bool first = true;
      for (std::size_t layer = 0; layer < weights.size(); ++layer) {
        if (phase.partition.stage_of[layer] != stage) continue;
        if (std::exchange(first, false)) one.first_layer = static_cast<int>(layer);
        one.last_layer = static_cast<int>(layer);
        one.weights += weights[layer];
      }
      one.staleness_mean = nth(phase.versions, stage).staleness_mean;
      one.staleness_max = nth(phase.plan.stage, stage).delay;
    }
    // As text: a checkpoint goes on only where all of it is the same. (Not the mode: both give the
    // same weights.)
    nlohmann::json all = nlohmann::json::parse(lab::to_json(log_)).at("settings");
    all["seed"] = request_.seed;
    all["cut"] = phases_.front().partition.stage_of;
    all["evaluate_every"] = request_.evaluate_every;
    all["versions read"] = digest(phases_.front().plan);
    settings_ = all.dump();
  }

  void take_up() {
    if (!std::filesystem::exists(request_.checkpoint)) return;
    if (!request_.resume) {
      throw UsageError(fmt::format(
          "there is a checkpoint {} already; give --resume to go on from it, or another file",
          request_.checkpoint));
    }
    Checkpoint found = read_checkpoint(request_.checkpoint);
    const auto mine = nlohmann::json::parse(settings_);
    const auto its = nlohmann::json::parse(found.settings);
    for (const auto& [key, value] : mine.items()) {
      if (its.contains(key) && its[key] == value) continue;
      throw UsageError(fmt::format("the checkpoint {} is of another training: its {} is {}, not {}",
                                   request_.checkpoint, key,
                                   its.value(key, nlohmann::json()).dump(), value.dump()));
    }
    state_ = std::move(found.state);
    losses_ = std::move(found.losses);
    log_.evaluations = std::move(found.evaluations);
    for (lab::Evaluation& one : log_.evaluations) one.end = end_of_step(one.step);
    before_ = found.wall_seconds;
    resumed_at_ = state_.step;
  }

  Time end_of_step(std::int64_t step) const { return step == 0 ? Time{} : nth(ends_, step - 1); }
  double seconds() const {
    return before_ + std::chrono::duration<double>(Clock::now() - began_).count();
  }

  // ---- on the way

  void evaluate_start() {
    const Phase& phase = phases_.front();
    TrainingState start;
    const TensorModel model =
        tensor_model(request_.shape, request_.optimizer, options(), request_.seed);
    start.stage.resize(as_size(phase.partition.stages));
    for (std::size_t s = 0; s < start.stage.size(); ++s) {
      std::vector<std::size_t> layers;
      for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
        if (phase.partition.stage_of[layer] == static_cast<int>(s)) layers.push_back(layer);
      }
      StageState& stage = start.stage[s];
      for (const std::size_t layer : layers) {
        stage.versions[0].values.push_back(model.weights[layer].values);
      }
      stage.statistics = {statistics_of(model, layers)};
    }
    note(evaluator_->evaluate(start, phase.partition, stop_));
  }

  void note(lab::Evaluation evaluation) {
    evaluation.end = end_of_step(evaluation.step);
    log_.evaluations.push_back(evaluation);
    say();
  }

  void say() {
    TrainingProgress progress;
    const auto size = as_size(microbatches_);
    progress.step = static_cast<std::int64_t>(losses_.size() / size);
    if (progress.step > 0) {
      progress.loss = loss_of(as_size(progress.step - 1));
    }
    progress.evaluation = log_.evaluations.empty() ? nullptr : &log_.evaluations.back();
    progress.resumed_at = resumed_at_;
    tell_(progress);
  }

  double loss_of(std::size_t step) const {
    double sum = 0;
    const auto size = as_size(microbatches_);
    for (std::size_t i = 0; i < size; ++i) sum += losses_[step * size + i];
    return sum / static_cast<double>(size);
  }

  // Losses may come out of order: a schedule may run a step's micro-batches in any.
  void lost(std::uint32_t microbatch, double loss) {
    const std::lock_guard lock(mutex_);
    waiting_[microbatch] = loss;
    bool moved = false;
    while (!waiting_.empty() && waiting_.begin()->first == losses_.size()) {
      losses_.push_back(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      moved = true;
    }
    if (moved && losses_.size() % as_size(microbatches_) == 0) say();
  }

  void show(TrainingState state, const Phase& phase) {
    const bool evaluate =
        state.step == request_.recipe.steps || state.step % rounded(request_.evaluate_every) == 0;
    const lab::Evaluation looked =
        evaluate ? evaluator_->evaluate(state, phase.partition, stop_) : lab::Evaluation{};
    const std::lock_guard lock(mutex_);
    if (evaluate) note(looked);
    const bool whole = is_whole(state.step, phase);
    if (!whole) return;
    if (!request_.checkpoint.empty()) {
      Checkpoint kept{settings_,
                      std::move(state),
                      {losses_.begin(), losses_.begin() + state.step * microbatches_},
                      log_.evaluations,
                      seconds()};
      if (request_.before_checkpoint) request_.before_checkpoint();
      write_checkpoint(request_.checkpoint, kept);
      if (request_.after_checkpoint) request_.after_checkpoint();
      state = std::move(kept.state);
    }
    if (state.step == phase.end) state_ = std::move(state);
  }

  bool is_whole(std::int64_t step, const Phase& phase) const {
    const std::int64_t every = rounded(request_.checkpoint_every);
    const bool keep = !request_.checkpoint.empty() && every > 0 && step % every == 0;
    return keep || step == phase.end;
  }

  std::vector<Stop> stops(const Phase& phase, std::int64_t from) const {
    std::vector<Stop> all;
    const std::int64_t look = rounded(request_.evaluate_every);
    for (std::int64_t step = from + 1; step <= phase.end; ++step) {
      const bool whole = is_whole(step, phase);
      if (whole || step % look == 0) all.push_back({step, whole});
    }
    return all;
  }

  void run_phase(const Phase& phase) {
    auto plan = std::make_shared<TrainingPlan>();
    plan->versions = phase.plan;
    plan->data = {request_.data, request_.asked.model.batch, request_.seed, request_.augmentation};
    plan->start = state_.step > 0 ? std::move(state_) : TrainingState{};
    plan->stops = stops(phase, plan->start.step);
    plan->show = [this, &phase](TrainingState state) { show(std::move(state), phase); };
    plan->report_loss = [this](std::uint32_t microbatch, double loss) { lost(microbatch, loss); };
    Training training{request_.shape,     request_.asked.model.batch,
                      request_.optimizer, request_.dtype,
                      request_.recipe,    request_.seed};
    const bool plain = phase.end > request_.pipelined || request_.pipelined == 0;
    if (request_.mode == TrainingMode::delayed || plain) {
      train_delayed(
          {training, phase.partition, phase.placement, phase.weights, phase.correction, *plan},
          request_.devices.front().where, stop_);
      return;
    }
    const lab::TrainingProgram rest =
        corrected_program(request_, request_.pipelined - plan->start.step);
    Job job{rest.program, stage_graph(rest.program), rest.partition, training};
    for (const StageVersionPlan& stage : phase.plan.stage) job.staleness.push_back(stage.delay);
    job.plan = plan;
    Executor executor(std::move(job), rest.costs, request_.devices);
    executor.run(stop_);
  }

  void fill_log() {
    for (std::size_t step = 0; step < ends_.size(); ++step) {
      log_.steps.push_back({ends_[step], loss_of(step)});
    }
    log_.wall_seconds = seconds();
  }

  const TrainingRequest& request_;
  const std::function<void(const TrainingProgress&)>& tell_;
  const std::atomic<bool>* stop_;
  Clock::time_point began_;
  double before_ = 0;  // seconds that earlier runs took, up to the checkpoint
  std::vector<Phase> phases_;
  int microbatches_ = 1;    // of a step
  std::int64_t round_ = 1;  // steps
  std::vector<Time> ends_;  // by step
  std::unique_ptr<Evaluator> evaluator_;
  std::string settings_;
  std::int64_t resumed_at_ = 0;
  TrainingState state_;

  std::recursive_mutex mutex_;  // what follows: workers tell
  lab::TrainingLog log_;
  std::vector<double> losses_;               // by micro-batch
  std::map<std::uint32_t, double> waiting_;  // whose predecessors have not come
};

}  // namespace

std::string_view name(TrainingMode mode) {
  switch (mode) {
    case TrainingMode::delayed:
      return "delayed";
    case TrainingMode::pipelined:
      return "pipelined";
  }
  return "";
}

TrainingResult train(const TrainingRequest& request,
                     const std::function<void(const TrainingProgress&)>& tell,
                     const std::atomic<bool>* stop) {
  return Trainer(request, tell, stop).run();
}

}  // namespace stageline::executor
