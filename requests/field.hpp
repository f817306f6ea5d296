#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/document.hpp"

/// Requests: what a command line, a C program or Python asks for, and the documents that answer.
namespace hipress::requests {

/// Where the value of a field goes. A document is a text or an object.
using Variable =
    std::variant<bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*,
                 double*, std::optional<double>*, std::int32_t*, std::optional<std::int32_t>*,
                 std::uint32_t*, std::optional<std::uint32_t>*, std::int64_t*,
                 std::optional<std::int64_t>*, std::uint64_t*, io::Document*>;

/// What whole numbers, and others, must lie between.
struct Bounds {
  std::uint64_t least = 0, most = UINT64_MAX;
};
struct NumberBounds {
  double least = 0, most = 0;
};

/// One field of a request: a member of the JSON document, an option of the command line (with
/// hyphens for underscores), an argument in Python. Members that set a property return the field,
/// so that a table reads as a list.
struct Field {
  std::string name;
  Variable to;
  std::string help;
  std::variant<std::monostate, Bounds, NumberBounds> bounds = {};
  std::vector<std::string> words = {};  ///< the only values; empty: any
  std::string group = {};               ///< its heading in the help (headings.hpp)
  /// What the field's name without a value stands for: in JSON, the value true.
  std::optional<std::string> bare = {};
  bool shows_default = false;  ///< the help names the value that `to` has
  bool required = false;
  bool is_file = false;  ///< the name of a file or folder: not empty
  bool repeats = false;  ///< on a command line, the option is given once a value
  /// Called with a value that is given, as text.
  std::function<void(const std::string& value)> given = {};

  Field& from(std::uint64_t least, std::uint64_t most = UINT64_MAX);
  Field& between(double least, double most);
  Field& one_of(std::vector<std::string> values);
  Field& under(std::string_view heading);
  Field& alone_means(std::string value);
  Field& with_default();
  Field& must_be_given();
  Field& file();
  Field& repeated();
  Field& on_given(std::function<void(const std::string& value)> call);
};

/// The fields of a request, in the order in which the help lists them. They point into the request.
class Fields {
 public:
  Field& add(std::string name, Variable to, std::string help);
  /// The heading of the fields that are added from now on (headings.hpp).
  void under(std::string_view heading) { heading_ = heading; }
  /// The field of that name; null: there is none.
  const Field* find(std::string_view name) const;
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

 private:
  std::deque<Field> rows_;  // whose elements stay where they are
  std::string_view heading_;
};

/// Sets each field to the document's member of that name; null leaves a field as it is, and the
/// member "request" is skipped. FieldError (hooks.hpp) for an unknown member, a value of another
/// kind or out of bounds, and a required field that is missing.
void read(const io::Document& request, const Fields& fields);

/// The JSON schema of a request with these fields: types, defaults, bounds, help.
io::Document schema(std::string_view title, std::string_view help, const Fields& fields);

}  // namespace hipress::requests
