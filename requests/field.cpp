#include "requests/field.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "io/error.hpp"
#include "io/file.hpp"
#include "io/quantity.hpp"
#include "io/suggestion.hpp"
#include "requests/hooks.hpp"

namespace hipress::requests {
namespace {

template <class T>
struct Inner {
  using Type = T;
};
template <class T>
struct Inner<std::optional<T>> {
  using Type = T;
};
/// T for variables of type T or optional<T>.
template <class T>
using InnerOf = typename Inner<T>::Type;

template <class T>
constexpr bool is_list = std::is_same_v<T, std::vector<std::string>>;
template <class T>
constexpr bool is_numbers = std::is_same_v<T, std::vector<std::uint32_t>>;

[[noreturn]] void refuse(const Field& field, const std::string& expected, const io::Document& got) {
  throw FieldError(field.name,
                   fmt::format("{} must be {}, got {}", field.name, expected, got.describe()));
}

Bounds bounds_of(const Field& field, std::uint64_t most) {
  const auto* bounds = std::get_if<Bounds>(&field.bounds);
  return bounds != nullptr ? Bounds{bounds->least, std::min(bounds->most, most)} : Bounds{0, most};
}

std::string text_of(const Field& field, const io::Document& value) {
  const std::string* text = value.text();
  if (text == nullptr) refuse(field, "a text", value);
  if (text->find('\0') != std::string::npos) refuse(field, "a text without bytes of 0", value);
  if (field.is_file && text->empty()) refuse(field, "the name of a file", value);
  if (!field.words.empty() && std::ranges::find(field.words, *text) == field.words.end()) {
    const std::vector<std::string_view> known(field.words.begin(), field.words.end());
    throw FieldError(field.name, fmt::format("{} {}", field.name, io::none_of(*text, known)));
  }
  return *text;
}

template <class T>
T whole_number_of(const Field& field, const io::Document& value) {
  const Bounds bounds = bounds_of(field, static_cast<std::uint64_t>(std::numeric_limits<T>::max()));
  const std::optional<std::uint64_t> number = value.unsigned_integer();
  if (number && *number >= bounds.least && *number <= bounds.most) return static_cast<T>(*number);
  refuse(field, fmt::format("a whole number from {} to {}", bounds.least, bounds.most), value);
}

double number_of(const Field& field, const io::Document& value) {
  const std::optional<double> number = value.number();
  const auto* bounds = std::get_if<NumberBounds>(&field.bounds);
  if (bounds == nullptr) {
    if (!number) refuse(field, "a number", value);
    return *number + 0.0;  // -0 is 0
  }
  if (number && *number >= bounds->least && *number <= bounds->most) return *number + 0.0;
  refuse(field, fmt::format("a number from {} to {}", bounds->least, bounds->most), value);
}

std::vector<std::uint32_t> numbers_of(const Field& field, const io::Document& value) {
  std::vector<std::uint32_t> numbers;
  if (const std::string* const text = value.text()) {
    const Bounds bounds = bounds_of(field, UINT32_MAX);
    for (const std::string_view part : io::split_fields(*text)) {
      numbers.push_back(static_cast<std::uint32_t>(io::parse_integer(
          part, fmt::format("`{}`", field.name), static_cast<std::int64_t>(bounds.least),
          static_cast<std::int64_t>(bounds.most))));
    }
    return numbers;
  }
  if (value.items() == nullptr) return {whole_number_of<std::uint32_t>(field, value)};
  for (const io::Document& item : *value.items()) {
    numbers.push_back(whole_number_of<std::uint32_t>(field, item));
  }
  return numbers;
}

template <class T>
T value_of(const Field& field, const io::Document& value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (value.boolean() == nullptr) refuse(field, "true or false", value);
    return *value.boolean();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return text_of(field, value);
  } else if constexpr (is_list<T>) {
    if (value.items() == nullptr) return {text_of(field, value)};
    T texts;
    for (const io::Document& item : *value.items()) texts.push_back(text_of(field, item));
    return texts;
  } else if constexpr (is_numbers<T>) {
    return numbers_of(field, value);
  } else if constexpr (std::is_same_v<T, io::Document>) {
    if (value.members() == nullptr && value.text() == nullptr) {
      refuse(field, "a text or an object", value);
    }
    return value;
  } else if constexpr (std::is_same_v<T, double>) {
    return number_of(field, value);
  } else {
    return whole_number_of<T>(field, value);
  }
}

io::Document bare_value(const Field& field) {
  const bool text = std::holds_alternative<std::string*>(field.to);
  return text ? io::Document(*field.bare) : io::Document(std::stoll(*field.bare));
}

void set(const Field& field, const io::Document& value) {
  if (field.bare && value.boolean() != nullptr) {
    if (*value.boolean()) set(field, bare_value(field));
    return;
  }
  std::visit(
      [&](auto* to) {
        using T = InnerOf<std::remove_pointer_t<decltype(to)>>;
        *to = value_of<T>(field, value);
      },
      field.to);
  field.note(value.text() != nullptr ? *value.text() : value.print());
}

/// Throws for an unknown name. The error suggests known names.
[[noreturn]] void refuse_name(const std::string& name, const Fields& fields) {
  std::vector<std::string_view> known;
  for (const Field& field : fields) known.push_back(field.name);
  const std::string_view nearest = io::nearest(name, known);
  throw FieldError(name,
                   fmt::format("unknown field {}{}", io::quote(name), io::suggestion(name, known)),
                   nearest.empty() ? std::string() : fmt::format("did you mean '{}'?", nearest));
}

template <class T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, bool>) return "boolean";
  if constexpr (std::is_same_v<T, std::string>) return "string";
  if constexpr (is_list<T> || is_numbers<T>) return "array";
  if constexpr (std::is_floating_point_v<T>) return "number";
  if constexpr (std::is_same_v<T, io::Document>) return "object";
  return "integer";
}

