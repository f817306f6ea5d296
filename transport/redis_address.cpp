#include "transport/redis_address.hpp"

#include <charconv>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace hipress::transport {
namespace {

constexpr std::string_view kPlain = "redis://", kTls = "rediss://";

/// Parses all of `text` as a number from `least` to `most`.
std::optional<int> number(std::string_view text, int least, int most) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < least || value > most) return std::nullopt;
  return value;
}

std::string decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    unsigned char byte = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, byte, 16);
    if (digits.size() != 2 || error != std::errc() || stop != end) {
      throw std::invalid_argument(
          "a % in the user's name or password is not followed by two hexadecimal digits (a % "
          "itself is %25)");
    }
    plain += static_cast<char>(byte);
    i += 2;
  }
  return plain;
}

void take_user(std::string_view text, RedisAddress& address) {
  const std::size_t colon = text.find(':');
  address.user = decoded(text.substr(0, colon));
  if (colon != std::string_view::npos) address.password = decoded(text.substr(colon + 1));
}

void take_port(std::string_view text, RedisAddress& address) {
  const std::optional<int> port = number(text, 1, 65535);
  if (!port) throw std::invalid_argument("the port is not a number from 1 to 65535");
  address.port = *port;
}

void take_host(std::string_view text, RedisAddress& address) {
  std::string_view host = text, rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) throw std::invalid_argument("the host's ']' is missing");
    host = text.substr(1, end - 1);
    rest = text.substr(end + 1);
    if (!rest.empty() && rest[0] != ':') {
      throw std::invalid_argument("between the host's ']' and the port must be a ':'");
    }
  } else if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    rest = text.substr(colon);
    if (rest.find(':', 1) != std::string_view::npos) {
      throw std::invalid_argument("an IPv6 address must stand in brackets: redis://[::1]:6379");
    }
  }
  if (host.empty()) throw std::invalid_argument("the host is missing");
  address.host = host;
  if (!rest.empty()) take_port(rest.substr(1), address);
}

}  // namespace

bool names_redis(std::string_view rendezvous) {
  return rendezvous.starts_with(kPlain) || rendezvous.starts_with(kTls);
}

RedisAddress parse_redis_address(std::string_view url) {
  RedisAddress address;
  address.tls = url.starts_with(kTls);
  std::string_view rest = url.substr((address.tls ? kTls : kPlain).size());
  // Split at the last '@', as a password may contain others, although it should encode them as %40.
  if (const std::size_t at = rest.rfind('@'); at != std::string_view::npos) {
    take_user(rest.substr(0, at), address);
    rest = rest.substr(at + 1);
  }
  const std::size_t slash = rest.find('/');
  take_host(rest.substr(0, slash), address);
  if (slash == std::string_view::npos || slash + 1 == rest.size()) return address;
  const std::optional<int> database = number(rest.substr(slash + 1), 0, 1'000'000);
  if (!database) throw std::invalid_argument("the text after the '/' is not a database's number");
  address.database = *database;
  return address;
}

std::string without_password(const std::string& rendezvous) {
  if (rendezvous.starts_with("file:") || rendezvous.starts_with("local:")) return rendezvous;
  const std::size_t at = rendezvous.rfind('@');
  if (at == std::string::npos) return rendezvous;
  // Hides passwords behind unknown schemes too, since the scheme may be mistyped.
  const std::size_t scheme = rendezvous.find("://");
  const std::size_t begin = scheme == std::string::npos || scheme > at ? 0 : scheme + 3;
  return rendezvous.substr(0, begin) + "***" + rendezvous.substr(at);
}

}  // namespace hipress::transport
