#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hipress::io {

/// A kind of file that no reader takes, and what to do with it.
struct FileKind {
  std::string_view is;  ///< "a ZIP archive"
  std::string_view remedy;
};

/// Bytes from a file's beginning that tell every kind of the table.
inline constexpr std::size_t kKindBytes = 512;

/// The kind that a file's first bytes bear the mark of; null: none in the table. Text that YAML,
/// JSON or a table may begin with, and messages of Chakra's traces, bear none.
const FileKind* kind_of(std::string_view first);

/// Throws InputError that names the file, its kind and the remedy if it is of such a kind.
void refuse_kind(const std::string& file, std::string_view first);

}  // namespace hipress::io
