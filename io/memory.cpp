#include "io/memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace hipress::io {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

/// Number that is a file's whole content; empty for "max" or a missing file.
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

/// File names of one version of control groups, and the lines of memory.stat that count cached
/// files. The kernel drops cached files before it kills a process.
struct GroupFiles {
  const char* limit;
  const char* used;
  std::array<std::string_view, 2> cached;
};
constexpr GroupFiles kVersion1 = {
    "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_active_file", "total_inactive_file"}};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", {"active_file", "inactive_file"}};

std::int64_t cached_in(const fs::path& group, const GroupFiles& files) {
  std::int64_t sum = 0, bytes = 0;
  std::ifstream stream(group / "memory.stat");
  for (std::string name; stream >> name >> bytes;) {
    if (std::find(files.cached.begin(), files.cached.end(), name) != files.cached.end()) {
      sum += bytes;
    }
  }
  return sum;
}

/// Unused part of a control group's memory limit, in bytes; kUnlimited without a limit.
std::int64_t left_in(const fs::path& group, const GroupFiles& files) {
  const std::optional<std::int64_t> limit = number_in(group / files.limit);
  if (!limit) return kUnlimited;
  const std::int64_t used = number_in(group / files.used).value_or(0) - cached_in(group, files);
  return std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, used));
}

/// Least unused memory under the limits of a control group and its ancestors, in bytes. Containers
/// see their own group as the root.
std::int64_t least_left(const fs::path& root, const std::string& group, const GroupFiles& files) {
  std::int64_t least = kUnlimited;
  for (fs::path at = group;; at = at.parent_path()) {
    least = std::min(least, left_in(root / at.relative_path(), files));
    if (at == at.parent_path()) return least;
  }
}

/// Least unused memory under the limits of this process's control groups, in bytes. Lines of
/// self/cgroup are "0::/group" for version 2 and "4:memory:/group" for version 1.
std::int64_t left_by_control_groups(const fs::path& proc, const fs::path& cgroup) {
  std::int64_t least = kUnlimited;
  std::ifstream stream(proc / "self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, least_left(cgroup, group, kVersion2));
    } else if (controllers == "memory") {
      least = std::min(least, least_left(cgroup / "memory", group, kVersion1));
    }
  }
  return least;
}

/// Unused part of the address space limit (ulimit -v), in bytes.
std::int64_t left_of_address_space(const fs::path& proc) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const auto allowed = static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, kUnlimited));
  const std::int64_t used = number_in(proc / "self/statm").value_or(0) * ::sysconf(_SC_PAGESIZE);
  return std::max<std::int64_t>(0, allowed - used);
}

}  // namespace

std::int64_t available_memory(const std::string& proc, const std::string& cgroup) {
  const auto physical = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
  return std::min({available_on_machine(proc).value_or(physical),
                   left_by_control_groups(proc, cgroup), left_of_address_space(proc)});
}

}  // namespace hipress::io
