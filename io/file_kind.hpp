#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hipress::io {

/// A file format that no reader accepts, with its remedy.
struct FileKind {
  std::string_view is;  ///< "a ZIP archive"
  std::string_view remedy;
};

/// Length of the prefix that kind_of() needs, in bytes.
inline constexpr std::size_t kKindBytes = 512;

/// Format by the magic number in a file's first bytes. Null if unknown, as for YAML, JSON and
/// tables.
const FileKind* kind_of(std::string_view first);

/// Throws InputError, with the file, its format and the remedy, if kind_of() knows the format.
void refuse_kind(const std::string& file, std::string_view first);

}  // namespace hipress::io
