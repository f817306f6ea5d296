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

/// Requests: what a command line, a C program or Python asks for, and the documents that answer.
namespace hipress::requests {

struct Hooks;

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

/// Names of the fields that a request was given. Defaults are not among them.
using GivenFields = std::set<std::string, std::less<>>;

/// A case in which a field does not count: the reason, empty in other cases. An empty function is
/// none of them. Called when the
/// request has been read, and perhaps again when more is known.
using Case = std::function<std::string()>;

/// The case in which `holds()`.
template <class Holds>
Case when(Holds holds, std::string why) {
  return [=] { return holds() ? why : std::string(); };
}

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
  bool is_file = false;    ///< the name of a file or folder: not empty
  bool repeats = false;    ///< on a command line, the option is given once a value
  std::string needs = {};  ///< another field, without which this one cannot be given
  std::vector<Case> refusals = {}, idle_cases = {};
  GivenFields* given = nullptr;  ///< of the request; null: nobody asks

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
  /// Refused in these cases: "`seed` is of plans that …".
  template <class... Cases>
  Field& not_for(Cases... why) {
    (refusals.push_back(std::move(why)), ...);
    return *this;
  }
  /// Without effect in these cases: "`seed` has no effect: nothing is drawn".
  template <class... Cases>
  Field& idle(Cases... why) {
    (idle_cases.push_back(std::move(why)), ...);
    return *this;
  }
  /// Notes that it is given. The value "false" gives nothing.
  void note(const std::string& value) const;
  bool is_given() const { return given != nullptr && given->contains(name); }
  /// Gives the variable the value of its type without a value.
  void clear() const;
};

/// The fields of a request, in the order in which the help lists them. They point into the request.
class Fields {
 public:
  Fields() = default;
  /// `given` becomes the names of what is read.
  explicit Fields(GivenFields& given) : given_(&given) {}
  Field& add(std::string name, Variable to, std::string help);
  /// The heading of the fields that are added from now on (headings.hpp), and the cases in which
  /// they are refused.
  template <class... Cases>
  void under(std::string_view heading, Cases... refusals) {
    heading_ = heading;
    refusals_ = {std::move(refusals)...};
  }
  /// The field of that name; null: there is none.
  const Field* find(std::string_view name) const;
  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }

 private:
  std::deque<Field> rows_;  // whose elements stay where they are
  std::string_view heading_;
  std::vector<Case> refusals_;
  GivenFields* given_ = nullptr;
};

/// Sets each field to the document's member of that name; null leaves a field as it is, and the
/// member "request" is skipped. FieldError (hooks.hpp) for an unknown member, a value of another
/// kind or out of bounds, and a required field that is missing.
void read(const io::Document& request, const Fields& fields);

/// io::InputError for a field that is given in a case in which it is refused.
void refuse_unfit(const Fields& fields);

/// One sentence for each field that is given in a case in which it has no effect.
std::vector<std::string> without_effect(const Fields& fields);

/// Warns of them.
void warn_of_idle(const Fields& fields, const Hooks& hooks);

/// The JSON schema of a request with these fields: types, defaults, bounds, help.
io::Document schema(std::string_view title, std::string_view help, const Fields& fields);

}  // namespace hipress::requests
