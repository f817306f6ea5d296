// Tests that plans with any gradient name of a model can be written and read, as text and YAML.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "io/utf8.hpp"
#include "models/model.hpp"
#include "plans/plan_file.hpp"
#include "tests/io/temporary_folder.hpp"

namespace hipress::plans {
namespace {

using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;
using tests::complaint;
using tests::TemporaryFolder;

using Name = std::u32string;

std::string utf8(const Name& name) {
  std::string bytes;
  const auto add = [&](char32_t bits) { bytes += static_cast<char>(bits); };
  for (const char32_t c : name) {
    if (c < 0x80) {
      add(c);
    } else if (c < 0x800) {
      add(0xc0 | c >> 6), add(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      add(0xe0 | c >> 12), add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
    } else {
      add(0xf0 | c >> 18), add(0x80 | (c >> 12 & 0x3f));
      add(0x80 | (c >> 6 & 0x3f)), add(0x80 | (c & 0x3f));
    }
  }
  return bytes;
}

/// Double-quoted YAML scalar in which every character is escaped.
std::string escaped(const Name& name) {
  std::string text = "\"";
  for (const char32_t c : name) text += fmt::format("\\U{:08x}", static_cast<std::uint32_t>(c));
  return text + '"';
}

/// Checks that a plan was read as it was written.
void require_same(const casync::Plan& read, const casync::Plan& written) {
  REQUIRE(read.decisions.size() == written.decisions.size());
  for (std::size_t g = 0; g < read.decisions.size(); ++g) {
    CHECK(read.decisions[g].partitions == written.decisions[g].partitions);
    CHECK((read.decisions[g].algorithm == casync::kRaw) ==
          (written.decisions[g].algorithm == casync::kRaw));
  }
}

/// Reads a model with a gradient of that name, and writes and reads plans for it as text and as
/// YAML. Returns true if the name was accepted.
bool accepted_and_planned(const TemporaryFolder& folder, const Name& name) {
  CAPTURE(escaped(name));
  const std::string file = folder.file(
      "m.yaml", fmt::format("name: m\ngradients:\n- {{name: {}, elements: 64}}\n"
                            "- {{name: \"0{}\", elements: 32}}\n- {{name: last, elements: 5}}\n",
                            escaped(name), escaped(name).substr(1, escaped(name).size() - 2)));
  models::Model model;
  const std::string refusal = complaint([&] { model = models::read_model(file); });
  if (refusal != "no InputError") {
    CHECK_THAT(refusal, StartsWith(file + ":3: "));
    CHECK(io::first_unprintable(refusal).empty());
    return false;
  }
  REQUIRE(model.gradients[0].name == utf8(name));
  const PlanContext context = {.model = model, .topology = "ps", .nodes = 3};
  const casync::Plan plan = resolve_plan("threshold:33", context).plan;

  const std::string yaml = folder.path("p.yaml");
  write_plan_yaml(yaml, model, plan, {});
  require_same(resolve_plan(yaml, context).plan, plan);

  const std::string text = folder.path("p.txt");
  const std::string text_refusal = complaint([&] { require_text_names(model); });
  if (text_refusal != "no InputError") {
    CHECK_THAT(text_refusal, Contains("gradient '") && EndsWith("write the plan to a .yaml file"));
    CHECK(complaint([&] { write_plan_text(text, model, plan); }) == text_refusal);
    return true;
  }
  write_plan_text(text, model, plan);
  require_same(resolve_plan(text, context).plan, plan);
  return true;
}

TEST_CASE("a name that a model may have makes plans that are read back") {
  const TemporaryFolder folder;
  const std::vector<Name> accepted = {
      U"a b",  U"a,b",   U"\"a\"",    U"a\"b",        U"'",    U"\\",   U"\\e[31m", U"~",
      U"null", U"true",  U"0x1f",     U"1e3",         U"- a",  U"a: b", U"a #b",    U"#a",
      U" a",   U"a ",    U"!!str a",  U"&a",          U"*a",   U"%a",   U"@a",      U"`a",
      U"|",    U">",     U"?",        U"? a",         U":",    U"---",  U"...",     U"{a: b}",
      U"[a]",  U"a,y,1", U"a,1,n,1",  U"é",           U"漢字", U"😀",    U"\u00a0",  U"\u3000",
      U"<<",   U"y",     U"none",     U"-",           U"name", U"=",    U"$(a)",    U"a;b",
      U"`id`", U"../a",  U"a\ufffdb", Name(500, U'x')};
  for (const Name& name : accepted) CHECK(accepted_and_planned(folder, name));
}

TEST_CASE("a name with what must not be printed as it is is refused with file and line") {
  const TemporaryFolder folder;
  std::vector<Name> refused = {
      U"",        U"a\nb",      U"a\tb",   U"a\rb",   U"a\u001b[31mb", U"a\u007f", U"\u0080",
      U"\u0085a", U"\u009b31m", U"\u2028", U"\u2029", U"\u202aa",      U"\u202e",  U"\u2066",
      U"a\u2069", U"\ufeffa",   U"\uffff", U"\ufdd0", U"\U0010ffff",   U"\u00ad",  U"a\u200d"};
  refused.push_back(Name(U"a\0b", 3));
  for (const Name& name : refused) CHECK_FALSE(accepted_and_planned(folder, name));
}

TEST_CASE("names drawn from what files and terminals treat specially are refused or planned",
          "[slow]") {
  const TemporaryFolder folder;
  constexpr std::u32string_view kAlphabet =
      U"ab,,  "
      U"\"\"'\\:#-?|>&*!%@`{}[]~=\n\t\r\u0000\u001b\u007f\u0085\u00a0é\u2028\u202e\ufeff😀\uffff";
  std::mt19937_64 draws(20);
  int accepted = 0, refused = 0;
  for (int i = 0; i < 300; ++i) {
    Name name;
    for (std::size_t length = 1 + draws() % 5; length > 0; --length) {
      name += kAlphabet[draws() % kAlphabet.size()];
    }
    ++(accepted_and_planned(folder, name) ? accepted : refused);
  }
  CHECK(accepted > 50);
  CHECK(refused > 50);
}

TEST_CASE("a text model's names are refused like a YAML model's") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name) {
    return complaint([&] { models::read_model(folder.file("m.txt", "b,5\n" + name + ",5\n")); });
  };
  for (const char* name :
       {"a\x1b[31m", "a\x7f", "a\tb", "a\xc2\x9b", "a\xe2\x80\xae", "a\xff", "a\xef\xbb\xbf"}) {
    CAPTURE(std::string(name).size());
    CHECK_THAT(refusal(name), StartsWith(folder.path("m.txt") + ":2: "));
    CHECK(io::first_unprintable(refusal(name)).empty());
  }
  CHECK(refusal("\"a\"") == "no InputError");
}

}  // namespace
}  // namespace hipress::plans
