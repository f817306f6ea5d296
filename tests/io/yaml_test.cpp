#include "io/yaml.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "tests/io/temporary_folder.hpp"

using hipress::io::YamlNode;
using hipress::tests::complaint;
using hipress::tests::TemporaryFolder;

namespace {

YamlNode parse(const std::string& text) { return YamlNode::parse(text, "x.yaml"); }

}  // namespace

TEST_CASE("a YAML file is told by its ending") {
  CHECK(hipress::io::is_yaml_name("plans/x.yaml"));
  CHECK(hipress::io::is_yaml_name("x.yml"));
  CHECK_FALSE(hipress::io::is_yaml_name("x.yaml.txt"));
  CHECK_FALSE(hipress::io::is_yaml_name("yaml"));
  CHECK_FALSE(hipress::io::is_yaml_name(""));
}

TEST_CASE("values are read with their units") {
  const YamlNode root = parse(
      "name: v100\n"
      "cores: 8\n"
      "link: {bandwidth: 100Gbps, latency: 5us}\n"
      "buffer: 64KiB\n"
      "ratio: 0.5\n"
      "shared: true\n"
      "sizes: [1, 2, 3]\n");
  CHECK(root.at("name").text() == "v100");
  CHECK(root.at("cores").integer(1) == 8);
  CHECK(root.at("link").at("bandwidth").bandwidth() == 12.5e9);
  CHECK(root.at("link").at("latency").duration() == 5e-6);
  CHECK(root.at("buffer").size() == 65536);
  CHECK(root.at("ratio").number() == 0.5);
  CHECK(root.at("shared").boolean());
  CHECK(root.at("sizes").items().size() == 3);
  CHECK(root.at("sizes").items()[2].integer(1) == 3);
  CHECK(root.at("sizes").items()[2].path() == "sizes[2]");
  CHECK(root.at("link").at("latency").path() == "link.latency");
  CHECK(root.at("buffer").line() == 4);
  CHECK(root.has("name"));
  CHECK_FALSE(root.has("colour"));
  CHECK_FALSE(root.find("colour"));
}

TEST_CASE("entries keep the file's order") {
  const auto entries = parse("b: 1\na: 2\nc: 3\n").entries();
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].first == "b");
  CHECK(entries[1].first == "a");
  CHECK(entries[1].second.integer(0) == 2);
}

TEST_CASE("a node tells a list and a map from a single value") {
  const auto root = parse("list: [1]\nmap: {a: 1}\none: 1\n");
  CHECK((root.is_map() && root.at("map").is_map() && root.at("list").is_list()));
  CHECK_FALSE((root.is_list() || root.at("one").is_list() || root.at("one").is_map()));
}

TEST_CASE("an unknown key is refused with its line and the nearest known one") {
  const YamlNode root = parse("name: x\nlink:\n  latency: 5us\n  bandwith: 1GB/s\n");
  root.expect_keys({"name", "link"});
  CHECK(complaint([&] {
          root.at("link").expect_keys({"bandwidth", "latency"});
        }) ==
        "x.yaml:4: unknown key 'link.bandwith'; did you mean 'bandwidth'? (known: bandwidth, "
        "latency)");
  SECTION("a key that is no single value") {
    CHECK(complaint([] { parse("a: 1\n[b, c]: 2\n").expect_keys({"a"}); }) ==
          "x.yaml:2: a key must be a single value");
  }
  CHECK(complaint([&] { root.expect_keys({"link"}); }) ==
        "x.yaml:1: unknown key 'name' (known: link)");
}

TEST_CASE("a key that is given twice is refused") {
  const YamlNode root = parse("name: x\nsize: 1\nname: y\n");
  CHECK(complaint([&] {
          root.expect_keys({"name", "size"});
        }) == "x.yaml:3: key 'name' is given twice");
}

TEST_CASE("a missing key is refused at its map") {
  const YamlNode root = parse("name: x\nlink:\n  latency: 5us\n");
  CHECK(complaint([&] { root.at("link").at("bandwidth"); }) ==
        "x.yaml:2: link: missing key 'bandwidth'");
  CHECK(complaint([&] { root.at("cores"); }) == "x.yaml:1: missing key 'cores'");
}

