// The folder of a sweep: a file for each chunk of scenarios, which is there when it is done, and
// sweep.json, which says of what question and of which Stageline the folder is.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/base/provided_files.hpp"
#include "tools/sweep/spec.hpp"

namespace stageline {

/// The i-th of n shards, from 1: it makes the chunks c with c mod n = i − 1.
struct Shard {
  std::int64_t index = 1;
  std::int64_t count = 1;

  bool has(std::int64_t chunk) const { return chunk % count == index - 1; }
};
/// "2/8". Throws UsageError, which begins with `what`.
Shard parse_shard(const std::string& text, const std::string& what);

/// The files that the question names: as a trace, cluster, calibration, layout or perturbation, or
/// in the spelling of one, with the values of axes in place (of up to 10000 for a setting).
std::vector<std::string> named_files(const SweepSpec& spec);

/// What they hold now. A sweep reads them once: they may change while it runs.
FileContents read_named_files(const SweepSpec& spec);

/// Hash of the question, the version and what the files that it names hold: 16 hexadecimal digits.
/// The same on two machines: their rows are the same.
std::string sweep_hash(const SweepSpec& spec, const FileContents& files);

/// The files that a sweep writes to its folder, by pattern_of() of tools/base/outputs.hpp.
inline constexpr std::array<const char*, 3> sweep_folder_forms{"{}/sweep.json", "{}/chunk-*",
                                                               "{}/table.csv.gz"};

/// What a chunk's file holds, from the text of its table.
std::string packed_chunk(const std::string& text);

class SweepFolder {
 public:
  /// Makes the folder where it is missing. Throws UsageError where the path is a file or cannot be
  /// written, and where the folder is of another question, of another Stageline or of files that
  /// have changed since.
  SweepFolder(std::string path, SweepSpec spec, FileContents files);
  /// With read_named_files().
  SweepFolder(std::string path, const SweepSpec& spec);
  /// A folder that is there.
  static SweepFolder open(const std::string& path);

  const std::string& path() const { return path_; }
  const SweepSpec& spec() const { return spec_; }
  /// sweep_hash() where the folder was begun.
  const std::string& hash() const { return hash_; }

  std::string chunk_file(std::int64_t chunk) const;  // "DIR/chunk-000012.csv.gz"
  std::string table_file() const;                    // "DIR/table.csv.gz"
  std::vector<std::int64_t> missing(Shard shard = {}) const;

  /// What read_named_files() returned when the folder was looked at; none after open().
  const FileContents& files() const { return files_; }

  /// Writes sweep.json where it is missing; to be called before the first chunk is written. Throws
  /// UsageError where another process has begun another sweep there since.
  void begin() const;
  /// `text`: the table of its rows, with header. Written beside and renamed.
  void write_chunk(std::int64_t chunk, const std::string& text) const;
  /// The table of a chunk. Throws UsageError where it is damaged, and has to be made anew.
  std::string read_chunk(std::int64_t chunk) const;
  /// Joins all chunks into one table, and removes what killed runs have left half written. Throws
  /// UsageError where chunks are missing, or one is damaged.
  void merge() const;

 private:
  SweepFolder(std::string path, SweepSpec spec, std::string hash);
  void check_begun(const std::filesystem::path& file) const;

  std::string path_;
  SweepSpec spec_;
  std::string hash_;
  std::string manifest_;  // content of sweep.json
  FileContents files_;
};

}  // namespace stageline
