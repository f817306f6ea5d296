#pragma once

#include <string>
#include <string_view>

namespace hipress::transport {

struct RedisAddress {
  bool tls = false;
  std::string host;
  int port = 6379;  ///< Redis' default port
  std::string user, password;
  int database = 0;
};

/// Parses "redis://host:port", or "rediss://host:port" for TLS. Optional: "user:password@",
/// ":password@" or "user@" before the host, in which %XX encodes a byte; the port; and "/database"
/// after it. An IPv6 address needs brackets. Throws std::invalid_argument, which describes the
/// mistake without repeating the URL.
RedisAddress parse_redis_address(std::string_view url);

/// True if the rendezvous is a Redis URL.
bool names_redis(std::string_view rendezvous);

/// Rendezvous as shown in messages: *** replaces a user name and password.
std::string without_password(const std::string& rendezvous);

}  // namespace hipress::transport
