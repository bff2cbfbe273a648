// Where long work may be called off: between simulations, and between calls in parallel.
#pragma once

#include <atomic>
#include <functional>

namespace stageline {

/// Checks whether the work is still wanted; throws CalledOff where it is not.
using CheckPoint = std::function<void()>;

/// Thrown where work is called off. It is no std::exception: handlers of errors let it pass.
struct CalledOff {};

/// Sets this thread's check point for the object's lifetime. Null: it has none.
class LooksAt {
 public:
  explicit LooksAt(const CheckPoint* point);
  ~LooksAt();
  LooksAt(const LooksAt&) = delete;
  LooksAt& operator=(const LooksAt&) = delete;

 private:
  const CheckPoint* before_;
};

/// This thread's check point, to hand to threads that help it; null: it has none.
const CheckPoint* check_point();

/// Calls `work`, and calls it off once `stop` is set. Whether it came to its end. With null, only
/// the check point that this thread has already calls it off.
bool until_stopped(const std::atomic<bool>* stop, const std::function<void()>& work);

/// Called between the parts of long work: a simulation, a call of in_parallel().
void look_at_check_point();

}  // namespace stageline
