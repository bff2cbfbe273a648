// The tables of formats: every entry can be named, recognised and used.
#include <doctest/doctest.h>

#include <set>

#include "sim/base/errors.hpp"
#include "tools/inputs/program_files.hpp"
#include "tools/inputs/recordings.hpp"
#include "tools/inputs/traces.hpp"

namespace stageline::tables_tests {
namespace {

template <class Format>
void check_names(std::span<const Format> table) {
  std::set<std::string_view> names;
  for (const Format& format : table) {
    CAPTURE(format.name);
    CHECK_FALSE(format.name.empty());
    CHECK_FALSE(format.summary.empty());
    CHECK(names.insert(format.name).second);
  }
}

TEST_CASE("formats have names of their own and a summary") {
  check_names(trace_sources());
  check_names(program_formats());
  check_names(recording_formats());
}

TEST_CASE("a trace that no other source recognises is one of our own") {
  const TraceSource& last = trace_sources().back();
  CHECK(last.name == "native");
  CHECK(last.spelling.empty());
  CHECK(last.recognises(""));
}

TEST_CASE("every program format is written, and found by its name") {
  for (const ProgramFormat& format : program_formats()) {
    CAPTURE(format.name);
    CHECK((format.write != nullptr));
    CHECK((format.recognises == nullptr) == (format.read == nullptr));
    CHECK(&parse_program_format(std::string(format.name)) == &format);
  }
  CHECK_THROWS_WITH_AS(parse_program_format("pytorhc"), doctest::Contains("did you mean"),
                       UsageError);
}

}  // namespace
}  // namespace stageline::tables_tests
