#include "transport/redis_store.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>

namespace hipress::transport {
namespace {

/// An answer to what was asked just before the deadline may take so long.
constexpr std::chrono::seconds kGrace{1};

timeval to_timeval(std::chrono::microseconds time) {
  constexpr std::int64_t kPerSecond = 1'000'000;
  return {.tv_sec = static_cast<decltype(timeval::tv_sec)>(time.count() / kPerSecond),
          .tv_usec = static_cast<decltype(timeval::tv_usec)>(time.count() % kPerSecond)};
}

}  // namespace

void RedisStore::Free::operator()(redisContext* connection) const { redisFree(connection); }
void RedisStore::Free::operator()(redisReply* reply) const { freeReplyObject(reply); }

RedisStore::RedisStore(const RedisAddress& address, Clock::time_point deadline)
    : deadline_(deadline),
      connection_(
          redisConnectWithTimeout(address.host.c_str(), address.port, to_timeval(patience()))) {
  if (address.tls || !address.password.empty()) {
    throw std::runtime_error("TLS and passwords are not supported");
  }
  if (!connection_) throw StoreLost("there is no memory for a connection");
  if (connection_->err != 0) throw lost();
}

RedisStore::~RedisStore() = default;

bool RedisStore::add(const std::string& name, std::string_view content, Keep /*keep*/) {
  const Reply reply = command({"SETNX", name, content});
  return reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
}

std::optional<std::string> RedisStore::find(const std::string& name) {
  const Reply reply = command({"GET", name});
  if (reply->type != REDIS_REPLY_STRING) return std::nullopt;
  return std::string(reply->str, reply->len);
}

RedisStore::Reply RedisStore::command(std::initializer_list<std::string_view> words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  if (redisSetTimeout(connection_.get(), to_timeval(patience())) != REDIS_OK) throw lost();
  Reply reply(static_cast<redisReply*>(redisCommandArgv(
      connection_.get(), static_cast<int>(texts.size()), texts.data(), lengths.data())));
  if (!reply) throw lost();
  if (reply->type == REDIS_REPLY_ERROR) {
    throw StoreLost(fmt::format("it refuses: {}", std::string_view(reply->str, reply->len)));
  }
  return reply;
}

std::chrono::microseconds RedisStore::patience() const {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline_ - Clock::now());
  return std::max<std::chrono::microseconds>(left, kGrace);
}

StoreLost RedisStore::lost() const {
  return StoreLost(Clock::now() >= deadline_ ? "it does not answer" : connection_->errstr);
}

}  // namespace hipress::transport
