#include "tools/inputs/degrees.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/names.hpp"
#include "sim/base/numbers.hpp"

namespace stageline {

namespace {

// The model's pipeline ranks are what the encoder's leave.
void complete_behind_encoder(Degrees& degrees, int devices) {
  const int of_encoder = degrees.devices_of(degrees.encoder.pipeline);
  const int left = devices - of_encoder;
  if (left > 0 && left % degrees.width() == 0) {
    degrees.pipeline = degrees.encoder.pipeline + left / degrees.width();
    return;
  }
  throw UsageError(fmt::format(
      "the encoder takes {} of the {} devices, and --tp {} × --dp {} = {} does not divide the other "
      "{}; change a degree, or give --devices {}",
      of_encoder, devices, degrees.tensor, degrees.data, degrees.width(), std::max(left, 0),
      of_encoder + std::max(left / degrees.width(), 1) * degrees.width()));
}

}  // namespace

Degrees completed(Degrees degrees, int devices) {
  if (degrees.encoder.pipeline > 0 && degrees.pipeline == 0) {
    complete_behind_encoder(degrees, devices);
    return degrees;
  }
  if (degrees.encoder.pipeline > 0) {
    const int all = degrees.devices_of(degrees.pipeline);
    if (all == devices) return degrees;
    throw UsageError(
        fmt::format("{} are {} devices, not {}; change a degree, or leave out --devices or --pp",
                    device_product(degrees), all, devices));
  }
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

std::string device_product(const Degrees& degrees) {
  const EncoderDegrees& encoder = degrees.encoder;
  if (encoder.pipeline == 0) {
    return fmt::format("--tp {} × --cp {} × --dp {} × --pp {}", degrees.tensor, degrees.context,
                       degrees.data, degrees.pipeline);
  }
  return fmt::format("--dp {} × (--encoder-tp {} × --encoder-pp {} + --tp {} × {} of --pp {})",
                     degrees.data, degrees.tensor_of_encoder(), encoder.pipeline, degrees.tensor,
                     degrees.pipeline - encoder.pipeline, degrees.pipeline);
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
  if (const EncoderDegrees& encoder = degrees.encoder; encoder.pipeline > 0) {
    text += fmt::format(", of which the encoder has {} of tp {}", encoder.pipeline,
                        degrees.tensor_of_encoder());
  }
  return text;
}

namespace {

std::string words_of(const ShardGroup& group) {
  switch (group.span) {
    case ShardSpan::all:
      return "";
    case ShardSpan::ranks:
      return fmt::format(" in groups of {}", group.ranks);
    case ShardSpan::machine:
      return " within machines";
    case ShardSpan::domain:
      return " within NVLink domains";
  }
  return "";  // unreachable; g++ wants it
}

}  // namespace

std::string zero_words(const Degrees& degrees) {
  if (degrees.zero == Zero::none) return "";
  const bool each = degrees.pipeline > 1 && reduces_in_every_backward(degrees);
  return fmt::format("ZeRO {}{}{}", name(degrees.zero), words_of(degrees.shard_group),
                     each ? " in every micro-batch" : "");
}

Zero parse_zero(const std::string& text, const std::string& what) {
  return one_of(all_zeros, text, what);
}

ShardGroup parse_shard_group(const std::string& text, const std::string& what) {
  if (text == "machine") return {ShardSpan::machine, 0};
  if (text == "domain") return {ShardSpan::domain, 0};
  const std::optional<int> ranks = parse_number<int>(text);
  if (!ranks || *ranks < 1) {
    throw UsageError(
        fmt::format("{} is a number of ranks from 1, machine or domain (not \"{}\")", what, text));
  }
  return {ShardSpan::ranks, *ranks};
}

std::string print(const ShardGroup& group) {
  switch (group.span) {
    case ShardSpan::all:
      return "";
    case ShardSpan::ranks:
      return fmt::format("{}", group.ranks);
    case ShardSpan::machine:
      return "machine";
    case ShardSpan::domain:
      return "domain";
  }
  return "";  // unreachable; g++ wants it
}

Sharing parse_sharing(const std::string& text, const std::string& what) {
  return one_of(all_sharings, text, what);
}

}  // namespace stageline
