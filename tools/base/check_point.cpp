#include "tools/base/check_point.hpp"

namespace stageline {
namespace {

thread_local const CheckPoint* looked_at = nullptr;

}  // namespace

LooksAt::LooksAt(const CheckPoint* point) : before_(looked_at) { looked_at = point; }

LooksAt::~LooksAt() { looked_at = before_; }

const CheckPoint* check_point() { return looked_at; }

void look_at_check_point() {
  if (looked_at != nullptr) (*looked_at)();
}

}  // namespace stageline
