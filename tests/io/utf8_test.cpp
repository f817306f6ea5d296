#include "io/utf8.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <utility>

using hipress::io::first_unprintable;
using hipress::io::printable;
using hipress::io::printable_length;
using hipress::io::utf8_length;

TEST_CASE("characters of one to four bytes") {
  CHECK(utf8_length("a") == 1);
  CHECK(utf8_length("\x7f") == 1);
  CHECK(utf8_length("\xc2\x80") == 2);          // U+0080, the first character of two bytes
  CHECK(utf8_length("\xe0\xa0\x80") == 3);      // U+0800, the first of three bytes
  CHECK(utf8_length("\xed\x9f\xbf") == 3);      // U+D7FF, before the surrogates
  CHECK(utf8_length("\xf0\x90\x80\x80") == 4);  // U+10000, the first of four bytes
  CHECK(utf8_length("\xf4\x8f\xbf\xbf") == 4);  // U+10FFFF, the last
  CHECK(utf8_length("\xc3\xa4, and more") == 2);
}

TEST_CASE("what is no character") {
  for (const char* bytes : {
           "\xe4",              // ä in Latin-1
           "\x80",              // a continuation byte
           "\xc3",              // cut short
           "\xf0\x90\x80",      // cut short
           "\xc3(",             // without its continuation byte
           "\xc0\xaf",          // overlong: '/' in two bytes
           "\xe0\x9f\xbf",      // overlong: U+07FF in three bytes
           "\xf0\x8f\xbf\xbf",  // overlong: U+FFFF in four bytes
           "\xed\xa0\x80",      // a surrogate
           "\xf4\x90\x80\x80",  // above U+10FFFF
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
       {" ",          "~",          "\u00a0",    "\u00ac", "\u00ae",     "\u034e",     "\u0350",
        "\u061b",     "\u061d",     "\u115e",    "\u1161", "\u17b3",     "\u17b6",     "\u180a",
        "\u1810",     "\u200a",     "\u2010",    "\u2027", "\u202f",     "\u205f",     "\u2070",
        "\u3163",     "\u3165",     "\ufdcf",    "\ufdf0", "\ufdff",     "\ufe10",     "\uff9f",
        "\uffa1",     "\uffef",     "\ufffc",    "\ufffd", "\U0001bc9f", "\U0001bca4", "\U0001d172",
        "\U0001d17b", "\U0001f600", "\U000e1000"}) {
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
  for (const auto& [text, code] :
       {std::pair("\u00ad", "00AD"),      std::pair("\u034f", "034F"),
        std::pair("\u115f", "115F"),      std::pair("\u1160", "1160"),
        std::pair("\u17b4", "17B4"),      std::pair("\u17b5", "17B5"),
        std::pair("\u180b", "180B"),      std::pair("\u180e", "180E"),
        std::pair("\u180f", "180F"),      std::pair("\u200b", "200B"),
        std::pair("\u200d", "200D"),      std::pair("\u2060", "2060"),
        std::pair("\u2065", "2065"),      std::pair("\u206a", "206A"),
        std::pair("\u206f", "206F"),      std::pair("\u3164", "3164"),
        std::pair("\ufe00", "FE00"),      std::pair("\ufe0f", "FE0F"),
        std::pair("\uffa0", "FFA0"),      std::pair("\ufff0", "FFF0"),
        std::pair("\ufffb", "FFFB"),      std::pair("\U0001bca0", "1BCA0"),
        std::pair("\U0001bca3", "1BCA3"), std::pair("\U0001d173", "1D173"),
        std::pair("\U0001d17a", "1D17A"), std::pair("\U000e0000", "E0000"),
        std::pair("\U000e007f", "E007F"), std::pair("\U000e0fff", "E0FFF")}) {
    CHECK(first_unprintable(text) == std::string("invisible character U+") + code);
  }
  for (const auto& [text, code] : {std::pair("\u061c", "061C"), std::pair("\u200e", "200E"),
                                   std::pair("\u200f", "200F"), std::pair("\u2069", "2069")}) {
    CHECK(first_unprintable(text) == std::string("direction control U+") + code);
  }
  CHECK(first_unprintable("\xef\xbb\xbf") == "byte order mark U+FEFF");
  CHECK(first_unprintable("\xf0\x9f\xbf\xbe") == "noncharacter U+1FFFE");
  CHECK(first_unprintable("a\xff") == "byte 0xff, which is not UTF-8");
  CHECK(first_unprintable("a\n\tb", "\n\t").empty());
  CHECK(first_unprintable("a\n\tb", "\n") == "control character U+0009");
}
