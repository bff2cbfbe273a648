// Can a name drive a terminal?
#include "sim/text/visible.hpp"

#include <doctest/doctest.h>

namespace stageline::visible_tests {

using namespace std::string_literals;

TEST_CASE("bytes are UTF-8 or not") {
  CHECK(is_utf8("plain · ü 𝄞\n"));
  CHECK(is_utf8(""));
  for (const char* const broken :
       {"\x91", "a\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80"}) {
    CHECK_FALSE(is_utf8(broken));
  }
}

TEST_CASE("control characters are shown as their pictures, others as a replacement") {
  CHECK(visible("plain · ü 𝄞") == "plain · ü 𝄞");
  CHECK(visible("\x1b]0;title\x07") == "␛]0;title␇");
  CHECK(visible("a\0b\nc\td\x7f"s) == "a␀b␊c␉d␡");
  CHECK(visible("\xC2\x9B"
                "31m") == "\uFFFD31m");
  CHECK(visible("x\u202Ey\u2066z") == "x\uFFFDy\uFFFDz");
}

TEST_CASE("a beginning ends behind a whole character") {
  CHECK(head_of("abc", 3) == "abc");
  CHECK(head_of("abcd", 3) == "abc");
  CHECK(head_of("abü", 3) == "ab");
  CHECK(head_of("abü", 4) == "abü");
  CHECK(head_of("𝄞", 3).empty());
  CHECK(head_of("\x80\x80\x80", 2).empty());
}

TEST_CASE("bytes that are not UTF-8 are replaced one by one") {
  CHECK(visible("a\xFF"
                "b") == "a\uFFFDb");
  CHECK(visible("\xC0\xAF") == "\uFFFD\uFFFD");            // overlong
  CHECK(visible("\xED\xA0\x80") == "\uFFFD\uFFFD\uFFFD");  // a surrogate
  CHECK(visible("\xF4\x90\x80\x80") == "\uFFFD\uFFFD\uFFFD\uFFFD");
  CHECK(visible("\xE2\x82") == "\uFFFD\uFFFD");  // cut off
}

TEST_CASE("a report keeps its lines and colours, and no other sequence") {
  CHECK(visible_lines("a\tb\n") == "a\tb\n");
  CHECK(visible_lines("\x1b[38;5;32mF\x1b[0m") == "\x1b[38;5;32mF\x1b[0m");
  CHECK(visible_lines("\x1b[31m\x1b[2J\x1b[1;1H\x1b]8;;x\x07\r") == "␛[31m␛[2J␛[1;1H␛]8;;x␇␍");
  CHECK(visible_lines("\x1b[38;5") == "␛[38;5");
}

}  // namespace stageline::visible_tests
