#include <algorithm>
#include <array>
#include <cctype>
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

/// Fields that name files.
constexpr std::array<std::string_view, 8> kFileFields = {"input",   "spec",    "trace",   "plan",
                                                         "compare", "profile", "cluster", "output"};

/// The member of the request that names this file; null: there is none.
const io::Document::Member* member_with(const io::Document& request, const std::string& text) {
  if (request.members() == nullptr) return nullptr;
  for (const io::Document::Member& member : *request.members()) {
    const std::string* const value = member.value.text();
    const bool names_file = std::ranges::find(kFileFields, member.name) != kFileFields.end();
    if (names_file && value != nullptr && *value == text) return &member;
  }
  return nullptr;
}

/// The file that the error is about, and the field that named it.
void read_file(const io::InputError& error, const io::Document& request, Place& place) {
  if (error.file() == nullptr) return;
  place.file = io::printable(*error.file());
  if (error.line() > 0) place.line = error.line();
  if (const auto* const member = member_with(request, *error.file())) place.field = member->name;
}

/// "`gpus_per_node` …" is about that field.
void read_field(std::string_view message, Place& place) {
  if (!message.starts_with("`")) return;
  const std::string_view name = message.substr(1, message.find('`', 1) - 1);
  if (!name.empty()) place.field = name;
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
    const auto* const input = dynamic_cast<const io::InputError*>(&error);
    if (input != nullptr) read_file(*input, request, place);
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
