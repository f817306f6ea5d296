#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "transport/endpoint.hpp"
#include "transport/redis_address.hpp"
#include "transport/socket.hpp"

namespace hipress::transport {

/// Bytes to and from a Redis over TCP, or over TLS if the address asks for it. With TLS, the
/// server's certificate must be valid for its host. Its authority must be in the PEM file
/// `authorities` or, if that is empty, known to the system. Nothing waits beyond `until`, except
/// for the look-up of the host's name, which takes as long as the system's resolver lets it.
/// All throw StoreLost when the time is over or the connection fails.
class RedisConnection {
 public:
  /// std::runtime_error, which says why, if there is no such server or its certificate is refused.
  RedisConnection(const RedisAddress& address, const std::string& authorities,
                  Clock::time_point until);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  void send(std::string_view bytes, Clock::time_point until);
  /// Waits for some bytes, and returns how many came; at least one.
  std::size_t receive(std::span<char> into, Clock::time_point until);

 private:
  class Tls;

  void connect(const RedisAddress& address, Clock::time_point until);

  Socket socket_;
  std::unique_ptr<Tls> tls_;  ///< null without TLS
};

}  // namespace hipress::transport
