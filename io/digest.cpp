#include "io/digest.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "io/error.hpp"

namespace hipress::io {
namespace {

const unsigned char* octets(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* octets(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

[[noreturn]] void complain(const char* what) {
  throw RunError(fmt::format(
      "OpenSSL's libcrypto cannot compute {}; free memory, and see that its configuration "
      "(openssl.cnf) permits SHA-256",
      what));
}

}  // namespace

Digest sha256(std::span<const std::byte> bytes) {
  Digest digest;
  if (EVP_Digest(bytes.data(), bytes.size(), octets(digest.data()), nullptr, EVP_sha256(),
                 nullptr) != 1) {
    complain("a SHA-256");
  }
  return digest;
}

Digest sha256(std::string_view bytes) {
  return sha256(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> data) {
  Digest digest;
  // A null key means "reuse the previous key" to HMAC().
  const std::byte none{};
  const std::byte* const secret = key.empty() ? &none : key.data();
  if (HMAC(EVP_sha256(), secret, static_cast<int>(key.size()), octets(data.data()), data.size(),
           octets(digest.data()), nullptr) == nullptr) {
    complain("an HMAC");
  }
  return digest;
}

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte >> 4)];
    text += kDigits[std::to_integer<unsigned>(byte & std::byte{15})];
  }
  return text;
}

bool constant_time_equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::vector<std::byte> random_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t done = 0; done < count;) {
    const ssize_t got = ::getrandom(bytes.data() + done, count - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      throw RunError(
          fmt::format("the kernel gives no random bytes (getrandom: {}); a sandbox may "
                      "forbid the call: allow it",
                      std::strerror(errno)));
    }
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

}  // namespace hipress::io
