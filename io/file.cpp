#include "io/file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include "io/environment.hpp"
#include "io/error.hpp"
#include "io/utf8.hpp"

namespace hipress::io {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const std::string& path, std::string_view action) {
  throw InputError(fmt::format("{}: cannot be {}: {}", path, action, std::strerror(errno)));
}

/// Writes straight to `path`, and makes sure that everything arrived. Complaints name `asked_for`.
void write_directly(const std::string& path, const std::function<void(std::ostream&)>& write,
                    const std::string& asked_for) {
  errno = 0;
  std::ofstream stream(path, std::ios::binary);
  if (!stream) refuse(asked_for, "written (choose a folder that exists and is writable)");
  write(stream);
  stream.close();
  if (!stream) refuse(asked_for, "written");
}

/// Where the symbolic links that `path` may be lead, to a file or to where one would be.
std::string follow_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // Linux's own limit
  fs::path at = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(at, error)); ++links) {
    const fs::path target = fs::read_symlink(at, error);
    if (error || links == kMostLinks) {
      errno = error ? error.value() : ELOOP;
      refuse(path, "written");
    }
    at = at.parent_path() / target;
  }
  return at.string();
}

/// The file that writing to `path` makes or replaces: links stay. None for a device or pipe
/// (/dev/stdout), which is written to and stays too.
std::optional<std::string> replaced_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    throw InputError(path + ": is a folder, give the name of a file");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) return std::nullopt;
  return follow_links(path);
}

/// A name beside `path` that no other thread or process uses.
std::string temporary_name(const std::string& path) {
  static std::atomic<std::uint64_t> count{0};
  return fmt::format("{}.tmp.{}.{}", path, ::getpid(), count++);
}

/// Removes a file at the end of its scope, unless it was renamed away before.
struct Remover {
  const std::string& path;
  ~Remover() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

void require_text(const std::string& path, int line_number, std::string_view line) {
  for (std::size_t i = 0; i < line.size();) {
    const auto byte = static_cast<unsigned char>(line[i]);
    const std::size_t length = utf8_length(line.substr(i));
    if (length == 0 || (byte < 0x20 && byte != '\t')) {
      throw InputError(path, line_number,
                       fmt::format("byte 0x{:02x} at column {} is no text; give a UTF-8 text file",
                                   byte, i + 1));
    }
    i += length;
  }
}

/// Where data files lie. An installed tool prefers what was installed with it to a source tree that
/// has moved on.
std::vector<fs::path> data_roots() {
  if (const std::string folder = data_folder(); !folder.empty()) return {folder};
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  return {binary.parent_path().parent_path() / "share/hipress", fs::path(HIPRESS_DATA_ROOT)};
}

}  // namespace

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  const std::optional<std::string> target = replaced_file(path);
  if (!target) return write_directly(path, write, path);
  const std::string temporary = temporary_name(*target);
  const Remover remover{temporary};
  write_directly(temporary, write, path);
  if (std::rename(temporary.c_str(), target->c_str()) != 0) refuse(path, "written");
}

void require_writable(const std::string& path) {
  const std::optional<std::string> target = replaced_file(path);
  if (!target) return;
  const std::string folder = fs::path(*target).parent_path().string();
  errno = 0;
  if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0) {
    refuse(path, "written (choose a folder that exists and is writable)");
  }
}

std::string read_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw InputError(path + ": is a folder, give the name of a file");
  }
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) refuse(path, "read");
  std::ostringstream content;
  content << stream.rdbuf();
  if (stream.bad()) refuse(path, "read");
  return std::move(content).str();
}

std::vector<std::string> read_lines(const std::string& path) {
  const std::string content = read_file(path);
  std::string_view rest = content;
  constexpr std::string_view kByteOrderMark =
      "\xef\xbb\xbf";  // some editors and spreadsheets put it
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  std::vector<std::string> lines;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    require_text(path, static_cast<int>(lines.size()) + 1, line);
    lines.emplace_back(line);
  }
  return lines;
}

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
  throw InputError(fmt::format("{}: no such data file; looked for {}", relative, tried));
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

std::string fingerprint(const std::string& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace hipress::io
