// Reads Chakra execution traces, one file a rank: our own by the names of their nodes, which are
// ops, and others by their messages.
#include <fmt/format.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/index.hpp"
#include "sim/program.hpp"
#include "traces/chakra/chakra.pb.h"
#include "traces/chakra/ranks.hpp"

namespace stageline {
namespace {

ChakraWork work_of(chakra::NodeType type) {
  switch (type) {
    case chakra::COMP_NODE:
      return ChakraWork::compute;
    case chakra::COMM_SEND_NODE:
      return ChakraWork::send;
    case chakra::COMM_RECV_NODE:
      return ChakraWork::receive;
    case chakra::COMM_COLL_NODE:
      return ChakraWork::collective;
    default:
      return ChakraWork::other;
  }
}

std::int64_t number_in(const chakra::Attribute& attribute) {
  switch (attribute.value_case()) {
    case chakra::Attribute::kInt32Val:
      return attribute.int32_val();
    case chakra::Attribute::kInt64Val:
      return attribute.int64_val();
    case chakra::Attribute::kUint32Val:
      return attribute.uint32_val();
    case chakra::Attribute::kUint64Val:
      return static_cast<std::int64_t>(attribute.uint64_val());
    default:
      return -1;
  }
}

class RankReader {
 public:
  explicit RankReader(const NamedText& text)
      : text_(text), in_(text.text.data(), static_cast<int>(text.text.size())) {
    rank_.file = text.file;
  }

  ChakraRank read() {
    if (text_.text.size() > as_size(std::numeric_limits<int>::max())) {
      refuse("it has more than 2^31 - 1 bytes, and protobuf reads no more");
    }
    chakra::GlobalMetadata metadata;
    if (!take(metadata)) refuse("it has no message, and a Chakra trace begins with its metadata");
    for (const chakra::Attribute& attribute : metadata.attr()) {
      if (attribute.name() == "stageline_program") rank_.header = attribute.string_val();
      if (attribute.name() == "stageline_device") rank_.device = attribute.string_val();
      if (attribute.name() == "stageline_ranks") rank_.ranks = attribute.string_val();
    }
    for (chakra::Node node; take(node); node.Clear()) add(node);
    if (rank_.nodes.empty()) refuse("it has no node");
    join();
    return std::move(rank_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw TraceError(text_.file, "", what);
  }

  // False at the end of the file.
  template <class Message>
  bool take(Message& message) {
    bool end = false;
    if (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&message, &in_, &end)) return true;
    if (!end) {
      refuse(
          fmt::format("message {} is damaged or cut off: it is no varint32-delimited message of "
                      "Chakra's schema",
                      rank_.nodes.size() + 1));
    }
    return false;
  }

  void add(const chakra::Node& node) {
    if (!index_of_.emplace(node.id(), rank_.nodes.size()).second) {
      refuse(fmt::format("the id {} is of two nodes, \"{}\" and another before it", node.id(),
                         node.name()));
    }
    ChakraNode& one = rank_.nodes.emplace_back();
    one.name = node.name();
    one.work = work_of(node.type());
    const char* const end = one.work == ChakraWork::send ? "comm_dst" : "comm_src";
    for (const chakra::Attribute& attribute : node.attr()) {
      if (attribute.name() == end) one.peer = number_in(attribute);
      if (attribute.name() == "comm_tag") one.tag = number_in(attribute);
    }
    std::vector<std::uint64_t>& needed = needs_.emplace_back();
    needed.assign(node.data_deps().begin(), node.data_deps().end());
    needed.insert(needed.end(), node.ctrl_deps().begin(), node.ctrl_deps().end());
  }

  void join() {
    for (std::size_t i = 0; i < rank_.nodes.size(); ++i) {
      for (const std::uint64_t id : needs_[i]) {
        const auto found = index_of_.find(id);
        if (found != index_of_.end()) rank_.nodes[i].needs.push_back(found->second);
      }
    }
  }

  const NamedText& text_;
  google::protobuf::io::ArrayInputStream in_;
  ChakraRank rank_;
  std::unordered_map<std::uint64_t, std::size_t> index_of_;
  std::vector<std::vector<std::uint64_t>> needs_;
};

ReadProgram program_of_names(const std::vector<ChakraRank>& ranks) {
  std::string text = ranks[0].header;
  for (const ChakraRank& rank : ranks) {
    if (rank.header != ranks[0].header) {
      throw TraceError(rank.file, "",
                       fmt::format("it is of another program than {}, by the metadata that "
                                   "Stageline wrote into both",
                                   ranks[0].file));
    }
    if (rank.ranks != std::to_string(ranks.size())) {
      throw TraceError(rank.file, "",
                       fmt::format("it is of a program of {} ranks, and there {} {} file{}",
                                   rank.ranks, ranks.size() == 1 ? "is" : "are", ranks.size(),
                                   ranks.size() == 1 ? "" : "s"));
    }
    text += rank.device;
    for (const ChakraNode& node : rank.nodes) text += " " + node.name;
    text += "\n";
  }
  return {parse_program(text), {}};
}

}  // namespace

ReadProgram read_chakra(const std::vector<NamedText>& ranks) {
  std::vector<ChakraRank> read;
  read.reserve(ranks.size());
  for (const NamedText& rank : ranks) read.push_back(RankReader(rank).read());
  const bool own = std::any_of(read.begin(), read.end(),
                               [](const ChakraRank& rank) { return !rank.header.empty(); });
  return own ? program_of_names(read) : program_of_messages(read);
}

}  // namespace stageline
