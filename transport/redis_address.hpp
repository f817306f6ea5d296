#pragma once

#include <string>
#include <string_view>

namespace hipress::transport {

/// What a URL says of a Redis.
struct RedisAddress {
  bool tls = false;
  std::string host;
  int port = 6379;  ///< Redis' own default
  std::string user, password;
  int database = 0;
};

/// Parses "redis://host:port", or "rediss://host:port" for TLS. "user:password@", ":password@" or
/// "user@" stands before the host where the server asks for it (%XX stands for a byte), and
/// "/database" after the port. Port, user, password and database are optional; an IPv6 address
/// stands in brackets. std::invalid_argument says what is wrong, without the URL.
RedisAddress parse_redis_address(std::string_view url);

/// Whether the rendezvous is a Redis.
bool names_redis(std::string_view rendezvous);

/// The rendezvous for messages: what may be a user's name and password is left out.
std::string without_password(const std::string& rendezvous);

}  // namespace hipress::transport
