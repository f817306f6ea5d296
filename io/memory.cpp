#include "io/memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace hipress::io {
namespace fs = std::filesystem;
namespace {

/// The number that a file of one number holds; none for "max", or without the file.
std::optional<std::int64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::int64_t number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> available_on_machine(const fs::path& proc) {
  std::ifstream stream(proc / "meminfo");
  for (std::string name; stream >> name; stream.ignore(256, '\n')) {
    std::int64_t kibibytes = 0;
    if (name == "MemAvailable:" && stream >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

/// The least limit of a control group and those around it. A container sees its own as the root.
std::int64_t least_limit(const fs::path& root, const std::string& group, const char* file) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (fs::path at = group;; at = at.parent_path()) {
    least = std::min(least, number_in(root / at.relative_path() / file).value_or(least));
    if (at == at.parent_path()) return least;
  }
}

/// Lines are "0::/group" for version 2 and "4:memory:/group" for version 1.
std::int64_t control_group_limit(const fs::path& proc, const fs::path& cgroup) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::ifstream stream(proc / "self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, least_limit(cgroup, group, "memory.max"));
    } else if (controllers == "memory") {
      least = std::min(least, least_limit(cgroup / "memory", group, "memory.limit_in_bytes"));
    }
  }
  return least;
}

}  // namespace

std::int64_t available_memory(const std::string& proc, const std::string& cgroup) {
  const auto physical = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(available_on_machine(proc).value_or(physical), control_group_limit(proc, cgroup));
}

}  // namespace hipress::io
