// Are units exact, and their texts read as written?
#include "sim/base/units.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <stdexcept>

#include "tests/text.hpp"

namespace stageline::units_tests {
namespace {

std::string refused_time(const std::string& text) {
  return test::complaint<std::invalid_argument>([&] { parse_time(text); });
}
std::string refused_bytes(const std::string& text) {
  return test::complaint<std::invalid_argument>([&] { parse_bytes(text); });
}
std::string refused_bandwidth(const std::string& text) {
  return test::complaint<std::invalid_argument>([&] { parse_bandwidth(text); });
}

TEST_CASE("times are read in every unit") {
  CHECK(parse_time("7ps") == Time{7});
  CHECK(parse_time("7ns") == Time{7'000});
  CHECK(parse_time("7us") == Time{7'000'000});
  CHECK(parse_time("7µs") == Time{7'000'000});
  CHECK(parse_time("7ms") == Time{7'000'000'000});
  CHECK(parse_time("7s") == Time{7'000'000'000'000});
  CHECK(parse_time("1.5 ms") == Time{1'500'000'000});
  CHECK(parse_time("1e-3s") == Time{1'000'000'000});
  CHECK(parse_time("0") == Time{});
  CHECK(parse_time("0.0") == Time{});
  CHECK(parse_time("100000s") == longest_input);
}

TEST_CASE("a time is rounded once, to the nearest picosecond") {
  CHECK(parse_time("0.4ps") == Time{0});
  CHECK(parse_time("0.6ps") == Time{1});
  CHECK(parse_time("0.0125ns") == Time{13});  // 12.5 goes away from zero
  CHECK(from_seconds(1e-12) == Time{1});
  CHECK(from_seconds(0.6e-12) == Time{1});
  CHECK(from_seconds(0.4e-12) == Time{0});
  CHECK(from_seconds(0.1) == Time{100'000'000'000});
  CHECK(to_seconds(Time{1'500'000'000'000}) == 1.5);
  CHECK(from_seconds(to_seconds(Time{123'456'789})) == Time{123'456'789});
}

TEST_CASE("whole numbers are read exactly, and decimals are rounded once") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    const auto count = static_cast<std::int64_t>(random() >> (1 + random() % 62));
    const std::int64_t time = count % (longest_input.count() + 1);
    CHECK(parse_time(std::to_string(time) + "ps") == Time{time});
    const std::int64_t bytes = count % ((std::int64_t{1} << 62) + 1);
    CHECK(parse_bytes(std::to_string(bytes) + "B") == Bytes{bytes});
    CHECK(parse_bandwidth(std::to_string(bytes + 1) + "B/s") == Bandwidth{bytes + 1});
    // The same in seconds and in terabytes, with the point in the middle.
    const auto shifted = [](std::int64_t value) {
      std::string digits = std::to_string(value);
      if (digits.size() < 13) digits.insert(0, 13 - digits.size(), '0');
      return digits.insert(digits.size() - 12, ".");
    };
    CHECK(parse_time(shifted(time) + "s") == Time{time});
    CHECK(parse_bytes(shifted(bytes) + "TB") == Bytes{bytes});
    CHECK(parse_bytes(shifted(bytes) + "e12B") == Bytes{bytes});
  }
  CHECK(parse_time("99999999999999999ps") == Time{99'999'999'999'999'999});
  CHECK(parse_time("1.0005ns") == Time{1'001});  // 1000.5, which no double holds
  CHECK(parse_time("2.6755ns") == Time{2'676});
  CHECK(parse_time("0.49999999999999999999ps") == Time{0});
  CHECK(parse_time("0.5ps") == Time{1});
  CHECK(parse_time("00000000000000000000000000000000005ps") == Time{5});
  CHECK(parse_time("5000000000000000000000000000000000000e-36ps") == Time{5});
  CHECK(parse_time("0.000000000000000000000000000000000005e36ps") == Time{5});
  CHECK(parse_time("1e-400s") == Time{0});
  CHECK(parse_time("1e5s") == longest_input);
  CHECK(refused_time("100000000000000001ps").find("is too large") != std::string::npos);
  CHECK(parse_bytes("0.5KiB") == Bytes{512});
  CHECK(parse_bandwidth("0.1Gbit/s") == Bandwidth{12'500'000});
}

TEST_CASE("what is not a time is refused with the text, the reason and an example") {
  CHECK(refused_time("") ==
        "time \"\" does not begin with a number; write it like \"1.5ms\" or \"20us\"");
  CHECK(refused_time("ms") ==
        "time \"ms\" does not begin with a number; write it like \"1.5ms\" or \"20us\"");
  CHECK(refused_time("12") ==
        "time \"12\" has no unit (one of ps ns us µs ms s); write it like \"1.5ms\" or \"20us\"");
  CHECK(refused_time("12 min") ==
        "time \"12 min\" has no known unit (one of ps ns us µs ms s); "
        "write it like \"1.5ms\" or \"20us\"");
  CHECK(refused_time("-1ms") == "time \"-1ms\" is negative; write it like \"1.5ms\" or \"20us\"");
  CHECK(refused_time("-0ms") != "");
  CHECK(refused_time("nanms") ==
        "time \"nanms\" is not a finite number; write it like \"1.5ms\" or \"20us\"");
  CHECK(refused_time("infs") != "");
  CHECK(refused_time("100001s") ==
        "time \"100001s\" is too large; write it like \"1.5ms\" or \"20us\"");
  CHECK(refused_time("1e999s") ==
        "time \"1e999s\" is too large; write it like \"1.5ms\" or \"20us\"");
  for (const char* const text : {" 1ms", "1ms ", "1,5ms", "1ms2", "0x10ms", "+1ms", "1 m s"}) {
    CAPTURE(text);
    CHECK(refused_time(text) != "");
  }
}

TEST_CASE("a number too small to hold is nothing, not too much") {
  CHECK(parse_time("1e-400s") == Time{});
  CHECK(parse_bytes("1e-9999B") == Bytes{});
}

TEST_CASE("sizes and bandwidths know decimal and binary units") {
  CHECK(parse_bytes("1200B") == Bytes{1200});
  CHECK(parse_bytes("4kB") == Bytes{4'000});
  CHECK(parse_bytes("4MB") == Bytes{4'000'000});
  CHECK(parse_bytes("4GB") == Bytes{4'000'000'000});
  CHECK(parse_bytes("4TB") == Bytes{4'000'000'000'000});
  CHECK(parse_bytes("4KiB") == Bytes{4 << 10});
  CHECK(parse_bytes("4MiB") == Bytes{4 << 20});
  CHECK(parse_bytes("16GiB") == Bytes{std::int64_t{16} << 30});
  CHECK(parse_bytes("2TiB") == Bytes{std::int64_t{2} << 40});
  CHECK(parse_bandwidth("12GB/s") == Bandwidth{12'000'000'000});
  CHECK(parse_bandwidth("100Gbit/s") == Bandwidth{12'500'000'000});
  CHECK(parse_bandwidth("8 Mbit/s") == Bandwidth{1'000'000});
  CHECK(parse_bandwidth("1GiB/s") == Bandwidth{1 << 30});
  CHECK(parse_bandwidth("unlimited").is_unlimited());
  CHECK(refused_bytes("4mb") != "");
  CHECK(refused_bytes("-4MB") == "size \"-4MB\" is negative; write it like \"4MB\" or \"16GiB\"");
  CHECK(refused_bytes("9e30B") ==
        "size \"9e30B\" is too large; write it like \"4MB\" or \"16GiB\"");
  CHECK(refused_bandwidth("12GB") != "");
  CHECK(refused_bandwidth("12") != "");
  CHECK(refused_bandwidth("0B/s") == "bandwidth \"0B/s\" is zero; a link must move at least 1 B/s");
  CHECK(refused_bandwidth("0.1B/s") ==
        "bandwidth \"0.1B/s\" is zero; a link must move at least 1 B/s");
}

TEST_CASE("a size without a unit is refused, unless it is nothing") {
  CHECK(refused_bytes("16") ==
        "size \"16\" has no unit (one of B kB MB GB TB KiB MiB GiB TiB); write it like \"4MB\" or "
        "\"16GiB\"");
  CHECK(refused_bytes("1.5e9").find("has no unit") != std::string::npos);
  CHECK(refused_bytes("16 ").find("has no unit") != std::string::npos);
  CHECK(parse_bytes("0") == Bytes{});
  CHECK(parse_bytes("0.0") == Bytes{});
}

TEST_CASE("seconds that are no time are refused") {
  const auto refused = [](double seconds) {
    return test::complaint<std::invalid_argument>([&] { from_seconds(seconds); });
  };
  CHECK(refused(-1) == "a time must not be negative (it is -1 s)");
  CHECK(refused(2e5) == "a time must be at most 100000 s (it is 200000 s)");
  CHECK(refused(std::nan("")) == "a time must be a finite number");
  CHECK(refused(HUGE_VAL) == "a time must be a finite number");
  CHECK(refused(1e5) == "");
}

TEST_CASE("bytes become time exactly, rounded to the nearest picosecond") {
  CHECK(transfer_time(Bytes{1}, Bandwidth{1'000'000'000'000}) == Time{1});
  CHECK(transfer_time(Bytes{1}, Bandwidth{3'000'000'000'000}) == Time{0});
  CHECK(transfer_time(Bytes{2}, Bandwidth{3'000'000'000'000}) == Time{1});
  CHECK(transfer_time(Bytes{1}, Bandwidth{1}) == Time{1'000'000'000'000});
  CHECK(transfer_time(Bytes{}, Bandwidth{1}) == Time{});
  CHECK(transfer_time(Bytes{1'000'000'000}, Bandwidth::unlimited()) == Time{});
  // 2^34 bytes times 10^12 need more than 64 bits on the way.
  CHECK(transfer_time(Bytes{std::int64_t{1} << 34}, Bandwidth{3'000'000}) ==
        Time{5'726'623'061'333'333});
}

TEST_CASE("more bandwidth never takes more time, and k times the bytes about k times") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 2'000; ++i) {
    const Bytes bytes{static_cast<std::int64_t>(random() % 1'000'000'000)};
    const Bandwidth slow{static_cast<std::int64_t>(1'000 + random() % 1'000'000'000'000)};
    const Bandwidth fast{slow.bytes_per_second + static_cast<std::int64_t>(random() % 1'000)};
    REQUIRE(transfer_time(bytes, fast) <= transfer_time(bytes, slow));
    const std::int64_t error =
        transfer_time(bytes * 7, slow).count() - 7 * transfer_time(bytes, slow).count();
    REQUIRE(std::abs(error) <= 4);  // each rounded by at most a half
  }
}

TEST_CASE("a transfer longer than the longest run is refused, not clipped") {
  CHECK(transfer_time(Bytes{100'001}, Bandwidth{1}) == Time{100'001'000'000'000'000});
  CHECK(transfer_time(Bytes{4'611'686}, Bandwidth{1}) == Time{4'611'686'000'000'000'000});
  CHECK(
      test::complaint<UsageError>([] { transfer_time(Bytes{4'611'687}, Bandwidth{1}); }) ==
      "4.612 MB at 1 B/s take 4.61e+06 s, and at most 4.61e+06 s (53 days) can be simulated; check "
      "the unit of the bandwidth");
  CHECK_THROWS_AS(transfer_time(Bytes{std::int64_t{1} << 62}, Bandwidth{1}), UsageError);
}

TEST_CASE("values print for people") {
  CHECK(print(Time{}) == "0 s");
  CHECK(print(Time{999}) == "999 ps");
  CHECK(print(Time{1'500}) == "1.500 ns");
  CHECK(print(Time{20'000'000}) == "20.00 µs");
  CHECK(print(Time{1'500'000'000}) == "1.500 ms");
  CHECK(print(Time{123'456'000'000'000}) == "123.5 s");
  CHECK(print(Time{-1'500'000'000}) == "-1.500 ms");
  CHECK(print(Bytes{0}) == "0 B");
  CHECK(print(Bytes{999}) == "999 B");
  CHECK(print(Bytes{4'190'000}) == "4.190 MB");
  CHECK(print(Bytes{80'000'000'000}) == "80.00 GB");
  CHECK(print(Bandwidth{12'000'000'000}) == "12.00 GB/s");
  CHECK(print(Bandwidth::unlimited()) == "unlimited");
}

TEST_CASE("a NUL in an amount does not cut its message short") {
  CHECK(test::contains(refused_time(std::string("1\0s", 3)), "\"1\u2400s\" "));
}

TEST_CASE("what prints is read again") {
  for (const std::int64_t ps : {1LL, 999LL, 1'500LL, 20'000'000LL, 1'500'000'000LL}) {
    CHECK(parse_time(print(Time{ps})) == Time{ps});
  }
  CHECK(parse_bytes(print(Bytes{4'190'000})) == Bytes{4'190'000});
  CHECK(parse_bandwidth(print(Bandwidth{12'000'000'000})) == Bandwidth{12'000'000'000});
}

}  // namespace
}  // namespace stageline::units_tests
