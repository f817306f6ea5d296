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

/// Fields of requests from a command line, a C program or Python, and documents that answer these.
namespace hipress::requests {

struct Hooks;

/// Variable that receives a field's value. A document is given as a text or an object. A list of
/// numbers may also be given as one number, or as a text with commas.
using Variable =
    std::variant<bool*, std::string*, std::optional<std::string>*, std::vector<std::string>*,
                 std::vector<std::uint32_t>*, double*, std::optional<double>*, std::int32_t*,
                 std::optional<std::int32_t>*, std::uint32_t*, std::optional<std::uint32_t>*,
                 std::int64_t*, std::optional<std::int64_t>*, std::uint64_t*, io::Document*>;

/// Bounds of whole numbers. NumberBounds are for other numbers.
struct Bounds {
  std::uint64_t least = 0, most = UINT64_MAX;
};
struct NumberBounds {
  double least = 0, most = 0;
};

/// Names of the fields that a request gives; fields with default values are not included.
using GivenFields = std::set<std::string, std::less<>>;

/// A case in which a field is refused or has no effect. Returns the reason, or an empty text if the
/// case does not hold. Called when the request has been read, and perhaps again when more is known.
/// An empty function never holds.
using Case = std::function<std::string()>;

/// Makes a case that holds if `holds()` returns true.
template <class Holds>
Case when(Holds holds, std::string why) {
  return [holds = std::move(holds), why = std::move(why)] { return holds() ? why : std::string(); };
}

/// A field of a request: a member of the JSON document, an option of the command line (with hyphens
/// for underscores), an argument in Python. Setters return the field, so that calls can be chained.
struct Field {
  std::string name;
  Variable to;
  std::string help;
  std::variant<std::monostate, Bounds, NumberBounds> bounds = {};
  std::vector<std::string> words = {};  ///< allowed values; empty: any
  std::string group = {};               ///< heading in the help (headings.hpp)
  /// Value of a field that is given without one: a bare option, or `true` in JSON.
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
  /// Refuses the field in these cases, with an error such as "`seed` is of plans that …".
  template <class... Cases>
  Field& not_for(Cases... why) {
    (refusals.push_back(std::move(why)), ...);
    return *this;
  }
  /// Adds cases in which the field has no effect. If it is given in such a case, a warning says so:
  /// "`seed` has no effect: nothing is drawn".
  template <class... Cases>
  Field& idle(Cases... why) {
    (idle_cases.push_back(std::move(why)), ...);
    return *this;
  }
  /// Records the field as given. A flag that is off ("false") does not count as given.
  void note(const std::string& value) const;
  bool is_given() const { return given != nullptr && given->contains(name); }
  /// Resets the variable to an empty value of its type.
  void clear() const;
};

/// Fields of a request, in the order of the help. They point into the request.
class Fields {
 public:
  Fields() = default;
  /// Records the names of the given fields in `given`.
  explicit Fields(GivenFields& given) : given_(&given) {}
  Field& add(std::string name, Variable to, std::string help);
  /// Sets the heading (headings.hpp) of the following fields, and cases in which they are refused.
  template <class... Cases>
  void under(std::string_view heading, Cases... refusals) {
    heading_ = heading;
    refusals_ = {std::move(refusals)...};
  }
  /// Returns the field of that name, or null.
  const Field* find(std::string_view name) const;
  /// Returns the field of that name, to be changed. It must exist.
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

/// Sets each field from the document's member of that name. A null member leaves its field as it
/// is; the member "request" is skipped. Throws FieldError (hooks.hpp) for an unknown member, for a
/// value of a different type or out of bounds, and if a required field is missing.
void read(const io::Document& request, const Fields& fields);

/// Throws io::InputError if a given field is refused in a case that holds now.
void refuse_unfit(const Fields& fields);

/// Returns one sentence for each given field that has no effect in a case that holds now.
std::vector<std::string> without_effect(const Fields& fields);

/// Warns about given fields without effect.
void warn_of_idle(const Fields& fields, const Hooks& hooks);

/// JSON schema of a request with these fields: types, defaults, bounds, help.
io::Document schema(std::string_view title, std::string_view help, const Fields& fields);

}  // namespace hipress::requests
