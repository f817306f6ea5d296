#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "transport/redis_address.hpp"
#include "transport/store.hpp"

struct redisContext;
struct redisReply;

namespace hipress::transport {

/// Keys in a Redis. Every call ends soon after a deadline at the latest, with StoreLost.
class RedisStore : public Store {
 public:
  RedisStore(const RedisAddress& address, Clock::time_point deadline);
  ~RedisStore() override;
  RedisStore(const RedisStore&) = delete;
  RedisStore& operator=(const RedisStore&) = delete;

  bool add(const std::string& name, std::string_view content, Keep keep) override;
  std::string_view entries() const override { return "keys"; }

 protected:
  std::optional<std::string> find(const std::string& name) override;

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
