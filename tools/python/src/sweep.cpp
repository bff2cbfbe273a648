// Sweeps: chunks of rows, in a folder or in memory, as columns.
#include "tools/python/src/sweep.hpp"

#include <fmt/core.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "sim/base/errors.hpp"
#include "tools/base/provided_files.hpp"
#include "tools/python/src/arrow.hpp"
#include "tools/python/src/interrupt.hpp"
#include "tools/python/src/reports.hpp"
#include "tools/python/src/timeline.hpp"
#include "tools/sweep/run.hpp"
#include "tools/sweep/table.hpp"
#include "traces/gzip.hpp"

namespace stageline::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

/// A question, with what its scenarios share: kept from call to call, which several threads make.
struct Sweep {
  FileContents files;
  SweepRunner runner;
  std::string hash;

  explicit Sweep(const SweepSpec& spec)
      : files(read_named_files(spec)), runner(spec, files), hash(sweep_hash(spec, files)) {}
  const SweepSpec& spec() const { return runner.spec(); }
};

std::shared_ptr<Sweep> sweep_of(const std::string& question, const std::string& file) {
  return without_lock([&] { return std::make_shared<Sweep>(read_sweep(question, file)); });
}

SweepCount run(Sweep& self, const std::vector<std::int64_t>& chunks, int threads,
               const Progress& progress, const TakeChunk& take) {
  for (const std::int64_t chunk : chunks) {
    if (chunk >= 0 && chunk < self.spec().chunks()) continue;
    throw UsageError(
        fmt::format("the sweep has chunks 0 to {}, not {}", self.spec().chunks() - 1, chunk));
  }
  return without_lock([&] {
    Reports reports(progress);
    SweepRun asked;
    asked.threads = threads;
    asked.progress = [&](const SweepProgress& now) { reports(now.rows, now.wanted); };
    const SweepCount count = run_chunks(self.runner, chunks, asked, take);
    reports.end();
    return count;
  });
}

nb::list chunks_in_memory(Sweep& self, const std::vector<std::int64_t>& chunks, int threads,
                          const Progress& progress) {
  std::map<std::int64_t, std::string> made;
  std::mutex access;
  run(self, chunks, threads, progress, [&](std::int64_t chunk, const std::string& text) {
    std::string packed = packed_chunk(text);
    const std::lock_guard<std::mutex> held(access);
    made[chunk] = std::move(packed);
  });
  nb::list files;
  for (const std::int64_t chunk : chunks) {
    files.append(nb::bytes(made[chunk].data(), made[chunk].size()));
  }
  return files;
}

std::int64_t chunks_in_folder(Sweep& self, const SweepFolder& folder,
                              const std::vector<std::int64_t>& chunks, int threads,
                              const Progress& progress) {
  const auto write = [&](std::int64_t chunk, const std::string& text) {
    folder.write_chunk(chunk, text);
  };
  return run(self, chunks, threads, progress, write).rows;
}

/// The rows of a sweep, a chunk at a time: of its folder, or as chunks_in_memory() made them.
struct SweepChunks {
  std::shared_ptr<const Sweep> sweep;
  std::shared_ptr<const SweepFolder> folder;
  std::vector<std::string> packed;

  std::int64_t count() const { return sweep->spec().chunks(); }
  std::string text(std::int64_t chunk) const {
    if (folder) return folder->read_chunk(chunk);
    return gunzip(packed[static_cast<std::size_t>(chunk)], fmt::format("chunk {}", chunk));
  }
  std::vector<SweepColumn> columns(std::int64_t chunk) const {
    if (chunk < 0 || chunk >= count()) {
      throw nb::index_error(fmt::format("chunk {} of {}", chunk, count()).c_str());
    }
    return read_table(sweep->spec(), text(chunk), fmt::format("chunk {}", chunk));
  }
};

