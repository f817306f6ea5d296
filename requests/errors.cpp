#include <algorithm>
#include <array>
#include <cctype>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "io/error.hpp"
#include "io/utf8.hpp"
#include "requests/record.hpp"
#include "requests/request.hpp"
#include "requests/result_forms.hpp"

namespace hipress::requests {
namespace {

/// Location of an error, and its remedy.
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

/// Fields that name files or folders.
constexpr std::array<std::string_view, 15> kFileFields = {
    "input", "spec",   "trace",       "plan",      "compare",    "profile", "cluster",   "output",
    "base",  "sample", "secret_file", "gradients", "load_state", "means",   "save_state"};

bool names_file(const io::Document::Member& member) {
  return std::ranges::find(kFileFields, member.name) != kFileFields.end();
}

/// Member of the request that names the file, or a folder above it. If the file's contents are in
/// the request, the member that holds them; its name is `text`. Null if no member does.
const io::Document::Member* member_with(const io::Document& request, const std::string& text) {
  if (request.members() == nullptr) return nullptr;
  for (const io::Document::Member& member : *request.members()) {
    const std::string* const value = member.value.text();
    const bool holds_it = member.value.members() != nullptr && member.name == text;  // spec: {…}
    const bool names_it = value != nullptr && (*value == text || text.starts_with(*value + "/"));
    if (names_file(member) && (holds_it || names_it)) return &member;
  }
  return nullptr;
}

/// Sets the error's file, and the field that named it.
void read_file(const io::InputError& error, const io::Document& request, Place& place) {
  if (error.file() == nullptr) return;
  place.file = io::printable_path(*error.file());
  if (error.line() > 0) place.line = error.line();
  if (const auto* const member = member_with(request, *error.file())) place.field = member->name;
}

/// Sets the field if the message begins with its name: "`gpus_per_node` …".
void read_field(std::string_view message, Place& place) {
  if (!message.starts_with("`")) return;
  const std::string_view name = message.substr(1, message.find('`', 1) - 1);
  if (!name.empty()) place.field = name;
}

/// Part of a text that is searched, since texts of requests may be long.
std::string_view beginning(std::string_view text) {
  constexpr std::size_t kMost = 10'000;
  return text.substr(0, kMost);
}

/// True if the message quotes the text, or one item of it; commas separate items.
bool quotes(std::string_view message, std::string_view text) {
  while (true) {
    const std::size_t comma = text.find(',');
    if (message.find(io::quote(text.substr(0, comma))) != std::string_view::npos) return true;
    if (comma == std::string_view::npos) return false;
    text.remove_prefix(comma + 1);
  }
}

/// Sets the field whose value the message quotes ("unknown network 'star'"), if only one has it.
void read_value(std::string_view message, const io::Document& request, Place& place) {
  if (request.members() == nullptr) return;
  const io::Document::Member* found = nullptr;
  for (const io::Document::Member& member : *request.members()) {
    const auto is_quoted = [&](const io::Document& value) {
      return value.text() != nullptr && quotes(message, beginning(*value.text()));
    };
    const io::Document::List* const items = member.value.items();
    const bool has_it =
        items != nullptr ? std::ranges::any_of(*items, is_quoted) : is_quoted(member.value);
    if (member.name == "request" || !has_it) continue;
    if (found != nullptr) return;
    found = &member;
  }
  if (found != nullptr) place.field = found->name;
}

/// Removes the file name from the message's beginning. A file name may contain any text.
std::string_view after_file(std::string_view message, const io::InputError* error,
                            const io::Document& request) {
  const auto drop = [&message](const std::string& name) {
    const std::string printed = io::printable_path(name);
    if (!printed.empty() && message.starts_with(printed)) message.remove_prefix(printed.size());
  };
  if (error != nullptr && error->file() != nullptr) {
    drop(*error->file());
  } else if (request.members() != nullptr) {
    for (const io::Document::Member& member : *request.members()) {
      const std::string* const name = member.value.text();
      if (name != nullptr && names_file(member)) drop(*name);
    }
  }
  return message;
}

/// Index after the closing mark of the quotation that begins at `start`; `start` if no quotation
/// begins there. The apostrophe of "nodes' links" is not a quotation mark.
std::size_t end_of_quotation(std::string_view message, std::size_t start) {
  const auto is_word = [&message](std::size_t at) {
    const auto c = static_cast<unsigned char>(message[at]);
    return std::isalnum(c) != 0 || c >= 0x80;
  };
  if (message[start] != '\'' || (start > 0 && is_word(start - 1))) return start;
  for (std::size_t at = start + 1; at < message.size(); ++at) {
    if (message[at] != '\'') continue;
    if (at + 1 == message.size() || !is_word(at + 1)) return at + 1;
  }
  return start;
}

/// Sets the remedy: the text after "; ", as in "…; did you mean 'nnodes'?". Skips quotations and
/// brackets, which may contain any text.
void read_remedy(std::string_view message, Place& place) {
  int brackets = 0;
  for (std::size_t at = 0; at < message.size(); ++at) {
    const std::size_t behind = end_of_quotation(message, at);
    if (message[at] == '(') ++brackets;
    if (message[at] == ')') --brackets;
    if (behind > at) {
      at = behind - 1;
    } else if (brackets <= 0 && message.substr(at).starts_with("; ")) {
      place.remedy = message.substr(at + 2);
      return;
    }
  }
}

struct Failure {
  std::string kind, message;
  Place place = {};
  std::optional<io::Document> result = {};
};

void fill_error(Record& record, const Failure& failure) {
  record.add("kind", failure.kind,
             "Kind of failure: input (wrong request), unmet (unmet requirement), environment "
             "(memory, threads or disks), interrupted, or internal (anything else)");
  record.add("message", failure.message, "Cause and place of the failure");
  record.add("file", failure.place.file, "File with the error; null if unknown or not in a file");
  record.add("line", failure.place.line, "Line in that file");
  record.add("field", failure.place.field, "Member of the request that is wrong");
  record.add("remedy", failure.place.remedy, "Remedy");
}

void fill(Record& record, const Failure& failure) {
  record.object("error", failure, "Cause of the failure", fill_error);
  record.add_if_any("result", failure.result, "Partial result; only for kind unmet");
}

}  // namespace

constinit const ResultForm kErrorForm = {
    "error", "An error", "Error of a failed request from C or Python", schema_of<Failure>};

io::Document error_document(const std::exception& error, const io::Document& request) {
  const std::string all = io::printable(io::describe(error), "\n\t");
  const std::string_view message = beginning(all);
  const auto* const input = dynamic_cast<const io::InputError*>(&error);
  Place place;
  if (const auto* of_field = dynamic_cast<const FieldError*>(&error)) {
    if (!of_field->field.empty()) place.field = io::printable(of_field->field);
    if (!of_field->remedy.empty()) place.remedy = of_field->remedy;
  } else {
    if (input != nullptr) read_file(*input, request, place);
    if (!place.field) read_field(message, place);
    if (!place.field && !place.file) read_value(message, request, place);
  }
  if (!place.remedy) read_remedy(after_file(message, input, request), place);
  Failure failure = {.kind = kind_of(error), .message = all, .place = std::move(place)};
  if (const auto* unmet = dynamic_cast<const UnmetWithResult*>(&error)) {
    failure.result = unmet->result;
  }
  return document_of(failure);
}

}  // namespace hipress::requests
