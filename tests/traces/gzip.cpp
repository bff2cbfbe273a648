// Is gzip data unpacked, and refused where it is not whole?
#include "traces/gzip.hpp"

#include "tests/traces/profiles.hpp"
#include "tests/traces/support.hpp"

namespace stageline::gzip_tests {
namespace {

using profiles::gzipped;

std::string long_text() {
  std::string text;
  for (int i = 0; i < 40'000; ++i) text += std::to_string(i * 7919 % 10'007) + ",";
  return text;
}

TEST_CASE("gzip data give back their text, several members one after the other") {
  for (const std::string& text : {std::string(), std::string("a"), long_text()}) {
    CHECK(is_gzip(gzipped(text)));
    CHECK(gunzip(gzipped(text), "f") == text);
    CHECK(unpacked(gzipped(text), "f") == text);
    CHECK(gunzip(gzipped(text) + gzipped("more"), "f") == text + "more");
  }
  CHECK(unpacked("plain", "f") == "plain");
  CHECK(unpacked("", "f").empty());
}

TEST_CASE("gzip data that are cut off anywhere are refused") {
  const std::string bytes = gzipped("{\"traceEvents\": []} and some more of it");
  for (std::size_t size = 2; size < bytes.size(); ++size) {
    const TraceError error = trace_error_of([&] { gunzip(bytes.substr(0, size), "f.gz"); });
    CHECK(contains(error.what(), "the gzip data end in the middle"));
    CHECK(contains(error.what(), "the file was cut off"));
  }
  const std::string all = gzipped(long_text());
  CHECK(contains(trace_error_of([&] { gunzip(all.substr(0, all.size() / 2), "f.gz"); }).what(),
                 "f.gz at byte"));
}

TEST_CASE("gzip data that are damaged, or followed by something else, are refused") {
  std::string bytes = gzipped(long_text());
  bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 1);  // the checksum
  CHECK(contains(trace_error_of([&] { gunzip(bytes, "f.gz"); }).what(),
                 "the gzip data are damaged (incorrect data check)"));
  CHECK(contains(trace_error_of([&] { gunzip(gzipped("a") + "junk", "f.gz"); }).what(),
                 "the gzip data are damaged"));
}

TEST_CASE("packed zeros are refused as a text as soon as one is unpacked") {
  const std::string zeros = gzipped("text" + std::string(1 << 20, '\0'));
  CHECK(contains(trace_error_of([&] { gunzip(zeros, "f.gz"); }).what(),
                 "f.gz at byte 4 unpacked: there is a zero byte, so this is no text"));
  CHECK(gunzip(zeros, "f.gz", Packed::bytes).size() == 4 + (1 << 20));
}

TEST_CASE("a bomb is refused long before it is unpacked") {
  const std::string member = stageline::gzipped(std::string(1 << 20, ' '));
  std::string bomb;
  while (bomb.size() < 200 * member.size()) bomb += member;
  CHECK_THROWS_WITH_AS(gunzip(bomb, "f.gz"),
                       doctest::Contains("the gzip data hold more than 256 times their"),
                       TraceError);
  bomb.resize(50 * member.size());
  CHECK(gunzip(bomb, "f.gz").size() == 50U << 20U);
}

}  // namespace
}  // namespace stageline::gzip_tests
