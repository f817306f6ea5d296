#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/document.hpp"

/// Fields of requests from a command line, a C program or Python, and the documents that answer
/// them.
namespace hipress::requests {

struct Hooks;

/// Destination of a field's value. A document is a text or an object; a list of numbers may also be
/// one number, or a text with commas between them.
using Variable =
    std::variant<bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*,
                 std::vector<std::uint32_t>*, double*, std::optional<double>*, std::int32_t*,
                 std::optional<std::int32_t>*, std::uint32_t*, std::optional<std::uint32_t>*,
                 std::int64_t*, std::optional<std::int64_t>*, std::uint64_t*, io::Document*>;

/// Bounds of whole numbers; NumberBounds are those of other numbers.
struct Bounds {
  std::uint64_t least = 0, most = UINT64_MAX;
};
struct NumberBounds {
  double least = 0, most = 0;
};

/// Names of the fields that a request gives, without defaults.
using GivenFields = std::set<std::string, std::less<>>;

/// A case in which a field does not count. It returns the reason, or an empty text if the case does
/// not hold. An empty function is a case that never holds. Called when the request has been read,
/// and perhaps again when more is known.
using Case = std::function<std::string()>;

/// Case that holds if `holds()` returns true.
template <class Holds>
Case when(Holds holds, std::string why) {
  return [=] { return holds() ? why : std::string(); };
}

/// A field of a request: a member of the JSON document, an option of the command line (with hyphens
/// for underscores), an argument in Python. Functions that set a property return the field, so that
/// a table reads as a list.
struct Field {
  std::string name;
  Variable to;
  std::string help;
  std::variant<std::monostate, Bounds, NumberBounds> bounds = {};
  std::vector<std::string> words = {};  ///< allowed values; empty: any
  std::string group = {};               ///< heading in the help (headings.hpp)
  /// Value that a field given without one takes; in JSON, a field given as true.
  std::optional<std::string> bare = {};
  bool shows_default = false;  ///< the help shows the value of `to`
  bool required = false;
  bool is_file = false;    ///< names a file or folder; must not be empty
  bool repeats = false;    ///< a list: the option is repeated on a command line
  std::string needs = {};  ///< a further field that must be given, too
  std::vector<Case> refusals = {}, idle_cases = {};
  GivenFields* given = nullptr;  ///< the request's given fields; null: not recorded

  Field& from(std::uint64_t least, std::uint64_t most = UINT64_MAX);
  Field& between(double least, double most);
  Field& one_of(std::vector<std::string> values);
  Field& under(std::string_view heading);
  Field& alone_means(std::string value);
  Field& with_default();
  Field& must_be_given();
  Field& file();
  Field& repeated();
  Field& with(std::string_view other);
  /// Rejects the field in these cases: "`seed` is of plans that …".
  template <class... Cases>
  Field& not_for(Cases... why) {
    (refusals.push_back(std::move(why)), ...);
    return *this;
  }
  /// Declares the field without effect in these cases: "`seed` has no effect: nothing is drawn".
  template <class... Cases>
  Field& idle(Cases... why) {
    (idle_cases.push_back(std::move(why)), ...);
    return *this;
  }
  /// Records the field as given, unless the value is "false".
  void note(const std::string& value) const;
  bool is_given() const { return given != nullptr && given->contains(name); }
  /// Resets the variable to an empty value of its type.
  void clear() const;
};

/// Fields of a request, in the order of the help. They point into the request.
class Fields {
 public:
  Fields() = default;
  /// Records the names of the fields that are read in `given`.
  explicit Fields(GivenFields& given) : given_(&given) {}
  Field& add(std::string name, Variable to, std::string help);
  /// Sets the heading of the following fields (headings.hpp), and cases in which they are rejected.
  template <class... Cases>
  void under(std::string_view heading, Cases... refusals) {
    heading_ = heading;
    refusals_ = {std::move(refusals)...};
  }
  /// Field of that name; null if unknown.
  const Field* find(std::string_view name) const;
  /// Field of that name, to be changed. It must exist.
  Field& at(std::string_view name);
  auto begin() { return rows_.begin(); }
  auto end() { return rows_.end(); }
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

 private:
  std::deque<Field> rows_;  // a deque, so that addresses stay valid
  std::string_view heading_;
  std::vector<Case> refusals_;
  GivenFields* given_ = nullptr;
};

/// Sets each field from the document's member of that name. Null leaves a field as it is, and the
/// member "request" is skipped. FieldError (hooks.hpp) for an unknown member, a value of a
/// different type or out of bounds, and a missing required field.
void read(const io::Document& request, const Fields& fields);

/// Throws io::InputError for a given field that is rejected in the present case.
void refuse_unfit(const Fields& fields);

/// One sentence for each given field without effect in the present case.
std::vector<std::string> without_effect(const Fields& fields);

/// Warns of given fields without effect.
void warn_of_idle(const Fields& fields, const Hooks& hooks);

/// JSON schema of a request with these fields: types, defaults, bounds, help.
io::Document schema(std::string_view title, std::string_view help, const Fields& fields);

}  // namespace hipress::requests
