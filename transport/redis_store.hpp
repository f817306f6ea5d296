#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "transport/redis_connection.hpp"
#include "transport/redis_replies.hpp"
#include "transport/store.hpp"

namespace hipress::transport {

/// Keys in a Redis. Every call ends soon after a deadline at the latest, with StoreLost, whatever
/// the server sends; no message shows the password.
class RedisStore : public Store {
 public:
  /// The password may also come from HIPRESS_REDIS_PASSWORD, and the authorities for TLS from
  /// HIPRESS_REDIS_CA. std::runtime_error, which says why, if there is no such server, if the
  /// server refuses this client, or if its certificate is refused; StoreLost.
  RedisStore(const RedisAddress& address, Clock::time_point deadline);

  bool add(const std::string& name, std::string_view content, Keep keep) override;
  std::string_view entries() const override { return "keys"; }

 protected:
  std::optional<std::string> find(const std::string& name) override;

 private:
  void greet(const RedisAddress& address);
  /// The reply, whatever it says.
  RedisReply ask(std::initializer_list<std::string_view> words);
  /// StoreLost for an error.
  RedisReply command(std::initializer_list<std::string_view> words);
  Clock::time_point patience() const;
  /// What the server said, without the password that it may repeat.
  std::string words_of(const RedisReply& reply) const;

  const Clock::time_point deadline_;
  const std::string password_;
  RedisConnection connection_;
  RedisReplies replies_;
};

}  // namespace hipress::transport
