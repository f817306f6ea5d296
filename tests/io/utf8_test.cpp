#include "io/utf8.hpp"

#include <catch2/catch.hpp>
#include <string_view>

using hipress::io::first_unprintable;
using hipress::io::printable;
using hipress::io::printable_length;
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

TEST_CASE("what must not be printed as it is, and its neighbours") {
  for (const char* bytes :
       {" ", "~", "\xc2\xa0", "\xe2\x80\xa7", "\xe2\x80\xaf", "\xe2\x81\xa5", "\xe2\x81\xaa",
        "\xef\xb7\x8f", "\xef\xb7\xb0", "\xef\xbf\xbd", "\xf0\x9f\x98\x80"}) {
    CAPTURE(bytes);
    CHECK(printable_length(bytes) == std::string_view(bytes).size());
    CHECK(first_unprintable(bytes).empty());
  }
  CHECK(first_unprintable("ab\x1b[31m") == "control character U+001B");
  CHECK(first_unprintable(std::string_view("\0", 1)) == "control character U+0000");
  CHECK(first_unprintable("\x7f") == "control character U+007F");
  CHECK(first_unprintable("\xc2\x9b") == "control character U+009B");
  CHECK(first_unprintable("\xe2\x80\xa8") == "line separator U+2028");
  CHECK(first_unprintable("\xe2\x80\xae") == "direction control U+202E");
  CHECK(first_unprintable("\xe2\x81\xa6") == "direction control U+2066");
  CHECK(first_unprintable("\xef\xbb\xbf") == "byte order mark U+FEFF");
  CHECK(first_unprintable("\xf0\x9f\xbf\xbe") == "noncharacter U+1FFFE");
  CHECK(first_unprintable("a\xff") == "byte 0xff, which is not UTF-8");
  CHECK(first_unprintable("a\n\tb", "\n\t").empty());
  CHECK(first_unprintable("a\n\tb", "\n") == "control character U+0009");
}
