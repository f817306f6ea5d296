#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "io/document.hpp"

/// Records: objects of results that declare their keys while they are filled.
namespace hipress::requests {

/// An object of a result. One function fills it, and so defines both its contents and its schema.
/// Only the types of values matter for a schema, so the function is also called with
/// default-constructed values. A value may be given as a callable without arguments, which is
/// called only for documents. Adding a key again replaces its value and keeps its declaration.
class Record {
 public:
  enum class Purpose : std::uint8_t { kDocument, kSchema };

  explicit Record(Purpose purpose = Purpose::kDocument) : purpose_(purpose) {}

  /// Adds a key with a plain value. An empty optional is null.
  template <class T>
  void add(std::string_view name, const T& value, std::string_view help) {
    put(
        name, help, [] { return type_of<ValueOf<T>>(); },
        [&] { return io::Document(valued(value)); });
  }

  /// Adds a key only if the value is set. If T is itself an optional, the value may be null.
  template <class T>
  void add_if_any(std::string_view name, const std::optional<T>& value, std::string_view help) {
    section(value.has_value(), [&] {
      add(
          name, [&]() -> T { return *value; }, help);
    });
  }

  /// Adds an object, filled by `fill(Record&, const T&)`. An empty optional is null.
  template <class T, class Fill>
  void object(std::string_view name, const T& value, std::string_view help, const Fill& fill) {
    put(
        name, help, [&] { return schema_of<ValueOf<T>>(fill); },
        [&] { return filled(valued(value), fill); });
  }

  /// Adds an object only if the value is set.
  template <class T, class Fill>
  void object_if_any(std::string_view name, const std::optional<T>& value, std::string_view help,
                     const Fill& fill) {
    section(value.has_value(), [&] {
      put(
          name, help, [&] { return schema_of<T>(fill); }, [&] { return filled(*value, fill); });
    });
  }

  /// Adds a list of objects, each filled by `fill(Record&, const Item&)`.
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

  /// Adds an object whose keys are data: the names of `pairs`, each with an object as its value. An
  /// empty optional is null.
  template <class Pairs, class Fill>
  void by_name(std::string_view name, const Pairs& pairs, std::string_view help,
               std::string_view help_of_each, const Fill& fill) {
    put_names<Pairs>(
        name, help, help_of_each, [&] { return schema_of<EachOf<Pairs>>(fill); },
        [&] {
          return named(valued(pairs), [&](const auto& value) { return filled(value, fill); });
        });
  }

  /// Adds an object whose keys are data: the names of `pairs`, each with a plain value.
  template <class Pairs>
  void by_name(std::string_view name, const Pairs& pairs, std::string_view help,
               std::string_view help_of_each) {
    put_names<Pairs>(
        name, help, help_of_each, [] { return type_of<EachOf<Pairs>>(); },
        [&] {
          return named(valued(pairs), [](const auto& value) { return io::Document(value); });
        });
  }

  /// Adds the keys of `body()` only if `present`. For a schema, `body` is always called, so values
  /// that may be missing must be callables.
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

  /// Returns the document, or the schema, of all keys added so far.
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

  /// Returns the value, or calls it if it is callable.
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

  /// Type of the values of pairs.
  template <class Pairs>
  using EachOf = typename Inner<ValueOf<Pairs>>::value_type::second_type;

  bool is_schema() const { return purpose_ == Purpose::kSchema; }
  template <class Schema, class Value>
  void put(std::string_view name, std::string_view help, const Schema& schema, const Value& value) {
    if (is_schema()) {
      declare(name, schema(), help);
    } else {
      made_[name] = value();
    }
  }
  template <class Pairs, class Schema, class Value>
  void put_names(std::string_view name, std::string_view help, std::string_view help_of_each,
                 const Schema& schema_of_each, const Value& value) {
    const auto schema = [&] {
      io::Document made = names_of(schema_of_each(), help_of_each);
      return is_optional<ValueOf<Pairs>> ? or_null(std::move(made)) : made;
    };
    put(name, help, schema, value);
  }
  void declare(std::string_view name, io::Document schema, std::string_view help);
  /// Inserts the help after the type.
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

  template <class Pairs, class Made>
  static io::Document named(const Pairs& pairs, const Made& made_of) {
    if constexpr (is_optional<Pairs>) {
      return pairs ? named(*pairs, made_of) : io::Document();
    } else {
      io::Document all = io::Document::object();
      for (const auto& [key, value] : pairs) all[key] = made_of(value);
      return all;
    }
  }

  Purpose purpose_;
  bool always_ = true;  ///< keys added now are always present
  io::Document made_ = io::Document::object();
  io::Document required_ = io::Document::list();
};

/// Schema of a result, declared by its function `fill(Record&, const Result&)`.
template <class Result>
io::Document schema_of() {
  const auto empty = std::make_unique<const Result>();  // g++ 12 warns if it is on the stack
  Record record(Record::Purpose::kSchema);
  fill(record, *empty);
  return record.take();
}

/// Document of a result, filled by such a function.
template <class Result>
io::Document document_of(const Result& result) {
  Record record;
  fill(record, result);
  return record.take();
}

}  // namespace hipress::requests
