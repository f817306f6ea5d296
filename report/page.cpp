#include "report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "io/quantity.hpp"
#include "report/page_files.hpp"

namespace hipress::report {
namespace {

using Json = io::Document;

/// Value of the number `name`; empty if it is missing or null.
std::optional<double> number(const Json& object, std::string_view name) {
  const Json* found = object.find(name);
  return found == nullptr ? std::nullopt : found->number();
}

std::string text(const Json& object, std::string_view name) {
  const Json* found = object.find(name);
  return found == nullptr || found->text() == nullptr ? std::string() : *found->text();
}

/// Clause such as "; compression is faster with 97 % probability"; empty if unknown.
std::string probably(std::string_view what, std::optional<double> probability) {
  if (!probability) return {};
  constexpr double kMostSaid = 0.995;  // keeps it from being rounded to 100 %
  if (*probability > kMostSaid) return fmt::format("; {} with more than 99 % probability", what);
  return fmt::format("; {} with {:.0f} % probability", what, 100 * *probability);
}

/// Replaces the space before each "%" by a no-break space.
std::string unbroken(std::string_view text) {
  std::string made;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == " %") {
      made += "\u00a0";
    } else {
      made += text[i];
    }
  }
  return made;
}

/// Replaces every {{word}} of the template. A single pass does it, so values may contain braces.
std::string filled(std::string_view form,
                   std::initializer_list<std::pair<std::string_view, std::string_view>> values) {
  std::string made;
  while (true) {
    const std::size_t open = form.find("{{");
    made += form.substr(0, open);
    if (open == std::string_view::npos) return made;
    const std::size_t close = form.find("}}", open);
    const std::string_view word = form.substr(open + 2, close - open - 2);
    for (const auto& [name, value] : values) {
      if (name == word) made += value;
    }
    form.remove_prefix(close + 2);
  }
}

std::size_t shared_ascii(std::string_view a, std::string_view b) {
  std::size_t shared = 0;
  while (shared < a.size() && shared < b.size() && a[shared] == b[shared] &&
         static_cast<unsigned char>(a[shared]) < 0x80) {
    ++shared;
  }
  return shared;
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string escape_script(std::string_view json) {
  std::string escaped;
  for (const char c : json) {
    switch (c) {
      case '<':
        escaped += "\\u003c";
        break;
      case '>':
        escaped += "\\u003e";
        break;
      case '&':
        escaped += "\\u0026";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string cut_text(std::string_view text, const TextRoom& room) {
  if (text.size() <= room.bytes) return std::string(text);
  std::size_t end = room.bytes;
  // Go back to the first byte of the character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return fmt::format("{}… (and {} bytes more)", text.substr(0, end), text.size() - end);
}

io::Document cut(const io::Document& document, const TextRoom& room) {
  if (const std::string* const text = document.text()) return cut_text(*text, room);
  if (const Json::Object* const members = document.members()) {
    Json made = Json::object();
    for (const auto& [name, value] : *members) made[cut_text(name, room)] = cut(value, room);
    return made;
  }
  const Json::List* const items = document.items();
  if (items == nullptr) return document;
  const bool texts = std::ranges::all_of(*items, [](const Json& one) { return one.text(); });
  Json made = Json::list();
  for (const Json& item : *items) {
    const std::size_t left = items->size() - made.items()->size();
    if (texts && made.items()->size() == room.texts && left > 1) {
      made.push_back(fmt::format("… and {} more", left));
      break;
    }
    made.push_back(cut(item, room));
  }
  return made;
}

io::Document front_coded(const std::vector<std::string>& names) {
  Json shared = Json::list(), rest = Json::list();
  std::string_view before;
  for (const std::string& name : names) {
    const std::size_t same = shared_ascii(before, name);
    shared.push_back(same);
    rest.push_back(name.substr(same));
    before = name;
  }
  return {{"shared", shared}, {"rest", rest}};
}

std::string answer_sentence(const Json& plan) {
  const std::optional<double> planned_s = number(plan, "predicted_iteration_s");
  const std::optional<double> raw_s = number(plan, "best_uncompressed_s");
  const std::string advice = text(plan, "advice");
  const std::optional<double> probability = number(plan, "advice_probability");
  if (!planned_s) return "Not known: the plan could not be simulated.";
  const std::string planned = io::format_duration(*planned_s);
  if (advice == "too uncertain") {
    return fmt::format("Too uncertain: an iteration may take from {} to {} with this plan.",
                       io::format_duration(number(plan, "predicted_iteration_s_p10").value_or(0)),
                       io::format_duration(number(plan, "predicted_iteration_s_p90").value_or(0)));
  }
  if (advice == "do not compress") {
    const double alone_s = std::min(*planned_s, raw_s.value_or(*planned_s));
    return fmt::format("Do not compress: an iteration takes {} as it is{}.",
                       io::format_duration(alone_s),
                       probably("compression saves too little", probability));
  }
  if (!raw_s) return fmt::format("Not decided: an iteration takes {}.", planned);
  const std::string raw = io::format_duration(*raw_s);
  const std::string odds = probably("compression is faster", probability);
  if (advice != "compress") {
    return fmt::format(
        "Too close to call: an iteration takes {} with this plan, and {} with the best plan "
        "without compression{}.",
        planned, raw, odds);
  }
  if (*planned_s >= *raw_s) {
    return fmt::format("Compress, but with another plan: this one takes {}{}.", planned, odds);
  }
  return fmt::format("Compress: an iteration takes {} instead of {}, {:.1f} % less{}.", planned,
                     raw, 100 * (1 - *planned_s / *raw_s), odds);
}

std::string page(const Headline& headline, const Json& data) {
  return filled(kPageHtml, {{"title", escape_html(headline.title)},
                            {"answer", unbroken(escape_html(headline.answer))},
                            {"details", escape_html(headline.details)},
                            {"style", kPageCss},
                            {"script", kPageJs},
                            {"data", escape_script(data.print())}});
}

}  // namespace hipress::report
