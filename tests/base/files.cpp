// Reading and writing files, tables, inputs: the edges of the command.
#include "tools/base/files.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sim/base/errors.hpp"
#include "tools/base/outputs.hpp"
#include "tools/base/parallel.hpp"
#include "tools/base/provided_files.hpp"
#include "tools/base/table.hpp"
#include "tools/inputs/inputs.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/inputs/recordings.hpp"
#include "traces/json/tree.hpp"
#include "traces/traces.hpp"

namespace stageline::files_tests {
namespace {

namespace fs = std::filesystem;

fs::path fresh_folder() {
  const fs::path folder = fs::temp_directory_path() / "stageline-test-files";
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

TEST_CASE("what is provided is read in place of a file, the latest first, while it lives") {
  const fs::path folder = fresh_folder();
  const std::string file = (folder / "a.txt").string();
  write_file(file, "of the disk");
  {
    const ProvidedFiles one(ProvidedFiles::Contents{{file, "one"}, {"nowhere/b.txt", "b"}});
    CHECK(read_file(file) == "one");
    CHECK(is_regular_input("nowhere/b.txt"));
    {
      const ProvidedFiles two(ProvidedFiles::Contents{{file, std::string("t\0o", 3)}});
      CHECK(read_file(file).size() == 3);
      CHECK_THROWS_WITH_AS(read_text(file), doctest::Contains("byte 1 is zero"), UsageError);
    }
    CHECK(read_text(file) == "one");
    // Threads that help read it, others do not.
    std::vector<std::string> read(4);
    in_parallel(read.size(), 4, [&](std::size_t i) { read[i] = read_file(file); });
    CHECK(read == std::vector<std::string>(4, "one"));
    std::thread([&] { read[0] = read_file(file); }).join();
    CHECK(read[0] == "of the disk");
  }
  CHECK(read_file(file) == "of the disk");
  CHECK_FALSE(is_regular_input("nowhere/b.txt"));
}

TEST_CASE("a written file is whole and leaves nothing beside it") {
  const fs::path folder = fresh_folder();
  const std::string file = (folder / "a.txt").string();
  write_file(file, "one\n");
  write_file(file, "two\n");
  CHECK(read_file(file) == "two\n");
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
}

// RLIMIT_FSIZE: the system kills the child in the middle of its write.
TEST_CASE("a writer that is killed leaves what was there, and nothing beside it") {
  const fs::path folder = fresh_folder();
  const std::string file = (folder / "a.txt").string();
  write_file(file, "kept\n");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit little{4096, 4096};
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &little);
    ::setrlimit(RLIMIT_CORE, &none);
    ::signal(SIGXFSZ, SIG_DFL);
    write_file(file, std::string(1 << 20, 'x'));
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(read_file(file) == "kept\n");
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
}

TEST_CASE("a file's size is looked at before it is read, and a text ends at a zero byte") {
  const std::string file = (fresh_folder() / "a.json").string();
  write_file(file, "");
  fs::resize_file(file, longest_file + 1);  // takes no place
  CHECK_THROWS_WITH_AS(
      read_file(file),
      ("cannot read \"" + file + "\": it has 4294967297 bytes; at most 4294967296 are read")
          .c_str(),
      UsageError);
  fs::resize_file(file, longest_file);  // of which no more than the beginning is read
  CHECK_THROWS_WITH_AS(
      read_text(file),
      ("cannot read \"" + file + "\": it has 4294967296 bytes; at most 268435456 are read").c_str(),
      UsageError);
  const std::string zero = "cannot read \"" + file + "\": byte 0 is zero, so this is no text";
  CHECK_THROWS_WITH_AS(read_content(file), zero.c_str(), UsageError);
  fs::resize_file(file, longest_text);
  CHECK_THROWS_WITH_AS(read_text(file), zero.c_str(), UsageError);
  {
    std::ofstream out(file, std::ios::binary);
    out << "{" << std::string(json_longest_text, ' ');
  }
  fs::resize_file(file, longest_text);
  CHECK_THROWS_WITH_AS(read_content(file),
                       doctest::Contains("the file has 268435456 bytes; at most 16777216 are read"),
                       TraceError);
}

TEST_CASE("a file beside a written one is named without its ending, packed or not") {
  for (const char* const given : {"of/a.json", "of/a.json.gz"}) {
    CHECK(pattern_of("{stem}.summary.json", given) == "of/a.summary.json");
  }
  CHECK(pattern_of("{}.notes", "a.json.gz") == "a.json.gz.notes");
}

TEST_CASE("a byte order mark is no part of a text") {
  const fs::path folder = fresh_folder();
  const std::string file = (folder / "a.txt").string();
  const std::string mark = "\xEF\xBB\xBF";
  write_file(file, mark + "one\n");
  CHECK(read_text(file) == "one\n");
  CHECK(read_file(file) == mark + "one\n");
  write_file(file, "\xFF\xFEo");
  CHECK_THROWS_WITH_AS(read_text(file),
                       ("cannot read \"" + file +
                        "\": it is not in UTF-8, as its byte order mark says (UTF-16 or UTF-32); "
                        "save it as UTF-8")
                           .c_str(),
                       UsageError);
  // Wherever a text is read.
  write_file(file, mark + write_trace({uniform_model("layers=3")}));
  CHECK(open_trace({file, 0, 0, {}}).layers.size() == 3);
  CHECK(read_content(file).named.text.front() == '{');
  const std::string program =
      "stageline-program 1\nmicrobatches: 1\nstage 0: gpu0\ngpu0: 0F0 0B0\n";
  write_file(file, mark + program);
  CHECK(is_program_file(file));
  CHECK(read_program(file, true).total_microbatches() == 1);
  write_file(file, mark + "0F0,0B0\n");
  CHECK(is_program_file(file));
  CHECK(read_program(file, true).total_microbatches() == 1);
  write_file(file, mark + "Et|tL\n");
  CHECK(partition_text(file) == "Et|tL");
  write_file(file, mark +
                       "node1 -- Input0 -- forward_compute_time=0.000, "
                       "backward_compute_time=0.000, activation_size=8.0, parameter_size=0.000\n"
                       "node2 -- Linear -- forward_compute_time=1.000, "
                       "backward_compute_time=2.000, activation_size=8.0, parameter_size=4.000\n"
                       "\tnode1 -- node2\n");
  CHECK(open_trace({file, 0, 1, {}}).layers.size() == 2);
}

TEST_CASE("a write that fails leaves what was there") {
  const fs::path folder = fresh_folder();
  const std::string file = (folder / "a.txt").string();
  write_file(file, "kept\n");
  CHECK_THROWS_WITH_AS(write_file(folder.string(), "x"),
                       ("cannot write \"" + folder.string() + "\": it is a folder").c_str(),
                       UsageError);
  CHECK_THROWS_WITH_AS(
      write_file(file + "/b.txt", "x"),
      ("cannot write \"" + file + "/b.txt\": \"" + file + "\" is not a folder").c_str(),
      UsageError);
  CHECK(read_file(file) == "kept\n");
}

TEST_CASE("a missing folder is said and not made") {
  const fs::path folder = fresh_folder() / "new";
  const std::string file = (folder / "a.txt").string();
  CHECK_THROWS_WITH_AS(
      write_file(file, "x"),
      ("cannot write \"" + file + "\": there is no folder \"" + folder.string() + "\"").c_str(),
      UsageError);
  CHECK_FALSE(fs::exists(folder));
}

TEST_CASE("a file that is written again keeps its permission bits") {
  const std::string file = (fresh_folder() / "a.txt").string();
  write_file(file, "one\n");
  const fs::perms odd = fs::perms::owner_read | fs::perms::owner_write | fs::perms::others_exec;
  fs::permissions(file, odd);
  write_file(file, "two\n");
  CHECK(fs::status(file).permissions() == odd);
  CHECK(read_file(file) == "two\n");
}

TEST_CASE("what a chain of symbolic links ends at is written, and the links stay") {
  const fs::path folder = fresh_folder();
  fs::create_directories(folder / "far");
  fs::create_symlink("far/b", folder / "a");
  fs::create_symlink(folder / "far" / "c", folder / "far" / "b");
  const fs::path target = folder / "far" / "c";
  for (const char* const content : {"the link dangles\n", "it does not\n"}) {
    write_file((folder / "a").string(), content);
    CHECK(fs::is_symlink(folder / "a"));
    CHECK(fs::is_symlink(folder / "far" / "b"));
    CHECK_FALSE(fs::is_symlink(target));
    CHECK(read_file(target.string()) == content);
  }
  fs::create_symlink("loop", folder / "loop");
  CHECK_THROWS_AS(write_file((folder / "loop").string(), "x"), UsageError);
  CHECK(fs::is_symlink(folder / "loop"));
}

TEST_CASE("a FIFO is written in place, also behind a symbolic link") {
  const fs::path folder = fresh_folder();
  const fs::path fifo = folder / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  fs::create_symlink("fifo", folder / "link");
  for (const char* const name : {"fifo", "link"}) {
    std::string arrived;
    std::thread reader([&] { arrived = read_file(fifo.string()); });
    write_file((folder / name).string(), "through\n");
    // Where the FIFO was replaced, nobody would ever let the reader go.
    const bool kept = fs::is_fifo(fifo);
    if (!kept) reader.detach();
    REQUIRE(kept);
    reader.join();
    CHECK(arrived == "through\n");
  }
  CHECK(fs::is_symlink(folder / "link"));
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
}  // namespace stageline::files_tests
