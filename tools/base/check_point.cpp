#include "tools/base/check_point.hpp"

namespace stageline {
namespace {

thread_local const CheckPoint* looked_at = nullptr;

}  // namespace

LooksAt::LooksAt(const CheckPoint* point) : before_(looked_at) { looked_at = point; }

LooksAt::~LooksAt() { looked_at = before_; }

const CheckPoint* check_point() { return looked_at; }

bool until_stopped(const std::atomic<bool>* stop, const std::function<void()>& work) {
  if (stop == nullptr) {
    work();
    return true;
  }
  const CheckPoint point = [stop] {
    if (stop->load()) throw CalledOff();
  };
  const LooksAt looks(&point);
  try {
    work();
    return true;
  } catch (const CalledOff&) {
    return false;
  }
}

void look_at_check_point() {
  if (looked_at != nullptr) (*looked_at)();
}

}  // namespace stageline
