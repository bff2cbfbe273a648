// Where long work may be called off: between simulations, and between calls in parallel.
#pragma once

#include <atomic>
#include <functional>

namespace stageline {

/// Looks whether the work is still wanted; throws CalledOff where it is not.
using CheckPoint = std::function<void()>;

/// No error of the input: nothing that the library catches on the way.
struct CalledOff {};

/// This thread looks there at check points, as long as the object lives. Null: at nothing.
class LooksAt {
 public:
  explicit LooksAt(const CheckPoint* point);
  ~LooksAt();
  LooksAt(const LooksAt&) = delete;
  LooksAt& operator=(const LooksAt&) = delete;

 private:
  const CheckPoint* before_;
};

/// What this thread looks at, for threads that help it; null: nothing.
const CheckPoint* check_point();

/// Calls `work`, which is called off once `stop` is set. Whether it came to its end. Null: it does,
/// but for the check point that this thread looks at already.
bool until_stopped(const std::atomic<bool>* stop, const std::function<void()>& work);

/// Called between the parts of long work: a simulation, a call of in_parallel().
void look_at_check_point();

}  // namespace stageline
