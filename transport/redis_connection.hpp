#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "transport/endpoint.hpp"
#include "transport/redis_address.hpp"
#include "transport/socket.hpp"

namespace hipress::transport {

/// Byte stream to a Redis over TCP, or over TLS if the address asks for it. With TLS, the server's
/// certificate must be valid for its host, and its authority must be in the PEM file `authorities`
/// or, if that is empty, known to the system. No call waits beyond `until`, except for the host
/// name's lookup, which the system's resolver limits. All calls throw StoreLost when that time is
/// over or the connection fails.
class RedisConnection {
 public:
  /// Throws std::runtime_error with the reason if the server does not exist or its certificate is
  /// refused.
  RedisConnection(const RedisAddress& address, const std::string& authorities,
                  Clock::time_point until);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  void send(std::string_view bytes, Clock::time_point until);
  /// Waits for data. Returns the number of bytes received, at least one.
  std::size_t receive(std::span<char> into, Clock::time_point until);

 private:
  class Tls;

  void connect(const RedisAddress& address, Clock::time_point until);

  Socket socket_;
  std::unique_ptr<Tls> tls_;  ///< null: plain TCP
};

}  // namespace hipress::transport