template <class T>
io::Document default_of(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (value.empty()) return nullptr;
  }
  return value;
}

io::Document describe(const Field& field) {
  io::Document row = std::visit(
      [&](const auto* to) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(to)>>;
        const io::Document type = type_name<InnerOf<T>>();
        io::Document made = {{"description", field.help}};
        made["type"] = field.bare ? io::Document::list({type, "boolean"}) : type;
        if constexpr (std::is_same_v<T, io::Document>)
          made["type"] = io::Document::list({"string", "object"});
        if constexpr (is_list<T>) made["items"] = {{"type", "string"}};
        if constexpr (is_numbers<T>) {
          made["type"] = io::Document::list({"integer", "array", "string"});
          const Bounds bounds = bounds_of(field, UINT32_MAX);
          made["items"] = {
              {"type", "integer"}, {"minimum", bounds.least}, {"maximum", bounds.most}};
        }
        if (field.shows_default || std::is_same_v<T, bool>) {
          if (const io::Document usual = default_of(*to); !usual.is_null()) made["default"] = usual;
        }
        if constexpr (std::is_integral_v<InnerOf<T>> && !std::is_same_v<T, bool>) {
          const Bounds bounds =
              bounds_of(field, static_cast<std::uint64_t>(std::numeric_limits<InnerOf<T>>::max()));
          made["minimum"] = bounds.least;
          made["maximum"] = bounds.most;
        }
        return made;
      },
      field.to);
  if (const auto* bounds = std::get_if<NumberBounds>(&field.bounds)) {
    row["minimum"] = bounds->least;
    row["maximum"] = bounds->most;
  }
  if (!field.words.empty()) row["enum"] = field.words;
  if (field.is_file) row["format"] = "path";
  return row;
}

}  // namespace

Field& Field::from(std::uint64_t least, std::uint64_t most) {
  bounds = Bounds{least, most};
  return *this;
}

Field& Field::between(double least, double most) {
  bounds = NumberBounds{least, most};
  return *this;
}

Field& Field::one_of(std::vector<std::string> values) {
  words = std::move(values);
  return *this;
}

Field& Field::under(std::string_view heading) {
  group = heading;
  return *this;
}

Field& Field::alone_means(std::string value) {
  bare = std::move(value);
  return *this;
}

Field& Field::with_default() {
  shows_default = true;
  return *this;
}

Field& Field::must_be_given() {
  required = true;
  return *this;
}

Field& Field::file() {
  is_file = true;
  return *this;
}

Field& Field::repeated() {
  repeats = true;
  return *this;
}

Field& Field::with(std::string_view other) {
  needs = other;
  return *this;
}

void Field::note(const std::string& value) const {
  if (given != nullptr && value != "false") given->insert(name);
}

void Field::clear() const {
  std::visit([](auto* of) { *of = std::remove_pointer_t<decltype(of)>(); }, to);
}

Field& Fields::add(std::string name, Variable to, std::string help) {
  return rows_.emplace_back(Field{.name = std::move(name),
                                  .to = to,
                                  .help = std::move(help),
                                  .group = std::string(heading_),
                                  .refusals = refusals_,
                                  .given = given_});
}

const Field* Fields::find(std::string_view name) const {
  const auto found = std::ranges::find(rows_, name, &Field::name);
  return found == rows_.end() ? nullptr : &*found;
}

Field& Fields::at(std::string_view name) { return *std::ranges::find(rows_, name, &Field::name); }

void read(const io::Document& request, const Fields& fields) {
  for (const io::Document::Member& member : *request.members()) {
    if (member.name == "request") continue;
    const Field* field = fields.find(member.name);
    if (field == nullptr) refuse_name(member.name, fields);
    if (!member.value.is_null()) set(*field, member.value);
  }
  for (const Field& field : fields) {
    const io::Document* given = request.find(field.name);
    if (field.required && (given == nullptr || given->is_null())) {
      throw FieldError(field.name, fmt::format("{} is missing: {}", field.name, field.help),
                       fmt::format("give {}", field.name));
    }
  }
}

void refuse_unfit(const Fields& fields) {
  for (const Field& field : fields) {
    if (!field.is_given()) continue;
    for (const Case& refusal : field.refusals) {
      const std::string why = refusal ? refusal() : "";
      if (!why.empty()) throw io::InputError(fmt::format("`{}` {}", field.name, why));
    }
  }
}

std::vector<std::string> without_effect(const Fields& fields) {
  std::vector<std::string> sentences;
  for (const Field& field : fields) {
    if (!field.is_given()) continue;
    for (const Case& idle : field.idle_cases) {
      const std::string why = idle ? idle() : "";
      if (why.empty()) continue;
      sentences.push_back(fmt::format("`{}` has no effect: {}", field.name, why));
      break;
    }
  }
  return sentences;
}

void warn_of_idle(const Fields& fields, const Hooks& hooks) {
  for (const std::string& sentence : without_effect(fields)) warn(hooks, sentence);
}

io::Document schema(std::string_view title, std::string_view help, const Fields& fields) {
  io::Document properties = {{"request", {{"const", title}}}};
  io::Document required = io::Document::list({"request"});
  for (const Field& field : fields) {
    properties[field.name] = describe(field);
    if (field.required) required.push_back(field.name);
  }
  return {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
          {"title", title},
          {"description", help},
          {"type", "object"},
          {"properties", properties},
          {"required", required},
          {"additionalProperties", false}};
}

}  // namespace hipress::requests
