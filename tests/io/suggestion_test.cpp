#include "io/suggestion.hpp"

#include <catch2/catch.hpp>
#include <string_view>

using namespace hipress::io;

TEST_CASE("the nearest known word is proposed, nonsense is not") {
  constexpr std::string_view kKnown[] = {"bandwidth", "latency", "overhead"};
  CHECK(nearest("bandwith", kKnown) == "bandwidth");  // one letter missing
  CHECK(nearest("latncey", kKnown) == "latency");
  CHECK(nearest("Overhead", kKnown) == "overhead");
  CHECK(nearest("band", kKnown) == "bandwidth");  // its beginning
  CHECK(nearest("colour", kKnown).empty());
  CHECK(nearest("", kKnown).empty());
  CHECK(suggestion("bandwith", kKnown) ==
        "; did you mean 'bandwidth'? (known: bandwidth, latency, overhead)");
  CHECK(suggestion("xyz", kKnown) == " (known: bandwidth, latency, overhead)");
  CHECK(before_known("bandwith", kKnown) == "; did you mean 'bandwidth'? ");
  CHECK(before_known("xyz", kKnown) == "; ");
}

TEST_CASE("a word of few letters is not taken for another that shares none") {
  constexpr std::string_view kKnown[] = {"ps", "ring"};
  CHECK(nearest("pz", kKnown) == "ps");
  CHECK(nearest("xy", kKnown).empty());  // two replacements of two letters
}
