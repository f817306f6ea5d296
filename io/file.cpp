#include "io/file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "io/error.hpp"

namespace hipress::io {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void refuse(const std::string& path, std::string_view action) {
  throw InputError(fmt::format("{}: cannot be {}: {}", path, action, std::strerror(errno)));
}

/// Writes straight to `path`, and makes sure that everything arrived.
void write_directly(const std::string& path, const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream stream(path, std::ios::binary);
  if (!stream) refuse(path, "written (choose a folder that exists and is writable)");
  write(stream);
  stream.close();
  if (!stream) refuse(path, "written");
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

}  // namespace

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) {
    throw InputError(path + ": is a folder, give the name of a file");
  }
  // Renaming would replace a device or pipe (/dev/stdout) by a file.
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_directly(path, write);

  // A symbolic link stays, its target is replaced.
  const std::string target = fs::exists(status) ? fs::canonical(path).string() : path;
  const std::string temporary = temporary_name(target);
  const Remover remover{temporary};
  write_directly(temporary, write);
  if (std::rename(temporary.c_str(), target.c_str()) != 0) refuse(path, "written");
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
    lines.emplace_back(line);
  }
  return lines;
}

std::string data_file(const std::string& relative) {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  // An installed tool prefers what was installed with it to a source tree that has moved on.
  const fs::path candidates[] = {binary.parent_path().parent_path() / "share/hipress" / relative,
                                 fs::path(HIPRESS_DATA_ROOT) / relative};
  for (const fs::path& candidate : candidates) {
    if (fs::is_regular_file(candidate, error)) return candidate.string();
  }
  throw InputError(fmt::format("{}: no such data file; looked for {} and {}", relative,
                               candidates[0].string(), candidates[1].string()));
}

std::string fingerprint(const std::string& bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

}  // namespace hipress::io
