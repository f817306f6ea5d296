#include "io/document.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <limits>
#include <optional>

#include "io/error.hpp"

using namespace hipress;
using io::Document;

TEST_CASE("a document keeps the order of its members") {
  Document made = {{"b", 1}, {"a", 2.5}};
  made["c"] = nullptr;
  made["b"] = "text";  // the member keeps its place
  CHECK(made.print() == R"({"b":"text","a":2.5,"c":null})");
  CHECK(made.print(2) == "{\n  \"b\": \"text\",\n  \"a\": 2.5,\n  \"c\": null\n}");
  made.update({{"a", true}, {"d", Document::list({1, "x"})}});
  CHECK(made.print() == R"({"b":"text","a":true,"c":null,"d":[1,"x"]})");
}

TEST_CASE("values become what JSON has for them") {
  CHECK(Document(std::optional<double>()).print() == "null");
  CHECK(Document(std::optional<int>(3)).print() == "3");
  CHECK(Document(std::vector<std::string>{"a", "b"}).print() == R"(["a","b"])");
  CHECK(Document(std::numeric_limits<std::uint64_t>::max()).print() == "18446744073709551615");
  CHECK(Document(std::numeric_limits<double>::infinity()).print() == "null");
  CHECK(Document("\xff!").print() == "\"\xef\xbf\xbd!\"");  // not UTF-8
  CHECK(Document::object().print() == "{}");
  CHECK(Document::list().print() == "[]");
  Document list;
  list.push_back({{"x", 1}});
  CHECK(list.print() == R"([{"x":1}])");
}

TEST_CASE("what is read is what was printed") {
  const std::string text =
      R"({"n":-3,"u":18446744073709551615,"d":0.1,"t":"ä","b":false,"l":[null,{}]})";
  const Document read = Document::parse(text, "x.json");
  CHECK(read.print() == text);
  CHECK(read.find("n")->integer() == -3);
  CHECK_FALSE(read.find("n")->unsigned_integer());
  CHECK_FALSE(read.find("u")->integer());
  CHECK(read.find("d")->number() == 0.1);
  CHECK_FALSE(read.find("d")->integer());
  CHECK(*read.find("t")->text() == "ä");
  CHECK(read.find("nothing") == nullptr);
}

TEST_CASE("what is no JSON is refused with its line") {
  CHECK_THROWS_WITH(Document::parse("{\n\"a\": ]", "x.json"),
                    Catch::StartsWith("x.json:2: is no JSON: "));
  CHECK_THROWS_AS(Document::parse("", "x.json"), io::InputError);
  CHECK_THROWS_WITH(Document::parse(R"([{"a": 1, "b": {"a": 2}, "a": 3}])", "x.json"),
                    "x.json: has a member 'a' twice in one object");
  CHECK_NOTHROW(Document::parse(R"([{"a": {"a": 1}, "b": [{"a": 2}, {"a": 3}]}, {"a": 4}])", "x"));
  // 64 levels are allowed.
  CHECK_NOTHROW(Document::parse(std::string(64, '[') + std::string(64, ']'), "x.json"));
  CHECK_THROWS_WITH(Document::parse(std::string(100'000, '['), "x.json"),
                    Catch::Contains("in more than 64 levels"));
}

TEST_CASE("an object's members take time in proportion to their number") {
  // 300 000 members: comparing each name with all earlier ones (45·10^9 times) would take minutes.
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) text += fmt::format("\"{}\":1,", i);
  const Document read = Document::parse(text + "\"last\":2}", "x.json");
  CHECK(read.members()->size() == 300'001);
  CHECK(read.members()->back().name == "last");
  CHECK_THROWS_WITH(Document::parse(text + "\"7\":2}", "x.json"),
                    "x.json: has a member '7' twice in one object");
  CHECK(read.print().size() > text.size());
}

TEST_CASE("a complaint describes what it got") {
  CHECK(Document(3.5).describe() == "the number 3.5");
  CHECK(Document("x").describe() == "the text 'x'");
  CHECK(Document::list().describe() == "a list");
  CHECK(Document::object().describe() == "an object");
  CHECK(Document().describe() == "null");
  CHECK(Document(true).describe() == "true");
}
