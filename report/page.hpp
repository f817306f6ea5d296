#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/document.hpp"

/// The HTML page that shows a plan's answer: one file with nothing outside it.
namespace hipress::report {

/// What readers see of a page without running its script.
struct Headline {
  std::string title;    ///< "vgg19 on 16 nodes"
  std::string answer;   ///< one sentence
  std::string details;  ///< the verdict in full
};

/// The page. Its script shows `data`, which it finds as JSON inside the page.
std::string page(const Headline& headline, const io::Document& data);

/// "Compress: an iteration takes 155.8ms instead of 176.4ms, 11.7 % less; compression is faster
/// with 97 % probability.": the answer of a plan's document, with the digits that tools print.
std::string answer_sentence(const io::Document& plan);

/// Text that HTML takes for nothing else, between tags and in quoted attributes.
std::string escape_html(std::string_view text);

/// JSON that can stand in a <script> element: "<", ">" and "&" as \u003c …, which only texts have.
std::string escape_script(std::string_view json);

/// Most of what files and the command line may bring to a page.
struct TextRoom {
  std::size_t bytes = 2000;  ///< of a text
  std::size_t texts = 100;   ///< of a list of texts
};

/// The text, or as much of it as there is room for and "… (and N bytes more)".
std::string cut_text(std::string_view text, const TextRoom& room);

/// The document with texts and names cut, and lists of texts, whose last entry then says how many
/// are left out.
io::Document cut(const io::Document& document, const TextRoom& room);

/// Names as {"shared": [...], "rest": [...]}: how many characters each has in common with the one
/// before it, and what follows. Only ASCII is shared, so that characters are bytes.
io::Document front_coded(const std::vector<std::string>& names);

}  // namespace hipress::report
