#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hipress::io {

/// A JSON value: null, a boolean, an integer, a double, a text, a list, or an object whose members
/// keep their order. `{{"name", value}, …}` is an object, list({…}) a list.
class Document {
 public:
  struct Member;
  using List = std::vector<Document>;
  using Object = std::vector<Member>;

  Document();  ///< null
  Document(std::nullptr_t);
  ~Document();
  Document(const Document& other);
  Document(Document&& other) noexcept;
  Document& operator=(const Document& other);
  Document& operator=(Document&& other) noexcept;

  Document(std::same_as<bool> auto value) : Document() { set(value); }
  template <std::signed_integral T>
  Document(T value) : Document() {
    set(static_cast<std::int64_t>(value));
  }
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Document(T value) : Document() {
    set(static_cast<std::uint64_t>(value));
  }
  Document(std::floating_point auto value) : Document() { set(static_cast<double>(value)); }
  Document(const char* text);
  Document(std::string_view text);
  Document(std::string text);
  Document(std::initializer_list<Member> members);
  /// Null of an empty one.
  template <class T>
  Document(const std::optional<T>& value) : Document() {
    if (value) *this = Document(*value);
  }
  template <class T>
  Document(const std::vector<T>& values) : Document() {
    List all;
    all.reserve(values.size());
    for (const T& value : values) all.emplace_back(value);
    set(std::move(all));
  }

  static Document list(List values = {});
  static Document object();

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  /// Null pointers of values of another kind. Any integer or double is a number.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const List* items() const { return std::get_if<List>(&value_); }
  const Object* members() const { return std::get_if<Object>(&value_); }
  std::optional<double> number() const;
  /// A whole number as it is written, negative or not; none where it is no integer.
  std::optional<std::int64_t> integer() const;            ///< up to INT64_MAX
  std::optional<std::uint64_t> unsigned_integer() const;  ///< from 0

  /// "an object", "the number 3.5", "the text 'x'": for complaints.
  std::string describe() const;

  /// The member of that name; null if there is none, or this is no object.
  const Document* find(std::string_view name) const;
  /// The member of that name of an object, or of null, which becomes one; new ones come last.
  Document& operator[](std::string_view name);
  /// Sets all members of another object.
  void update(const Document& other);
  /// Appends to a list, or to null, which becomes one.
  void push_back(Document value);

  /// JSON: on one line, or with `indent` blanks a level. Bytes that are no UTF-8 become U+FFFD, and
  /// doubles that are no numbers null.
  std::string print(int indent = -1) const;

  /// Reads JSON. InputError, which names `source` and the line, for what is none, for lists and
  /// objects in more than 64 levels, and for an object with two members of one name.
  static Document parse(std::string_view json, const std::string& source);

 private:
  friend struct Conversion;

  void set(bool value);
  void set(std::int64_t value);
  void set(std::uint64_t value);
  void set(double value);
  void set(List values);

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, List, Object>
      value_;
};

struct Document::Member {
  std::string name;
  Document value;
};

}  // namespace hipress::io
