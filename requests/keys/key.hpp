#pragma once

#include <span>
#include <string_view>

#include "io/document.hpp"

/// What the keys of results say. Schemas, the page of reference and the tests of results are made
/// from these tables, and from records (record.hpp).
namespace hipress::requests {

/// Whether a result has a key; kInPart: sometimes, and then not always all of its members.
enum class Presence { kAlways, kSometimes, kInPart };

/// One key of a result.
struct ResultKey {
  /// Names from the outermost object on, with dots between them: `utilisation.nodes[].codec`.
  /// `[]` is each item of a list, and a name `*` each name that an object has.
  std::string_view path;
  /// number, integer, string, boolean, object, or value, which is any of them; with `?`, or null.
  std::string_view type;
  std::string_view help;
  Presence presence = Presence::kAlways;
  /// What it is an object of, where several objects have the same keys: their paths from here. An
  /// empty path is the result itself.
  std::span<const ResultKey> members = {};
};

/// One form of a result: the keys of an object that answers some requests.
struct ResultForm {
  std::string_view of;  ///< the request that it answers, or "error"
  std::string_view title;
  std::string_view when;  ///< a sentence: of which requests or commands the result has this form
  std::span<const ResultKey> keys;
  io::Document (*schema)() = nullptr;  ///< of what a Record fills, instead of `keys`
};

}  // namespace hipress::requests
