#include "tools/python/src/timeline.hpp"

#include <fmt/core.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/op.hpp"
#include "tools/python/src/arrow.hpp"

namespace stageline::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

struct FieldOf {
  const char* name;
  const char* type;  // as NumPy writes it
};
constexpr FieldOf fields[] = {{"start_ps", "<i8"}, {"end_ps", "<i8"}, {"microbatch", "<i8"},
                              {"stage", "<u2"},    {"device", "<u2"}, {"lane", "|u1"},
                              {"kind", "|u1"},     {"part", "|u1"},   {"overlapped", "|u1"}};

// What numpy.asarray() asks for: https://numpy.org/doc/stable/reference/arrays.interface.html.
nb::dict interface_of(const SpanTable& table) {
  nb::list described;
  for (const FieldOf& field : fields) described.append(nb::make_tuple(field.name, field.type));
  static const SpanRow none;
  const SpanRow* const rows = table.rows.empty() ? &none : table.rows.data();
  nb::dict interface;
  interface["version"] = 3;
  interface["shape"] = nb::make_tuple(table.rows.size());
  interface["typestr"] = fmt::format("|V{}", sizeof(SpanRow)).c_str();
  interface["descr"] = described;
  interface["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(rows), true);
  return interface;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (int kind = 0; kind < op_kinds; ++kind) {
    names.emplace_back(symbol(static_cast<OpKind>(kind)));
  }
  return names;
}

std::vector<std::string> lane_names() {
  std::vector<std::string> names;
  for (const LaneKind lane : all_lane_kinds) names.emplace_back(name(lane));
  return names;
}

nb::object array_of(const nb::handle& self) {
  return nb::module_::import_("numpy").attr("asarray")(self);
}

void add_words(ArrowBatch& batch, const char* name, ArrowWords words) {
  ArrowColumn column{name, ArrowColumn::Form::coded};
  column.words = std::move(words);
  batch.columns.push_back(std::move(column));
}

ArrowBatch columns_of_spans(const std::vector<std::string>& devices) {
  ArrowWords names;
  ArrowWords lanes;
  ArrowWords kinds;
  for (const std::string& device : devices) names.add(device);
  for (const LaneKind lane : all_lane_kinds) lanes.add(name(lane));
  for (int kind = 0; kind < op_kinds; ++kind) kinds.add(symbol(static_cast<OpKind>(kind)));
  ArrowBatch batch;
  add_words(batch, "device", std::move(names));
  add_words(batch, "lane", std::move(lanes));
  add_words(batch, "kind", std::move(kinds));
  batch.columns.push_back({"stage", ArrowColumn::Form::int32});
  batch.columns.push_back({"microbatch", ArrowColumn::Form::int64});
  batch.columns.push_back({"part", ArrowColumn::Form::int32});
  batch.columns.push_back({"overlapped", ArrowColumn::Form::int32});
  batch.columns.push_back({"start_ps", ArrowColumn::Form::int64});
  batch.columns.push_back({"end_ps", ArrowColumn::Form::int64});
  return batch;
}

// `device`, `lane` and `kind` as numbers of names, the others as numbers.
std::shared_ptr<const ArrowBatch> batch_of(const SpanTable& table) {
  auto batch = std::make_shared<ArrowBatch>(columns_of_spans(table.devices));
  batch->rows = static_cast<std::int64_t>(table.rows.size());
  const auto fill = [&](std::size_t column, auto ArrowColumn::*into, auto&& value) {
    auto& values = batch->columns[column].*into;
    values.reserve(table.rows.size());
    for (const SpanRow& row : table.rows) values.push_back(value(row));
  };
  fill(0, &ArrowColumn::narrow, [](const SpanRow& row) { return row.device; });
  fill(1, &ArrowColumn::narrow, [](const SpanRow& row) { return row.lane; });
  fill(2, &ArrowColumn::narrow, [](const SpanRow& row) { return row.kind; });
  fill(3, &ArrowColumn::narrow, [](const SpanRow& row) { return row.stage; });
  fill(4, &ArrowColumn::wide, [](const SpanRow& row) { return row.microbatch; });
  fill(5, &ArrowColumn::narrow, [](const SpanRow& row) { return row.part; });
  fill(6, &ArrowColumn::narrow, [](const SpanRow& row) { return row.overlapped; });
  fill(7, &ArrowColumn::wide, [](const SpanRow& row) { return row.start_ps; });
  fill(8, &ArrowColumn::wide, [](const SpanRow& row) { return row.end_ps; });
  return batch;
}

nb::capsule span_stream(const std::shared_ptr<const SpanTable>& table) {
  auto columns = std::make_shared<const ArrowBatch>(columns_of_spans(table->devices));
  return arrow_stream_of(std::move(columns),
                         [table, done = false]() mutable -> std::shared_ptr<const ArrowBatch> {
                           if (std::exchange(done, true)) return nullptr;
                           return batch_of(*table);
                         });
}

}  // namespace

