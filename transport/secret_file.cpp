#include "transport/secret_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/error.hpp"
#include "io/file.hpp"

namespace hipress::transport {
namespace {

constexpr std::int64_t kMaxSecretBytes = 64 << 10;  // maximum; the secret is an HMAC key, so a
                                                    // longer file is a mistake

}  // namespace

std::string read_secret_file(const std::string& path) {
  struct stat status {};
  const bool is_there = ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
  if (is_there && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw io::InputError(fmt::format(
        "{}: other users may read or change this secret (its mode is {:04o}); chmod 600 it", path,
        status.st_mode & 07777));
  }
  if (is_there && status.st_uid != ::geteuid() && status.st_uid != 0) {
    throw io::InputError(fmt::format(
        "{}: this secret belongs to another user (uid {}), who may read or change it; make one of "
        "your own",
        path, status.st_uid));
  }
  if (is_there && S_ISREG(status.st_mode) && status.st_size > kMaxSecretBytes) {
    throw io::InputError(path, 0,
                         fmt::format("a secret has at most {} bytes, and this file has {}",
                                     kMaxSecretBytes, status.st_size));
  }
  std::string secret = io::read_file(path);
  if (secret.size() < kMinSecretBytes) {
    throw io::InputError(path, 0,
                         fmt::format("a secret of {} bytes can be guessed; give at least {}, as "
                                     "from: head -c 32 /dev/urandom",
                                     secret.size(), kMinSecretBytes));
  }
  return secret;
}

}  // namespace hipress::transport
