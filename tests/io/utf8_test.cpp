#include "io/utf8.hpp"

#include <catch2/catch.hpp>

using hipress::io::printable;
using hipress::io::utf8_length;

TEST_CASE("characters of one to four bytes") {
  CHECK(utf8_length("a") == 1);
  CHECK(utf8_length("\x7f") == 1);
  CHECK(utf8_length("\xc2\x80") == 2);          // U+0080, the least of two bytes
  CHECK(utf8_length("\xe0\xa0\x80") == 3);      // U+0800, the least of three
  CHECK(utf8_length("\xed\x9f\xbf") == 3);      // U+D7FF, before the surrogates
  CHECK(utf8_length("\xf0\x90\x80\x80") == 4);  // U+10000, the least of four
  CHECK(utf8_length("\xf4\x8f\xbf\xbf") == 4);  // U+10FFFF, the last
  CHECK(utf8_length("\xc3\xa4, and more") == 2);
}

TEST_CASE("what is no character") {
  for (const char* bytes : {
           "\xe4",              // ä in Latin-1
           "\x80",              // the second byte of something
           "\xc3",              // cut short
           "\xf0\x90\x80",      // cut short
           "\xc3(",             // followed by something else
           "\xc0\xaf",          // '/' in two bytes
           "\xe0\x9f\xbf",      // overlong in three
           "\xf0\x8f\xbf\xbf",  // overlong in four
           "\xed\xa0\x80",      // a surrogate
           "\xf4\x90\x80\x80",  // behind U+10FFFF
           "\xf8\x88\x80\x80\x80",
           "\xff",
       }) {
    CAPTURE(bytes);
    CHECK(utf8_length(bytes) == 0);
  }
}

TEST_CASE("printable text has no control characters, and says which bytes there were") {
  CHECK(printable("plain, \u00e4 and \U0001f600") == "plain, \u00e4 and \U0001f600");
  CHECK(printable(std::string_view("a\n\x1b[31m\0\x7f", 9)) == "a\\x0a\\x1b[31m\\x00\\x7f");
  CHECK(printable("\u0085\u009b\u00a0") == "\\xc2\\x85\\xc2\\x9b\u00a0");
  CHECK(printable("\xff\xc3") == "\\xff\\xc3");
}
