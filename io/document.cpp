#include "io/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "io/error.hpp"

namespace hipress::io {

using Json = nlohmann::ordered_json;

/// From and to the library that reads and prints.
struct Conversion {
  static Json to_json(const Document& document);
  static Document from_json(const Json& json);
};

Json Conversion::to_json(const Document& document) {
  if (const Document::List* items = document.items()) {
    Json list = Json::array();
    for (const Document& item : *items) list.push_back(to_json(item));
    return list;
  }
  if (const Document::Object* members = document.members()) {
    Json object = Json::object();
    // Names differ already: what looks them up one by one would take time by their square.
    auto& to = object.get_ref<Json::object_t&>();
    to.reserve(members->size());
    for (const Document::Member& member : *members) {
      to.push_back(Json::object_t::value_type(member.name, to_json(member.value)));
    }
    return object;
  }
  if (const bool* value = document.boolean()) return *value;
  if (const std::string* text = document.text()) return *text;
  if (const auto* value = std::get_if<std::int64_t>(&document.value_)) return *value;
  if (const auto* value = std::get_if<std::uint64_t>(&document.value_)) return *value;
  if (const auto* value = std::get_if<double>(&document.value_)) return *value;
  return nullptr;
}

Document Conversion::from_json(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<std::int64_t>();
    case Json::value_t::number_unsigned:
      return json.get<std::uint64_t>();
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return json.get_ref<const std::string&>();
    case Json::value_t::array: {
      Document::List items;
      for (const Json& item : json) items.push_back(from_json(item));
      return Document::list(std::move(items));
    }
    case Json::value_t::object: {
      Document object = Document::object();
      for (const auto& item : json.items()) object[item.key()] = from_json(item.value());
      return object;
    }
    default:
      return nullptr;
  }
}

// Here, where Member is complete.
Document::Document() = default;
Document::Document(std::nullptr_t) {}
Document::~Document() = default;
Document::Document(const Document& other) = default;
Document::Document(Document&& other) noexcept = default;
Document& Document::operator=(const Document& other) = default;
Document& Document::operator=(Document&& other) noexcept = default;

Document::Document(const char* text) : value_(std::string(text)) {}
Document::Document(std::string_view text) : value_(std::string(text)) {}
Document::Document(std::string text) : value_(std::move(text)) {}
Document::Document(std::initializer_list<Member> members) : value_(Object(members)) {}

void Document::set(bool value) { value_ = value; }
void Document::set(std::int64_t value) { value_ = value; }
void Document::set(std::uint64_t value) { value_ = value; }
void Document::set(double value) { value_ = value; }
void Document::set(List values) { value_ = std::move(values); }

Document Document::list(List values) {
  Document made;
  made.value_ = std::move(values);
  return made;
}

Document Document::object() {
  Document made;
  made.value_ = Object();
  return made;
}

std::optional<double> Document::number() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*value);
  return std::nullopt;
}

std::optional<std::int64_t> Document::integer() const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return *value;
  const auto* value = std::get_if<std::uint64_t>(&value_);
  if (value == nullptr || *value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<std::uint64_t> Document::unsigned_integer() const {
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return *value;
  const auto* value = std::get_if<std::int64_t>(&value_);
  if (value == nullptr || *value < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::string Document::describe() const {
  if (members() != nullptr) return "an object";
  if (items() != nullptr) return "a list";
  if (const std::string* said = text()) return "the text " + quote(*said);
  if (is_null() || boolean() != nullptr) return print();
  return "the number " + print();
}

const Document* Document::find(std::string_view name) const {
  const Object* all = members();
  if (all == nullptr) return nullptr;
  const auto found = std::ranges::find(*all, name, &Member::name);
  return found == all->end() ? nullptr : &found->value;
}

Document& Document::operator[](std::string_view name) {
  if (is_null()) value_ = Object();
  Object& all = std::get<Object>(value_);
  const auto found = std::ranges::find(all, name, &Member::name);
  if (found != all.end()) return found->value;
  return all.emplace_back(Member{std::string(name), {}}).value;
}

void Document::update(const Document& other) {
  for (const Member& member : std::get<Object>(other.value_)) (*this)[member.name] = member.value;
}

void Document::push_back(Document value) {
  if (is_null()) value_ = List();
  std::get<List>(value_).push_back(std::move(value));
}

std::string Document::print(int indent) const {
  return Conversion::to_json(*this).dump(indent, ' ', false, Json::error_handler_t::replace);
}

namespace {

/// What the library says behind its "[json.exception.parse_error.101] ".
std::string_view own_sentence(const Json::exception& error) {
  std::string_view what = error.what();
  what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
  return what;
}

}  // namespace

Document Document::parse(std::string_view json, const std::string& source) {
  constexpr int kMostLevels = 64;
  std::vector<std::set<std::string>> names;  // of the objects that have begun and not ended
  const auto check = [&](int depth, Json::parse_event_t event, const Json& at) {
    using Event = Json::parse_event_t;
    const bool begins = event == Event::array_start || event == Event::object_start;
    if (begins && depth >= kMostLevels) {
      throw InputError(source, 0,
                       fmt::format("has lists and objects in more than {} levels", kMostLevels));
    }
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end) names.pop_back();
    if (event == Event::key && !names.back().insert(at.get_ref<const std::string&>()).second) {
      throw InputError(source, 0,
                       fmt::format("has a member {} twice in one object",
                                   quote(at.get_ref<const std::string&>())));
    }
    return true;
  };
  try {
    return Conversion::from_json(Json::parse(json, check));
  } catch (const Json::parse_error& error) {
    const auto before = json.substr(0, std::min<std::size_t>(error.byte, json.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    throw InputError(source, static_cast<int>(line),
                     fmt::format("is no JSON: {}", own_sentence(error)));
  } catch (const Json::exception& error) {
    throw InputError(source, 0, fmt::format("cannot be taken: {}", own_sentence(error)));
  }
}

}  // namespace hipress::io
