#include "io/file.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>

#include "io/environment.hpp"
#include "io/error.hpp"

namespace hipress::io {
namespace fs = std::filesystem;
namespace {

/// Shared library that holds this code; empty if the program itself does.
fs::path own_library() {
  Dl_info info{};
  static const char here = 0;
  if (::dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const fs::path file = fs::canonical(info.dli_fname, error);
  return file.filename().string().find(".so") == std::string::npos ? fs::path() : file;
}

/// Folders with data files; the first match wins. Installed tools and libraries prefer the data
/// that was installed with them to the source tree, which may have changed since.
std::vector<fs::path> data_roots() {
  if (const std::string folder = data_folder(); !folder.empty()) return {folder};
  std::vector<fs::path> roots;
  fs::path above = own_library();
  constexpr int kLevels = 3;  // PREFIX/lib/x86_64-linux-gnu/libhipress.so has this many folders
  for (int level = 0; level < kLevels && above.has_relative_path(); ++level) {
    above = above.parent_path();
    if (level > 0) roots.push_back(above / "share/hipress");
  }
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  roots.push_back(binary.parent_path().parent_path() / "share/hipress");
  constexpr std::string_view kSource = HIPRESS_DATA_ROOT;
  if (!kSource.empty()) roots.emplace_back(kSource);
  return roots;
}

}  // namespace

std::vector<std::string_view> split_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    std::string_view field = line.substr(0, comma);
    field.remove_prefix(std::min(field.find_first_not_of(" \t"), field.size()));
    field = field.substr(0, field.find_last_not_of(" \t") + 1);
    fields.push_back(field);
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

std::string data_file(const std::string& relative) {
  std::string tried;
  for (const fs::path& root : data_roots()) {
    std::error_code error;
    const std::string candidate = (root / relative).string();
    if (fs::is_regular_file(candidate, error)) return candidate;
    tried += (tried.empty() ? "" : " and ") + candidate;
  }
  throw InputError(relative, 0, "no such data file; looked for " + tried);
}

std::vector<std::string> data_names(const std::string& folder, const std::string& ending) {
  std::vector<std::string> names;
  for (const fs::path& root : data_roots()) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(root / folder, error)) {
      if (entry.path().extension() == ending) names.push_back(entry.path().stem().string());
    }
    if (!names.empty()) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_directory(status);
}

namespace {

/// True if the names are equal when '-' and '_' count as the same character.
bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char one, char other) {
    return one == other || ((one == '-' || one == '_') && (other == '-' || other == '_'));
  });
}

}  // namespace

std::optional<std::string> named_file(const std::string& folder, const std::string& name) {
  const bool is_word = !name.empty() && name.find_first_of("/.") == std::string::npos;
  if (!is_word) return name;
  const std::vector<std::string> shipped = data_names(folder, ".yaml");
  if (!std::ranges::binary_search(shipped, name) && is_file(name)) return name;
  for (const std::string& known : shipped) {
    if (same_word(known, name)) return data_file(fmt::format("{}/{}.yaml", folder, known));
  }
  return std::nullopt;
}

std::string fingerprint(const std::string& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace hipress::io
