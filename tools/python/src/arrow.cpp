// Columns by Arrow's C data interface, of which the structs are a stable ABI:
// https://arrow.apache.org/docs/format/CDataInterface.html.
#include "tools/python/src/arrow.hpp"

#include <array>
#include <cerrno>
#include <exception>
#include <limits>
#include <utility>

#include "sim/base/errors.hpp"

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

const char* format_of(ArrowColumn::Form form) {
  switch (form) {
    case ArrowColumn::Form::int64:
      return "l";
    case ArrowColumn::Form::real:
      return "g";
    case ArrowColumn::Form::text:
      return "u";
    default:
      return "i";
  }
}

using Batch = std::shared_ptr<const ArrowBatch>;

// A schema or an array with all below it: one allocation a node, which release() frees.
struct SchemaNode {
  std::string name;
  std::vector<ArrowSchema> below;
  std::vector<ArrowSchema*> children;
  ArrowSchema words{};
};
struct ArrayNode {
  Batch kept;
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

constexpr std::int64_t nullable = 2;  // ARROW_FLAG_NULLABLE

ArrowSchema schema_node(const char* format, std::unique_ptr<SchemaNode> node) {
  ArrowSchema schema{};
  schema.name = node->name.c_str();
  schema.format = format;
  schema.flags = nullable;
  schema.release = release<ArrowSchema, SchemaNode>;
  for (ArrowSchema& child : node->below) node->children.push_back(&child);
  schema.n_children = static_cast<std::int64_t>(node->children.size());
  schema.children = node->children.data();
  if (node->words.release != nullptr) schema.dictionary = &node->words;
  schema.private_data = node.release();
  return schema;
}

ArrowSchema schema_of_all(const ArrowBatch& batch) {
  auto all = std::make_unique<SchemaNode>();
  for (const ArrowColumn& column : batch.columns) {
    auto one = std::make_unique<SchemaNode>();
    one->name = column.name;
    if (column.form == ArrowColumn::Form::coded) {
      one->words = schema_node("u", std::make_unique<SchemaNode>());
    }
    all->below.push_back(schema_node(format_of(column.form), std::move(one)));
  }
  return schema_node("+s", std::move(all));
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

std::unique_ptr<ArrayNode> node_of(const Batch& kept) {
  auto node = std::make_unique<ArrayNode>();
  node->kept = kept;
  return node;
}

ArrowArray array_of_words(const Batch& kept, const ArrowWords& words) {
  auto node = node_of(kept);
  node->buffers = {nullptr, words.begins.data(), words.bytes.data()};
  return array_node(words.size(), 3, std::move(node));
}

const void* numbers_of(const ArrowColumn& column) {
  switch (column.form) {
    case ArrowColumn::Form::int64:
      return column.wide.data();
    case ArrowColumn::Form::real:
      return column.reals.data();
    case ArrowColumn::Form::text:
      return column.words.begins.data();
    default:
      return column.narrow.data();
  }
}

ArrowArray array_of_all(const Batch& kept) {
  auto all = node_of(kept);
  for (const ArrowColumn& column : kept->columns) {
    auto one = node_of(kept);
    const bool text = column.form == ArrowColumn::Form::text;
    one->buffers = {column.there.empty() ? nullptr : column.there.data(), numbers_of(column),
                    text ? column.words.bytes.data() : nullptr};
    if (column.form == ArrowColumn::Form::coded) one->words = array_of_words(kept, column.words);
    all->below.push_back(array_node(kept->rows, text ? 3 : 2, std::move(one)));
    all->below.back().null_count = column.nulls;
  }
  return array_node(kept->rows, 1, std::move(all));
}

struct StreamState {
  Batch columns;
  std::function<Batch()> next;
  std::string error{};
};
StreamState& state_of(ArrowArrayStream* stream) {
  return *static_cast<StreamState*>(stream->private_data);
}

int next_of(ArrowArrayStream* stream, ArrowArray* out) {
  StreamState& state = state_of(stream);
  try {
    const Batch batch = state.next();
    *out = batch ? array_of_all(batch) : ArrowArray{};
    return 0;
  } catch (const std::exception& error) {
    state.error = error.what();
    return EIO;
  }
}

}  // namespace

void ArrowWords::add(std::string_view word) {
  constexpr std::size_t most = std::numeric_limits<std::int32_t>::max();
  if (word.size() > most - bytes.size()) {
    throw UsageError("a column of texts has more than 2 GiB in one batch; take smaller chunks");
  }
  bytes += word;
  begins.push_back(static_cast<std::int32_t>(bytes.size()));
}

nb::capsule arrow_stream_of(Batch columns, std::function<Batch()> next) {
  auto* const stream = new ArrowArrayStream{};
  stream->private_data = new StreamState{std::move(columns), std::move(next)};
  stream->get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
    *out = schema_of_all(*state_of(self).columns);
    return 0;
  };
  stream->get_next = next_of;
  stream->get_last_error = [](ArrowArrayStream* self) -> const char* {
    return state_of(self).error.c_str();
  };
  stream->release = [](ArrowArrayStream* self) {
    delete &state_of(self);
    self->release = nullptr;
  };
  return nb::capsule(stream, "arrow_array_stream", [](void* pointer) noexcept {
    auto* const owned = static_cast<ArrowArrayStream*>(pointer);
    if (owned->release != nullptr) owned->release(owned);
    delete owned;
  });
}

}  // namespace stageline::python
