// Reads and writes the folder of a sweep.
#include "tools/sweep/folder.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include "cost_models/roofline.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/numbers.hpp"
#include "tools/base/files.hpp"
#include "tools/base/json.hpp"
#include "tools/base/provided_files.hpp"
#include "tools/base/version.hpp"
#include "tools/sweep/rows.hpp"
#include "traces/gzip.hpp"
#include "traces/json/tree.hpp"

namespace stageline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_format = "stageline-sweep-folder 1";
constexpr std::string_view manifest_name = "sweep.json";
constexpr std::string_view chunk_lead = "chunk-";

std::string digest_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // Fowler, Noll and Vo
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

struct Manifest {
  std::string question;  // as JSON
  std::string version;
  std::string files;  // as JSON
  std::string hash;
  std::string text;
};

Manifest manifest_of(const SweepSpec& spec, const FileContents& files) {
  Manifest manifest;
  const Json question = question_json(spec);
  manifest.question = question.text();
  manifest.version = std::string(version());
  Json hashes = Json::object();
  for (const auto& [path, content] : files) hashes[path] = digest_of(*content);
  manifest.files = hashes.text();
  manifest.hash = digest_of(manifest.question + '\0' + manifest.version + '\0' + manifest.files);
  const Json text{{"format", folder_format},
                  {"version", manifest.version},
                  {"hash", manifest.hash},
                  {"question", question},
                  {"files", hashes},
                  {"scenarios", spec.scenarios()},
                  {"chunk", spec.chunk},
                  {"chunks", spec.chunks()},
                  {"columns", sweep_columns(spec)}};
  manifest.text = text.text();
  return manifest;
}

struct FolderFile {
  std::string version;
  std::string hash;
  SweepSpec spec;
};

FolderFile read_manifest(const std::string& file) {
  const JsonValue root = parse_json(read_text(file), file);
  const JsonNode node(root, "", file);
  if (root.kind != JsonKind::object || node.text_or_empty("format") != folder_format) {
    node.refuse(
        fmt::format("this is not the folder of a sweep: the format is not \"{}\"", folder_format));
  }
  const auto question = std::find(root.keys.begin(), root.keys.end(), "question");
  if (question == root.keys.end()) node.refuse("it has no \"question\"");
  const JsonValue& asked = root.items[static_cast<std::size_t>(question - root.keys.begin())];
  return {node.at("version").text(), node.at("hash").text(), read_sweep(asked, file)};
}

void check_same(const std::string& path, const FolderFile& found, const Manifest& wanted) {
  if (found.hash == wanted.hash) return;
  if (question_json(found.spec).text() != wanted.question) {
    throw UsageError(fmt::format(
        "the folder {} holds the chunks of another sweep (sweep.json in it says which); take "
        "another folder",
        path));
  }
  if (found.version != wanted.version) {
    throw UsageError(fmt::format(
        "the folder {} was begun by Stageline {}, and this is {}, whose rows may differ; take "
        "another folder",
        path, found.version, wanted.version));
  }
  throw UsageError(fmt::format(
      "a file that the sweep in {} names has changed since it was begun; take another folder",
      path));
}

// JSON, unlike "{size}.json", which begins with a variable.
bool is_trace_text(const std::string& text) {
  const std::size_t second = text.find_first_not_of(" \t\r\n", 1);
  return text.starts_with('{') && second != std::string::npos &&
         (text[second] == '"' || text[second] == '}');
}

bool is_chunk(const fs::path& file) { return file.filename().string().starts_with(chunk_lead); }

bool is_ours(const fs::path& file) {
  return is_chunk(file) || file.filename().string().starts_with(manifest_name);
}

}  // namespace

std::vector<std::string> named_files(const SweepSpec& spec) {
  std::set<std::string> paths;
  const auto look_at = [&](const std::string& path) {
    constexpr std::size_t longest_path = 4096;
    if (path.empty() || path.size() > longest_path) return;
    if (is_regular_input(path)) paths.insert(path);
  };
  const auto look = [&](const std::string& said) {
    if (is_trace_text(said)) return;  // the text of a trace
    for (const std::string& text : texts_of(spec, said)) {
      look_at(text);
      look_at(text.substr(0, text.rfind('*')));                       // "cluster.json*4"
      if (text.starts_with("model:")) look_at(config_file_of(text));  // "model:config.json@h100"
    }
  };
  for (const SettingWord& word : spec.fixed) look(word.text);
  for (const SweepAxis& axis : spec.axes) {
    for (const std::string& value : axis.values) look(value);
  }
  return {paths.begin(), paths.end()};
}

Shard parse_shard(const std::string& text, const std::string& what) {
  std::string_view rest = text;
  const auto index = take_number<std::int64_t>(rest);
  const bool slash = rest.starts_with("/");
  if (slash) rest.remove_prefix(1);
  const auto count = parse_number<std::int64_t>(rest);
  if (index && slash && count && *index >= 1 && *index <= *count) return {*index, *count};
  throw UsageError(fmt::format(
      "{} is I/N, the I-th of N shards with I from 1 to N, such as 1/4, not \"{}\"", what, text));
}

