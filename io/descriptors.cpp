#include "io/descriptors.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <limits>
#include <system_error>

namespace hipress::io {
namespace {

/// Reserve for files that other code opens meanwhile.
constexpr std::int64_t kSpare = 64;

std::int64_t open_descriptors() {
  std::error_code error;
  const std::filesystem::directory_iterator all("/proc/self/fd", error);
  return error ? 0 : std::distance(begin(all), end(all));
}

}  // namespace

std::int64_t allow_descriptors(std::int64_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;  // open() then fails
  const std::int64_t taken = open_descriptors() + kSpare;
  const auto needed = static_cast<rlim_t>(taken + wanted);
  if (limit.rlim_cur < needed) {
    const rlimit raised{.rlim_cur = std::min(needed, limit.rlim_max), .rlim_max = limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  constexpr auto kMax = static_cast<rlim_t>(std::numeric_limits<std::int64_t>::max());
  const auto allowed = static_cast<std::int64_t>(std::min(limit.rlim_cur, kMax));
  return std::max<std::int64_t>(0, allowed - taken);
}

bool write_all(const Descriptor& to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(to.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace hipress::io