TEST_CASE("a value of the wrong kind is refused with its line") {
  const YamlNode root = parse("a:\n  b: [1]\n  c: text\n  d:\n");
  const YamlNode a = root.at("a");
  SECTION("a list for a value") {
    CHECK(complaint([&] { a.at("b").text(); }) ==
          "x.yaml:2: a.b: must be a single value, got a list");
    CHECK(complaint([&] { a.at("b").number(); }) ==
          "x.yaml:2: a.b: must be a single value, got a list");
  }
  SECTION("a value for a list") {
    CHECK(complaint([&] { a.at("c").items(); }) ==
          "x.yaml:3: a.c: must be a list, got a single value");
  }
  SECTION("a value for a map") {
    CHECK(complaint([&] { a.at("c").entries(); }) ==
          "x.yaml:3: a.c: must be a map, got a single value");
    CHECK(complaint([&] { a.at("c").at("x"); }) ==
          "x.yaml:3: a.c: must be a map, got a single value");
  }
  SECTION("nothing for a quantity") {
    CHECK(complaint([&] { a.at("d").integer(1); }) ==
          "x.yaml:4: a.d must be a positive integer, got ''");
    CHECK(complaint([&] { a.at("d").text(); }) ==
          "x.yaml:4: a.d: must be a single value, got nothing");
  }
  SECTION("a missing unit") {
    CHECK_THAT(complaint([&] { a.at("c").bandwidth(); }),
               Catch::StartsWith("x.yaml:3: a.c must be a bandwidth with unit, such as 100Gbps") &&
                   Catch::EndsWith("got 'text'"));
    CHECK_THAT(complaint([&] { a.at("c").duration(); }),
               Catch::StartsWith("x.yaml:3: a.c must be a duration with unit, such as 5us"));
    CHECK_THAT(complaint([&] { a.at("c").size(); }),
               Catch::StartsWith("x.yaml:3: a.c must be a size with unit, such as 64KiB"));
  }
  SECTION("not true and not false") {
    CHECK(complaint([&] { a.at("c").boolean(); }) ==
          "x.yaml:3: a.c: must be true or false, got 'text'");
  }
}

TEST_CASE("a node can be named after what it describes") {
  const YamlNode gradient = parse("- {name: fc6.weight, elements: -3}").items()[0];
  const YamlNode named = gradient.named("gradient 'fc6.weight'");
  CHECK(complaint([&] { named.at("elements").integer(1); }) ==
        "x.yaml:1: gradient 'fc6.weight': elements must be a positive integer, got '-3'");
  CHECK(complaint([&] { named.at("ready"); }) ==
        "x.yaml:1: gradient 'fc6.weight': missing key 'ready'");
}

TEST_CASE("a file that is no YAML document is refused") {
  const TemporaryFolder folder;
  SECTION("missing") {
    const std::string path = folder.path("none.yaml");
    CHECK(complaint([&] { YamlNode::load(path); }) ==
          path + ": cannot be read: No such file or directory");
  }
  SECTION("empty") {
    const std::string path = folder.file("empty.yaml", "");
    CHECK(complaint([&] { YamlNode::load(path); }) ==
          path + ": is empty, a YAML document was expected");
  }
  SECTION("nothing but a comment") {
    CHECK(complaint([] { parse("# a comment\n"); }) ==
          "x.yaml: is empty, a YAML document was expected");
  }
  SECTION("truncated in the middle of a map") {
    CHECK_THAT(complaint([] { parse("a: 1\nb: {c: 2, d"); }),
               Catch::StartsWith("x.yaml:2: not valid YAML: "));
  }
  SECTION("a tab for indentation") {
    CHECK_THAT(complaint([] { parse("a:\n\tb: 1\n"); }),
               Catch::StartsWith("x.yaml:2: not valid YAML: "));
  }
  SECTION("NUL bytes, which end the document for some parsers") {
    CHECK(complaint([] { parse(std::string("a: 1\nb: \0\n", 10)); }) ==
          "x.yaml:2: control byte '\\x00': this is not a YAML text file");
  }
  SECTION("bytes that are not UTF-8") {
    CHECK(complaint([] { parse("a: 1\nname: M\xfcller\n"); }) ==
          "x.yaml:2: byte 0xfc is not UTF-8; give a UTF-8 text file");
    CHECK(parse("name: M\xc3\xbcller\n").at("name").text() == "M\xc3\xbcller");
  }
  SECTION("two documents") {
    CHECK(complaint([] { parse("a: 1\n---\nb: 2\n"); }) ==
          "x.yaml:2: text behind the end of the YAML document; one document per file is read");
  }
  SECTION("stray signs, on which some parsers never end") {
    for (const char* text : {",a: 1\n", ",", "a: 1\n]\n", "{a: 1}}", "- 1\n}"}) {
      CHECK_THAT(complaint([&] { parse(text); }), Catch::StartsWith("x.yaml:"));
    }
  }
}

