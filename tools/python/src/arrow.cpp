// Columns by Arrow's C data interface, of which the structs are a stable ABI:
// https://arrow.apache.org/docs/format/CDataInterface.html.
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/op.hpp"
#include "tools/python/src/timeline.hpp"

namespace {

extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema* out);
  int (*get_next)(ArrowArrayStream*, ArrowArray* out);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

}  // namespace

namespace stageline::python {
namespace {

namespace nb = nanobind;

// Texts as Arrow holds them: their bytes in a row, and where each begins.
struct Words {
  std::vector<std::int32_t> begins{0};
  std::string bytes;

  void add(std::string_view word) {
    bytes += word;
    begins.push_back(static_cast<std::int32_t>(bytes.size()));
  }
  std::int64_t size() const { return static_cast<std::int64_t>(begins.size()) - 1; }
};

constexpr std::size_t columns = 9;
struct ColumnType {
  const char* name;
  const char* format;  // of its numbers
  int words;           // index into Columns::words, of a dictionary; -1: plain numbers
};
constexpr std::array<ColumnType, columns> column_types{{{"device", "i", 0},
                                                        {"lane", "i", 1},
                                                        {"kind", "i", 2},
                                                        {"stage", "i", -1},
                                                        {"microbatch", "l", -1},
                                                        {"part", "i", -1},
                                                        {"overlapped", "i", -1},
                                                        {"start_ps", "l", -1},
                                                        {"end_ps", "l", -1}}};

// What every array that was handed out keeps alive.
struct Columns {
  std::int64_t rows = 0;
  std::array<std::vector<std::int32_t>, columns> narrow;
  std::array<std::vector<std::int64_t>, columns> wide;
  std::array<Words, 3> words;

