#include "tools/base/text.hpp"

#include "tools/base/table.hpp"

namespace stageline {

std::string signed_time(Time time) {
  if (time == Time{}) return "0";
  return (time < Time{} ? "-" : "+") + print(time < Time{} ? -time : time);
}

std::string signed_share(double share) {
  const std::string text = percent(share < 0 ? -share : share);
  return text == percent(0) ? text : (share < 0 ? "-" : "+") + text;
}

}  // namespace stageline