TEST_CASE("escapes bring no control characters into texts and keys") {
  const YamlNode root =
      parse("a: \"x\\e[31m\"\nb: |\n  two\n  lines\nc: \"\\u202e\"\nd: \"\\x9b\"\n");
  CHECK(complaint([&] { root.at("a").text(); }) ==
        "x.yaml:1: a: must not hold control character U+001B, got 'x\\x1b[31m'; write it without");
  CHECK(root.at("b").prose() == "two\nlines\n");
  CHECK_THAT(complaint([&] { root.at("b").text(); }), Catch::StartsWith("x.yaml:2: b: "));
  CHECK_THAT(complaint([&] { root.at("c").prose(); }), Catch::StartsWith("x.yaml:5: c: "));
  CHECK_THAT(complaint([&] { root.at("d").text(); }), Catch::Contains("U+009B"));
  CHECK(complaint([] { parse("a: 1\n\"\\e\": 2\n").entries(); }) ==
        "x.yaml:2: key '\\x1b' must not hold control character U+001B");
}

TEST_CASE("numbers outside of what a file may give are refused with their line") {
  const YamlNode root = parse("t: 1e7s\nb: 1e16B/s\ns: 2000TiB\nn: 3\n");
  CHECK(complaint([&] { root.at("t").duration(); }) ==
        "x.yaml:1: t: must be 0s to 1e+06s, got '1e7s'");
  CHECK(root.at("t").duration(1e7) == 1e7);
  CHECK_THAT(complaint([&] { root.at("b").bandwidth(); }),
             Catch::StartsWith("x.yaml:2: b: must be"));
  CHECK(complaint([&] { root.at("s").size(); }) ==
        "x.yaml:3: s: must be at most 1126TB, got '2000TiB'");
  CHECK(complaint([&] { root.at("n").number(0, 2, "2 is most"); }) ==
        "x.yaml:4: n: must be 0 to 2 (2 is most), got '3'");
}

TEST_CASE("limits of size count what aliases stand for") {
  // A few small aliases are allowed.
  const YamlNode small = parse("a: &one {x: 1}\nb: *one\nc: [*one, *one]\n");
  CHECK(small.at("c").items()[1].at("x").integer(1) == 1);
  // An alias counts 1 MiB of text and 64 bytes for its value: 16 of them exceed 16 MiB, 15 do not.
  const std::string note(std::size_t{1} << 20, 'N');
  const auto noted = [&](int aliases) {
    std::string text = "notes:\n  - &n " + note + "\n";
    for (int i = 0; i < aliases; ++i) text += "  - *n\n";
    return text;
  };
  CHECK(parse(noted(15)).at("notes").items().size() == 16);
  CHECK(complaint([&] { parse(noted(16)); }) ==
        "x.yaml:18: the aliases (*name) up to here stand for more than 16MiB; write fewer of them");
  // Each level has ten aliases of the previous one: level 9 has 10^9 values.
  std::string levels = "a0: &a0 x\n";
  for (int level = 1; level <= 9; ++level) {
    const std::string before = std::to_string(level - 1), now = std::to_string(level);
    levels += "a" + now + ": &a" + now + " [";
    for (int i = 0; i < 10; ++i) levels += (i == 0 ? "*a" : ",*a") + before;
    levels += "]\n";
  }
  CHECK_THAT(complaint([&] { parse(levels); }), Catch::Contains("stand for more than 16MiB"));
  // Each level has the previous one twice: the number of values at level 100 exceeds 64 bits.
  std::string doubled = "a0: &a0 x\n";
  for (int level = 1; level <= 100; ++level) {
    const std::string before = std::to_string(level - 1), now = std::to_string(level);
    doubled += "a" + now + ": &a" + now + " {k: *a" + before + ", l: *a" + before + "}\n";
  }
  CHECK_THAT(complaint([&] { parse(doubled); }), Catch::Contains("stand for more than 16MiB"));
  // Aliases may be keys, and an anchor's name may be used again.
  CHECK(parse("a: &k one\n*k : two\n").at("one").text() == "two");
  CHECK(parse("a: &k 1\nb: &k 2\nc: *k\n").at("c").integer(0) == 2);
}