  const void* numbers(std::size_t column) const {
    return wide[column].empty() ? static_cast<const void*>(narrow[column].data())
                                : static_cast<const void*>(wide[column].data());
  }
};

std::shared_ptr<const Columns> columns_of(const SpanTable& table) {
  auto all = std::make_shared<Columns>();
  all->rows = static_cast<std::int64_t>(table.rows.size());
  for (const std::string& device : table.devices) all->words[0].add(device);
  for (const LaneKind lane : all_lane_kinds) all->words[1].add(name(lane));
  for (int kind = 0; kind < op_kinds; ++kind) {
    all->words[2].add(symbol(static_cast<OpKind>(kind)));
  }
  const auto fill = [&](std::size_t column, auto& into, auto&& value) {
    into[column].reserve(table.rows.size());
    for (const SpanRow& row : table.rows) into[column].push_back(value(row));
  };
  fill(0, all->narrow, [](const SpanRow& row) { return row.device; });
  fill(1, all->narrow, [](const SpanRow& row) { return row.lane; });
  fill(2, all->narrow, [](const SpanRow& row) { return row.kind; });
  fill(3, all->narrow, [](const SpanRow& row) { return row.stage; });
  fill(4, all->wide, [](const SpanRow& row) { return row.microbatch; });
  fill(5, all->narrow, [](const SpanRow& row) { return row.part; });
  fill(6, all->narrow, [](const SpanRow& row) { return row.overlapped; });
  fill(7, all->wide, [](const SpanRow& row) { return row.start_ps; });
  fill(8, all->wide, [](const SpanRow& row) { return row.end_ps; });
  return all;
}

// A schema or an array with all below it: one allocation a node, which release() frees.
struct SchemaNode {
  std::vector<ArrowSchema> below;
  std::vector<ArrowSchema*> children;
  ArrowSchema words{};
};
struct ArrayNode {
  std::shared_ptr<const Columns> columns;
  std::vector<ArrowArray> below;
  std::vector<ArrowArray*> children;
  ArrowArray words{};
  std::array<const void*, 3> buffers{};
};

template <class Part, class Node>
void release(Part* part) {
  const std::unique_ptr<Node> node(static_cast<Node*>(part->private_data));
  for (Part* const child : node->children) {
    if (child->release != nullptr) child->release(child);
  }
  if (part->dictionary != nullptr && part->dictionary->release != nullptr) {
    part->dictionary->release(part->dictionary);
  }
  part->release = nullptr;
}

ArrowSchema schema_node(const char* name, const char* format, std::unique_ptr<SchemaNode> node) {
  ArrowSchema schema{};
  schema.name = name;
  schema.format = format;
  schema.release = release<ArrowSchema, SchemaNode>;
  for (ArrowSchema& child : node->below) node->children.push_back(&child);
  schema.n_children = static_cast<std::int64_t>(node->children.size());
  schema.children = node->children.data();
  if (node->words.release != nullptr) schema.dictionary = &node->words;
  schema.private_data = node.release();
  return schema;
}

ArrowSchema schema_of_all() {
  auto all = std::make_unique<SchemaNode>();
  for (const ColumnType& type : column_types) {
    auto one = std::make_unique<SchemaNode>();
    if (type.words >= 0) one->words = schema_node("", "u", std::make_unique<SchemaNode>());
    all->below.push_back(schema_node(type.name, type.format, std::move(one)));
  }
  return schema_node("", "+s", std::move(all));
}

ArrowArray array_node(std::int64_t length, std::int64_t buffers, std::unique_ptr<ArrayNode> node) {
  ArrowArray array{};
  array.length = length;
  array.n_buffers = buffers;
  array.release = release<ArrowArray, ArrayNode>;
  for (ArrowArray& child : node->below) node->children.push_back(&child);
  array.n_children = static_cast<std::int64_t>(node->children.size());
  array.children = node->children.data();
  if (node->words.release != nullptr) array.dictionary = &node->words;
  array.buffers = node->buffers.data();
  array.private_data = node.release();
  return array;
}

std::unique_ptr<ArrayNode> node_of(const std::shared_ptr<const Columns>& kept) {
  auto node = std::make_unique<ArrayNode>();
  node->columns = kept;
  return node;
}

ArrowArray array_of_words(const std::shared_ptr<const Columns>& kept, const Words& words) {
  auto node = node_of(kept);
  node->buffers = {nullptr, words.begins.data(), words.bytes.data()};
  return array_node(words.size(), 3, std::move(node));
}

ArrowArray array_of_all(const std::shared_ptr<const Columns>& kept) {
  auto all = node_of(kept);
  for (std::size_t column = 0; column < columns; ++column) {
    auto one = node_of(kept);
    one->buffers = {nullptr, kept->numbers(column), nullptr};
    const int words = column_types[column].words;
    if (words >= 0) {
      one->words = array_of_words(kept, kept->words[static_cast<std::size_t>(words)]);
    }
    all->below.push_back(array_node(kept->rows, 2, std::move(one)));
  }
  return array_node(kept->rows, 1, std::move(all));
}

struct StreamState {
  std::shared_ptr<const Columns> columns;
  bool done = false;
};
StreamState& state_of(ArrowArrayStream* stream) {
  return *static_cast<StreamState*>(stream->private_data);
}

ArrowArrayStream* make_stream(const SpanTable& table) {
  auto* const stream = new ArrowArrayStream{};
  stream->private_data = new StreamState{columns_of(table)};
  stream->get_schema = [](ArrowArrayStream* /*self*/, ArrowSchema* out) {
    *out = schema_of_all();
    return 0;
  };
  stream->get_next = [](ArrowArrayStream* self, ArrowArray* out) {
    StreamState& state = state_of(self);
    *out = state.done ? ArrowArray{} : array_of_all(state.columns);
    state.done = true;
    return 0;
  };
  stream->get_last_error = [](ArrowArrayStream* /*self*/) -> const char* { return nullptr; };
  stream->release = [](ArrowArrayStream* self) {
    delete &state_of(self);
    self->release = nullptr;
  };
  return stream;
}

}  // namespace

nb::capsule arrow_stream_of(const std::shared_ptr<const SpanTable>& table) {
  return nb::capsule(make_stream(*table), "arrow_array_stream", [](void* pointer) noexcept {
    auto* const stream = static_cast<ArrowArrayStream*>(pointer);
    if (stream->release != nullptr) stream->release(stream);
    delete stream;
  });
}

}  // namespace stageline::python
