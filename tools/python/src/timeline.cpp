#include "tools/python/src/timeline.hpp"

#include <fmt/core.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string_view>

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

nb::object to_pandas(const nb::handle& self) {
  const nb::object frame = nb::module_::import_("pandas").attr("DataFrame");
  if (nb::hasattr(frame, "from_arrow")) return frame.attr("from_arrow")(self);
  return nb::module_::import_("pyarrow").attr("table")(self).attr("to_pandas")();
}

}  // namespace

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
      .def_prop_ro("array", &array_of, "A structured NumPy array that looks at this memory.")
      .def("__getitem__",
           [](const nb::object& self, const nb::object& key) -> nb::object {
             return array_of(self)[key];
           })
      .def("to_pandas", &to_pandas,
           "A DataFrame, with names for devices, lanes and kinds (pandas 2.2 or pyarrow).")
      .def("__repr__",
           [](const SpanTable& self) {
             return fmt::format("<stageline.Timeline: {} spans on {} devices>", self.rows.size(),
                                self.devices.size());
           })
      .def(
          "__arrow_c_stream__",
          [](const std::shared_ptr<SpanTable>& self, const nb::object& /*requested_schema*/) {
            return arrow_stream_of(self);
          },
          "requested_schema"_a = nb::none(), "The columns, by the Arrow PyCapsule interface.");
  module.attr("op_kinds") = nb::cast(kind_names());
  module.attr("lane_kinds") = nb::cast(lane_names());
}

}  // namespace stageline::python
