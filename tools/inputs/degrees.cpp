#include "tools/inputs/degrees.hpp"

#include <fmt/core.h>

#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/names.hpp"

namespace stageline {

Degrees completed(Degrees degrees, int devices) {
  const int width = degrees.width();
  const std::string product =
      fmt::format("--tp {} × --cp {} × --dp {}", degrees.tensor, degrees.context, degrees.data);
  if (degrees.pipeline == 0) {
    if (width < 1 || devices % width != 0) {
      throw UsageError(fmt::format(
          "{} = {} does not divide the {} devices; change a degree, or give --devices a "
          "multiple of {}",
          product, width, devices, width));
    }
    degrees.pipeline = devices / width;
  } else if (width * degrees.pipeline != devices) {
    throw UsageError(fmt::format(
        "{} × --pp {} are {} devices, not {}; change a degree, or leave out --devices or --pp",
        product, degrees.pipeline, width * degrees.pipeline, devices));
  }
  return degrees;
}

std::string print(const Degrees& degrees) {
  const std::pair<const char*, int> all[] = {{"tp", degrees.tensor},
                                             {"cp", degrees.context},
                                             {"ep", degrees.expert},
                                             {"dp", degrees.data},
                                             {"pp", degrees.pipeline}};
  std::string text;
  for (const auto& [dimension, degree] : all) {
    if (degree == 1 || degree == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : " × ", dimension, degree);
  }
  if (degrees.folded()) text += fmt::format(" (etp {})", degrees.expert_tensor);
  return text;
}

Zero parse_zero(const std::string& text, const std::string& what) {
  return one_of(all_zeros, text, what);
}

Sharing parse_sharing(const std::string& text, const std::string& what) {
  return one_of(all_sharings, text, what);
}

}  // namespace stageline
