#pragma once

#include <string>
#include <string_view>

#include "io/descriptors.hpp"

namespace hipress::io {

/// Bytes in memory that other code reads as a file, and that nobody can change any more: a sealed
/// memfd. What was verified is what is read, whatever becomes of the file that it was copied from.
class MemoryFile {
 public:
  /// RunError with the remedy if there is no descriptor or memory left, or the kernel forbids it.
  explicit MemoryFile(std::string_view bytes);

  /// Positioned at the beginning; closed with this object and in children.
  int descriptor() const { return descriptor_.number(); }
  /// The name by which this process opens it.
  std::string path() const;

 private:
  Descriptor descriptor_;
};

}  // namespace hipress::io