nb::object frame_of(const nb::handle& self) {
  const nb::object frame = nb::module_::import_("pandas").attr("DataFrame");
  if (nb::hasattr(frame, "from_arrow")) return frame.attr("from_arrow")(self);
  return nb::module_::import_("pyarrow").attr("table")(self).attr("to_pandas")();
}

std::shared_ptr<const SpanTable> table_of(const Timeline& timeline) {
  auto table = std::make_shared<SpanTable>();
  table->devices = timeline.devices;
  std::size_t spans = 0;
  for (const Spans& lane : timeline.lanes) spans += lane.size();
  table->rows.reserve(spans);
  for (std::size_t at = 0; at < timeline.lanes.size(); ++at) {
    for (const Span& span : timeline.lanes[at]) {
      SpanRow row;
      row.start_ps = span.start.count();
      row.end_ps = span.end.count();
      row.microbatch = span.op.microbatch;
      row.stage = span.op.stage;
      row.device = static_cast<std::uint16_t>(at / lane_kinds);
      row.lane = static_cast<std::uint8_t>(at % lane_kinds);
      row.kind = static_cast<std::uint8_t>(span.op.kind);
      row.part = span.op.part;
      row.overlapped = span.op.overlapped;
      table->rows.push_back(row);
    }
  }
  return table;
}

void bind_timeline(nb::module_& module) {
  nb::class_<SpanTable>(
      module, "Timeline",
      "Spans in memory that NumPy and Arrow read: numpy.asarray(t) is a view, t[\"start_ps\"] one of "
      "its fields.\n\n"
      "Fields: start_ps, end_ps, microbatch (or the update of U), stage, device, lane, kind, part,\n"
      "overlapped. Device by device, lane by lane, in order of start.")
      .def_prop_ro("__array_interface__", &interface_of)
      .def_prop_ro(
          "devices", [](const SpanTable& self) { return self.devices; },
          "Names of the devices; the field device is an index into them.")
      .def("__len__", [](const SpanTable& self) { return self.rows.size(); })
      .def_prop_ro(
          "array", &array_of,
          nb::for_getter(nb::sig("def array(self, /) -> numpy.typing.NDArray[numpy.void]")),
          "A structured NumPy array that looks at this memory.")
      .def(
          "__getitem__",
          [](const nb::object& self, const nb::object& key) -> nb::object {
            return array_of(self)[key];
          },
          nb::sig("def __getitem__(self, key: typing.Any, /) -> typing.Any"))
      .def("to_pandas", &frame_of, nb::sig("def to_pandas(self) -> typing.Any"),
           "A DataFrame, with names for devices, lanes and kinds (pandas 2.2 or pyarrow).")
      .def("__repr__",
           [](const SpanTable& self) {
             return fmt::format("<stageline.Timeline: {} spans on {} devices>", self.rows.size(),
                                self.devices.size());
           })
      .def(
          "__arrow_c_stream__",
          [](const std::shared_ptr<SpanTable>& self, const nb::object& /*requested_schema*/) {
            return span_stream(self);
          },
          "requested_schema"_a = nb::none(), "The columns, by the Arrow PyCapsule interface.");
  module.attr("op_kinds") = nb::cast(kind_names());
  module.attr("lane_kinds") = nb::cast(lane_names());
}

}  // namespace stageline::python
