// What no order that goes on from a state can be shorter than.
#include <algorithm>

#include "schedulers/search/order_states.hpp"

namespace stageline {
namespace {

constexpr Time no_time = Time::max() / 4;

}  // namespace

// When the next F and I of each stage can start, by what they need and by their device.
void OrderStates::find_heads(const State& state) const {
  const std::size_t stages = stages_.size();
  const auto done = [&](std::size_t s, std::size_t kind) {
    return std::size_t{state.done[std::size_t{3} * s + kind]};
  };
  // F goes from the first stage on, I from the last.
  for (std::size_t s = 0; s < stages; ++s) {
    const Stage& stage = stages_[s];
    Time& head = head_[std::size_t{2} * s];
    head = no_time;
    if (done(s, 0) == count_) continue;
    head = state.times[stage.device];
    if (s == 0) continue;
    const Stage& before = stages_[s - 1];
    if (done(s, 0) == done(s - 1, 0)) {
      head = std::max(head, head_[2 * s - 2] + before.forward + before.wire + before.latency);
    } else if (stage.from_afar) {
      head = std::max(head, state.times[segment_[std::size_t{2} * s]]);
    }
  }
  for (std::size_t s = stages; s-- > 0;) {
    const Stage& stage = stages_[s];
    Time& head = head_[std::size_t{2} * s + 1];
    head = no_time;
    if (done(s, 1) == count_) continue;
    head = state.times[stage.device];
    if (done(s, 1) == done(s, 0)) head = std::max(head, head_[std::size_t{2} * s] + stage.forward);
    if (s + 1 == stages) continue;
    const Stage& before = stages_[s + 1];
    if (done(s, 1) == done(s + 1, 1)) {
      head = std::max(head, head_[std::size_t{2} * s + 3] + before.backward + before.back_wire +
                                before.back_latency);
    } else if (stage.back_from_afar) {
      head = std::max(head, state.times[segment_[std::size_t{2} * s + 1]]);
    }
  }
}

// The work that is left for a device, and where it has one stage alone what that must wait for.
// Nothing happens there any more before the first op that can.
void OrderStates::add_device(State& state, std::size_t d, Least& least) const {
  const auto done = [&](std::size_t s, std::size_t kind) {
    return std::size_t{state.done[std::size_t{3} * s + kind]};
  };
  const Device& device = devices_[d];
  Time first = no_time;
  Time work{};
  for (const std::uint32_t s : device.stages) {
    const Stage& stage = stages_[s];
    const Time free = state.times[d];
    if (stage.until_weight && done(s, 0) < count_ &&
        done(s, 0) >= done(s, 2) + as_size(stage.most)) {
      const Time weight =
          done(s, 2) < done(s, 1) ? free : head_[std::size_t{2} * s + 1] + stage.backward;
      head_[std::size_t{2} * s] = std::max(head_[std::size_t{2} * s], weight + stage.weight);
    }
    first = std::min({first, head_[std::size_t{2} * s], head_[std::size_t{2} * s + 1],
                      done(s, 2) < done(s, 1) ? free : no_time});
    work += stage.forward * static_cast<std::int64_t>(count_ - done(s, 0)) +
            stage.backward * static_cast<std::int64_t>(count_ - done(s, 1)) +
            stage.weight * static_cast<std::int64_t>(count_ - done(s, 2));
  }
  const Time begins = first == no_time ? state.times[d] : first;
  state.times[d] = begins;
  Time end = begins + work - device.begins;
  least.value = std::max(least.value, end);
  for (const std::uint32_t s : device.stages) {
    if (done(s, 0) < count_) {
      least.value = std::max(least.value, head_[std::size_t{2} * s] + tail(s, 0, done(s, 0)));
    }
    if (done(s, 1) < count_) {
      least.value = std::max(least.value, head_[std::size_t{2} * s + 1] + tail(s, 1, done(s, 1)));
    }
  }
  if (device.stages.size() == 1 && done(device.stages.front(), 1) < count_) {
    const std::uint32_t s = device.stages.front();
    const Stage& stage = stages_[s];
    // Before the next I only so many F and W can run.
    const auto limit = stage.most < 0 ? count_ : as_size(stage.most);
    const std::size_t ahead = done(s, 0) - done(s, 1);
    const std::size_t forwards = std::min(count_ - done(s, 0), std::max(limit, ahead) - ahead);
    const Time before = stage.forward * static_cast<std::int64_t>(forwards) +
                        stage.weight * static_cast<std::int64_t>(done(s, 1) - done(s, 2));
    const Time idle = std::max(head_[std::size_t{2} * s + 1] - begins - before, Time{});
    const bool cools = stage.until_weight && done(s, 1) + limit < count_;
    end += idle + (cools ? stage.cool : Time{});
    least.value = std::max(least.value, end);
    // Until the last I ends all but `limit` W's are done.
    const std::size_t weights =
        stage.until_weight && count_ > limit + done(s, 2) ? count_ - limit - done(s, 2) : 0;
    const Time until = stage.forward * static_cast<std::int64_t>(count_ - done(s, 0)) +
                       stage.backward * static_cast<std::int64_t>(count_ - done(s, 1)) +
                       stage.weight * static_cast<std::int64_t>(weights);
    const Time spare =
        stage.forward * static_cast<std::int64_t>(forwards) +
        stage.weight * static_cast<std::int64_t>(std::min(weights, done(s, 1) - done(s, 2)));
    const Time gap = std::max(head_[std::size_t{2} * s + 1] - begins - spare, Time{});
    least.value = std::max(
        least.value, begins + until + gap + (cools ? stage.cool_input : Time{}) + stage.after_last);
  }
  least.sum += end.count();
}

OrderStates::Least OrderStates::least(State& state) const {
  find_segments(state);
  find_heads(state);
  Least least{Time{}, 0};
  for (std::size_t d = 0; d < devices_.size(); ++d) add_device(state, d, least);
  // Nothing is read before its device is free.
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    for (std::size_t kind = 0; kind < 2; ++kind) {
      const std::size_t number = 2 * s + kind;
      const std::size_t to =
          number + 1 < segment_.size() ? segment_[number + 1] : state.times.size();
      for (std::size_t at = segment_[number]; at < to; ++at) {
        state.times[at] = std::max(state.times[at], state.times[stages_[s].device]);
      }
    }
  }
  return least;
}

}  // namespace stageline
