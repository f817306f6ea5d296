#pragma once

#include <gloo/rendezvous/store.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "transport/endpoint.hpp"

struct redisContext;
struct redisReply;

namespace hipress::transport {

/// The store itself has failed; whether a key is there nobody knows.
class StoreLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Keys in a Redis, as gloo's store of that name keeps them. That one waits without end for a
/// server that is stopped, or cut off; here every call ends soon after a deadline at the latest,
/// with StoreLost.
class RedisStore : public gloo::rendezvous::Store {
 public:
  RedisStore(const std::string& host, int port, Clock::time_point deadline);
  ~RedisStore() override;
  RedisStore(const RedisStore&) = delete;
  RedisStore& operator=(const RedisStore&) = delete;

  /// std::runtime_error if there is such a key.
  void set(const std::string& key, const std::vector<char>& data) override;
  /// std::runtime_error if there is none.
  std::vector<char> get(const std::string& key) override;
  void wait(const std::vector<std::string>& keys) override { wait(keys, kDefaultTimeout); }
  /// Until all are there; std::runtime_error when the time is over.
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;

 private:
  struct Free {
    void operator()(redisContext* connection) const;
    void operator()(redisReply* reply) const;
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  Reply command(std::initializer_list<std::string_view> words);
  std::chrono::microseconds patience() const;
  StoreLost lost() const;

  const Clock::time_point deadline_;
  std::unique_ptr<redisContext, Free> connection_;
};

}  // namespace hipress::transport
