// Are Chakra execution traces read as the programs that were run: our own as they were written,
// those of others by the messages between their ranks?
#include <doctest/doctest.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <algorithm>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "tests/interop/csv.hpp"
#include "tests/text.hpp"
#include "traces/chakra/chakra.pb.h"

namespace stageline::chakra_reader_tests {
namespace {

// ---- files --------------------------------------------------------------------------------------

std::vector<NamedText> files_of(const ChakraTraces& traces) {
  std::vector<NamedText> files;
  for (const std::string& bytes : traces.ranks) {
    files.push_back({"run." + std::to_string(files.size()) + ".et", bytes});
  }
  return files;
}

std::vector<NamedText> written_files(const Program& program) {
  return files_of(write_chakra(
      program, uniform_costs(program.stages(), static_cast<int>(program.devices.size()), Time{3},
                             Time{2}, Time{1})));
}

// The nodes as another tool would write them: without our metadata, under names of its own, and as
// `change` makes them.
std::vector<NamedText> of_another_tool(
    const std::vector<NamedText>& files,
    const std::function<bool(chakra::Node&)>& change = [](chakra::Node&) { return true; }) {
  std::vector<NamedText> others;
  for (const NamedText& file : files) {
    google::protobuf::io::ArrayInputStream in(file.text.data(), static_cast<int>(file.text.size()));
    std::ostringstream out;
    bool end = false;
    chakra::GlobalMetadata metadata;
    REQUIRE(google::protobuf::util::ParseDelimitedFromZeroCopyStream(&metadata, &in, &end));
    metadata.clear_attr();
    REQUIRE(google::protobuf::util::SerializeDelimitedToOstream(metadata, &out));
    chakra::Node node;
    while (google::protobuf::util::ParseDelimitedFromZeroCopyStream(&node, &in, &end)) {
      node.set_name("aten::op");
      if (change(node)) REQUIRE(google::protobuf::util::SerializeDelimitedToOstream(node, &out));
      node.Clear();
    }
    others.push_back({file.file, out.str()});
  }
  return others;
}

Program with_all(const Program& program) {
  return add_transfers(add_reductions(add_updates(program)));
}

std::string refusal(const std::vector<NamedText>& files) {
  return test::complaint<TraceError>([&] { read_chakra(files); });
}

// ---- our own ------------------------------------------------------------------------------------

TEST_CASE("what we write is read as it was, for every schedule that Chakra holds") {
  int read = 0;
  for (const ScheduleSpec& spec : test::all_specs(4)) {
    Program program;
    ChakraTraces traces;
    try {
      program = test::written(spec, 4, 6);
      traces = write_chakra(program, uniform_costs(program.stages(), 4, Time{3}, Time{2}, Time{1}));
    } catch (const UsageError&) {
      continue;  // so many devices do not suit the schedule, or Chakra does not
    }
    const std::string name = spelled(spec);
    CAPTURE(name);
    const ReadProgram again = read_chakra(files_of(traces));
    CHECK(again.program == with_all(program));
    CHECK(again.notes.empty());
    ++read;
  }
  CHECK(read > 20);
}

TEST_CASE("files of two programs, and one rank of several, are refused") {
  std::vector<NamedText> files = written_files(test::written(test::spec("1f1b"), 2, 2));
  std::vector<NamedText> mixed = files;
  mixed[1] = written_files(test::written(test::spec("gpipe"), 2, 2))[1];
  CHECK(refusal(mixed) ==
        "run.1.et: it is of another program than run.0.et, by the metadata that Stageline wrote "
        "into both");
  files.pop_back();
  CHECK(refusal(files) == "run.0.et: it is of a program of 2 ranks, and there is 1 file");
}

// ---- those of others ----------------------------------------------------------------------------

TEST_CASE("a pipeline is ordered by its messages where nodes have other names") {
  for (const char* const name : {"1f1b", "gpipe", "eager_1f1b"}) {
    for (const int devices : {2, 3, 4}) {
      CAPTURE(name);
      CAPTURE(devices);
      Program program;
      try {
        program = test::written(test::spec(name), devices, 5);
      } catch (const UsageError&) {
        continue;
      }
      const ReadProgram read = read_chakra(of_another_tool(written_files(program)));
      CHECK(read.program.ops == program.ops);
      CHECK(read.program.placement == program.placement);
      REQUIRE(read.notes.size() == 2);
      CHECK(test::contains(read.notes[0], "its nodes are not named as ops"));
    }
  }
}

TEST_CASE("several nodes are one pass, and collectives are left out") {
  const Program program = test::written(test::spec("1f1b"), 3, 4);
  // Each node that computes becomes a collective and two that compute, of which the last has the
  // id.
  std::vector<NamedText> files = of_another_tool(written_files(program));
  for (NamedText& file : files) {
    google::protobuf::io::ArrayInputStream in(file.text.data(), static_cast<int>(file.text.size()));
    std::ostringstream out;
    bool end = false;
    chakra::GlobalMetadata metadata;
    REQUIRE(google::protobuf::util::ParseDelimitedFromZeroCopyStream(&metadata, &in, &end));
    REQUIRE(google::protobuf::util::SerializeDelimitedToOstream(metadata, &out));
    chakra::Node node;
    for (std::uint64_t fresh = 1000;
         google::protobuf::util::ParseDelimitedFromZeroCopyStream(&node, &in, &end); node.Clear()) {
      if (node.type() == chakra::COMP_NODE) {
        chakra::Node first = node;
        first.set_id(++fresh);
        chakra::Node sum = node;
        sum.set_type(chakra::COMM_COLL_NODE);
        sum.set_id(fresh + 1);
        sum.clear_data_deps();
        sum.add_ctrl_deps(fresh++);
        node.clear_data_deps();
        node.add_ctrl_deps(fresh);
        REQUIRE(google::protobuf::util::SerializeDelimitedToOstream(first, &out));
        REQUIRE(google::protobuf::util::SerializeDelimitedToOstream(sum, &out));
      }
      REQUIRE(google::protobuf::util::SerializeDelimitedToOstream(node, &out));
    }
    file.text = out.str();
  }
  const ReadProgram read = read_chakra(files);
  CHECK(read.program.ops == program.ops);
  CHECK(read.notes[1] == "27 collectives are left out");
}

TEST_CASE("ranks that are no chain, or whose messages do not pair, are refused") {
  const auto files = [](const char* name, int devices) {
    return of_another_tool(written_files(test::written(test::spec(name), devices, 12)));
  };
  CHECK(test::contains(refusal(files("interleaved_1f1b", 3)), "which are not read"));
  CHECK(!refusal(files("chimera", 4)).empty());  // two pipelines over the same ranks
  std::vector<NamedText> missing = files("1f1b", 3);
  missing.pop_back();
  CHECK(test::contains(refusal(missing), "there are 2 files, of ranks 0 to 1; give those of all"));
  const std::vector<NamedText> plain = written_files(test::written(test::spec("1f1b"), 2, 4));
  CHECK(test::contains(refusal(of_another_tool(plain,
                                               [](chakra::Node& node) {
                                                 return node.type() != chakra::COMM_SEND_NODE &&
                                                        node.type() != chakra::COMM_RECV_NODE;
                                               })),
                       "no rank sends a message to another"));
  int dropped = 0;
  CHECK(test::contains(refusal(of_another_tool(plain,
                                               [&](chakra::Node& node) {
                                                 return node.type() != chakra::COMM_SEND_NODE ||
                                                        ++dropped != 2;
                                               })),
                       "rank 0 sends 3 messages to rank 1, which receives 4"));
}

TEST_CASE("damaged files are refused, wherever they are cut") {
  const std::vector<NamedText> files = written_files(test::written(test::spec("1f1b"), 2, 2));
  CHECK(refusal({{"run.0.et", ""}}) ==
        "run.0.et: it has no message, and a Chakra trace begins with its metadata");
  const std::string& text = files[0].text;
  int refused = 0;
  for (std::size_t length = 1; length < text.size(); ++length) {
    try {
      read_chakra({{"run.0.et", text.substr(0, length)}, files[1]});
    } catch (const TraceError&) {
      ++refused;
    } catch (const ProgramError&) {
      ++refused;  // cut between two nodes: the program lacks ops, or has none at all
    }
  }
  CHECK(refused > static_cast<int>(text.size()) / 2);
}

}  // namespace
}  // namespace stageline::chakra_reader_tests
