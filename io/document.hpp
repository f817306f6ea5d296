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

/// A JSON value: null, boolean, integer, double, text, list, or object with members in insertion
/// order.
///
///     Document plan = {{"nodes", 16}, {"codecs", std::vector<std::string>{"onebit"}}};
///     plan["time_s"] = 0.156;
///     const std::string text = plan.print(2);
///     const Document read = Document::parse(text, "plan.json");
///     const Document* const nodes = read.find("nodes");  // nodes->integer() is 16
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
  /// The optional's value; null if it is empty.
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
  /// Pointer to the value; null if it is of a different kind. number() takes any integer or double.
  const bool* boolean() const { return std::get_if<bool>(&value_); }
  const std::string* text() const { return std::get_if<std::string>(&value_); }
  const List* items() const { return std::get_if<List>(&value_); }
  const Object* members() const { return std::get_if<Object>(&value_); }
  std::optional<double> number() const;
  /// The integer; empty if the value is not an integer, or out of range.
  std::optional<std::int64_t> integer() const;            ///< range of std::int64_t
  std::optional<std::uint64_t> unsigned_integer() const;  ///< range of std::uint64_t

  /// Description for complaints: "an object", "the number 3.5", "the text 'x'".
  std::string describe() const;

  /// The member `name`; null if it is missing or this is not an object.
  const Document* find(std::string_view name) const;
  /// The member `name`, appended if it is missing. Turns null into an object.
  Document& operator[](std::string_view name);
  /// Copies all members of the object `other` into this one.
  void update(const Document& other);
  /// Appends to a list. Turns null into a list.
  void push_back(Document value);

  /// JSON text: on one line, or indented by `indent` blanks per level. Bytes that are not UTF-8
  /// become U+FFFD; NaN and infinities become null.
  std::string print(int indent = -1) const;

  /// Parses JSON. Throws InputError, with `source` and the line, for malformed text, more than 64
  /// levels of nesting, and duplicate member names in an object.
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
