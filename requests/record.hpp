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
/// is. In a record of the schema, values count by their types alone: a function that fills one is
/// also called with values that their default constructors made. A value may be a callable without
/// arguments, which is called for documents only.
class Record {
 public:
  enum class Purpose : std::uint8_t { kDocument, kSchema };

  explicit Record(Purpose purpose = Purpose::kDocument) : purpose_(purpose) {}

  /// A key with a plain value. An empty optional is null.
  template <class T>
  void add(std::string_view name, const T& value, std::string_view help) {
    put(
        name, help, [] { return type_of<ValueOf<T>>(); },
        [&] { return io::Document(valued(value)); });
  }

  /// A key that is there if the value is; of optional<optional<T>>, its value may be null.
  template <class T>
  void add_if_any(std::string_view name, const std::optional<T>& value, std::string_view help) {
    section(value.has_value(), [&] {
      add(
          name, [&]() -> T { return *value; }, help);
    });
  }

  /// An object, which `fill(Record&, const T&)` fills. An empty optional is null.
  template <class T, class Fill>
  void object(std::string_view name, const T& value, std::string_view help, const Fill& fill) {
    put(
        name, help, [&] { return schema_of<ValueOf<T>>(fill); },
        [&] { return filled(valued(value), fill); });
  }

  /// A list of objects, each of which `fill(Record&, const Item&)` fills.
  template <class Items, class Fill>
  void list(std::string_view name, const Items& items, std::string_view help, const Fill& fill) {
    using Item = std::ranges::range_value_t<ValueOf<Items>>;
    put(
        name, help, [&] { return list_of(schema_of<Item>(fill)); },
        [&] {
          io::Document rows = io::Document::list();
          for (const Item& item : valued(items)) rows.push_back(filled(item, fill));
          return rows;
        });
  }

  /// An object whose names are data: one object for each pair of name and value.
  template <class Pairs, class Fill>
  void by_name(std::string_view name, const Pairs& pairs, std::string_view help,
               std::string_view help_of_each, const Fill& fill) {
    put(
        name, help,
        [&] {
          io::Document each = schema_of<typename ValueOf<Pairs>::value_type::second_type>(fill);
          return names_of(std::move(each), help_of_each);
        },
        [&] {
          io::Document all = io::Document::object();
          for (const auto& [key, value] : valued(pairs)) all[key] = filled(value, fill);
          return all;
        });
  }

  /// The same with plain values. An empty optional is null.
  template <class Pairs>
  void by_name(std::string_view name, const Pairs& pairs, std::string_view help,
               std::string_view help_of_each) {
    using Values = ValueOf<Pairs>;
    put(
        name, help,
        [&] {
          io::Document schema =
              names_of(type_of<typename Inner<Values>::value_type::second_type>(), help_of_each);
          return is_optional<Values> ? or_null(std::move(schema)) : schema;
        },
        [&] { return named(valued(pairs)); });
  }

  /// Keys that are there if `present`: those that `body()` adds. Without them, `body` is called for
  /// the schema all the same, so that what may be missing belongs into callables.
  template <class Body>
  void section(bool present, const Body& body) {
    if (!is_schema()) {
      if (present) body();
      return;
    }
    const bool before = std::exchange(always_, false);
    body();
    always_ = before;
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

  /// The value itself, or what it returns.
  template <class T>
  static decltype(auto) valued(const T& value) {
    if constexpr (std::is_invocable_v<const T&>) {
      return value();
    } else {
      return (value);
    }
  }
  template <class T>
  using ValueOf = std::remove_cvref_t<decltype(valued(std::declval<const T&>()))>;

  bool is_schema() const { return purpose_ == Purpose::kSchema; }
  template <class Schema, class Value>
  void put(std::string_view name, std::string_view help, const Schema& schema, const Value& value) {
    if (is_schema()) {
      declare(name, schema(), help);
    } else {
      made_[name] = value();
    }
  }
  void declare(std::string_view name, io::Document schema, std::string_view help);
  /// Puts the help behind the type.
  static void describe(io::Document& schema, std::string_view help);
  static io::Document or_null(io::Document schema);
  static io::Document list_of(io::Document items);
  static io::Document names_of(io::Document each, std::string_view help_of_each);

  template <class T>
  static io::Document type_of() {
    if constexpr (is_optional<T>) {
      return or_null(type_of<Inner<T>>());
    } else if constexpr (requires { typename ItemType<T>::Type; }) {
      return list_of(type_of<typename ItemType<T>::Type>());
    } else if constexpr (std::same_as<T, bool>) {
      return {{"type", "boolean"}};
    } else if constexpr (std::integral<T>) {
      return {{"type", "integer"}};
    } else if constexpr (std::floating_point<T>) {
      return {{"type", "number"}};
    } else if constexpr (std::same_as<T, io::Document>) {  // any value
      return {
          {"type", io::Document::list({"number", "string", "boolean", "object", "array", "null"})}};
    } else {
      static_assert(std::convertible_to<T, std::string_view>, "an object has keys: use object()");
      return {{"type", "string"}};
    }
  }

  template <class T, class Fill>
  static io::Document schema_of(const Fill& fill) {
    Record record(Purpose::kSchema);
    fill(record, Inner<T>{});
    return is_optional<T> ? or_null(record.take()) : record.take();
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

  template <class Pairs>
  static io::Document named(const Pairs& pairs) {
    if constexpr (is_optional<Pairs>) {
      return pairs ? named(*pairs) : io::Document();
    } else {
      io::Document all = io::Document::object();
      for (const auto& [key, value] : pairs) all[key] = value;
      return all;
    }
  }

  Purpose purpose_;
  bool always_ = true;  ///< the next key
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