std::shared_ptr<SweepChunks> chunks_of(std::shared_ptr<const Sweep> sweep, const nb::list& packed) {
  auto chunks = std::make_shared<SweepChunks>(SweepChunks{std::move(sweep), nullptr, {}});
  for (const nb::handle one : packed) {
    const auto bytes = nb::cast<nb::bytes>(one);
    chunks->packed.emplace_back(bytes.c_str(), bytes.size());
  }
  if (static_cast<std::int64_t>(chunks->packed.size()) != chunks->count()) {
    throw UsageError(fmt::format("{} chunks of {}", chunks->packed.size(), chunks->count()));
  }
  return chunks;
}

ArrowColumn arrow_column(SweepColumn column) {
  ArrowColumn out{std::move(column.name)};
  if (column.form == CellForm::whole) {
    out.form = ArrowColumn::Form::int64;
    out.wide = std::move(column.whole);
  } else if (column.form == CellForm::real) {
    out.form = ArrowColumn::Form::real;
    out.reals = std::move(column.real);
  } else {
    out.form = ArrowColumn::Form::text;
    for (const std::string& text : column.text) out.words.add(text);
  }
  for (const char there : column.there) out.nulls += there == 0 ? 1 : 0;
  if (out.nulls == 0) return out;
  constexpr std::size_t bits = 8;
  out.there.resize((column.there.size() + bits - 1) / bits);
  for (std::size_t i = 0; i < column.there.size(); ++i) {
    if (column.there[i] != 0) out.there[i / bits] |= static_cast<std::uint8_t>(1U << (i % bits));
  }
  return out;
}

std::shared_ptr<const ArrowBatch> arrow_batch(std::vector<SweepColumn> columns) {
  auto batch = std::make_shared<ArrowBatch>();
  batch->rows = static_cast<std::int64_t>(columns.front().there.size());
  for (SweepColumn& column : columns) batch->columns.push_back(arrow_column(std::move(column)));
  return batch;
}

nb::capsule chunk_stream(const std::shared_ptr<SweepChunks>& chunks) {
  return arrow_stream_of(
      arrow_batch(typed_columns(chunks->sweep->spec())),
      [chunks, next = std::int64_t{0}]() mutable -> std::shared_ptr<const ArrowBatch> {
        if (next == chunks->count()) return nullptr;
        return arrow_batch(chunks->columns(next++));
      });
}

nb::object cell_of(const SweepColumn& column, std::size_t row) {
  if (column.there[row] == 0) return nb::none();
  if (column.form == CellForm::whole) return nb::cast(column.whole[row]);
  if (column.form == CellForm::real) return nb::cast(column.real[row]);
  return nb::cast(column.text[row]);
}

nb::list chunk_rows(const SweepChunks& self, std::int64_t chunk) {
  const std::vector<SweepColumn> columns = without_lock([&] { return self.columns(chunk); });
  nb::list rows;
  for (std::size_t row = 0; row < columns.front().there.size(); ++row) {
    nb::dict one;
    for (const SweepColumn& column : columns) one[column.name.c_str()] = cell_of(column, row);
    rows.append(std::move(one));
  }
  return rows;
}

}  // namespace

