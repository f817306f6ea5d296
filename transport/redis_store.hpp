#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "transport/redis_connection.hpp"
#include "transport/redis_replies.hpp"
#include "transport/store.hpp"

namespace hipress::transport {

/// Store in a Redis, with a key per entry. Whatever the server sends, every call ends soon after
/// its deadline at the latest, by throwing StoreLost. No message shows the password.
class RedisStore : public Store {
 public:
  /// Connects. The password may also come from HIPRESS_REDIS_PASSWORD, and the authorities for TLS
  /// from HIPRESS_REDIS_CA. Throws std::runtime_error with the reason if the server does not exist,
  /// it refuses this client, or its certificate is refused; StoreLost if the connection fails.
  RedisStore(const RedisAddress& address, Clock::time_point deadline);

  bool add(const std::string& name, std::string_view content, Keep keep) override;
  std::string_view entries() const override { return "keys"; }

 protected:
  std::optional<std::string> find(const std::string& name) override;

 private:
  void greet(const RedisAddress& address);
  /// Sends a command and returns the reply, which may be an error.
  RedisReply ask(std::initializer_list<std::string_view> words);
  /// Like ask(), but throws StoreLost for an error reply.
  RedisReply command(std::initializer_list<std::string_view> words);
  Clock::time_point patience() const;
  /// Text of a reply, with the password masked.
  std::string words_of(const RedisReply& reply) const;

  const Clock::time_point deadline_;
  const std::string password_;
  RedisConnection connection_;
  RedisReplies replies_;
};

}  // namespace hipress::transport
