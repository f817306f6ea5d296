#include <algorithm>
#include <cctype>
#include <charconv>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "io/utf8.hpp"
#include "requests/request.hpp"

namespace hipress::requests {
namespace {

/// Where an error is, and what to do.
struct Place {
  std::optional<std::string> file = {};
  std::optional<std::int64_t> line = {};
  std::optional<std::string> field = {};
  std::optional<std::string> remedy = {};
};

const char* kind_of(const std::exception& error) {
  const auto is = [&]<class Error>(const Error*) {
    return dynamic_cast<const Error*>(&error) != nullptr;
  };
  if (is(static_cast<const Interrupted*>(nullptr))) return "interrupted";
  if (is(static_cast<const io::Unmet*>(nullptr))) return "unmet";
  if (is(static_cast<const io::InputError*>(nullptr))) return "input";
  if (is(static_cast<const std::invalid_argument*>(nullptr))) return "input";
  if (is(static_cast<const io::RunError*>(nullptr))) return "environment";
  if (is(static_cast<const std::bad_alloc*>(nullptr))) return "environment";
  if (is(static_cast<const std::system_error*>(nullptr))) return "environment";
  return "internal";
}

/// "file:line: …": what stands before the first colon that a number and a colon follow.
void read_file_and_line(std::string_view message, Place& place) {
  for (std::size_t colon = message.find(':'); colon != std::string_view::npos && colon > 0;
       colon = message.find(':', colon + 1)) {
    std::int64_t line = 0;
    const char* const begin = message.data() + colon + 1;
    const char* const end = message.data() + message.size();
    const auto [stop, error] = std::from_chars(begin, end, line);
    if (error != std::errc() || end - stop < 2 || stop[0] != ':' || stop[1] != ' ') continue;
    place.file = message.substr(0, colon);
    place.line = line;
    return;
  }
}

/// "file: …" of a file that the request names.
void read_file_of_request(std::string_view message, const io::Document& request, Place& place) {
  if (request.members() == nullptr) return;
  for (const io::Document::Member& member : *request.members()) {
    const std::string* text = member.value.text();
    if (member.name == "request" || text == nullptr || text->empty()) continue;
    const std::string name = io::printable(*text);
    if (place.file ? *place.file == name
                   : message.starts_with(name) && message.substr(name.size()).starts_with(": ")) {
      place.file = name;
      place.field = member.name;
      return;
    }
  }
}

/// "--gpus-per-node …" is about the field gpus_per_node, as is what has that in backticks.
void read_field(std::string_view message, Place& place) {
  const std::string_view mark = message.starts_with("`") ? "`" : "--";
  if (!message.starts_with(mark)) return;
  std::string_view name = message.substr(mark.size());
  const auto is_of_name = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  name = name.substr(
      0, static_cast<std::size_t>(std::ranges::find_if_not(name, is_of_name) - name.begin()));
  if (name.empty()) return;
  std::string field(name);
  std::ranges::replace(field, '-', '_');
  place.field = std::move(field);
}

/// What follows a complaint: "…; did you mean 'nnodes'?".
void read_remedy(std::string_view message, Place& place) {
  const std::size_t semicolon = message.find("; ");
  if (semicolon != std::string_view::npos) place.remedy = message.substr(semicolon + 2);
}

}  // namespace

io::Document error_document(const std::exception& error, const io::Document& request) {
  const std::string message = io::printable(io::describe(error), "\n\t");
  Place place;
  if (const auto* of_field = dynamic_cast<const FieldError*>(&error)) {
    if (!of_field->field.empty()) place.field = io::printable(of_field->field);
    if (!of_field->remedy.empty()) place.remedy = of_field->remedy;
  } else {
    read_file_and_line(message, place);
    read_file_of_request(message, request, place);
    if (!place.field) read_field(message, place);
  }
  if (!place.remedy) read_remedy(message, place);
  io::Document answer = {{"error",
                          {{"kind", kind_of(error)},
                           {"message", message},
                           {"file", place.file},
                           {"line", place.line},
                           {"field", place.field},
                           {"remedy", place.remedy}}}};
  if (const auto* unmet = dynamic_cast<const UnmetWithResult*>(&error)) {
    answer["result"] = unmet->result;
  }
  return answer;
}

}  // namespace hipress::requests
