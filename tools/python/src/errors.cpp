#include "tools/python/src/errors.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/deadlock.hpp"
#include "tools/study/figures/contradictions.hpp"

namespace stageline::python {
namespace {

namespace nb = nanobind;

// What parse_request() calls the settings of a call.
constexpr std::string_view settings = "the request";

// The name of a file, which may be in any encoding.
nb::object as_python(const std::string& text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}
template <class Data>
nb::object as_python(const Data& data) {
  return nb::cast(data);
}

template <class... Data>
void raise(const char* name, const Data&... data) {
  const nb::object type = nb::module_::import_("stageline._errors").attr(name);
  const nb::object error = type(as_python(data)...);
  PyErr_SetObject(type.ptr(), error.ptr());
}

// "the request at /devices: …" is about a keyword argument.
void raise_trace_error(const TraceError& error) {
  const std::string message = error.what();
  if (error.file != settings) return raise("TraceError", message, error.file, error.where);
  const std::size_t colon = message.find(": ", settings.size() + error.where.size());
  const std::string said = colon == std::string::npos ? message : message.substr(colon + 2);
  const std::string where = error.where.substr(error.where.starts_with('/') ? 1 : 0);
  raise("UsageError", where.empty() ? said : where + ": " + said);
}

void raise_deadlock(const Deadlock& error) {
  std::vector<std::string> cycle;
  for (const Op op : error.cycle) cycle.push_back(print(op));
  raise("Deadlock", std::string(error.what()), cycle, error.figure);
}

void translate(const std::exception_ptr& pointer, void* /*unused*/) {
  try {
    std::rethrow_exception(pointer);
  } catch (const UsageError& error) {
    raise("UsageError", std::string(error.what()));
  } catch (const TraceError& error) {
    raise_trace_error(error);
  } catch (const ProgramError& error) {
    raise("ProgramError", std::string(error.what()), error.device, error.position, error.figure);
  } catch (const Deadlock& error) {
    raise_deadlock(error);
  } catch (const ContradictionError& error) {
    raise("ContradictionError", std::string(error.what()));
  }
}

}  // namespace

void register_errors() { nb::register_exception_translator(translate); }

}  // namespace stageline::python
