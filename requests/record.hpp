#pragma once

#include <concepts>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/document.hpp"

/// Objects of results whose keys are declared where they are written.
namespace hipress::requests {

/// An object of a result. One function fills it, and so says both what is in it and what its schema
/// is: in a record of the schema, values count by their types alone. A function that fills one is
/// also called with values that were made by their default constructors.
class Record {
 public:
  enum class Purpose : std::uint8_t { kDocument, kSchema };

  explicit Record(Purpose purpose = Purpose::kDocument) : purpose_(purpose) {}

  /// A key that is always there. The value of an empty optional is null.
  template <class T>
  void add(std::string_view name, const T& value, std::string_view help) {
    if (is_schema()) {
      declare(name, type_of<T>(), help, true);
    } else {
      write(name, io::Document(value));
    }
  }

  /// A key that is there if the value is; of optional<optional<T>>, its value may be null.
  template <class T>
  void add_if_any(std::string_view name, const std::optional<T>& value, std::string_view help) {
    if (is_schema()) {
      declare(name, type_of<T>(), help, false);
    } else if (value) {
      write(name, io::Document(*value));
    }
  }

  /// An object, which `fill(Record&, const T&)` fills. An empty optional is null.
  template <class T, class Fill>
  void object(std::string_view name, const T& value, std::string_view help, const Fill& fill) {
    if (is_schema()) {
      declare(name, schema_of<Inner<T>>(fill, is_optional<T>), help, true);
    } else {
      write(name, filled(value, fill));
    }
  }

  /// An object that is there if the value is.
  template <class T, class Fill>
  void object_if_any(std::string_view name, const std::optional<T>& value, std::string_view help,
                     const Fill& fill) {
    if (is_schema()) {
      declare(name, schema_of<T>(fill, false), help, false);
    } else if (value) {
      write(name, filled(*value, fill));
    }
  }

  /// A list of objects, each of which `fill(Record&, const Item&)` fills.
  template <std::ranges::range Items, class Fill>
  void list(std::string_view name, const Items& items, std::string_view help, const Fill& fill) {
    if (is_schema()) {
      declare(name, list_of(schema_of<std::ranges::range_value_t<Items>>(fill, false)), help, true);
      return;
    }
    io::Document rows = io::Document::list();
    for (const auto& item : items) rows.push_back(filled(item, fill));
    write(name, std::move(rows));
  }

  /// An object whose names are data: one object for each pair of name and value.
  template <std::ranges::range Pairs, class Fill>
  void by_name(std::string_view name, const Pairs& pairs, std::string_view help,
               std::string_view help_of_each, const Fill& fill) {
    if (is_schema()) {
      declare(name, schema_by_name<Pairs>(help_of_each, fill), help, true);
    } else {
      write(name, filled_by_name(pairs, fill));
    }
  }

  /// The same, there if the pairs are.
  template <std::ranges::range Pairs, class Fill>
  void by_name_if_any(std::string_view name, const std::optional<Pairs>& pairs,
                      std::string_view help, std::string_view help_of_each, const Fill& fill) {
    if (is_schema()) {
      declare(name, schema_by_name<Pairs>(help_of_each, fill), help, false);
    } else if (pairs) {
      write(name, filled_by_name(*pairs, fill));
    }
  }

  /// The document, or the schema, of all keys so far.
  io::Document take();

 private:
  template <class T>
  struct InnerType {
    using Type = T;
  };
  template <class T>
  struct InnerType<std::optional<T>> {
    using Type = T;
  };
  template <class T>
  using Inner = typename InnerType<T>::Type;
  template <class T>
  static constexpr bool is_optional = !std::is_same_v<T, Inner<T>>;
  template <class T>
  struct ItemType {};
  template <class T>
  struct ItemType<std::vector<T>> {
    using Type = T;
  };

  bool is_schema() const { return purpose_ == Purpose::kSchema; }
  void write(std::string_view name, io::Document value) { made_[name] = std::move(value); }
  void declare(std::string_view name, io::Document schema, std::string_view help, bool always);
  /// Puts the help behind the type.
  static void describe(io::Document& schema, std::string_view help);
  static io::Document list_of(io::Document items) {
    return {{"type", "array"}, {"items", std::move(items)}};
  }

  template <class T>
  static io::Document type_of() {
    if constexpr (is_optional<T>) {
      io::Document schema = type_of<Inner<T>>();
      schema["type"] = io::Document::list({schema["type"], "null"});
      return schema;
    } else if constexpr (requires { typename ItemType<T>::Type; }) {
      return list_of(type_of<typename ItemType<T>::Type>());
    } else if constexpr (std::same_as<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::integral<T>) {
      return {{"type", "integer"}};
    } else if constexpr (std::floating_point<T>) {
      return {{"type", "number"}};
    } else {
      static_assert(std::convertible_to<T, std::string_view>, "an object has keys: use object()");
      return {{"type", "string"}};
    }
  }

  template <class T, class Fill>
  static io::Document schema_of(const Fill& fill, bool or_null) {
    Record record(Purpose::kSchema);
    fill(record, T{});
    io::Document schema = record.take();
    if (or_null) schema["type"] = io::Document::list({"object", "null"});
    return schema;
  }

  template <class Pairs, class Fill>
  static io::Document schema_by_name(std::string_view help_of_each, const Fill& fill) {
    using Value = typename std::ranges::range_value_t<Pairs>::second_type;
    io::Document each = schema_of<Value>(fill, false);
    describe(each, help_of_each);
    return {{"type", "object"}, {"additionalProperties", std::move(each)}};
  }

  template <class Pairs, class Fill>
  static io::Document filled_by_name(const Pairs& pairs, const Fill& fill) {
    io::Document all = io::Document::object();
    for (const auto& [key, value] : pairs) all[key] = filled(value, fill);
    return all;
  }

  template <class T, class Fill>
  static io::Document filled(const T& value, const Fill& fill) {
    if constexpr (is_optional<T>) {
      return value ? filled(*value, fill) : io::Document();
    } else {
      Record record;
      fill(record, value);
      return record.take();
    }
  }

  Purpose purpose_;
  io::Document made_ = io::Document::object();
  io::Document required_ = io::Document::list();
};

/// The schema of a result for which there is a `fill(Record&, const Result&)`.
template <class Result>
io::Document schema_of() {
  Record record(Record::Purpose::kSchema);
  fill(record, Result{});
  return record.take();
}

/// The document of such a result.
template <class Result>
io::Document document_of(const Result& result) {
  Record record;
  fill(record, result);
  return record.take();
}

}  // namespace hipress::requests
