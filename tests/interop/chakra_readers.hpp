// Chakra execution traces, read twice: by the classes that protoc makes of our schema, and byte by
// byte from the field numbers in Chakra's documentation.
#pragma once

#include <doctest/doctest.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "traces/chakra/chakra.pb.h"

namespace stageline::test {

// ---- a node, however it was read ----------------------------------------------------------------

struct Node {
  std::uint64_t id = 0;
  std::string name;
  std::uint64_t type = 0;
  std::vector<std::uint64_t> deps;
  std::uint64_t micros = 0;
  std::map<std::string, std::string> attributes;

  friend bool operator==(const Node&, const Node&) = default;
  std::int64_t number(const std::string& attribute) const {
    return std::stoll(attributes.at(attribute));
  }
};

struct Trace {
  std::string version;
  std::vector<Node> nodes;
  friend bool operator==(const Trace&, const Trace&) = default;
};

// ---- by the classes that protoc makes of our schema ---------------------------------------------

inline Trace by_classes(const std::string& bytes) {
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  bool end = false;
  chakra::GlobalMetadata metadata;
  REQUIRE(google::protobuf::util::ParseDelimitedFromZeroCopyStream(&metadata, &in, &end));
  Trace trace{metadata.version(), {}};
  while (true) {
    chakra::Node message;
    if (!google::protobuf::util::ParseDelimitedFromZeroCopyStream(&message, &in, &end)) {
      REQUIRE(end);
      return trace;
    }
    Node node{message.id(),
              message.name(),
              static_cast<std::uint64_t>(message.type()),
              {message.data_deps().begin(), message.data_deps().end()},
              message.duration_micros(),
              {}};
    for (const chakra::Attribute& attribute : message.attr()) {
      std::string value;
      switch (attribute.value_case()) {
        case chakra::Attribute::kInt32Val:
          value = std::to_string(attribute.int32_val());
          break;
        case chakra::Attribute::kInt64Val:
          value = std::to_string(attribute.int64_val());
          break;
        case chakra::Attribute::kUint32Val:
          value = std::to_string(attribute.uint32_val());
          break;
        case chakra::Attribute::kUint64Val:
          value = std::to_string(attribute.uint64_val());
          break;
        case chakra::Attribute::kBoolVal:
          value = std::to_string(attribute.bool_val() ? 1 : 0);
          break;
        case chakra::Attribute::kStringVal:
          value = attribute.string_val();
          break;
        case chakra::Attribute::VALUE_NOT_SET:
          value = "none";
          break;
      }
      node.attributes[attribute.name()] = value;
    }
    trace.nodes.push_back(std::move(node));
  }
}

// ---- byte by byte, from the field numbers in Chakra's documentation -----------------------------

struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;  // of a varint
  std::string bytes;        // of what has a length
};

inline std::uint64_t take_varint(const std::string& bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    REQUIRE(at < bytes.size());
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

inline std::string take_bytes(const std::string& bytes, std::size_t& at) {
  const std::uint64_t length = take_varint(bytes, at);
  REQUIRE(at + length <= bytes.size());
  at += length;
  return bytes.substr(at - length, length);
}

inline std::vector<Field> fields_of(const std::string& message) {
  std::vector<Field> fields;
  for (std::size_t at = 0; at < message.size();) {
    const std::uint64_t key = take_varint(message, at);
    Field field{key >> 3, 0, ""};
    if ((key & 7) == 0) {
      field.value = take_varint(message, at);
    } else {
      REQUIRE((key & 7) == 2);
      field.bytes = take_bytes(message, at);
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

inline Trace by_hand(const std::string& bytes) {
  Trace trace;
  std::size_t at = 0;
  for (const Field& field : fields_of(take_bytes(bytes, at))) {
    if (field.number == 1) trace.version = field.bytes;
  }
  while (at < bytes.size()) {
    Node node;
    for (const Field& field : fields_of(take_bytes(bytes, at))) {
      if (field.number == 1) node.id = field.value;
      if (field.number == 2) node.name = field.bytes;
      if (field.number == 3) node.type = field.value;
      if (field.number == 7) node.micros = field.value;
      if (field.number == 5) {
        for (std::size_t i = 0; i < field.bytes.size();) {
          node.deps.push_back(take_varint(field.bytes, i));
        }
      }
      if (field.number != 10) continue;
      std::string name;
      std::string value;
      for (const Field& part : fields_of(field.bytes)) {
        if (part.number == 1) {
          name = part.bytes;
        } else if (part.number == 29) {
          value = part.bytes;
        } else {
          CHECK(std::set<std::uint64_t>{7, 9, 13, 27}.count(part.number) == 1);
          value = std::to_string(part.value);
        }
      }
      node.attributes[name] = value;
    }
    trace.nodes.push_back(std::move(node));
  }
  return trace;
}

}  // namespace stageline::test
