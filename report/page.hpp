#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/document.hpp"

/// HTML page with a plan's answer, in one self-contained file.
///
///     const io::Document plan = io::Document::parse(io::read_file("plan.json"), "plan.json");
///     const TextRoom room;
///     const Headline headline = {.title = cut_text("vgg19 on 16 nodes", room),
///                                .answer = answer_sentence(plan),
///                                .details = ""};
///     io::Document data;
///     data["plan"] = cut(plan, room);
///     io::write_file("report.html", [&](std::ostream& out) { out << page(headline, data); });
namespace hipress::report {

/// Text of a page that shows even without its script.
struct Headline {
  std::string title;    ///< "vgg19 on 16 nodes"
  std::string answer;   ///< one sentence
  std::string details;  ///< full verdict
};

/// Renders the page. `data` is embedded as JSON; the page's script shows it.
std::string page(const Headline& headline, const io::Document& data);

/// Sentence with a plan's answer, from its document. Numbers are as the tools print them:
/// "Compress: an iteration takes 155.8ms instead of 176.4ms, 11.7 % less; compression is faster
/// with 97 % probability."
std::string answer_sentence(const io::Document& plan);

/// Escapes a text for HTML. The result can stand between tags and in quoted attributes.
std::string escape_html(std::string_view text);

/// Escapes JSON for a <script> element: "<", ">" and "&", which occur only in texts.
std::string escape_script(std::string_view json);

/// Limits for texts from files and the command line.
struct TextRoom {
  std::size_t bytes = 2000;  ///< longest text
  std::size_t texts = 100;   ///< longest list of texts
};

/// Truncates a text to `room.bytes` bytes, and appends "… (and N bytes more)".
std::string cut_text(std::string_view text, const TextRoom& room);

/// Truncates a document's texts, names and lists of texts. A list's last entry then tells the
/// number left out.
io::Document cut(const io::Document& document, const TextRoom& room);

/// Front-coded names: {"shared": [...], "rest": [...]}. `shared` has the length of the prefix that
/// a name shares with the one before it, `rest` the remainder. Prefixes are ASCII, so lengths in
/// characters and in bytes are equal.
io::Document front_coded(const std::vector<std::string>& names);

}  // namespace hipress::report
