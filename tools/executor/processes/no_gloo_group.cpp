// What takes the place of gloo_group.cpp where Meson finds no Gloo.
#include "sim/base/errors.hpp"
#include "tools/executor/processes/gloo_group.hpp"

namespace stageline::executor {

struct Transfer::Work {};
struct GlooGroup::State {};

std::string no_gloo() {
  return "this program was built without Gloo, so it cannot run as several processes; install "
         "libgloo-dev and build it again";
}

bool Transfer::wait() const { return false; }
void Transfer::abort() const {}

GlooGroup::GlooGroup(const Place& /*place*/, std::chrono::seconds /*timeout*/) {
  throw UsageError(no_gloo());
}
GlooGroup::~GlooGroup() = default;
Transfer GlooGroup::send(int /*to*/, int /*tag*/, const at::Tensor& /*bytes*/) { return {}; }
Transfer GlooGroup::receive(int /*from*/, int /*tag*/, const at::Tensor& /*bytes*/) { return {}; }

}  // namespace stageline::executor