void bind_sweep(nb::module_& module) {
  nb::class_<SweepFolder>(module, "SweepFolder", "The folder of a sweep.")
      .def(
          "__init__",
          [](SweepFolder* self, const std::string& path, const Sweep& sweep) {
            without_lock([&] { return new (self) SweepFolder(path, sweep.spec(), sweep.files); });
          },
          "path"_a, "sweep"_a, "Makes it where it is missing; refuses that of another sweep.")
      .def_prop_ro("path", &SweepFolder::path)
      .def(
          "missing", [](const SweepFolder& self) { return self.missing(); },
          "Numbers of the chunks that are not there.")
      .def(
          "has",
          [](const SweepFolder& self, std::int64_t chunk) {
            return std::filesystem::exists(self.chunk_file(chunk));
          },
          "chunk"_a)
      .def("begin", &SweepFolder::begin, "Writes sweep.json where it is missing.")
      .def(
          "merge", [](const SweepFolder& self) { without_lock([&] { return self.merge(), 0; }); },
          "Joins all chunks into table.csv.gz.");
  nb::class_<ProvidedFiles>(module, "ProvidedFiles",
                            "Contents that its thread reads in place of files, while it lives.")
      .def(
          "__init__",
          [](ProvidedFiles* self, const std::map<std::string, nb::bytes>& contents) {
            std::map<std::string, std::string> texts;
            for (const auto& [path, bytes] : contents) {
              texts.emplace(path, std::string(bytes.c_str(), bytes.size()));
            }
            new (self) ProvidedFiles(std::move(texts));
          },
          "contents"_a);
  nb::class_<Sweep>(module, "Sweep", "A sweep as a question: fixed settings and axes.")
      .def(nb::new_(&sweep_of), "question"_a, "file"_a)
      .def_prop_ro(
          "hash", [](const Sweep& self) { return self.hash; },
          "Of the question, the version and the files that it names, as they were read.")
      .def_prop_ro(
          "question", [](const Sweep& self) { return question_json(self.spec()).text(); },
          "As a sweep file (JSON).")
      .def(
          "files",
          [](const Sweep& self) {
            nb::dict files;
            for (const auto& [path, content] : self.files) {
              files[path.c_str()] = nb::bytes(content->data(), content->size());
            }
            return files;
          },
          nb::sig("def files(self) -> dict[str, bytes]"),
          "What the files that it names held when it was made, by path.")
      .def_prop_ro("scenarios", [](const Sweep& self) { return self.spec().scenarios(); })
      .def_prop_ro(
          "chunk", [](const Sweep& self) { return self.spec().chunk; }, "Scenarios in a chunk.")
      .def_prop_ro("chunks", [](const Sweep& self) { return self.spec().chunks(); })
      .def_prop_ro("columns", [](const Sweep& self) { return sweep_columns(self.spec()); })
      .def(
          "probe", [](Sweep& self) { without_lock([&] { return self.runner.probe(), 0; }); },
          "Raises the error that all scenarios share.")
      .def(
          "make", &chunks_in_memory,
          nb::sig(
              "def make(self, chunks: Sequence[int], threads: int, progress: Callable[[int, int], None] | None = None) -> list[bytes]"),
          "chunks"_a, "threads"_a, "progress"_a = nb::none(),
          "The chunks, each as its file would be (bytes).")
      .def("write", &chunks_in_folder, "folder"_a, "chunks"_a, "threads"_a,
           "progress"_a = nb::none(), "Writes the chunks; returns their scenarios.");
  nb::class_<SweepChunks>(module, "SweepChunks", "Rows of a sweep, chunk by chunk.")
      .def(nb::new_(&chunks_of), "sweep"_a, "packed"_a)
      .def(nb::new_([](std::shared_ptr<Sweep> sweep, std::shared_ptr<SweepFolder> folder) {
             return std::make_shared<SweepChunks>(
                 SweepChunks{std::move(sweep), std::move(folder), {}});
           }),
           "sweep"_a, "folder"_a)
      .def("__len__", [](const SweepChunks& self) { return self.count(); })
      .def("rows", &chunk_rows, "chunk"_a,
           nb::sig("def rows(self, chunk: int) -> list[dict[str, typing.Any]]"),
           "Dicts; None: an empty cell.")
      .def("text", &SweepChunks::text, "chunk"_a, "As CSV.")
      .def(
          "__arrow_c_stream__",
          [](const std::shared_ptr<SweepChunks>& self, const nb::object& /*requested_schema*/) {
            return chunk_stream(self);
          },
          "requested_schema"_a = nb::none(), "A batch for each chunk.")
      .def("to_pandas", &frame_of, nb::sig("def to_pandas(self) -> typing.Any"),
           "A DataFrame (pandas 2.2 or pyarrow).");
}

}  // namespace stageline::python
