#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "io/error.hpp"

namespace hipress::tests {

/// A folder for one test, removed by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hipress-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }

  /// Writes a file with these bytes and returns its path.
  std::string file(const std::string& name, std::string_view content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  /// Number of files in it, temporary ones included.
  std::size_t count() const {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) files += entry.exists();
    return files;
  }

 private:
  std::filesystem::path path_;
};

/// Message of the InputError that `action` throws; "no InputError" if it does not throw one.
template <typename Action>
std::string complaint(Action action) {
  try {
    action();
  } catch (const io::InputError& error) {
    return error.what();
  }
  return "no InputError";
}

}  // namespace hipress::tests
