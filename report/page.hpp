#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/document.hpp"

/// HTML page that shows a plan's answer in one self-contained file.
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

/// Text of a page that is visible without its script.
struct Headline {
  std::string title;    ///< "vgg19 on 16 nodes"
  std::string answer;   ///< one sentence
  std::string details;  ///< full verdict
};

/// Renders the page. `data` is embedded as JSON, which the page's script shows.
std::string page(const Headline& headline, const io::Document& data);

/// Answer of a plan's document, with the digits that tools print: "Compress: an iteration takes
/// 155.8ms instead of 176.4ms, 11.7 % less; compression is faster with 97 % probability."
std::string answer_sentence(const io::Document& plan);

/// Escapes text for HTML, between tags and in quoted attributes.
std::string escape_html(std::string_view text);

/// Escapes JSON for a <script> element: "<", ">" and "&", which occur in texts only, become \u003c
/// …
std::string escape_script(std::string_view json);

/// Limits for texts from files and the command line.
struct TextRoom {
  std::size_t bytes = 2000;  ///< longest text
  std::size_t texts = 100;   ///< longest list of texts
};

/// Truncates a text to `room.bytes`, and appends "… (and N bytes more)".
std::string cut_text(std::string_view text, const TextRoom& room);

/// Truncates the document's texts and names, and its lists of texts, whose last entry then tells
/// the number left out.
io::Document cut(const io::Document& document, const TextRoom& room);

/// Front coding of names: {"shared": [...], "rest": [...]} holds the length of the prefix shared
/// with the previous name, and the remainder. Only ASCII is shared, so that characters are bytes.
io::Document front_coded(const std::vector<std::string>& names);

}  // namespace hipress::report
