#pragma once

#include <string>
#include <string_view>

#include "io/descriptors.hpp"

namespace hipress::io {

/// An immutable file in memory (sealed memfd), for code that reads files. It keeps the verified
/// content even if the file from which it was copied changes.
class MemoryFile {
 public:
  /// Throws RunError with the remedy if descriptors or memory run out, or the kernel forbids memfd.
  explicit MemoryFile(std::string_view bytes);

  /// Descriptor at offset 0. It is closed with this object, and not inherited by executed programs.
  int descriptor() const { return descriptor_.number(); }
  /// Path with which this process can open it.
  std::string path() const;

 private:
  Descriptor descriptor_;
};

}  // namespace hipress::io
