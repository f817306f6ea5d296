#include "report/page.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "report/page_files.hpp"

using namespace hipress;
using io::Document;
using report::answer_sentence;

namespace {

/// Data that the page's script reads.
Document data_of(const std::string& page) {
  const std::string open = R"(<script type="application/json" id="data">)";
  const std::size_t begin = page.find(open) + open.size();
  return Document::parse(page.substr(begin, page.find("</script>", begin) - begin), "page");
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

}  // namespace

TEST_CASE("text and JSON cannot leave their place in the page") {
  CHECK(report::escape_html(R"(<b>"a" & 'b'</b>)") ==
        "&lt;b&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/b&gt;");
  CHECK(report::escape_script(R"("</script><!-- &")") ==
        R"("\u003c/script\u003e\u003c!-- \u0026")");
}

TEST_CASE("a page has its data, whatever names are in it") {
  const std::string evil = R"(</script><script>alert("x")</script> & {{style}} <!-- ')";
  const Document data = {{"name", evil}, {"number", 0.17640550809299999}};
  const std::string page = report::page({evil, evil, evil}, data);
  const Document read = data_of(page);
  CHECK(*read.find("name")->text() == evil);
  CHECK(read.find("number")->number() == 0.17640550809299999);
  // These are only the page's own data and script.
  CHECK(count(page, "<script") == 2);
  CHECK(count(page, "</script>") == 2);
  // The user's text has "{{style}}", which stays as it is in title, heading, answer and details.
  CHECK(count(page, "{{style}}") == 1 + 4);
}

TEST_CASE("a page fetches nothing") {
  const std::string page = report::page({"t", "a", "d"}, Document::object());
  CHECK(count(page, "default-src 'none'") == 1);
  // Only the name of the SVG vocabulary looks like an address. It is not fetched.
  CHECK(count(page, "://") == count(page, "http://www.w3.org/2000/svg"));
  for (const char* const what : {"src=", "@import", "url(", "type=\"module\"", "<link"}) {
    INFO(what);
    CHECK(page.find(what) == std::string::npos);
  }
}

TEST_CASE("every word in braces of the page is filled in") {
  const std::string page = report::page({"T", "A", "D"}, Document::object());
  CHECK(page.find("{{") == std::string::npos);
  CHECK(page.find(report::kPageCss) != std::string::npos);
  CHECK(page.find(report::kPageJs) != std::string::npos);
  CHECK(report::kPageHtml.starts_with("<!doctype html>"));
}

TEST_CASE("the page's own files are small beside what it shows") {
  CHECK(report::page({"T", "A", "D"}, Document::object()).size() < 65'000);
}

TEST_CASE("names are written as what differs from the name before") {
  const Document coded =
      report::front_coded({"layer.1.weight", "layer.1.bias", "other", "other", ""});
  CHECK(coded.print() ==
        R"({"shared":[0,8,0,5,0],"rest":["layer.1.weight","bias","other","",""]})");
  // JavaScript does not count bytes, so only ASCII is shared: here "a".
  CHECK(report::front_coded({"aéb", "aéc"}).print() == R"({"shared":[0,1],"rest":["aéb","éc"]})");
}

TEST_CASE("the answer is one sentence with its probability") {
  Document plan = {{"advice", "compress"},
                   {"advice_probability", 0.97},
                   {"predicted_iteration_s", 0.08},
                   {"best_uncompressed_s", 0.1}};
  // The saving is 1 − 0.08 / 0.1 = 20 %.
  CHECK(
      answer_sentence(plan) ==
      "Compress: an iteration takes 80ms instead of 100ms, 20.0 % less; compression is faster with "
      "97 % probability.");
  SECTION("nothing is certain") {
    plan["advice_probability"] = 0.9999;
    CHECK_THAT(answer_sentence(plan), Catch::Contains("faster with more than 99 % probability."));
  }
  SECTION("the answer is another plan") {
    plan["predicted_iteration_s"] = 0.11;
    CHECK(answer_sentence(plan) ==
          "Compress, but with another plan: this one takes 110ms; compression is faster with 97 % "
          "probability.");
  }
  SECTION("compression does not pay") {
    plan["advice"] = "do not compress";
    plan["predicted_iteration_s"] = 0.1;
    CHECK(answer_sentence(plan) ==
          "Do not compress: an iteration takes 100ms as it is; compression saves too little with "
          "97 % "
          "probability.");
  }
  SECTION("nothing is sure") {
    plan["advice"] = "too close to call";
    plan["advice_probability"] = 0.6;
    CHECK(answer_sentence(plan) ==
          "Too close to call: an iteration takes 80ms with this plan, and 100ms with the best plan "
          "without compression; compression is faster with 60 % probability.");
  }
  SECTION("an interval is too wide") {
    plan["advice"] = "too uncertain";
    plan["advice_probability"] = nullptr;
    plan["predicted_iteration_s_p10"] = 0.04;
    plan["predicted_iteration_s_p90"] = 0.2;
    CHECK(answer_sentence(plan) ==
          "Too uncertain: an iteration may take from 40ms to 200ms with this plan.");
  }
  SECTION("there was no time for a probability") {
    plan["advice_probability"] = nullptr;
    CHECK(answer_sentence(plan) ==
          "Compress: an iteration takes 80ms instead of 100ms, 20.0 % less.");
  }
  SECTION("nothing was simulated, or compared") {
    plan["best_uncompressed_s"] = nullptr;
    CHECK(answer_sentence(plan) == "Not decided: an iteration takes 80ms.");
    plan["predicted_iteration_s"] = nullptr;
    CHECK(answer_sentence(plan) == "Not known: the plan could not be simulated.");
  }
}

TEST_CASE("texts are cut to the room that there is, and say by how much") {
  const report::TextRoom room = {.bytes = 5, .texts = 3};
  CHECK(report::cut_text("12345", room) == "12345");
  CHECK(report::cut_text("1234567", room) == "12345… (and 2 bytes more)");
  CHECK(report::cut_text("1234ä", room) == "1234… (and 2 bytes more)");  // letters stay whole
  const Document few = {{"list", Document::list({"a", "b", "c"})}, {"at", 3.5}};
  CHECK(report::cut(few, room).print() == few.print());
  const Document many = {{"a long name", Document::list({"1", "2", "3", "4", "5"})},
                         {"at", Document::list({1, 2, 3, 4, 5})},
                         {"in", {{"text", "0123456789"}}}};
  CHECK(report::cut(many, room).print() ==
        R"json({"a lon… (and 6 bytes more)":["1","2","3","… and 2 more"],)json"
        R"json("at":[1,2,3,4,5],"in":{"text":"01234… (and 5 bytes more)"}})json");
  // A single text too many is kept: it takes the place of "… and 1 more".
  CHECK(report::cut(Document::list({"1", "2", "3", "4"}), room).items()->size() == 4);
}
