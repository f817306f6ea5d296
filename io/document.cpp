#include "io/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "io/error.hpp"

namespace hipress::io {

using Json = nlohmann::ordered_json;

/// Conversion between documents and the JSON library's types.
struct Conversion {
  class Reader;
  static Json to_json(const Document& document);
};

/// Builds a document from parser events, in time linear in the length of the text. The library's
/// own ordered objects would compare each new member with all earlier ones.
class Conversion::Reader : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(const std::string& source) : source_(source) {}
  Document take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // JSON has no binary values
  bool start_object(std::size_t /*elements*/) override { return begin(Document::object()); }
  bool start_array(std::size_t /*elements*/) override { return begin(Document::list()); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }
  bool key(string_t& name) override {
    Level& level = open_.back();
    if (!level.names.insert(name).second) {
      throw InputError(source_, 0, fmt::format("has a member {} twice in one object", quote(name)));
    }
    level.name = std::move(name);
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    if (const auto* at = dynamic_cast<const Json::parse_error*>(&error)) throw *at;
    throw InputError(source_, 0, fmt::format("cannot be taken: {}", own_sentence(error)));
  }

  /// The library's message without its prefix "[json.exception.parse_error.101] ".
  static std::string_view own_sentence(const std::exception& error) {
    std::string_view what = error.what();
    what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
    return what;
  }

 private:
  /// A list or an object that is still open.
  struct Level {
    Document document;
    std::string name = {};  ///< name of the member whose value comes next
    std::unordered_set<std::string> names = {};
  };
  bool put(Document value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* const members = std::get_if<Document::Object>(&open_.back().document.value_)) {
      members->push_back({std::move(open_.back().name), std::move(value)});
    } else {
      open_.back().document.push_back(std::move(value));
    }
    return true;
  }
  bool begin(Document empty) {
    constexpr std::size_t kMostLevels = 64;
    if (open_.size() >= kMostLevels) {
      throw InputError(source_, 0,
                       fmt::format("has lists and objects in more than {} levels", kMostLevels));
    }
    open_.push_back({.document = std::move(empty)});
    return true;
  }
  bool end() {
    Document ended = std::move(open_.back().document);
    open_.pop_back();
    return put(std::move(ended));
  }

  const std::string& source_;
  Document root_;
  std::vector<Level> open_;
};

Json Conversion::to_json(const Document& document) {
  if (const Document::List* items = document.items()) {
    Json list = Json::array();
    for (const Document& item : *items) list.push_back(to_json(item));
    return list;
  }
  if (const Document::Object* members = document.members()) {
    Json object = Json::object();
    // Names are known to be unique. Inserting members one by one would take quadratic time.
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

// Defined here because Member is complete here.
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

Document Document::parse(std::string_view json, const std::string& source) {
  Conversion::Reader reader(source);
  try {
    Json::sax_parse(json, &reader);
    return reader.take();
  } catch (const Json::parse_error& error) {
    const auto before = json.substr(0, std::min<std::size_t>(error.byte, json.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    throw InputError(source, static_cast<int>(line),
                     fmt::format("is no JSON: {}", Conversion::Reader::own_sentence(error)));
  }
}

}  // namespace hipress::io