FileContents read_named_files(const SweepSpec& spec) {
  FileContents files;
  for (const std::string& path : named_files(spec)) {
    files[path] = std::make_shared<const std::string>(read_file(path));
  }
  return files;
}

std::string sweep_hash(const SweepSpec& spec, const FileContents& files) {
  return manifest_of(spec, files).hash;
}

std::string packed_chunk(const std::string& text) { return gzipped(text); }

SweepFolder::SweepFolder(std::string path, SweepSpec spec, std::string hash)
    : path_(std::move(path)), spec_(std::move(spec)), hash_(std::move(hash)) {}

SweepFolder::SweepFolder(std::string path, SweepSpec spec, FileContents files)
    : path_(std::move(path)), spec_(std::move(spec)), files_(std::move(files)) {
  const Manifest manifest = manifest_of(spec_, files_);
  hash_ = manifest.hash;
  manifest_ = manifest.text;
  check_folder(path_);
  make_folder(path_);
  const std::string file = (fs::path(path_) / manifest_name).string();
  if (fs::exists(file)) {
    check_same(path_, read_manifest(file), manifest);
    return;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    if (!is_chunk(entry.path())) continue;
    throw UsageError(
        fmt::format("the folder {} holds chunks without a sweep.json that says of "
                    "what; take another folder",
                    path_));
  }
}

SweepFolder::SweepFolder(std::string path, const SweepSpec& spec)
    : SweepFolder(std::move(path), spec, read_named_files(spec)) {}

void SweepFolder::begin() const {
  const fs::path file = fs::path(path_) / manifest_name;
  if (fs::exists(file)) return check_begun(file);
  // One of two that begin at a time must not replace the other's: a link, unlike a rename, does
  // not.
  const fs::path beside = fs::path(path_) / fmt::format("{}{}.{:08x}.tmp", manifest_name,
                                                        ::getpid(), std::random_device{}());
  write_file(beside.string(), manifest_);
  std::error_code error;
  fs::create_hard_link(beside, file, error);
  std::error_code ignored;
  fs::remove(beside, ignored);
  if (!error) return;
  if (fs::exists(file)) return check_begun(file);
  write_file(file.string(), manifest_);  // a file system without hard links
}

void SweepFolder::check_begun(const fs::path& file) const {
  check_same(path_, read_manifest(file.string()), manifest_of(spec_, files_));
}

SweepFolder SweepFolder::open(const std::string& path) {
  const fs::path file = fs::path(path) / manifest_name;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    throw UsageError(fmt::format("{} is not the folder of a sweep: it has no sweep.json", path));
  }
  FolderFile found = read_manifest(file.string());
  return {path, std::move(found.spec), std::move(found.hash)};
}

std::string SweepFolder::chunk_file(std::int64_t chunk) const {
  return (fs::path(path_) / fmt::format("{}{:06}.csv.gz", chunk_lead, chunk)).string();
}

std::string SweepFolder::table_file() const { return (fs::path(path_) / "table.csv.gz").string(); }

std::vector<std::int64_t> SweepFolder::missing(Shard shard) const {
  std::vector<char> there(static_cast<std::size_t>(spec_.chunks()));
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (!is_chunk(entry.path())) continue;
    std::string_view rest = std::string_view(name).substr(chunk_lead.size());
    const auto number = take_number<std::int64_t>(rest);
    if (number && rest == ".csv.gz" && *number >= 0 && *number < spec_.chunks()) {
      there[static_cast<std::size_t>(*number)] = 1;
    }
  }
  std::vector<std::int64_t> chunks;
  for (std::int64_t c = 0; c < spec_.chunks(); ++c) {
    if (shard.has(c) && there[static_cast<std::size_t>(c)] == 0) chunks.push_back(c);
  }
  return chunks;
}

void SweepFolder::write_chunk(std::int64_t chunk, const std::string& text) const {
  write_file(chunk_file(chunk), packed_chunk(text));
}

std::string SweepFolder::read_chunk(std::int64_t chunk) const {
  const std::string file = chunk_file(chunk);
  const std::string damaged =
      fmt::format("the chunk {} is damaged; remove it and run the sweep again", file);
  std::string text;
  try {
    text = gunzip(read_file(file), file);
  } catch (const TraceError&) {
    throw UsageError(damaged);
  }
  if (!text.starts_with(csv_header(spec_))) throw UsageError(damaged);
  return text;
}

void SweepFolder::merge() const {
  const std::vector<std::int64_t> absent = missing();
  if (!absent.empty()) {
    throw UsageError(
        fmt::format("{} of {} chunks in {} are missing, the first of them {}; run the "
                    "sweep again to make them",
                    absent.size(), spec_.chunks(), path_, absent.front()));
  }
  const std::string header = csv_header(spec_);
  std::string table = gzipped(header);
  for (std::int64_t c = 0; c < spec_.chunks(); ++c) {
    const std::string text = read_chunk(c);
    table += gzipped(std::string_view(text).substr(header.size()));
  }
  write_file(table_file(), table);
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    std::error_code ignored;
    if (is_ours(entry.path()) && entry.path().extension() == ".tmp") {
      fs::remove(entry.path(), ignored);
    }
  }
}

}  // namespace stageline
