// Reading and writing files, tables, inputs: the edges of the command.
#include "tools/files.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "sim/errors.hpp"
#include "tools/inputs.hpp"
#include "tools/table.hpp"

namespace stageline {
namespace {

namespace fs = std::filesystem;

fs::path fresh_folder() {
  const fs::path folder = fs::temp_directory_path() / "stageline-test-files";
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

TEST_CASE("a written file is whole and leaves nothing beside it") {
  const fs::path folder = fresh_folder();
  const std::string file = (folder / "new" / "a.txt").string();
  write_file(file, "one\n");
  write_file(file, "two\n");
  CHECK(read_file(file) == "two\n");
  CHECK(std::distance(fs::directory_iterator(folder / "new"), fs::directory_iterator()) == 1);
}

TEST_CASE("a write that fails leaves what was there") {
  const fs::path folder = fresh_folder();
  const std::string file = (folder / "a.txt").string();
  write_file(file, "kept\n");
  CHECK_THROWS_WITH_AS(write_file(folder.string(), "x"),
                       ("cannot write \"" + folder.string() + "\": it is a folder").c_str(),
                       UsageError);
  CHECK_THROWS_AS(write_file(file + "/b.txt", "x"), UsageError);
  CHECK(read_file(file) == "kept\n");
}

TEST_CASE("tables align by characters, not by bytes") {
  CHECK(table({{"name", true}, {"µs"}}, {{"a", "1"}, {"é é", "22"}}) ==
        "name  µs\n────  ──\na      1\né é   22\n");
  CHECK(percent(-0.0001) == "0.0 %");
  CHECK(percent(0.1234) == "12.3 %");
}

TEST_CASE("a link is a bandwidth and perhaps a latency") {
  CHECK(parse_link("12GB/s,5us").latency == parse_time("5us"));
  CHECK(parse_link("12GB/s").latency == Time{});
  CHECK_THROWS_AS(parse_link("12GB"), UsageError);
  CHECK_THROWS_AS(parse_link("12GB/s,5"), UsageError);
}

TEST_CASE("a model priced for a device runs on that device's cluster unless told otherwise") {
  const ClusterChoice choice = choose_cluster({"", {}, {}, "h100"});
  REQUIRE(choice.fixed);
  CHECK(choice.fixed->name == "h100x8");
  CHECK(cluster_of(choice, 3).devices.size() == 3);
  CHECK_THROWS_AS(cluster_of(choice, 9), UsageError);
  const ClusterChoice linked = choose_cluster({"", parse_link("10GB/s"), {}, "h100"});
  CHECK_FALSE(linked.fixed);
  CHECK(linked.memory == parse_bytes("80GB"));
  CHECK(choose_cluster({"", {}, {}, ""}).note.find("communication is free") == 0);
}

}  // namespace
}  // namespace stageline
