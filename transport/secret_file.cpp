#include "transport/secret_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include "io/error.hpp"
#include "io/file.hpp"

namespace hipress::transport {

std::string read_secret_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0 &&
      !S_ISDIR(status.st_mode)) {
    throw io::InputError(fmt::format(
        "{}: other users may read or change this secret (its mode is {:04o}); chmod 600 it", path,
        status.st_mode & 07777));
  }
  std::string secret = io::read_file(path);
  if (secret.size() < kMinSecretBytes) {
    throw io::InputError(
        fmt::format("{}: a secret of {} bytes can be guessed; give at least {}, as of: head -c 32 "
                    "/dev/urandom",
                    path, secret.size(), kMinSecretBytes));
  }
  return secret;
}

}  // namespace hipress::transport
