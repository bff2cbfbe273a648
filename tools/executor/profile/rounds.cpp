// One round of a profile: whole training steps, timed op by op.
#include "tools/executor/profile/rounds.hpp"

#include <array>
#include <deque>
#include <optional>
#include <utility>

#include "sim/base/index.hpp"
#include "tools/executor/run/worker_pool.hpp"

namespace stageline::executor {

int in_flight_on(at::Device device) { return device.is_cpu() ? 2 : 1; }

Rounds::Rounds(TensorModel& model, MicroBatch batch, at::Device device, Share share,
               const std::atomic<bool>* stop)
    : model_(model),
      in_flight_(as_size(in_flight_on(device)), batch),
      watch_(device),
      stop_(stop),
      cut_(share == Share::half ? model.layers.size() / 2 : 0) {
  forget();
}

void Rounds::run(Company company) {
  constexpr std::array kinds{&Rounds::fused, &Rounds::split, &Rounds::whole, &Rounds::recomputed,
                             &Rounds::with_lone_weight_grads};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    (this->*kinds[(i + turn_) % kinds.size()])(nth(samples_, company));
  }
  ++turn_;
}

void Rounds::accompany(const std::function<bool()>& done) {
  Samples unread;
  unread.layers.resize(model_.layers.size());
  while (!done()) fused(unread);
}

void Rounds::lead_in(double share) {
  MicroBatch batch = in_flight_.front();
  const std::size_t layers = model_.layers.size();
  const auto ops = static_cast<std::size_t>(share * 2 * static_cast<double>(layers));
  for (std::size_t i = 0; i < ops; ++i) {
    stop_if(stop_);
    if (i < layers) {
      forward(model_, i, batch);
    } else {
      backward(model_, 2 * layers - 1 - i, batch);
    }
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

void Rounds::pass_by(std::vector<Lap>& laps, const std::function<void()>& work) {
  stop_if(stop_);
  work();
  watch_.mark();
  laps.push_back({0, std::nullopt});
}

void Rounds::step(std::size_t layer) {
  update(model_, layer, {learning_rate});
  zero_gradients(model_.weights[layer]);
}

void Rounds::upwards(const Passes& passes) {
  if (cut_ > 0) {
    for (MicroBatch& batch : in_flight_) passes(batch, 0, cut_);
  }
  for (MicroBatch& batch : in_flight_) passes(batch, cut_, model_.layers.size());
}

void Rounds::downwards(const Passes& passes) {
  for (MicroBatch& batch : in_flight_) passes(batch, cut_, model_.layers.size());
  if (cut_ == 0) return;
  for (MicroBatch& batch : in_flight_) passes(batch, 0, cut_);
}

void Rounds::forwards(std::vector<Lap>& laps) {
  upwards([&](MicroBatch& batch, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      time(laps, i, Timed::forward, [&] { forward(model_, i, batch); });
    }
  });
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
    if (laps[i].timed) nth(into.layers[laps[i].layer], *laps[i].timed).push_back(times[i]);
    sum += times[i];
  }
  return sum;
}

void Rounds::fused(Samples& into) {
  std::vector<Lap> laps;
  begin();
  forwards(laps);
  downwards([&](MicroBatch& batch, std::size_t first, std::size_t end) {
    for (std::size_t i = end; i-- > first;) {
      time(laps, i, Timed::backward, [&] { backward(model_, i, batch); });
    }
  });
  updates(laps);
  into.step.push_back(note(laps, into));
}

void Rounds::split(Samples& into) {
  std::vector<Lap> laps;
  begin();
  forwards(laps);
  downwards([&](MicroBatch& batch, std::size_t first, std::size_t end) {
    for (std::size_t i = end; i-- > first;) {
      time(laps, i, Timed::input_grad, [&] { input_grad(model_, i, batch); });
    }
    for (std::size_t i = end; i-- > first;) {
      time(laps, i, Timed::weight_grad, [&] { weight_grad(model_, i, batch); });
    }
  });
  updates(laps);
  note(laps, into);
}

// Each W as where another device runs I. That comes behind it, for the gradient that the next W
// takes.
void Rounds::with_lone_weight_grads(Samples& into) {
  std::vector<Lap> laps;
  begin();
  forwards(laps);
  downwards([&](MicroBatch& batch, std::size_t first, std::size_t end) {
    MicroBatch for_weight_grad;
    const auto share = [&] { for_weight_grad = batch; };
    pass_by(laps, share);
    for (std::size_t i = end; i-- > first;) {
      time(laps, i, Timed::lone_weight_grad,
           [&] { weight_grad_alone(model_, i, for_weight_grad); });
      pass_by(laps, [&] {
        input_grad(model_, i, batch);
        batch.stash[i].clear();
        batch.gradients[i].reset();  // of a layer that reads the data, which has no I
        share();
      });
    }
  });
  updates(laps);
  note(laps, into);
}

void Rounds::whole(Samples& into) {
  stop_if(stop_);
  begin();
  at::Tensor loss = whole_forward(model_, in_flight_.front());
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

void Rounds::recomputed(Samples& into) {
  std::vector<Lap> laps;
  std::deque<std::vector<at::Tensor>> boundaries;  // what the second device reads of the first
  begin();
  upwards([&](MicroBatch& batch, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      time(laps, i, Timed::forward_without_stash, [&] {
        forward(model_, i, batch);
        batch.stash[i].clear();
      });
    }
    if (end == cut_) boundaries.push_back(batch.outputs);
  });
  downwards([&](MicroBatch& batch, std::size_t first, std::size_t end) {
    if (first > 0) {
      batch.outputs = std::move(boundaries.front());
      boundaries.pop_front();
    }
    batch.purpose = Purpose::again;
    for (std::size_t i = first; i < end; ++i) {
      time(laps, i, Timed::recompute, [&] { forward(model_, i, batch); });
    }
    batch.purpose = Purpose::training;
    for (at::Tensor& output : batch.outputs) output.reset();
    for (std::size_t i = end; i-- > first;) {
      time(laps, i, Timed::backward_of_recomputed, [&] { backward(model_, i, batch); });
    }
  });
  updates(laps);
  note(laps, into);
}

}  // namespace stageline::executor
