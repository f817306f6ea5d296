#include "io/alternatives.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using hipress::io::alternatives;
using hipress::io::first_alternative;

namespace {

std::vector<std::string> of(const std::string& text) { return alternatives(text, 100, "words"); }

}  // namespace

TEST_CASE("a text stands for one with each of its alternatives") {
  using Texts = std::vector<std::string>;
  CHECK(of("onebit") == Texts{"onebit"});
  CHECK(of("") == Texts{""});
  CHECK(of("x(a=1|2)") == Texts{"x(a=1)", "x(a=2)"});
  CHECK(of("x(a=1|2,b=3,c=4|5)") ==
        Texts{"x(a=1,b=3,c=4)", "x(a=1,b=3,c=5)", "x(a=2,b=3,c=4)", "x(a=2,b=3,c=5)"});
  CHECK(of("x(a=1||2|)") == Texts{"x(a=1)", "x(a=)", "x(a=2)", "x(a=)"});
  CHECK(of("x(a=1|2") == Texts{"x(a=1", "x(a=2"});
  // Bars outside of parameter values do not count.
  CHECK(of("|") == Texts{"|"});
  CHECK(of("x|y(a=1)") == Texts{"x|y(a=1)"});
  CHECK(of("x(1|2,a=3|4)") == Texts{"x(1|2,a=3)", "x(1|2,a=4)"});
  CHECK(first_alternative("x(a=1|2,b=3,c=4|5)") == "x(a=1,b=3,c=4)");
  CHECK(first_alternative("onebit") == "onebit");
}

TEST_CASE("alternatives are counted before they are made") {
  // 2^30 texts of 250 bytes would take 268 GB.
  std::string text = "onebit(";
  for (int i = 1; i <= 30; ++i) text += "p" + std::to_string(i) + "=1|2,";
  text += "q=1)";
  CHECK_THROWS_WITH(alternatives(text, 1000, "algorithms"),
                    Catch::EndsWith("stands for more than 1000 algorithms; give fewer values"));
  CHECK(first_alternative(text).find('|') == std::string::npos);
  // A parameter with a million values, each of which would become a text of two million bytes.
  std::string bars = "x(a=";
  for (int i = 0; i < 1'000'000; ++i) bars += "1|";
  CHECK_THROWS_AS(alternatives(bars + ")", 1000, "words"), std::invalid_argument);
  CHECK(alternatives("x(a=1|2,b=1|2)", 4, "words").size() == 4);
  CHECK_THROWS_AS(alternatives("x(a=1|2,b=1|2)", 3, "words"), std::invalid_argument);
}