TEST_CASE("names of more than 4096 bytes are refused, and not printed") {
  const std::string most(4096, 'x'), shown(80, 'x');
  CHECK(parse("a: " + most + "\n").at("a").text() == most);
  CHECK(complaint([&] { parse("\na: " + most + "x\n").at("a").text(); }) ==
        "x.yaml:2: a: must not hold more than 4096 bytes, got '" + shown + "…'; write it without");
  CHECK(complaint([&] { parse("? " + most + "x\n: 1\n").entries(); }) ==
        "x.yaml:1: key '" + shown + "…' must not hold more than 4096 bytes");
  CHECK(parse("a: " + most + most + "\n").at("a").prose() == most + most);
}

TEST_CASE("values and levels of a file are limited") {
  // The map, its key, the list and 999 997 values make a million; one more is refused.
  const auto listed = [](int values) {
    std::string text = "v:\n  [0";
    for (int i = 1; i < values; ++i) text += ",0";
    return text + "]\n";
  };
  CHECK(parse(listed(999'997)).at("v").items().size() == 999'997);
  CHECK(complaint([&] { parse(listed(999'998)); }) ==
        "x.yaml:2: has more than 1000000 keys and values; leave out unused ones, or split "
        "the file");
  const char* const refused = "x.yaml:1: has lists and maps in more than 64 levels; write fewer";
  CHECK(complaint([] { parse(std::string(100'000, '[')); }) == refused);
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{a: ", "}")}) {
    const auto nested = [&, open = open, close = close](int levels) {
      std::string text, end;
      for (int i = 0; i < levels; ++i) {
        text += open;
        end += close;
      }
      return text + end;
    };
    parse(nested(64));
    CHECK(complaint([&] { parse(nested(65)); }) == refused);
    CHECK(complaint([&] { parse(nested(100'000)); }) == refused);
  }
}

TEST_CASE("an alias of what it is part of is refused") {
  for (const char* text : {"a: &a [1, *a]\n", "a: &a {b: {c: *a}}\n", "&r [x, *r]\n"}) {
    CAPTURE(text);
    CHECK(complaint([&] { parse(text); }) ==
          "x.yaml:1: an alias stands for a value that it is part of");
  }
}

TEST_CASE("a file that may be cut off is refused") {
  const TemporaryFolder folder;
  const auto about = [&](const std::string& text) {
    const std::string path = folder.file("x.yaml", text);
    const std::string found = complaint([&] { YamlNode::load(path); });
    return found.starts_with(path) ? found.substr(path.size()) : found;
  };
  SECTION("in its last value") {
    for (const char* text :
         {"a: 1\nb: 400Gbp", "a: 1\nb:", "a: 1\nb: H100 ", "a: 1\nb: 'it'", "a: 1\n# a comme"}) {
      INFO(text);
      CHECK(about(text) ==
            ":2: the file ends without a line end, so its last value may be cut off: copy the file "
            "again, or end its last line");
    }
    for (const char* text :
         {"a: 1\nb: 2\n", "a: 1\r\n", "a: {b: 1}", "{\"a\": [1, 2]}", "a: \"b\"", "a: 1\n...\n"}) {
      INFO(text);
      CHECK(about(text) == "no InputError");
    }
  }
  SECTION("in a quoted text, where a line end follows") {
    CHECK(about("a: 1\nb: \"Amazon EC2\n") ==
          ":2: ends within a quoted text: copy the file again, or close the quotes");
    CHECK(about("a: 1\nb: 'Amazon EC2\n\n") ==
          ":3: ends within a quoted text: copy the file again, or close the quotes");
    CHECK_THAT(about("a: 'b\n...\nc: d'\n"),
               Catch::Contains(":2: not valid YAML: illegal document"));
  }
  SECTION("between two lines, where a directive asks for the end marker") {
    CHECK(about("# lab\n%YAML 1.2\n---\na: 1\nb: 2\n...\n") == "no InputError");
    CHECK(
        about("# lab\n%YAML 1.2\n---\na: 1\n") ==
        ":4: opens with %YAML and ends without the line '...', so it is cut off: copy it again, or "
        "leave out the line of %YAML");
  }
}
