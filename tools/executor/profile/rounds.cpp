// One round of a profile: whole training steps, timed op by op.
#include "tools/executor/profile/rounds.hpp"

#include <utility>

#include "sim/index.hpp"
#include "tools/executor/run/worker_pool.hpp"

namespace stageline::executor {

Rounds::Rounds(TensorModel& model, MicroBatch batch, at::Device device,
               const std::atomic<bool>* stop)
    : model_(model),
      batch_(std::move(batch)),
      watch_(device),
      stop_(stop),
      half_(model.layers.size() / 2),
      read_in_second_half_(model.layers.size()) {
  for (std::size_t i = half_; i < model.layers.size(); ++i) {
    for (const int read : {model.layers[i].input, model.layers[i].skip}) {
      if (read >= 0 && as_size(read) < half_) read_in_second_half_[as_size(read)] = true;
    }
  }
  forget();
}

void Rounds::run(Company company) {
  Samples& into = nth(samples_, company);
  for (int i = 0; i < 4; ++i) {
    switch ((i + turn_) % 4) {
      case 0:
        fused(into);
        break;
      case 1:
        split(into);
        break;
      case 2:
        whole(into);
        break;
      default:
        recomputed(into);
    }
  }
  ++turn_;
}

void Rounds::accompany(const std::function<bool()>& done) {
  Samples unread;
  unread.layers.resize(model_.layers.size());
  while (!done()) fused(unread);
}

void Rounds::lead_in(double share) {
  const std::size_t layers = model_.layers.size();
  const auto ops = static_cast<std::size_t>(share * 2 * static_cast<double>(layers));
  for (std::size_t i = 0; i < ops; ++i) {
    stop_if(stop_);
    if (i < layers) {
      forward(model_, i, batch_);
    } else {
      backward(model_, 2 * layers - 1 - i, batch_);
    }
  }
  for (std::vector<OpStash>& stash : batch_.stash) stash.clear();
  for (auto* const tensors : {&batch_.outputs, &batch_.gradients}) {
    for (at::Tensor& tensor : *tensors) tensor.reset();
  }
  if (layers < ops) zero_gradients(model_);
}

void Rounds::forget() {
  samples_ = {};
  for (Samples& samples : samples_) samples.layers.resize(model_.layers.size());
}

void Rounds::begin() {
  if (turn_ == 0) zero_gradients(model_);  // later an update has left them so
  watch_.mark();
}

void Rounds::time(std::vector<Lap>& laps, std::size_t layer, Timed timed,
                  const std::function<void()>& op) {
  stop_if(stop_);
  op();
  watch_.mark();
  laps.push_back({layer, timed});
}

void Rounds::step(std::size_t layer) {
  update(model_, layer, {learning_rate});
  zero_gradients(model_.weights[layer]);
}

void Rounds::forwards(std::vector<Lap>& laps) {
  for (std::size_t i = 0; i < model_.layers.size(); ++i) {
    time(laps, i, Timed::forward, [&] { forward(model_, i, batch_); });
  }
}

void Rounds::updates(std::vector<Lap>& laps) {
  for (std::size_t i = 0; i < model_.layers.size(); ++i) {
    time(laps, i, Timed::update, [&] { step(i); });
  }
}

Time Rounds::note(const std::vector<Lap>& laps, Samples& into) {
  const std::vector<Time> times = watch_.laps();
  Time sum{};
  for (std::size_t i = 0; i < laps.size(); ++i) {
    nth(into.layers[laps[i].layer], laps[i].timed).push_back(times[i]);
    sum += times[i];
  }
  return sum;
}

void Rounds::fused(Samples& into) {
  std::vector<Lap> laps;
  begin();
  forwards(laps);
  for (std::size_t i = model_.layers.size(); i-- > 0;) {
    time(laps, i, Timed::backward, [&] { backward(model_, i, batch_); });
  }
  updates(laps);
  into.step.push_back(note(laps, into));
}

void Rounds::split(Samples& into) {
  std::vector<Lap> laps;
  begin();
  forwards(laps);
  for (std::size_t i = model_.layers.size(); i-- > 0;) {
    time(laps, i, Timed::input_grad, [&] { input_grad(model_, i, batch_); });
    time(laps, i, Timed::weight_grad, [&] { weight_grad(model_, i, batch_); });
  }
  updates(laps);
  note(laps, into);
}

void Rounds::whole(Samples& into) {
  stop_if(stop_);
  begin();
  at::Tensor loss = whole_forward(model_, batch_);
  stop_if(stop_);
  watch_.mark();
  whole_backward(model_, loss);
  loss.reset();  // taking autograd's graph down is a part of it
  watch_.mark();
  for (std::size_t i = 0; i < model_.layers.size(); ++i) step(i);
  watch_.mark();
  const std::vector<Time> times = watch_.laps();
  Time sum{};
  for (std::size_t i = 0; i < times.size(); ++i) {
    into.whole[i].push_back(times[i]);
    sum += times[i];
  }
  into.whole_step.push_back(sum);
}

// As two stages of a pipeline do it, each with half of the layers.
void Rounds::recomputed(Samples& into) {
  const std::size_t count = model_.layers.size();
  std::vector<at::Tensor> read_later(count);
  std::vector<Lap> laps;
  begin();
  for (std::size_t i = 0; i < count; ++i) {
    time(laps, i, Timed::forward_without_stash, [&] {
      forward(model_, i, batch_);
      batch_.stash[i].clear();
      if (read_in_second_half_[i]) read_later[i] = batch_.outputs[i];
    });
  }
  const auto again = [&](std::size_t first, std::size_t end) {
    batch_.purpose = Purpose::again;
    for (std::size_t i = first; i < end; ++i) {
      time(laps, i, Timed::recompute, [&] { forward(model_, i, batch_); });
    }
    batch_.purpose = Purpose::training;
    for (at::Tensor& output : batch_.outputs) output.reset();
    for (std::size_t i = end; i-- > first;) {
      time(laps, i, Timed::backward_of_recomputed, [&] { backward(model_, i, batch_); });
    }
  };
  for (std::size_t i = 0; i < half_; ++i) {
    if (read_in_second_half_[i]) batch_.outputs[i] = std::exchange(read_later[i], {});
  }
  again(half_, count);
  again(0, half_);
  updates(laps);
  note(laps, into);
}

}  // namespace stageline::executor
