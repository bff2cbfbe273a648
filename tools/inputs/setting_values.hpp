// How the value of a setting gets into a request, and out of it as the text of its flag: the
// functions of the rows in settings.cpp. A value that is the default has no text.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>

#include "sim/degrees.hpp"
#include "tools/inputs/settings.hpp"

namespace stageline::setting_values {

using Value = const SettingValue&;
using Asked = SettingRequest&;

template <int Degrees::*degree>
void set_degree(Value value, Asked asked) {
  asked.degrees.*degree = value.count();
}

template <int EncoderDegrees::*degree>
void set_encoder_degree(Value value, Asked asked) {
  asked.degrees.encoder.*degree = value.count();
}

// On one pipeline rank, unless another setting says how many.
inline void set_encoder(Value value, Asked asked) {
  asked.encoder = value.text();
  if (asked.degrees.encoder.pipeline == 0) asked.degrees.encoder.pipeline = 1;
}

template <std::optional<Bytes> ClusterRequest::*member>
void set_bytes(Value value, Asked asked) {
  asked.cluster.*member = parse_bytes(value.text());
}

template <std::optional<LinkSpec> ClusterRequest::*member>
void set_link(Value value, Asked asked) {
  asked.cluster.*member = parse_link(value.text(), value.what);
}

template <int SettingRequest::*member>
void set_count(Value value, Asked asked) {
  asked.*member = value.count();
}

template <std::string SettingRequest::*member>
void set_text(Value value, Asked asked) {
  asked.*member = value.text();
}

template <bool SettingRequest::*member>
void set_yes(Value value, Asked asked) {
  asked.*member = value.yes;
}

inline void set_partitions(Value value, Asked asked) {
  asked.partition = value.text();
  asked.partitions.clear();
  if (value.texts.size() > 1) asked.partitions = value.texts;
}

using Given = const SettingRequest&;

inline std::string printed_unless(int value, int usual) {
  return value == usual ? "" : fmt::format("{}", value);
}

template <int Degrees::*degree>
std::string print_degree(Given given) {
  return printed_unless(given.degrees.*degree, Degrees{}.*degree);
}

inline std::string print_encoder_ranks(Given given) {
  return given.degrees.encoder.pipeline > 1 ? fmt::format("{}", given.degrees.encoder.pipeline)
                                            : "";
}

template <int SettingRequest::*member>
std::string print_count(Given given) {
  return printed_unless(given.*member, 0);
}

template <bool SettingRequest::*member>
std::string print_yes(Given given) {
  return given.*member ? "true" : "";
}

template <class Value, std::optional<Value> SettingRequest::*member>
std::string print_named(Given given) {
  return given.*member ? std::string(name(*(given.*member))) : "";
}

inline std::string print_devices(Given given) {
  return fmt::format("{}", fmt::join(given.devices, ","));
}

inline std::string print_partition(Given given) {
  return given.partition == SettingRequest{}.partition ? "" : given.partition;
}

inline std::string print_order(Given given) {
  if (given.degrees.order == Degrees{}.order) return "";
  std::string text;
  for (const Dimension dimension : given.degrees.order) {
    text += fmt::format("{}{}", text.empty() ? "" : "-", name(dimension));
  }
  return text;
}

inline std::string print_zero(Given given) {
  return given.degrees.zero == Zero::none ? "" : std::string(name(given.degrees.zero));
}

inline std::string print_recomputation(Given given) {
  return given.recomputation.parts.empty() ? "" : print(given.recomputation);
}

inline std::string print_offloading(Given given) {
  const std::string text = print(given.offloading);
  return text == "none" ? "" : text;
}

inline std::string print_prefetch(Given given) {
  if (print_offloading(given).empty()) return "";
  return printed_unless(given.offloading.ahead, Offloading{}.ahead);
}

}  // namespace stageline::setting_values
